#!/bin/sh
# Makes what is given to others: programs, manual, completions, units and licences in one archive, with its sum.
# scripts/dist.sh [--target MACHINE] [--programs DIR] [--out DIR]; nothing is published, and nothing outside target/ and DIR
# is written.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
names='runnerctl runnerd runnerd-shim runner-ui'
machine=$(uname -m)
programs=''
out=''
papers=''
# The oldest glibc that programs are linked for, as far as zig can be had.
glibc=2.28
zig_version=0.17.1
zigbuild_version=0.24.1
about_version=0.9.3
auditable_version=0.7.7
cyclonedx_version=0.5.9

usage() {
    cat <<'TEXT'
Usage: scripts/dist.sh [OPTIONS]

  --target MACHINE
                  x86_64 or aarch64 [default: this machine]
  --programs DIR  Pack the programs that are in DIR, stripped, and build none: for tests, never for a release
  --papers        With --programs: the texts of all licences and the bills of materials too, as a release has them
  --out DIR       Where archive and SHA256SUMS go [default: target/dist-archives]
TEXT
}

absolute() {
    case $1 in
        /*) printf '%s\n' "$1" ;;
        *) printf '%s\n' "$PWD/$1" ;;
    esac
}

options() {
    while [ $# -gt 0 ]; do
        case $1 in
            --help) usage && exit 0 ;;
            --papers) papers=1 && shift && continue ;;
            --target) [ $# -gt 1 ] || fail "$1 needs x86_64 or aarch64" ;;
            --programs | --out) [ $# -gt 1 ] || fail "$1 needs a folder" ;;
            *) fail "unknown option $1: see scripts/dist.sh --help" ;;
        esac
        case $1 in
            --target) machine=$2 ;;
            --programs) programs=$(absolute "$2") ;;
            --out) out=$(absolute "$2") ;;
        esac
        shift 2
    done
}

# zig brings the symbols of every glibc, and a linker for every machine; a package of Python's holds it.
find_zig() {
    mkdir -p "$tools"
    PATH=$tools/zig/bin:$PATH
    { [ -x "$tools/zig/bin/pip" ] || python3 -m venv "$tools/zig"; } >"$tools/zig.log" 2>&1 &&
        pip install --quiet --no-cache-dir "ziglang==$zig_version" "cargo-zigbuild==$zigbuild_version" >>"$tools/zig.log" 2>&1 &&
        cargo-zigbuild --version >>"$tools/zig.log" 2>&1
}

# A tool of cargo's in this version, which takes a minute or two to be built: CRATE VERSION [FEATURES]
need() {
    PATH=$tools/bin:$PATH
    ! cargo install --list --root "$tools" | grep -qx "$1 v$2:" || return 0
    say "building $1 $2 from source, which takes a minute or two"
    cargo install --quiet --locked --root "$tools" --version "$2" ${3:+--features "$3"} "$1" >&2 || fail "$1 $2 cannot be installed"
}

# Tells how cargo builds with what there is: for the oldest glibc by zig, else with this machine's own linker and for its glibc.
find_linker() {
    built=${CARGO_TARGET_DIR:-$root/target}
    if find_zig; then
        rustup target add "$target" >&2 || fail "the standard library for $target cannot be had"
        linker="zigbuild --target $target.$glibc"
        built=$built/$target
    else
        [ "$machine" = "$(uname -m)" ] || fail "zig cannot be installed, see target/tools/zig.log: nothing links for $machine"
        say "zig cannot be installed, see target/tools/zig.log: programs are linked for the glibc of this machine"
        linker=build
    fi
}

# No path of whoever builds is inside: sources, packages and the toolchain are named by what they are. What a program
# depends on is inside, for `cargo audit bin`. The client is built for its size, in a profile of its own.
build() {
    find_rust
    scripts/ui.sh
    need cargo-auditable "$auditable_version"
    find_linker
    separator=$(printf '\037')
    cargo_home=${CARGO_HOME:-${HOME:?}/.cargo}
    flags="--remap-path-prefix=$root=/runner$separator--remap-path-prefix=$cargo_home=/cargo"
    say "building the release programs"
    # Only what is packed: features of tests are no part of it.
    export CARGO_ENCODED_RUSTFLAGS="$flags"
    # shellcheck disable=SC2086 # a subcommand and its options
    cargo auditable $linker --locked --profile dist --package runnerd --package runner-ui
    # shellcheck disable=SC2086
    cargo auditable $linker --locked --profile dist-client --package runnerctl
    unset CARGO_ENCODED_RUSTFLAGS
    programs=$built/dist
    mv "$built/dist-client/runnerctl" "$programs/"
}

# What writes manual and completions: the program itself, or one of this machine's beside it.
find_client() {
    client=$tree/bin/runnerctl
    [ "$machine" != "$(uname -m)" ] || return 0
    say "building a client for this machine, which writes manual and completions"
    cargo build --locked --quiet --package runnerctl
    client=${CARGO_TARGET_DIR:-$root/target}/debug/runnerctl
}

copy_programs() {
    mkdir -p "$tree/bin"
    for name in $names; do
        [ -x "$programs/$name" ] || fail "$programs/$name is missing"
        install -m 755 "$programs/$name" "$tree/bin/$name"
        [ -z "$given" ] || strip --strip-all "$tree/bin/$name"
    done
}

# A script of completions names the program that wrote it by its path, which is another one where it is installed.
completions() {
    for pair in bash:bash-completion/completions/runnerctl zsh:zsh/site-functions/_runnerctl \
        fish:fish/vendor_completions.d/runnerctl.fish; do
        file=$tree/share/${pair#*:}
        mkdir -p "$(dirname -- "$file")"
        "$client" completions "${pair%%:*}" >"$work/completions"
        sed "s|$client|runnerctl|g" "$work/completions" >"$file"
    done
}

copy_texts() {
    mkdir -p "$tree/share/man/man1" "$tree/share/doc/runner" "$tree/share/runner/systemd"
    "$client" man "$tree/share/man/man1" >/dev/null
    cp docs/man/runnerd.1 docs/man/runner-ui.1 "$tree/share/man/man1/"
    cp LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md "$tree/share/doc/runner/"
    install -m 755 install.sh "$tree/share/runner/"
    cp systemd/runnerd.service systemd/runnerd.socket "$tree/share/runner/systemd/"
    # Names and licences as the packages state them; their texts are with the packages.
    cargo metadata --locked --format-version 1 --filter-platform "$target" >"$work/metadata" ||
        fail "cargo cannot tell what is depended on, see above"
    python3 - "$work/metadata" >"$tree/share/doc/runner/DEPENDENCIES" <<'PYTHON'
import json, sys
for package in sorted(json.load(open(sys.argv[1]))["packages"], key=lambda each: (each["name"], each["version"])):
    if package["source"]:
        print(package["name"], package["version"], package["license"] or package["license_file"] or "NOT STATED", sep="\t")
PYTHON
}

# The texts of licences, and a bill of materials of each program (CycloneDX 1.5), without a path or a time of whoever packs.
copy_papers() {
    find_rust
    need cargo-about "$about_version" cli
    need cargo-cyclonedx "$cyclonedx_version"
    docs=$tree/share/doc/runner
    cargo about generate --locked --workspace about.hbs >"$docs/LICENCES-OF-DEPENDENCIES" 2>"$work/about.log" ||
        { cat "$work/about.log" >&2 && fail "the texts of licences cannot be collected"; }
    name=bill-$$
    SOURCE_DATE_EPOCH=$epoch cargo cyclonedx --quiet --format json --spec-version 1.5 --override-filename "$name" || fail "there is no bill of materials"
    for program in runnerd runnerctl runner-ui; do
        sed "s|$root|/runner|g" "$program/$name.json" >"$docs/$program.cdx.json"
    done
    find . -name "$name.json" -not -path './target/*' -delete
}

# The newest version of glibc that a program asks for is the oldest that it runs with.
needed_glibc() {
    for name in $names; do
        readelf --version-info --wide "$tree/bin/$name"
    done | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1
}

# A folder of whoever built it in a program is told, and refused where the programs were built for this; so is a program
# that does not say what it depends on.
look_inside() {
    for name in $names; do
        [ -n "$given" ] || readelf --section-headers --wide "$tree/bin/$name" | grep -q ' \.dep-v0 ' ||
            fail "$name does not say what it depends on"
        grep -qaF -e "$root/" -e "${HOME:?}/.cargo/" "$tree/bin/$name" || continue
        [ -n "$given" ] || fail "$name has a path of this machine inside"
        say "$name has a path of this machine inside, as programs have that are not built for a release"
    done
}

# The same files give the same archive, whoever packs them, wherever and whenever.
pack() {
    mkdir -p "$out"
    tar --create --format=ustar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
        --mode=u=rwX,go=rX --directory "$work" --file "$work/archive.tar" "$title"
    gzip -n "$work/archive.tar"
    mv "$work/archive.tar.gz" "$out/$title.tar.gz"
    (cd -- "$out" && sha256sum -- *.tar.gz >"$work/sums")
    mv "$work/sums" "$out/SHA256SUMS"
}

options "$@"
cd -- "$root"
given=$programs
case $machine in
    x86_64 | aarch64) target=$machine-unknown-linux-gnu ;;
    *) fail "there are no programs for $machine: x86_64 or aarch64" ;;
esac
[ -z "$given" ] || [ "$machine" = "$(uname -m)" ] || fail "--programs are those of this machine: leave --target away"
out=${out:-$root/target/dist-archives}
for tool in readelf strip tar gzip sha256sum python3 git; do
    has "$tool" || fail "$tool is missing"
done
[ -n "$given" ] || build
[ -z "$given" ] || say "packing the programs of $given: NOT A RELEASE"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
title=runner-$version-$machine-linux-gnu
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
trap 'exit 1' HUP INT TERM
tree=$work/$title
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
copy_programs
find_client
completions
copy_texts
[ -n "$given" ] && [ -z "$papers" ] || copy_papers
look_inside
pack
say "wrote $out/$title.tar.gz; it needs glibc $(needed_glibc) or later"
