#!/bin/sh
# Builds the daemon, the client and the harness, and runs the harness: scripts/eval.sh [ARGUMENTS OF runner-eval]
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
from=$PWD
find_tools

cd -- "$root"
say "building runnerd, runnerctl and runner-eval"
cargo build --locked --quiet --workspace
target=$(CDPATH='' cd -- "${CARGO_TARGET_DIR:-target}" && pwd)
cd -- "$from"
exec "$target/debug/runner-eval" --cases "$root/eval/cases" "$@"
