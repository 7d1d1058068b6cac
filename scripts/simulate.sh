#!/bin/sh
# Plays whole runs in memory and looks whether every promise is kept: scripts/simulate.sh [--seed N] [--runs M]
# A failure names the seed that brings it back: scripts/simulate.sh --seed N --runs 1
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
find_tools

seed=0 runs=2000
while [ $# -gt 0 ]; do
    case $1 in
        --seed) seed=${2:?--seed needs a number} ;;
        --runs) runs=${2:?--runs needs a number} ;;
        *)
            printf 'error: unknown argument: %s\n\nhint: scripts/simulate.sh [--seed N] [--runs M]\n' "$1" >&2
            exit 2
            ;;
    esac
    shift 2
done
cd -- "$root"
SEED=$seed RUNS=$runs exec cargo test --locked --package runner-simulation --lib -- --nocapture whatever
