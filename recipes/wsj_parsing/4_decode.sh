#!/usr/bin/env bash
# Step 4: parses the test set with the paper's search and rebuilds whole trees.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_options "$@"
DECODE=$ARM_RUN/decode

# Beam 21 and alpha 0.3 (6.3), from the settings file. What the model writes is kept as it is.
arm_step decode --needs data-bin/ "$ARM_RUN/average.pt" corpus/test.words --makes "$DECODE/test.symbols" \
    --log "$ARM_RUN/logs/parse.log" --stdin corpus/test.words --stdout "$DECODE/test.symbols" -- \
    t2017 parse --checkpoint "$ARM_RUN/average.pt" --data-bin "$RUN/data-bin" \
    --beam "$(setting generation.beam)" --alpha "$(setting generation.lenpen)" --linearised

# In the form in which the corpus was made, whatever this call says.
FORM=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["form"])' "$RUN/corpus/corpus.json")
arm_step rebuild --needs "$DECODE/test.symbols" corpus/test.words --makes "$DECODE/test.trees" "$DECODE/repairs.json" \
    --stdin "$DECODE/test.symbols" --stdout "$DECODE/test.trees" -- \
    t2017 trees rebuild --form "$FORM" --words "$RUN/corpus/test.words" --json "$DECODE/repairs.json"
