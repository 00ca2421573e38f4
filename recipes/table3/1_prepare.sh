#!/usr/bin/env bash
# Step 1: takes the data-bin that --data-bin names, or makes the demo's (recipes/demo/1_prepare.sh), once for all rows.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_table3_options "$@"

if [[ -n $DATA_BIN ]]; then
    [[ -z $GENERATED ]] || wrong_call "--generated and --data-bin name two corpora"
    [[ ! -e $RUN/data-bin || $RUN/data-bin -ef $DATA_BIN ]] ||
        fail "$RUN was prepared for the data in $(cd "$RUN/data-bin" && pwd -P); take another --run for $DATA_BIN"
    # A link to where the data was before it moved is replaced: the steps compare the files themselves.
    [[ -e $RUN/data-bin ]] || ln -sfn "$DATA_BIN" "$RUN/data-bin"
else
    [[ ! -L $RUN/data-bin ]] ||
        fail "$RUN was prepared with --data-bin $(readlink "$RUN/data-bin"); say so again, or take another --run"
    bash "$RECIPES/demo/1_prepare.sh" --run "$RUN" ${GENERATED:+--generated}
fi
run python -m recipes.table3.data --data-bin "${DATA_BIN:-$RUN/data-bin}" --run "$RUN"
