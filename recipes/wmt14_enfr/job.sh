# shellcheck shell=bash
# WMT14 English to French: what the numbered scripts share and fairseq's settings have no place for.
JOB=wmt14_enfr
# shellcheck source=../common/library.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common/library.sh"

# The paper trains on 36M of 40.8M pairs and does not say which; these are the limits of ConvS2S, which left 35.5M.
# shellcheck disable=SC2034  # used by the scripts of recipes/wmt14_common
TARGET_LANG=fr MAX_TOKENS=175 MAX_RATIO=1.5 VOCABULARY=32000
# shellcheck disable=SC2034
declare -A SETTINGS_OF=([base]=base.yaml [big]=big_enfr.yaml)
# shellcheck source=../wmt14_common/job.sh
source "$RECIPES/wmt14_common/job.sh"
