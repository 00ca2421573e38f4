# shellcheck shell=bash
# The corpus of Home Assistant's texts in RUN/corpus, or made-up text in its place; for the demo and for jobs on its data.
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=fetch.sh
source "$RECIPES/demo/fetch.sh"

extract() {
    run helper demo.home_assistant --wheel "$WHEEL" --output "$RUN/corpus" \
        --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG" --max-words "$MAX_WORDS"
}

generate_corpus() {
    run helper common.generated_corpus --output "$RUN/corpus" --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG"
}

make_corpus() {
    local FACTS=()
    as_facts output < <(corpus_files)
    FACTS+=(--output "$RUN/corpus/corpus.json" --input "$RECIPES/common/parallel_corpus.py")
    if [[ -z $GENERATED ]] && fetch; then
        step corpus "${FACTS[@]}" --input "$WHEEL" --input "$RECIPES/demo/home_assistant.py" \
            --setting "max_words=$MAX_WORDS" -- extract
    else
        say "GENERATED CORPUS: going on with made-up text, which is no language; all outputs will say so"
        step corpus "${FACTS[@]}" --input "$RECIPES/common/generated_corpus.py" -- generate_corpus
    fi
}
