# shellcheck shell=bash
# Step 1 of both WMT14 recipes: from the archives to a data-bin with its manifest.
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"

prepare_wmt14() {
    local FACTS=()
    run helper wmt14_common.download --target-lang "$TARGET_LANG" --cache "$CACHE" --mirror "$WMT14_MIRROR" \
        --output "$RUN/archives.json"
    run helper wmt14_common.prepare --run "$RUN" --target-lang "$TARGET_LANG" --max-tokens "$MAX_TOKENS" \
        --max-ratio "$MAX_RATIO" --vocabulary "$VOCABULARY" --workers "$WORKERS"
    as_facts input < <(text_files)
    as_facts output < <(data_bin_files)
    step data-bin "${FACTS[@]}" --output "$RUN/data-bin/manifest.json" -- binarise
}

# What the data-bin holds beside fairseq's files: how the text was made, of what, and the raw test set to score against.
describe_data_bin() {
    local partial=$1
    cp "$RUN/text/text_settings.json" "$RUN/text/manifest.json" "$partial"
    mkdir "$partial/raw"
    cp "$RUN/corpus/test.$SOURCE_LANG" "$RUN/corpus/test.$TARGET_LANG" "$partial/raw"
    run helper wmt14_common.manifest complete "$partial"
}

# Lists addresses, sizes and checksums when --dry-run is among the options, and ends.
dry_run_if_asked() {
    local option
    for option in "$@"; do
        [[ $option != --dry-run ]] || {
            helper wmt14_common.download --target-lang "$TARGET_LANG" --cache "$CACHE" --mirror "$WMT14_MIRROR" --dry-run
            exit
        }
    done
}
