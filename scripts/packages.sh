#!/bin/sh
# Makes a .deb and a .rpm of an archive that scripts/dist.sh has made: scripts/packages.sh [--archive FILE] [--out DIR]
# The same archive gives the same packages. Debian's dpkg-deb is needed, and rpmbuild, without which there is no .rpm.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
archive=''
out=''
summary='runs of coding agents, driven through a task tree'
about='runnerd drives coding agents (Codex, Claude, any program) through a strict task
tree in a git repository until a goal is met and the project'\''s own checks are
green: every step is a commit, and what is done is proven from git alone.
runnerctl is its client, runner-ui its page.'

usage() {
    cat <<'TEXT'
Usage: scripts/packages.sh [OPTIONS]

  --archive FILE  The archive [default: the only one in target/dist-archives]
  --out DIR       Where the packages go [default: beside the archive]
TEXT
}

options() {
    while [ $# -gt 0 ]; do
        case $1 in
            --help) usage && exit 0 ;;
            --archive | --out) [ $# -gt 1 ] || fail "$1 needs a value" ;;
            *) fail "unknown option $1: see scripts/packages.sh --help" ;;
        esac
        case $1 in
            --archive) archive=$2 ;;
            --out) out=$2 ;;
        esac
        shift 2
    done
}

# An archive's tree as a distribution wants it; units are those of a program that is where packages put it.
lay_out() {
    tree=$work/tree
    mkdir -p "$tree/usr"
    tar --extract --file "$archive" --strip-components=1 --directory "$tree/usr"
    for unit in runnerd.service runnerd.socket; do
        mkdir -p "$tree/usr/lib/systemd/user"
        sed -e "1s|.*|# Enable it for yourself: systemctl --user enable --now runnerd.socket|" -e 's|@PROGRAM@|/usr/bin/runnerd|' \
            -e '/^@ENVIRONMENT@$/d' -e 's|@LISTEN@|ListenStream=%t/runnerd/runnerd.sock|' \
            "$tree/usr/share/runner/systemd/$unit" >"$tree/usr/lib/systemd/user/$unit"
    done
    rm -r "$tree/usr/share/runner"
    mv "$tree/usr/share/doc/runner" "$tree/usr/share/doc/runnerd"
    gzip -9n "$tree"/usr/share/man/man1/*.1
    find "$tree" -type d -exec chmod 755 {} +
    find "$tree" -type f ! -path '*/bin/*' -exec chmod 644 {} +
}

deb() {
    folder=$work/deb
    cp -a "$tree" "$folder"
    doc=$folder/usr/share/doc/runnerd
    gzip -9n "$doc/CHANGELOG.md"
    gzip -9n >"$doc/changelog.gz" <<TEXT
runnerd ($version) unstable; urgency=medium

  * What is new is in CHANGELOG.md.gz beside this file.

 -- the authors of runnerd <runnerd@example.org>  $(date --utc --rfc-email --date "@$epoch")
TEXT
    cat >"$doc/copyright" <<TEXT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: runnerd

Files: *
Copyright: $(date --utc --date "@$epoch" +%Y) the authors of runnerd
License: MIT or Apache-2.0
 The texts are in LICENSE-MIT beside this file, and in
 /usr/share/common-licenses/Apache-2.0. What the programs are linked with, and
 under which licences, is in DEPENDENCIES.
TEXT
    rm "$doc/LICENSE-APACHE"
    mkdir -p "$folder/DEBIAN"
    cat >"$folder/DEBIAN/control" <<TEXT
Package: runnerd
Version: $version
Architecture: $deb_machine
Maintainer: the authors of runnerd <runnerd@example.org>
Installed-Size: $(du -sk "$folder/usr" | cut -f 1)
Depends: libc6 (>= $glibc), libgcc-s1, git (>= 1:2.39)
Recommends: openssh-client
Section: devel
Priority: optional
Description: $summary
$(printf '%s\n' "$about" | sed 's/^/ /')
TEXT
    (cd -- "$folder" && find usr -type f -exec md5sum {} + | LC_ALL=C sort -k 2) >"$folder/DEBIAN/md5sums"
    dpkg-deb --root-owner-group -Zxz --build "$folder" "$out/runnerd_${version}_$deb_machine.deb" >/dev/null
}

rpm() {
    cat >"$work/runnerd.spec" <<TEXT
Name: runnerd
Version: $version
Release: 1
Summary: $summary
License: MIT OR Apache-2.0
Requires: git >= 2.39
AutoReqProv: yes
%global __os_install_post %{nil}
%global _build_id_links none
%global debug_package %{nil}
%description
$about
%install
cp -a $tree/usr %{buildroot}/
%files
$(cd -- "$tree" && find usr -type f | LC_ALL=C sort | sed -e 's|^|/|' -e '/^.usr.share.doc/s|^|%doc |')
TEXT
    SOURCE_DATE_EPOCH=$epoch rpmbuild -bb --quiet --target "$machine" --buildroot "$work/rpm" --define "_topdir $work/top" \
        --define "_rpmdir $work/rpms" --define 'use_source_date_epoch_as_buildtime 1' --define '_buildhost localhost' \
        --define 'clamp_mtime_to_source_date_epoch 1' \
        "$work/runnerd.spec" >"$work/rpm.log" 2>&1 || { cat "$work/rpm.log" >&2 && fail "rpmbuild has failed"; }
    find "$work/rpms" -name '*.rpm' -exec cp {} "$out/" \;
}

options "$@"
cd -- "$root"
if [ -z "$archive" ]; then
    set -- target/dist-archives/runner-*.tar.gz
    [ $# -eq 1 ] && [ -f "$1" ] || fail "name an archive with --archive; scripts/dist.sh makes one"
    archive=$1
fi
[ -f "$archive" ] || fail "there is no $archive"
has dpkg-deb || fail "dpkg-deb is missing: install Debian's dpkg"
out=${out:-$(dirname -- "$archive")}
mkdir -p "$out"
out=$(cd -- "$out" && pwd)
name=$(basename -- "$archive" .tar.gz)
version=${name#runner-}
version=${version%%-*}
machine=${name#runner-"$version"-}
machine=${machine%-linux-gnu}
case $machine in
    x86_64) deb_machine=amd64 ;;
    aarch64) deb_machine=arm64 ;;
    *) fail "$machine is no machine that packages are made for" ;;
esac
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
trap 'exit 1' HUP INT TERM
epoch=$(tar --list --verbose --full-time --utc --file "$archive" | awk 'NR == 1 { print $4 " " $5 }')
epoch=$(date --utc --date "$epoch" +%s)
export SOURCE_DATE_EPOCH="$epoch"
lay_out
glibc=$(readelf --version-info --wide "$tree"/usr/bin/* | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
deb
if has rpmbuild; then rpm; else say "NOT MADE: the .rpm; rpmbuild is missing"; fi
(cd -- "$out" && find . -maxdepth 1 \( -name '*.tar.gz' -o -name '*.deb' -o -name '*.rpm' \) -printf '%f\n' |
    LC_ALL=C sort | xargs sha256sum -- >"$work/sums")
mv "$work/sums" "$out/SHA256SUMS"
say "in $out: $(cd -- "$out" && echo *)"
