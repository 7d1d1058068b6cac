#!/bin/sh
# Looks for tests that fail now and then: the default tests five times and the fault matrix twice, every second round beside
# two busy loops, and a long simulation: scripts/stress.sh [ARGUMENTS OF `cargo nextest run`]
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
loops=''

rest() {
    # shellcheck disable=SC2086
    [ -z "$loops" ] || kill $loops
    loops=''
}
trap rest EXIT
trap 'exit 1' HUP INT TERM

busy() {
    for _ in 1 2; do
        sh -c 'while :; do :; done' &
        loops="$loops $!"
    done
}

# Goes on after a round that failed: PROFILE ARGUMENTS...
round() {
    profile=$1
    shift
    count=$((count + 1))
    [ $((count % 2)) -eq 1 ] || busy
    say "round $count: profile $profile${loops:+, beside two busy loops}"
    "$root/scripts/test.sh" --workspace --profile "$profile" "$@" || failed="$failed $count"
    rest
}

find_tools
cargo nextest --version >/dev/null 2>&1 || fail "cargo-nextest is missing: profiles are its own"
count=0
failed=''
for _ in 1 2 3 4 5; do
    round default "$@"
done
for _ in 1 2; do
    round faults "$@"
done
say "the simulation, 10,000 runs that no other test plays"
"$root/scripts/simulate.sh" --seed 1400 --runs 10000 || failed="$failed simulation"
[ -z "$failed" ] || fail "rounds that failed:$failed"
say "no round failed"
