#!/usr/bin/env bash
# One machine or several: torchrun starts the processes, and ends all of them when one fails.
# shellcheck disable=SC2034  # ABOUT is printed by --help
ABOUT="One machine or several: torchrun starts the processes, and ends all of them when one fails.
With several machines start it on each, with MASTER_ADDR naming the first and NODE_RANK counting from 0."
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
read_options "$@"
if ((NODES > 1)) && [[ -z ${MASTER_ADDR:-} || -z ${NODE_RANK:-} ]]; then
    fail "--nodes $NODES: set MASTER_ADDR to the first machine's name and NODE_RANK to this one's number, from 0"
fi
program=$(command -v fairseq-train) || fail "fairseq-train is not there; activate an environment that has it"
become torchrun --nnodes "$NODES" --nproc-per-node "$GPUS" --node-rank "${NODE_RANK:-0}" \
    --master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "$PORT" "$program" "${COMMAND[@]:1}"
