#!/bin/sh
# Installs the programs from an archive that scripts/dist.sh made, or removes them: sh install.sh --help
# The one that it installs, share/runner/install.sh, upgrades and removes it. Needs no root. Sums are checked before anything
# is unpacked; a failure leaves everything as it was.
set -eu

usage() {
    cat <<'TEXT'
Usage: sh install.sh [OPTIONS] [FROM]
       sh install.sh --versions [FROM]
       sh install.sh --uninstall [--prefix DIR] [--dry-run]

FROM is a directory or http(s) URL with the archives and SHA256SUMS, or one archive in it. By default, the installed
install.sh uses the source of its installation.

  --prefix DIR       Install into DIR/bin and DIR/share [default: ~/.local, or the prefix of the installation]
  --version VERSION  The version to install, if FROM has several
  --dry-run          Check everything and show the changes, but make none
  --versions         List the versions in FROM for this machine, and install nothing
  --uninstall        Remove the files of an installation, and no others
TEXT
}

say() {
    printf 'install.sh: %s\n' "$*"
}

fail() {
    printf 'install.sh: error: %s\n' "$*" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Called by the trap; what was moved into place goes back in the reverse order.
undo() {
    status=$?
    trap - EXIT HUP INT TERM
    [ "$status" -eq 0 ] || put_back
    [ -z "$work" ] || rm -rf -- "$work"
    if [ -n "$made_prefix" ] && { [ "$status" -ne 0 ] || [ -n "$dry" ]; }; then
        remove_empty "$prefix" "$(dirname -- "$made_prefix")"
    fi
    exit "$status"
}

put_back() {
    [ -n "$work" ] && [ -f "$work/moved" ] || return 0
    while IFS= read -r file; do
        if [ -e "$work/before/$file" ]; then
            mv -f -- "$work/before/$file" "$prefix/$file"
        else
            rm -f -- "$prefix/$file"
            remove_empty "$(dirname -- "$prefix/$file")" "$prefix"
        fi
    done <"$work/moved"
}

# Empty folders go, from the inner one to the outer one, which stays: FOLDER OUTER
remove_empty() {
    folder=$1
    while [ "$folder" != "$2" ] && rmdir -- "$folder" 2>/dev/null; do
        folder=$(dirname -- "$folder")
    done
}

fetch() {
    case $1 in
        http://* | https://*)
            if has curl; then
                curl -fsSL --output "$2" "$1"
            elif has wget; then
                wget -q -O "$2" "$1"
            else
                fail "neither curl nor wget is there: download the folder and name it instead of the URL"
            fi
            ;;
        *) cp -- "$1" "$2" ;;
    esac || fail "cannot get $1"
}

sum_of() {
    if has sha256sum; then
        sha256sum <"$1"
    elif has shasum; then
        shasum -a 256 <"$1"
    else
        fail "neither sha256sum nor shasum is there: sums cannot be checked"
    fi | cut -d ' ' -f 1
}

# The names of the archives for this machine.
list_names() {
    [ "$(uname -s)" = Linux ] || fail "these are programs for Linux, and this is $(uname -s)"
    machine=$(uname -m)
    fetch "${from%/}/SHA256SUMS" "$work/sums"
    sed -n "s/^[0-9a-f]\{64\}  \(runner-[0-9A-Za-z.+-]*-$machine-linux-gnu\.tar\.gz\)\$/\1/p" "$work/sums" >"$work/names"
}

# The name of the one archive that is wanted.
choose() {
    list_names
    [ -z "$wanted" ] || names_are "runner-$wanted-$machine-linux-gnu.tar.gz"
    [ -z "$archive" ] || names_are "$archive"
    case $(grep -c . "$work/names") in
        0) fail "$from has no such archive for $machine${wanted:+ of version $wanted}" ;;
        1) archive=$(cat "$work/names") ;;
        *) fail "$from has several versions: name one with --version" ;;
    esac
}

names_are() {
    grep -Fx -e "$1" "$work/names" >"$work/one" || :
    mv "$work/one" "$work/names"
}

# An archive is in a folder.
split_from() {
    case $from in
        *.tar.gz) archive=${from##*/} && case $from in */*) from=${from%/*} ;; *) from=. ;; esac ;;
    esac
}

# Where the next version is looked for; an address with a login in it is kept nowhere.
origin() {
    case $from in
        *://*@*) ;;
        *://*) printf '%s\n' "$from" ;;
        *) (CDPATH='' cd -- "$from" && pwd) ;;
    esac
}

versions() {
    work=$(mktemp -d) || fail "cannot create a temporary directory"
    split_from
    list_names
    sed "s/^runner-\(.*\)-$machine-linux-gnu\.tar\.gz\$/\1/" "$work/names"
}

get() {
    split_from
    choose
    say "getting $archive"
    fetch "${from%/}/$archive" "$work/archive"
    promised=$(grep -F -e "  $archive" "$work/sums" | cut -d ' ' -f 1)
    [ "$(sum_of "$work/archive")" = "$promised" ] || fail "the sum of $archive is wrong: it is not what was made; nothing was unpacked"
}

# Everything that takes space is written here, beside where it goes; after that there are only renames.
unpack() {
    title=${archive%.tar.gz}
    tar -tzf "$work/archive" >"$work/listed" || fail "$archive cannot be read"
    ! grep -Ev "^$title/" "$work/listed" >&2 || fail "$archive has files outside of its folder"
    ! grep -E '(^|/)\.\.(/|$)' "$work/listed" >&2 || fail "$archive has files outside of its folder"
    tar -xzf "$work/archive" -C "$work" || fail "$archive cannot be unpacked"
    mkdir -p "$work/$title/share/runner" "$work/before"
    origin >"$work/$title/$came_from" || fail "cannot write where it came from"
    (cd "$work/$title" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$work/files"
    printf '%s\n' "$list" >>"$work/files"
    cp "$work/files" "$work/$title/$list" || fail "cannot write the list of what is installed"
    "$work/$title/bin/runnerctl" --version >"$work/told" || fail "the programs do not run here: this system's C library may be too old"
}

# What somebody else put there is never overwritten.
look_in_the_way() {
    while IFS= read -r file; do
        [ -e "$prefix/$file" ] || [ -L "$prefix/$file" ] || continue
        [ -f "$prefix/$list" ] && grep -qFx -e "$file" "$prefix/$list" && [ ! -d "$prefix/$file" ] && continue
        fail "$prefix/$file is in the way, and was not put there by this script: move it, or take another --prefix"
    done <"$work/files"
}

place() {
    : >"$work/moved"
    while IFS= read -r file; do
        mkdir -p "$(dirname -- "$prefix/$file")" "$(dirname -- "$work/before/$file")"
        if [ -e "$prefix/$file" ]; then
            ln -- "$prefix/$file" "$work/before/$file" 2>/dev/null || cp -p -- "$prefix/$file" "$work/before/$file"
        fi
        printf '%s\n' "$file" >>"$work/moved"
        mv -f -- "$work/$title/$file" "$prefix/$file"
    done <"$work/files"
}

# What the version before had, and this one has not.
drop_old() {
    [ -f "$work/before/$list" ] || return 0
    grep -vFx -f "$work/files" "$work/before/$list" | while IFS= read -r file; do
        rm -f -- "$prefix/$file"
        remove_empty "$(dirname -- "$prefix/$file")" "$prefix"
    done
}

# A list that was changed by somebody is not followed out of the prefix.
check_list() {
    ! grep -E '^/|(^|/)\.\.(/|$)' "$prefix/$list" >&2 || fail "$prefix/$list names files outside of $prefix: nothing was changed"
}

install_from() {
    mkdir -p "$prefix" || fail "cannot make $prefix"
    prefix=$(CDPATH='' cd -- "$prefix" && pwd)
    work=$(mktemp -d "$prefix/.runner-install.XXXXXX") || fail "cannot write into $prefix"
    get
    unpack
    [ ! -f "$prefix/$list" ] || check_list
    look_in_the_way
    if [ -n "$dry" ]; then
        say "would install $(cat "$work/told") into $prefix:"
        sed 's/^/  /' "$work/files"
        return 0
    fi
    place
    drop_old
    say "installed $(cat "$work/told"): $(grep -c . "$work/files") files in $prefix/bin and $prefix/share"
    case :$PATH: in
        *":$prefix/bin:"*) ;;
        *) say "put it on PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
    own="sh \"$prefix/share/runner/install.sh\""
    say "next: runnerctl demo; to upgrade it: \"$prefix/bin/runnerctl\" self-update; to remove it: $own --uninstall"
}

uninstall() {
    [ -f "$prefix/$list" ] || fail "nothing that this script installed is in $prefix: $prefix/$list is missing"
    check_list
    if [ -n "$dry" ]; then
        say "would remove from $prefix:"
        sed 's/^/  /' "$prefix/$list"
        return 0
    fi
    # The list goes last: a removal that was ended begins again.
    grep -vFx -e "$list" "$prefix/$list" | while IFS= read -r file; do
        rm -f -- "$prefix/$file"
        remove_empty "$(dirname -- "$prefix/$file")" "$prefix"
    done
    rm -f -- "$prefix/$list"
    remove_empty "$(dirname -- "$prefix/$list")" "$prefix"
    say "removed it from $prefix; runs, records and settings of runnerd are kept"
}

# The outermost folder that is made for it, so that a failure takes it away.
first_missing() {
    folder=$1
    while [ ! -e "$folder" ]; do
        missing=$folder
        folder=$(dirname -- "$folder")
    done
    printf '%s\n' "${missing:-}"
}

prefix='' wanted='' dry='' removing='' from='' work='' archive='' made_prefix=''
list=share/runner/installed
came_from=share/runner/from
listing=''
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage && exit 0 ;;
        --prefix | --version) [ $# -gt 1 ] && [ -n "$2" ] || fail "$1 needs a value" ;;
    esac
    case $1 in
        --prefix) prefix=$2 && shift ;;
        --version) wanted=$2 && shift ;;
        --dry-run) dry=yes ;;
        --uninstall) removing=yes ;;
        --versions) listing=yes ;;
        -*) fail "unknown option $1: see sh install.sh --help" ;;
        *) [ -z "$from" ] || fail "FROM is given twice" && from=$1 ;;
    esac
    shift
done
case $0 in
    */share/runner/install.sh) prefix=${prefix:-${0%/share/runner/install.sh}} ;;
    *) prefix=${prefix:-${HOME:?}/.local} ;;
esac
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
if [ -n "$removing" ]; then
    [ -z "$from" ] || fail "--uninstall takes no FROM"
    uninstall
    exit 0
fi
if [ -z "$from" ] && [ -s "$prefix/$came_from" ]; then
    from=$(cat "$prefix/$came_from")
fi
[ -n "$from" ] || fail "from where? see sh install.sh --help"
trap undo EXIT
trap 'exit 130' HUP INT TERM
if [ -n "$listing" ]; then
    versions
    exit 0
fi
made_prefix=$(first_missing "$prefix")
install_from
