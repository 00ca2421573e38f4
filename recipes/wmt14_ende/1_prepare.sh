#!/usr/bin/env bash
# Step 1: downloads WMT14's archives, cleans, tokenises, learns joint BPE and binarises.
set -euo pipefail
source "$(dirname "$0")/../wmt14_common/job.sh"
read_wmt14_options de "$@"

python -m recipes.wmt14_common.download --target-lang de --cache "$CACHE" --mirror "$WMT14_MIRROR" \
    --output "$RUN/archives.json" ${DRY_RUN:+--dry-run}
[[ -z $DRY_RUN ]] || exit 0

# The paper trains on about 4.5M pairs, nearly all there are, so these limits take out only what cannot be a
# translation: more than 250 Moses tokens, or one side nine times as long as the other. 37,000 tokens of BPE (5.1).
run python -m recipes.wmt14_common.prepare --run "$RUN" --target-lang de \
    --max-tokens 250 --max-ratio 9 --vocabulary "${MINI_VOCABULARY:-37000}" --workers "$WORKERS"

# Beside fairseq's files: codes, how the text was made and of what, and the raw test set to score against.
step data-bin --needs text/{train,valid,test}.bpe.{en,de} text/codes --makes data-bin/ --log logs/preprocess.log -- \
    fairseq-preprocess --source-lang en --target-lang de --joined-dictionary --workers "$WORKERS" \
    --trainpref "$RUN/text/train.bpe" --validpref "$RUN/text/valid.bpe" --testpref "$RUN/text/test.bpe" \
    --destdir "$RUN/data-bin.partial" \
    --then cp "$RUN/text/codes" "$RUN/text/text_settings.json" "$RUN/text/manifest.json" "$RUN/data-bin.partial" \
    --then mkdir "$RUN/data-bin.partial/raw" \
    --then cp "$RUN/corpus/test.en" "$RUN/corpus/test.de" "$RUN/data-bin.partial/raw" \
    --then python -m recipes.wmt14_common.manifest complete "$RUN/data-bin.partial"
