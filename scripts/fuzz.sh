#!/usr/bin/env bash
# Feeds a fuzz target with hostile input until it fails: scripts/fuzz.sh TARGET [OPTIONS OF libFuzzer]
# Needs cargo-fuzz. Without a target it lists them.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

if [[ $# -eq 0 ]]; then
    printf 'targets:\n'
    sed -n 's/^name = "\([a-z_]*\)"$/  \1/p' fuzz/Cargo.toml
    exit 2
fi
target=$1
shift
if ! cargo fuzz --version >/dev/null 2>&1; then
    printf 'error: cargo-fuzz is missing\n\nhint: cargo install cargo-fuzz --locked\n' >&2
    exit 1
fi
# What is found on the way stays out of the checked-in corpus. There is no unsafe code for a sanitizer to look at.
found=target/fuzz/corpus/$target
mkdir -p "$found"
exec cargo fuzz run --target-dir target/fuzz --sanitizer none "$target" "$found" "fuzz/corpus/$target" -- -max_len=65536 -rss_limit_mb=2048 "$@"
