# shellcheck shell=bash
# The demo: what the numbered scripts share and fairseq's settings have no place for.
JOB=demo
# shellcheck source=../common/library.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common/library.sh"

# shellcheck disable=SC2034  # used by the scripts of recipes/common
SOURCE_LANG=en TARGET_LANG=de BPE_MERGES=4000 LAST=5
