#!/usr/bin/env bash
# Step 1: fetches Home Assistant's texts, splits them by component, tokenises, learns BPE and binarises.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 1: fetches Home Assistant's texts, splits them by component, tokenises, learns BPE and binarises.
The wheel (68 MB) is kept in $ROOT/runs/cache, or in the folder that the variable T2017_CACHE names.
When it cannot be downloaded, made-up text takes its place, and every output says so."
# shellcheck source=corpus.sh
source "$here/corpus.sh"
read_options "$@"
make_corpus
prepare_data_bin
