#!/bin/sh
# Builds one crate and runs the tests that a change of it concerns most: scripts/check.sh CRATE|FILE [FILTER...]
# Of a file of src/ these are the unit tests of its module, or all of them if that has none, and those of tests/rules that bear
# the name of the file or of a folder above it; of a file of tests/ those of its program; of a crate all unit tests. The profile is `quick`, in a folder of its own: no other command builds there.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"

# Prints the folder of the crate that a file or folder belongs to.
folder_of() {
    folder=$(CDPATH='' cd -- "$([ -d "$1" ] && printf '%s' "$1" || dirname -- "$1")" && pwd)
    while [ ! -f "$folder/Cargo.toml" ]; do
        folder=$(dirname -- "$folder")
    done
    printf '%s\n' "$folder"
}

# Prints the folder of the crate with a name.
folder_named() {
    found=$(cd -- "$root" && grep -lx "name = \"$1\"" Cargo.toml ./*/Cargo.toml runnerd/*/Cargo.toml | head -n 1)
    [ -n "$found" ] || fail "there is no file and no crate $1"
    dirname -- "$root/$found"
}

# Adds the rules that are typed anew in tests/rules: PATH INSIDE OF THE CRATE
with_rules() {
    names=$(printf '%s\n' "${1#src/}" | tr / '\n' | while read -r name; do
        [ ! -e "$folder/tests/rules/$name.rs" ] || printf '|%s' "$name"
    done)
    [ -n "$names" ] || return 0
    built="$built --test rules" module="${module:-${names#|}}$names"
}

# Sets what is built, and the module whose tests are run, of a path inside of a crate.
choose() {
    if [ -f "$folder/src/lib.rs" ]; then built=--lib; else built=--bins; fi
    module=
    case $1 in
        src/main.rs | src/lib.rs | src/bin/*) ;;
        src/*)
            module=${1#src/} module=${module%%/*} module=${module%.rs}
            grep -rqs '#\[.*test\]' "$folder/src/$module" "$folder/src/$module.rs" || module=
            [ ! -d "$folder/tests/rules" ] || with_rules "${1%.rs}"
            ;;
        tests/*) built=${1#tests/} built=${built%%/*} built="--test ${built%.rs}" ;;
    esac
}

[ $# -gt 0 ] || fail "name a crate or a file: scripts/check.sh runnerd/core/src/tree/select.rs"
find_rust
if [ -e "$1" ]; then
    folder=$(folder_of "$1")
    [ "$folder" != "$root" ] || fail "$1 belongs to no crate"
    inside=$(realpath -- "$1")
    choose "${inside#"$folder"/}"
else
    folder=$(folder_named "$1")
    choose ''
fi
crate=$(sed -n 's/^name = "\(.*\)"$/\1/p' "$folder/Cargo.toml" | head -n 1)
shift
cd -- "$root"
say "$crate $built${module:+, module $module}"
if ! cargo nextest --version >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    exec cargo test --locked --profile quick --package "$crate" $built -- ${module:+"$module::"} "$@"
fi
# shellcheck disable=SC2086
exec cargo nextest run --locked --cargo-profile quick --package "$crate" $built --ignore-default-filter \
    -E "not test(/\bslow::/) and not binary(=agents)${module:+ and test(/^($module)::/)}" "$@"
