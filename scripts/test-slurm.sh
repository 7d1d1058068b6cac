#!/bin/sh
# Hands runs to a real Slurm as jobs: scripts/test-slurm.sh [--nightly] [ARGUMENTS OF `cargo nextest run`]
#
# Every test starts a Slurm of its own on loopback and ends it. It takes root, and Debian's packages slurm-wlm and munge;
# neither runs as a service for it. `--nightly` adds what takes Slurm minutes: time limits, preemption.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
profile=slurm
if [ "${1:-}" = --nightly ]; then
    profile=slurm-nightly
    shift
fi
# Servers stand where an ordinary user's PATH does not look.
PATH=$PATH:/usr/sbin:/sbin
for program in slurmctld slurmd munged sbatch; do
    has "$program" || fail "$program is missing: install Debian's slurm-wlm and munge"
done
[ "$(id -u)" -eq 0 ] || fail "Slurm's node has to be started as root"
find_tools
cargo nextest --version >/dev/null 2>&1 || fail "cargo-nextest is missing: its profile chooses these tests"
exec "$root/scripts/test.sh" --workspace --test drive --profile "$profile" "$@"
