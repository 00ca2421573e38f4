# shellcheck shell=bash
# Step 1: downloads WMT14's archives, cleans, tokenises, learns joint BPE and binarises. The same for both languages; sourced by the job's script.
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 1: downloads WMT14's archives, cleans, tokenises, learns joint BPE and binarises.
  --dry-run             list addresses, sizes and checksums, download nothing
$VARIABLES
"
# shellcheck source=../prepare.sh
source "$RECIPES/wmt14_common/prepare.sh"
dry_run_if_asked "$@"
read_wmt14_options "$@"
prepare_wmt14
