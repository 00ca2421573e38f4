#!/usr/bin/env bash
# Step 1: makes the corpus, sequences of digits and the same reversed, and binarises it.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 1: makes the corpus, sequences of digits and the same reversed, and binarises it."
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
read_options "$@"

make_corpus() {
    run helper toy_reversal.reversal --output "$RUN/corpus" --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG"
}

FACTS=()
as_facts output < <(corpus_files)
step corpus "${FACTS[@]}" --output "$RUN/corpus/corpus.json" --input "$here/reversal.py" -- make_corpus
prepare_data_bin
