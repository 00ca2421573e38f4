#!/usr/bin/env bash
# One machine: fairseq itself starts a process for each GPU.
# shellcheck disable=SC2034  # ABOUT is printed by --help
ABOUT="One machine: fairseq itself starts a process for each GPU."
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
read_options "$@"
((NODES == 1)) || STATUS=2 fail "--nodes $NODES: several machines need torchrun.sh or slurm.sh"
become "${COMMAND[@]}"
