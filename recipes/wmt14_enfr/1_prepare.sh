#!/usr/bin/env bash
# Step 1: downloads WMT14's archives, cleans, tokenises, learns joint BPE and binarises.
set -euo pipefail
source "$(dirname "$0")/../wmt14_common/job.sh"
read_wmt14_options fr "$@"

python -m recipes.wmt14_common.download --target-lang fr --cache "$CACHE" --mirror "$WMT14_MIRROR" \
    --output "$RUN/archives.json" ${DRY_RUN:+--dry-run}
[[ -z $DRY_RUN ]] || exit 0

# The paper trains on 36M of 40.8M pairs and does not say which; these are the limits of ConvS2S, which left 35.5M.
# 32,000 tokens (5.1: word pieces, here BPE).
run python -m recipes.wmt14_common.prepare --run "$RUN" --target-lang fr \
    --max-tokens 175 --max-ratio 1.5 --vocabulary "${MINI_VOCABULARY:-32000}" --workers "$WORKERS"

# Beside fairseq's files: codes, how the text was made and of what, and the raw test set to score against.
step data-bin --needs text/{train,valid,test}.bpe.{en,fr} text/codes --makes data-bin/ --log logs/preprocess.log -- \
    fairseq-preprocess --source-lang en --target-lang fr --joined-dictionary --workers "$WORKERS" \
    --trainpref "$RUN/text/train.bpe" --validpref "$RUN/text/valid.bpe" --testpref "$RUN/text/test.bpe" \
    --destdir "$RUN/data-bin.partial" \
    --then cp "$RUN/text/codes" "$RUN/text/text_settings.json" "$RUN/text/manifest.json" "$RUN/data-bin.partial" \
    --then mkdir "$RUN/data-bin.partial/raw" \
    --then cp "$RUN/corpus/test.en" "$RUN/corpus/test.fr" "$RUN/data-bin.partial/raw" \
    --then python -m recipes.wmt14_common.manifest complete "$RUN/data-bin.partial"
