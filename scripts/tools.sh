# shellcheck shell=sh
# What the scripts of this folder share: where the repository is, and the tools that it needs.
# It is sourced, with the path of the sourcing script in $0; nothing outside target/ is written.

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tools=$root/target/tools
just_version=1.59.0

say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

fail() {
    say "error: $*"
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# In an empty home rustup finds no toolchain and cargo no cache: those of the installation are taken then.
find_rust() {
    has cargo || fail "cargo is missing: install Rust, see https://rustup.rs"
    installed=$(dirname -- "$(dirname -- "$(dirname -- "$(command -v cargo)")")")
    if [ -z "${RUSTUP_HOME:-}" ] && [ ! -d "${HOME:-}/.rustup/toolchains" ] && [ -d "$installed/.rustup/toolchains" ]; then
        say "taking the Rust toolchain from $installed/.rustup"
        export RUSTUP_HOME="$installed/.rustup"
    fi
    if [ -z "${CARGO_HOME:-}" ] && [ ! -d "${HOME:-}/.cargo" ] && [ -w "$installed/.cargo" ]; then
        export CARGO_HOME="$installed/.cargo"
    fi
    cargo --version >/dev/null || fail "cargo does not run"
}

# Leaves `just` on PATH, from a package where one is to be had.
find_just() {
    PATH=$tools/venv/bin:$tools/pip/bin:$tools/bin:$PATH
    export PATH
    ! just --version >/dev/null 2>&1 || return 0
    mkdir -p "$tools"
    say "installing just $just_version into target/tools"
    just_from_venv || just_from_pip || just_from_source || say "just cannot be installed: going on without it"
}

just_from_venv() {
    python3 -m venv "$tools/venv" >"$tools/just.log" 2>&1 &&
        "$tools/venv/bin/python3" -m pip install --quiet --no-cache-dir "rust-just==$just_version" >>"$tools/just.log" 2>&1 &&
        just --version >/dev/null 2>&1
}

just_from_pip() {
    python3 -m pip install --quiet --no-cache-dir --target "$tools/pip" "rust-just==$just_version" >>"$tools/just.log" 2>&1 &&
        just --version >/dev/null 2>&1
}

just_from_source() {
    say "building just from source, which takes some minutes"
    cargo install --quiet --locked --root "$tools" --version "$just_version" just >>"$tools/just.log" 2>&1 &&
        just --version >/dev/null 2>&1
}

find_tools() {
    has git || fail "git is missing: install it with the system's package manager"
    find_rust
    find_just
}
