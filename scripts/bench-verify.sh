#!/bin/sh
# Measures `runnerctl verify` against `git log --stat`: scripts/bench-verify.sh [ARGUMENTS OF bench-verify]
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
find_tools

cd -- "$root"
say "building a release"
cargo build --locked --workspace --release
say "measuring"
exec target/release/bench-verify "$@"
