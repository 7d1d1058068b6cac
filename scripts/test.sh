#!/bin/sh
# Builds the workspace and runs its tests: scripts/test.sh [ARGUMENTS OF `cargo nextest run` OR `cargo test`]
# With arguments the documentation's examples are left out.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
find_tools

cd -- "$root"
say "building the workspace"
cargo build --locked --workspace
if [ $# -eq 0 ]; then
    say "running the documentation's examples"
    cargo test --locked --workspace --doc --quiet
    set -- --workspace
    # Its tests have a profile of their own: without them a fresh clone builds for half a minute less.
    ! cargo nextest --version >/dev/null 2>&1 || set -- "$@" --exclude runner-git
fi
if cargo nextest --version >/dev/null 2>&1; then
    say "running the tests with cargo nextest"
    exec cargo nextest run --locked "$@"
fi
# The real agents are there only where scripts/test-agents.sh has installed them.
case " $* " in
    *" --test agents "* | *" -- "*) others= ;;
    *) others='--bins --lib --tests' ;;
esac
# `--profile` is nextest's: cargo would take it for one of its own. A profile chooses among the tests; all run here.
for argument; do
    shift
    case $argument in
        --profile) skip=1 ;;
        --profile=*) ;;
        *) [ -n "${skip:-}" ] || set -- "$@" "$argument"; skip= ;;
    esac
done
say "running the tests with cargo test (cargo-nextest is faster, where it is installed)"
[ -n "$others" ] || exec cargo test --locked "$@"
# shellcheck disable=SC2086
exec cargo test --locked $others "$@" -- --skip real::
