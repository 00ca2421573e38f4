# shellcheck shell=bash
# WMT14 English to German: what the numbered scripts share and fairseq's settings have no place for.
JOB=wmt14_ende
# shellcheck source=../common/library.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common/library.sh"

# The paper trains on about 4.5M pairs, nearly all there are, so these limits take out only what cannot be a translation.
# shellcheck disable=SC2034  # used by the scripts of recipes/wmt14_common
TARGET_LANG=de MAX_TOKENS=250 MAX_RATIO=9 VOCABULARY=37000
# shellcheck disable=SC2034
declare -A SETTINGS_OF=([base]=base.yaml [big]=big.yaml)
# shellcheck source=../wmt14_common/job.sh
source "$RECIPES/wmt14_common/job.sh"
