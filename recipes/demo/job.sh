# shellcheck shell=bash
# The demo: what the numbered scripts share and fairseq's settings have no place for.
JOB=demo
# shellcheck source=../common/library.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common/library.sh"

# Sentences of at most 20 words (96 % of those of 3 to 60): what a model can learn in minutes.
# shellcheck disable=SC2034  # used by the scripts of recipes/common
SOURCE_LANG=en TARGET_LANG=de MAX_WORDS=20 BPE_MERGES=4000 LAST=5
