# shellcheck shell=bash
# Steps 4 and 5: decode and rebuild, score and report. Sourced by 4_decode.sh and 5_score.sh.
# shellcheck disable=SC2034  # STEPS is read by step

decode_trees() {
    local FACTS=() STEPS=$ARM_RUN/steps folder=$ARM_RUN/decode
    overrides_as_facts
    as_facts input < <(data_bin_files)
    FACTS+=(--input "$ARM_RUN/avg.pt" --input "$RUN/corpus/test.words" --base "$RUN")
    mkdir -p "$folder" "$ARM_RUN/logs"
    step decode "${FACTS[@]}" --settings-file "$SETTINGS" generate --output "$folder/test.symbols" -- write_symbols
    FACTS=(--input "$folder/test.symbols" --input "$RUN/corpus/test.words" --base "$RUN")
    step rebuild "${FACTS[@]}" --output "$folder/test.trees" --output "$folder/repairs.json" -- rebuild_trees
}

# What the model writes, as it is. A tree can only be scored against the words it is for, so they are checked by step 5.
write_symbols() {
    local FLAGS=() output=$ARM_RUN/decode/test.symbols options
    read_flags generate
    options=(--checkpoint "$ARM_RUN/avg.pt" --data-bin "$RUN/data-bin" --beam "$(value_of --beam "${FLAGS[@]}")"
        --alpha "$(value_of --lenpen "${FLAGS[@]}")" --linearised)
    print_command t2017 parse "${options[@]}"
    printf ' <%q >%q\n' "$RUN/corpus/test.words" "$output"
    t2017 parse "${options[@]}" <"$RUN/corpus/test.words" >"$output.partial" 2> >(tee "$ARM_RUN/logs/parse.log" >&2) ||
        fail "t2017 parse failed; what it said is in $ARM_RUN/logs/parse.log"
    mv "$output.partial" "$output"
    same_number_of_lines "$RUN/corpus/test.words" "$output"
}

rebuild_trees() {
    local folder=$ARM_RUN/decode form arguments
    # As the corpus was made, whatever this call says.
    form=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["form"])' "$RUN/corpus/corpus.json")
    arguments=(--form "$form" --words "$RUN/corpus/test.words" --json "$folder/repairs.json")
    print_command t2017 trees rebuild "${arguments[@]}"
    printf ' <%q >%q\n' "$folder/test.symbols" "$folder/test.trees"
    t2017 trees rebuild "${arguments[@]}" <"$folder/test.symbols" >"$folder/test.trees.partial"
    mv "$folder/test.trees.partial" "$folder/test.trees"
    same_number_of_lines "$RUN/corpus/test.gold" "$folder/test.trees"
}

score_trees() {
    local STEPS=$ARM_RUN/steps
    step score --input "$ARM_RUN/decode/test.trees" --input "$RUN/corpus/test.gold" \
        --output "$ARM_RUN/evalb.json" --base "$RUN" -- count_brackets
    helper wsj_parsing.report "$RUN"
}

count_brackets() {
    local arguments=(--gold "$RUN/corpus/test.gold" --test "$ARM_RUN/decode/test.trees" --baseline --json)
    print_command t2017 trees score "${arguments[@]}"
    printf ' >%q\n' "$ARM_RUN/evalb.json"
    t2017 trees score "${arguments[@]}" >"$ARM_RUN/evalb.json.partial"
    mv "$ARM_RUN/evalb.json.partial" "$ARM_RUN/evalb.json"
}
