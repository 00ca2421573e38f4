#!/usr/bin/env bash
# Step 2: trains with fairseq-train, by the settings of configs/demo.yaml (configs/stock/demo.yaml with --stock).
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 2: trains with fairseq-train, by the settings of configs/demo.yaml (configs/stock/demo.yaml with --stock)."
# shellcheck source=../common/train.sh
source "$RECIPES/common/train.sh"
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=../common/flags.sh
source "$RECIPES/common/flags.sh"
read_options "$@"
train
