#!/usr/bin/env bash
# Step 1: fetches Home Assistant's texts, splits them by component, tokenises, learns BPE and binarises.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 1: fetches Home Assistant's texts, splits them by component, tokenises, learns BPE and binarises.
The wheel (68 MB) is kept in $ROOT/runs/cache, or in the folder that the variable T2017_CACHE names.
When it cannot be downloaded, made-up text takes its place, and every output says so."
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=fetch.sh
source "$here/fetch.sh"
read_options "$@"

extract() {
    run helper demo.home_assistant --wheel "$WHEEL" --output "$RUN/corpus" \
        --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG" --max-words "$MAX_WORDS"
}

generate_corpus() {
    run helper common.generated_corpus --output "$RUN/corpus" --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG"
}

FACTS=()
as_facts output < <(corpus_files)
FACTS+=(--output "$RUN/corpus/corpus.json" --input "$RECIPES/common/parallel_corpus.py")
if [[ -z $GENERATED ]] && fetch; then
    step corpus "${FACTS[@]}" --input "$WHEEL" --input "$here/home_assistant.py" \
        --setting "max_words=$MAX_WORDS" -- extract
else
    say "GENERATED CORPUS: going on with made-up text, which is no language; all outputs will say so"
    step corpus "${FACTS[@]}" --input "$RECIPES/common/generated_corpus.py" -- generate_corpus
fi
prepare_data_bin
