# shellcheck shell=bash
# The toy: what the numbered scripts share and fairseq's settings have no place for.
JOB=toy_reversal
# shellcheck source=../common/library.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common/library.sh"

# Tokenised and cut as the text of these two languages would be; digits that stand alone have nothing to merge.
# shellcheck disable=SC2034  # used by the scripts of recipes/common
SOURCE_LANG=en TARGET_LANG=de BPE_MERGES=10 LAST=5
