#!/usr/bin/env bash
# Collects what benchmarks/gpu_check.sh needs on a machine that has Python 3.12, torch and sacrebleu and no network:
#   benchmarks/wheelhouse.sh [FOLDER]      default: benchmarks/wheelhouse; about 23 MB, at most 64 MiB
set -euo pipefail
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
folder=${1:-$root/benchmarks/wheelhouse}
limit=$((64 * 1024 * 1024))
mkdir -p "$folder"

pin() { grep -hE "^$1==" "$root"/requirements/*.txt | head -n 1; }

compiled=("$(pin fairseq-fixed)" "$(pin bitarray)" "$(pin pyyaml)")
plain=("$(pin hydra-core)" "$(pin omegaconf)" "$(pin sacremoses)" "$(pin subword-nmt)" "$(pin joblib)" "$(pin click)" "$(pin mock)")
plain+=("$(pin tqdm)" "$(pin packaging)")
platforms=()
for tag in manylinux_2_28_x86_64 manylinux_2_17_x86_64 manylinux2014_x86_64 manylinux_2_24_x86_64; do
    platforms+=(--platform "$tag")
done
python -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 "${platforms[@]}" \
    --dest "$folder" "${compiled[@]}" "${plain[@]}"
# Only a source archive exists of this one; it is pure Python.
python -m pip wheel --quiet --no-deps --wheel-dir "$folder" "$(pin antlr4-python3-runtime)"
size=$(du -sb "$folder" | cut -f1)
ls -l "$folder"
echo "$folder: $((size / 1024 / 1024)) MiB"
((size <= limit)) || {
    echo "$0: more than 64 MiB" >&2
    exit 1
}
