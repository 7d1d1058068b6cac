#!/bin/sh
# Builds the workspace and runs its tests: scripts/test.sh [ARGUMENTS OF `cargo nextest run` OR `cargo test`]
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
# shellcheck source=scripts/crates.sh
. "$(dirname -- "$0")/crates.sh"
find_tools

cd -- "$root"
say "building the workspace"
# With examples: cargo chooses the features of dependencies as for tests.
# shellcheck disable=SC2086
cargo build --locked $default_crates --bins --examples
# Each whole run flushes files dozens of times. The tests of every change have them in memory, if there is room and
# programs can be started there; the others, such as those of faults and of file systems, have them on the disk.
in_memory() {
    free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
    [ "${free:-0}" -ge 4000000 ] || return 0
    probe=$(mktemp /dev/shm/probe.XXXXXX) || return 0
    printf '#!/bin/sh\n' >"$probe"
    chmod u+x "$probe"
    ! "$probe" 2>/dev/null || export TMPDIR=/dev/shm
    rm -f "$probe"
}
[ $# -gt 0 ] || [ -n "${TMPDIR:-}" ] || in_memory
if cargo nextest --version >/dev/null 2>&1; then
    say "running the tests with cargo nextest"
    # shellcheck disable=SC2086
    [ $# -gt 0 ] || set -- $default_crates
    exec cargo nextest run --locked "$@"
fi
[ $# -gt 0 ] || set -- --workspace
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
