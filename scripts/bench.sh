#!/bin/sh
# Measures the product: scripts/bench.sh [ARGUMENTS OF runner-bench]
# Without arguments everything that has a budget is measured, which takes about half an hour. `power` enumerates the
# states of a disk after a power cut.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
find_tools

cd -- "$root"
if [ "${1:-}" = power ]; then
    # The simulated disk is part of the daemon's tests; STATES sets how much of it is enumerated.
    say "enumerating power cuts"
    STATES=${STATES:-6} cargo test --locked --package runnerd --lib -- worker::power --nocapture --test-threads 1 2>&1 |
        grep -E "states|violat|test result"
    exit
fi
say "building a release"
cargo build --locked --release --package runnerd --package runnerctl --package runner-bench
say "measuring"
exec target/release/runner-bench "$@"
