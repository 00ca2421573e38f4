#!/usr/bin/env bash
# Step 4: translates the test set with fairseq-generate and with t2017 translate, which must agree.
set -euo pipefail
source "$(dirname "$0")/../common.sh"
read_options "$@"
DECODE=$ARM_RUN/decode

# The command that fairseq's users know; the D lines of its output are raw text.
WRITTEN_FROM=configs/demo.yaml
FLAGS=(
    # data, and how it is decoded
    "$RUN/data-bin" --task t2017_translation --source-lang en --target-lang de --search paper
    --length-penalty-form gnmt --extra-length 50
    # search (6.1)
    --beam 4 --lenpen 0.6
    # batches (5.1)
    --max-tokens 1000 --required-batch-size-multiple 1 --num-workers 0
    # plugin, seed, log
    --user-dir "$(t2017 user-dir)" --seed 1 --log-format simple --log-interval 50
)
flags_step generate generate --needs data-bin/ "$ARM_RUN/average.pt" corpus/test.en --makes "$DECODE/generate.de" \
    --log "$ARM_RUN/logs/generate.log" -- \
    fairseq-generate "${FLAGS[@]}" --path "$ARM_RUN/average.pt" --gen-subset test \
    --tokenizer moses --bpe subword_nmt --bpe-codes "$RUN/data-bin/codes" --scoring sacrebleu \
    --then python -m recipes.common.hypotheses extract --generated "$ARM_RUN/logs/generate.log" \
    --source "$RUN/corpus/test.en" --output "$DECODE/generate.de"

# Raw text in, raw text out.
[[ $ARM == t2017 ]] || exit 0
arm_step translate --needs data-bin/ "$ARM_RUN/average.pt" corpus/test.en "$DECODE/generate.de" \
    --makes "$DECODE/translate.de" "$DECODE/agreement.json" --log "$ARM_RUN/logs/translate.log" \
    --stdin corpus/test.en --stdout "$DECODE/translate.de" -- \
    t2017 translate --checkpoint "$ARM_RUN/average.pt" --data-bin "$RUN/data-bin"  \
    --then python -m recipes.common.hypotheses compare "$DECODE/generate.de" "$DECODE/translate.de" \
    --output "$DECODE/agreement.json"
