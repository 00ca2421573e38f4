#!/usr/bin/env bash
# Step 4: translates the validation set with the model of one row (fairseq-generate).
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 4: translates the validation set with the model of one row (fairseq-generate)."
# shellcheck source=../common/finish.sh
source "$RECIPES/common/finish.sh"
# shellcheck source=../common/flags.sh
source "$RECIPES/common/flags.sh"

# The path of the codes is told from the data-bin.
set_text_flags() {
    local flag before=""
    for flag in "${ROW_TEXT_FLAGS[@]}"; do
        [[ $before != --bpe-codes ]] || flag=$RUN/data-bin/$flag
        TEXT_FLAGS+=("$flag")
        before=$flag
    done
}

read_table3_options "$@"
read_the_data_and_the_row check
# Both commands agree, as the demo shows.
# shellcheck disable=SC2034  # used by decode
ALSO_TRANSLATE=""
decode
