#!/usr/bin/env bash
# Step 4: translates newstest2014, all 3,003 lines, with fairseq-generate and the paper's search.
set -euo pipefail
source "$(dirname "$0")/../wmt14_common/job.sh"
read_wmt14_options fr "$@"
OVERRIDES+=("${MINI_DECODE[@]}")
OUTPUT=$ARM_RUN/decode/generate.fr

WRITTEN_FROM=configs/base.yaml WRITTEN_WITH=task.target_lang=fr
FLAGS=(
    # data, and how it is decoded
    "$RUN/data-bin" --task t2017_translation --source-lang en --target-lang fr --search paper
    --length-penalty-form gnmt --extra-length 50
    # search (6.1)
    --beam 4 --lenpen 0.6 --min-len=-1
    # batches (5.1)
    --max-tokens 3125 --required-batch-size-multiple 1 --num-workers 2
    # plugin, seed, log
    --user-dir "$(t2017 user-dir)" --seed 1 --fp16 --log-format simple --log-interval 100
)
flags_step generate generate --needs data-bin/ "$ARM_RUN/average.pt" corpus/test.en --makes "$OUTPUT" \
    --log "$ARM_RUN/logs/generate.log" -- \
    fairseq-generate "${FLAGS[@]}" --path "$ARM_RUN/average.pt" --gen-subset test \
    --tokenizer moses --bpe subword_nmt --bpe-codes "$RUN/data-bin/codes" --scoring sacrebleu \
    --then python -m recipes.common.hypotheses extract --generated "$ARM_RUN/logs/generate.log" \
    --source "$RUN/corpus/test.en" --output "$OUTPUT"
