# shellcheck shell=bash
# Steps 3 to 5: average, decode, score. The job sets SOURCE_LANG, TARGET_LANG and LAST, how many checkpoints to average.
# shellcheck disable=SC2034  # STEPS is read by step

ALSO_TRANSLATE=yes  # decode also with t2017 translate, which must agree
SCORE_FLAGS=()      # further flags of t2017 score

average() {
    local FACTS=() STEPS=$ARM_RUN/steps
    as_facts input < <(find "$ARM_RUN/checkpoints" -name 'checkpoint_*_*.pt' | sort)
    ((${#FACTS[@]})) || fail "there are no checkpoints in $ARM_RUN/checkpoints; run 2_train.sh first"
    step average "${FACTS[@]}" --setting "last=$LAST" --output "$ARM_RUN/avg.pt" --base "$RUN" -- \
        run t2017 average --last "$LAST" --output "$ARM_RUN/avg.pt" "$ARM_RUN/checkpoints"
}

decode() {
    local FACTS=() STEPS=$ARM_RUN/steps folder=$ARM_RUN/decode
    overrides_as_facts
    as_facts input < <(data_bin_files)
    FACTS+=(--input "$ARM_RUN/avg.pt" --input "$RUN/corpus/$SUBSET.$SOURCE_LANG" --base "$RUN")
    mkdir -p "$folder" "$ARM_RUN/logs"
    step generate "${FACTS[@]}" --settings-file "$SETTINGS" generate --output "$folder/generate.$TARGET_LANG" -- generate
    if [[ $ARM == t2017 && -n $ALSO_TRANSLATE ]]; then
        step translate "${FACTS[@]}" --settings-file "$SETTINGS" generate \
            --output "$folder/translate.$TARGET_LANG" --output "$folder/agreement.json" \
            --input "$folder/generate.$TARGET_LANG" -- translate
    fi
}

# The command that fairseq's users know; its D lines are raw text.
generate() {
    local FLAGS=() TEXT_FLAGS=()
    read_flags generate
    set_text_flags
    rm -f "$ARM_RUN/logs/generate.log"
    run_logged "$ARM_RUN/logs/generate.log" fairseq-generate "${FLAGS[@]}" --path "$ARM_RUN/avg.pt" --gen-subset "$SUBSET" \
        "${TEXT_FLAGS[@]}" --scoring sacrebleu
    run helper common.hypotheses extract --generated "$ARM_RUN/logs/generate.log" \
        --source "$RUN/corpus/$SUBSET.$SOURCE_LANG" --output "$ARM_RUN/decode/generate.$TARGET_LANG"
    same_number_of_lines "$RUN/corpus/$SUBSET.$SOURCE_LANG" "$RUN/corpus/$SUBSET.$TARGET_LANG" \
        "$ARM_RUN/decode/generate.$TARGET_LANG"
}

# What makes raw text of the model's units; a job whose text is made in another way has a function of its own with this name.
set_text_flags() {
    TEXT_FLAGS=(--tokenizer moses --bpe subword_nmt --bpe-codes "$RUN/data-bin/codes")
}

# Raw text in, raw text out: what the command above wrote must come out again.
translate() {
    local output=$ARM_RUN/decode/translate.$TARGET_LANG
    printf '+ t2017 translate --checkpoint %q --data-bin %q <%q >%q\n' \
        "$ARM_RUN/avg.pt" "$RUN/data-bin" "$RUN/corpus/$SUBSET.$SOURCE_LANG" "$output"
    t2017 translate --checkpoint "$ARM_RUN/avg.pt" --data-bin "$RUN/data-bin" \
        <"$RUN/corpus/$SUBSET.$SOURCE_LANG" >"$output.partial" 2>"$ARM_RUN/logs/translate.log" ||
        { tail -n 5 "$ARM_RUN/logs/translate.log" >&2 && fail "t2017 translate failed"; }
    mv "$output.partial" "$output"
    same_number_of_lines "$RUN/corpus/$SUBSET.$SOURCE_LANG" "$output"
    run helper common.hypotheses compare "$ARM_RUN/decode/generate.$TARGET_LANG" "$output" \
        --output "$ARM_RUN/decode/agreement.json"
}

score() {
    local STEPS=$ARM_RUN/steps
    step score "${SCORE_FLAGS[@]/#/--setting=}" --input "$ARM_RUN/decode/generate.$TARGET_LANG" \
        --input "$RUN/corpus/$SUBSET.$TARGET_LANG" --output "$ARM_RUN/bleu.json" --base "$RUN" -- score_translation
    helper common.report "$RUN"
}

score_translation() {
    local command=(t2017 score --target-lang "$TARGET_LANG" --hyp "$ARM_RUN/decode/generate.$TARGET_LANG"
        --ref "$RUN/corpus/$SUBSET.$TARGET_LANG" "${SCORE_FLAGS[@]}" --json)
    print_command "${command[@]}"
    printf '\n'
    "${command[@]}" >"$ARM_RUN/bleu.json.partial"
    mv "$ARM_RUN/bleu.json.partial" "$ARM_RUN/bleu.json"
}
