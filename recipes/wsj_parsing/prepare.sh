# shellcheck shell=bash
# Step 1: from trees to RUN/data-bin, which holds all that parsing needs later. Sourced by 1_prepare.sh.
# data_bin_files here replaces the one of recipes/common/prepare.sh: two dictionaries, and silver trees if there are any.

corpus_files() {
    local split
    while IFS= read -r split; do
        printf '%s\n' "$RUN/corpus/$split."{words,tree}
    done < <(splits)
    printf '%s\n' "$RUN/corpus/"{valid,test}.gold "$RUN/corpus/corpus.json"
}

text_files() {
    local split
    while IFS= read -r split; do
        printf '%s\n' "$RUN/text/$split.bpe."{words,tree}
    done < <(splits)
    echo "$RUN/text/codes"
}

data_bin_files() {
    local split side
    for side in words tree; do
        echo "$RUN/data-bin/dict.$side.txt"
        while IFS= read -r split; do
            printf '%s\n' "$RUN/data-bin/$split.words-tree.$side."{bin,idx}
        done < <(splits)
    done
    printf '%s\n' "$RUN/data-bin/"{codes,text_settings.json}
}

prepare_parsing() {
    local FACTS=()
    as_facts output < <(corpus_files)
    as_facts input < <(printf '%s\n' "$RECIPES/wsj_parsing/"{corpus,splits,grammar}.py)
    if [[ -n $TREEBANK ]]; then
        as_facts input < <(find "$TREEBANK" -name '*.mrg' | sort)
    else
        say "GENERATED TREES: going on with trees from a small grammar, which are no English; all outputs will say so"
    fi
    [[ -z $SILVER ]] || FACTS+=(--input "$SILVER")
    step corpus "${FACTS[@]}" --setting "files=${FILES[train]} ${FILES[valid]} ${FILES[test]}" \
        --setting "form=$FORM" -- make_corpus
    FACTS=()
    as_facts input < <(corpus_files)
    as_facts output < <(text_files)
    step text "${FACTS[@]}" --setting "merges=$SOURCE_MERGES" -- cut_words
    FACTS=()
    as_facts input < <(text_files)
    as_facts output < <(data_bin_files)
    step data-bin "${FACTS[@]}" -- binarise
}

make_corpus() {
    local split options=(--form "$FORM") TREES=${T2017_GENERATED_TREES:-4000}
    [[ -z $TREEBANK ]] && options+=(--generated-trees "$TREES") || options+=(--treebank "$TREEBANK")
    for split in train valid test; do
        [[ -z ${FILES[$split]} ]] || options+=("--$split-files" "${FILES[$split]}")
    done
    [[ -z $SILVER ]] || options+=(--silver "$SILVER")
    rm -rf "$RUN/corpus"
    run helper wsj_parsing.corpus --output "$RUN/corpus" "${options[@]}"
}

cut_words() {
    rm -rf "$RUN/text"
    run_logged "$RUN/logs/text.log" helper wsj_parsing.units --corpus "$RUN/corpus" --output "$RUN/text" \
        --merges "$SOURCE_MERGES"
}

binarise() {
    local partial=$RUN/data-bin.partial dictionaries=()
    rm -rf "$partial" "$partial.silver"
    if [[ -n $SILVER ]]; then
        binarise_silver "$partial.silver"
        dictionaries=(--srcdict "$partial.silver/dict.words.txt" --tgtdict "$partial.silver/dict.tree.txt")
    fi
    run_logged "$RUN/logs/preprocess.log" fairseq-preprocess --source-lang words --target-lang tree \
        --trainpref "$RUN/text/train.bpe" --validpref "$RUN/text/valid.bpe" --testpref "$RUN/text/test.bpe" \
        "${dictionaries[@]}" --destdir "$partial"
    [[ -z $SILVER ]] || take_silver "$partial.silver" "$partial"
    cp "$RUN/text/codes" "$partial/codes"
    run python -m t2017_plugin.text.filters describe --data-bin "$partial" --source-lang words --target-lang tree \
        --tokenizer none --bpe-codes codes
    rm -rf "$RUN/data-bin"
    mv "$partial" "$RUN/data-bin"
}

# Dictionaries of gold and silver trees together, and the silver ones in the same indices.
binarise_silver() {
    local side
    for side in words tree; do
        cat "$RUN/text/"{train,train1}.bpe."$side" >"$RUN/text/both.bpe.$side"
    done
    run_logged "$RUN/logs/preprocess.log" fairseq-preprocess --source-lang words --target-lang tree \
        --trainpref "$RUN/text/both.bpe" --dict-only --destdir "$1"
    run_logged "$RUN/logs/preprocess.log" fairseq-preprocess --source-lang words --target-lang tree \
        --trainpref "$RUN/text/train1.bpe" --srcdict "$1/dict.words.txt" --tgtdict "$1/dict.tree.txt" \
        --destdir "$1/binary"
    rm "$RUN/text/both.bpe."*
}

# fairseq reads train1 beside train.
take_silver() {
    local file
    for file in "$1/binary/"train.words-tree.*; do
        mv "$file" "$2/train1.${file##*/train.}"
    done
    rm -rf "$1"
}
