# shellcheck shell=bash
# The second half of 1_prepare: from RUN/corpus, raw text, to RUN/data-bin, which holds all that decoding needs later.
# The job sets SOURCE_LANG, TARGET_LANG and BPE_MERGES.

corpus_files() {
    local split
    for split in train valid test; do
        printf '%s\n' "$RUN/corpus/$split.$SOURCE_LANG" "$RUN/corpus/$split.$TARGET_LANG"
    done
}

text_files() {
    local split
    for split in train valid test; do
        printf '%s\n' "$RUN/text/$split.bpe.$SOURCE_LANG" "$RUN/text/$split.bpe.$TARGET_LANG"
    done
    echo "$RUN/text/codes"
}

data_bin_files() {
    local split language
    for language in "$SOURCE_LANG" "$TARGET_LANG"; do
        echo "$RUN/data-bin/dict.$language.txt"
        for split in train valid test; do
            printf '%s\n' "$RUN/data-bin/$split.$SOURCE_LANG-$TARGET_LANG.$language."{bin,idx}
        done
    done
    printf '%s\n' "$RUN/data-bin/"{codes,text_settings.json}
}

prepare_data_bin() {
    local FACTS=()
    as_facts input < <(corpus_files)
    as_facts output < <(text_files)
    step text "${FACTS[@]}" --setting "bpe_merges=$BPE_MERGES" -- tokenise_and_cut
    FACTS=()
    as_facts input < <(text_files)
    as_facts output < <(data_bin_files)
    step data-bin "${FACTS[@]}" -- binarise
}

tokenise_and_cut() {
    local split
    run_logged "$RUN/logs/text.log" helper common.prepare_text --corpus "$RUN/corpus" --output "$RUN/text" \
        --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG" --merges "$BPE_MERGES"
    for split in train valid test; do
        same_number_of_lines "$RUN/corpus/$split.$SOURCE_LANG" "$RUN/corpus/$split.$TARGET_LANG" \
            "$RUN/text/$split.bpe.$SOURCE_LANG" "$RUN/text/$split.bpe.$TARGET_LANG"
    done
}

binarise() {
    local partial=$RUN/data-bin.partial
    rm -rf "$partial"
    run_logged "$RUN/logs/preprocess.log" fairseq-preprocess --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG" \
        --trainpref "$RUN/text/train.bpe" --validpref "$RUN/text/valid.bpe" --testpref "$RUN/text/test.bpe" \
        --joined-dictionary --workers "${WORKERS:-1}" --destdir "$partial"
    cp "$RUN/text/codes" "$partial/codes"
    describe_data_bin "$partial"
    rm -rf "$RUN/data-bin"
    mv "$partial" "$RUN/data-bin"
}

# A job whose text is made in another way has a function of its own with this name.
describe_data_bin() {
    run python -m t2017_plugin.text.filters describe --data-bin "$1" \
        --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG" --bpe-codes codes
}
