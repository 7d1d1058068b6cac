#!/bin/sh
# Builds the daemon and the client and shows a complete run: scripts/demo.sh [OPTIONS OF `runnerctl demo`]
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
from=$PWD
find_tools

cd -- "$root"
say "building runnerd and runnerctl"
cargo build --locked --quiet --package runnerd --package runnerctl
say "starting the demo"
exec "${CARGO_TARGET_DIR:-target}/debug/runnerctl" -C "$from" demo "$@"
