#!/bin/sh
# Measures what survives kills, power cuts and floods: scripts/bench-survival.sh [ARGUMENTS OF bench-survival]
# Without arguments everything is measured, which takes about half an hour.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
find_tools

cd -- "$root"
say "building a release"
cargo build --locked --workspace --release
if [ $# -eq 0 ]; then
    # The simulated disk is part of the daemon's tests; STATES sets how much of it is enumerated.
    say "enumerating power cuts"
    STATES=${STATES:-6} cargo test --locked --package runnerd --lib -- worker::power --nocapture --test-threads 1 2>&1 |
        grep -E "states|violat|test result"
fi
say "measuring"
exec target/release/bench-survival "$@"
