#!/bin/sh
# Lets the daemon die at each of the first calls that make something durable or change a name, in a run and while each of
# a person's requests is answered: scripts/sweep-kills.sh [TEST]; FROM, STEP and LIMIT choose other calls.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
find_tools

cd -- "$root"
rows='row_50|row_51|row_52|row_98'
say "building the workspace"
cargo build --locked --workspace
# All calls of one row take longer than a test may.
FROM=${FROM:-1} STEP=${STEP:-1} LIMIT=${LIMIT:-60} exec cargo nextest run --locked --workspace --profile sweep \
    -E "binary(=faults) and test(/${1:-$rows}/)"
