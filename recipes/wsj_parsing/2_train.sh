#!/usr/bin/env bash
# Step 2: trains with fairseq-train, by the settings of configs/parsing.yaml or configs/parsing_small.yaml.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 2: trains with fairseq-train, by the settings of configs/parsing.yaml or configs/parsing_small.yaml."
# shellcheck source=../common/train.sh
source "$RECIPES/common/train.sh"
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=prepare.sh
source "$here/prepare.sh"
# shellcheck source=../common/flags.sh
source "$RECIPES/common/flags.sh"
read_options "$@"
paper_size_needs_a_gpu
train
