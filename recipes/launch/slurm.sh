#!/usr/bin/env bash
#SBATCH --job-name=t2017
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --output=t2017-%j.log
# Several machines under Slurm: a task on each, in which fairseq starts a process for each GPU.
# shellcheck disable=SC2034  # ABOUT is printed by --help
ABOUT="Several machines under Slurm: a task on each, in which fairseq starts a process for each GPU.
  sbatch --nodes 4 recipes/launch/slurm.sh --data-bin DATA --save-dir RUN --gpus 8
Submit it from the checkout, with data and run on a file system that all machines see. A job that is requeued resumes
from its last checkpoint; the plugin writes each whole or not at all."
# Slurm runs a copy of this file from its own folder.
launch=${SLURM_SUBMIT_DIR:-.}/recipes/launch
[[ -f $launch/common.sh ]] || launch=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=common.sh
source "$launch/common.sh"
read_options "$@"
# fairseq asks scontrol for the first machine's name and counts ranks from the machines' numbers.
become srun --kill-on-bad-exit=1 "${COMMAND[@]}" --distributed-port "$PORT"
