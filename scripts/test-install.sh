#!/bin/sh
# Packs programs that are built already, serves them on loopback, and tries install.sh: scripts/test-install.sh [DIR OF PROGRAMS]
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
programs=${1:-${CARGO_TARGET_DIR:-$root/target}/debug}
work=$(mktemp -d)
server=''
end() {
    status=$?
    [ -z "$server" ] || kill "$server"
    rm -rf -- "$work"
    exit "$status"
}
trap end EXIT
trap 'exit 1' HUP INT TERM

tried() {
    say "ok: $*"
}

# The server tells its port as soon as it listens.
serve() {
    mkfifo "$work/port"
    python3 - "$work/dist" 3>"$work/port" 2>/dev/null <<'PYTHON' &
import functools, http.server, os, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
    with os.fdopen(3, "w") as told:
        print(server.server_port, file=told)
    server.serve_forever()
PYTHON
    server=$!
    read -r port <"$work/port"
    url=http://127.0.0.1:$port
}

# It fails, says why, and leaves nothing: REASON OPTIONS...
refused() {
    reason=$1
    shift
    if sh install.sh --prefix "$work/refused/deep" "$@" >"$work/log" 2>&1; then
        fail "installed what must be refused: $reason"
    fi
    grep -q -e "$reason" "$work/log" || { cat "$work/log" >&2 && fail "does not say: $reason"; }
    [ ! -e "$work/refused" ] || fail "a failure left something: $reason"
}

# Programs of the system without the named one, as links in a folder: NAME
without() {
    mkdir -p "$work/without-$1"
    for tool in sh tar gzip cat cp cut dirname find grep ln mkdir mktemp mv rm rmdir sed sha256sum sort uname curl wget; do
        [ "$tool" = "$1" ] || ! has "$tool" || ln -sf "$(command -v "$tool")" "$work/without-$1/$tool"
    done
}

cd -- "$root"
scripts/dist.sh --programs "$programs" --out "$work/dist"
archive=$(basename -- "$work/dist"/*.tar.gz)
serve

mkdir -p "$work/prefix/share" && echo mine >"$work/prefix/share/mine"
sh install.sh --prefix "$work/prefix" --dry-run "$url" >/dev/null
[ "$(find "$work/prefix" -type f)" = "$work/prefix/share/mine" ] || fail "--dry-run wrote something"
sh install.sh --prefix "$work/prefix" "$url" >/dev/null
"$work/prefix/bin/runnerctl" --version >/dev/null
! grep -rqF -e "$work" "$work/prefix/share" || fail "a path of the packing is in what is installed"
mkdir "$work/empty"
sh install.sh --prefix "$work/empty" --dry-run "$work/dist" >/dev/null
[ -d "$work/empty" ] || fail "--dry-run took a folder of somebody else"
tried "installs by curl, and the program runs"
[ "$(cat "$work/prefix/share/runner/from")" = "$url" ] || fail "it does not say where it came from"
version=$("$work/prefix/bin/runnerctl" --version | cut -d ' ' -f 2)
[ "$(sh "$work/prefix/share/runner/install.sh" --versions)" = "$version" ] || fail "--versions does not list what is there"
tried "lists the versions that are where it came from"
ctl=$work/prefix/bin/runnerctl
"$ctl" version --check | grep -q "^available  nothing newer at $url\$" || fail "version --check finds what is not there"
"$ctl" self-update | grep -q ' is the newest there is' || fail "self-update finds what is not there"
mkdir "$work/next"
tar -xzf "$work/dist/$archive" -C "$work/next"
next=$(printf '%s\n' "${archive%.tar.gz}" | sed "s/-$version-/-99.0.0-/")
mv "$work/next/${archive%.tar.gz}" "$work/next/$next"
echo new >"$work/next/$next/share/runner/new"
tar -czf "$work/dist/$next.tar.gz" -C "$work/next" "$next"
(cd "$work/dist" && sha256sum -- *.tar.gz >SHA256SUMS)
"$ctl" version --check | grep -q "^available  99.0.0 at $url\$" || fail "version --check does not find what is newer"
"$ctl" self-update --dry-run | grep -q ' would be replaced by 99.0.0' || fail "--dry-run does not say what it would do"
[ ! -e "$work/prefix/share/runner/new" ] || fail "--dry-run updated"
sed "s/^.*  $next/$(printf '%064d' 0)  $next/" "$work/dist/SHA256SUMS" >"$work/next/SHA256SUMS"
mv "$work/dist/$next.tar.gz" "$work/next/"
! "$ctl" self-update --from "$work/next" >"$work/log" 2>&1 || fail "self-update took what has a wrong sum"
grep -q 'the sum of .* is wrong' "$work/log" || fail "self-update does not say why it failed"
[ ! -e "$work/prefix/share/runner/new" ] || fail "a failure updated"
mv "$work/next/$next.tar.gz" "$work/dist/"
"$ctl" self-update | grep -q ' was replaced by 99.0.0' || fail "self-update does not say what it did"
[ -e "$work/prefix/share/runner/new" ] || fail "self-update did not update"
! "$programs/runnerctl" self-update >"$work/log" 2>&1 || fail "what was built was replaced"
grep -q 'was not installed by install.sh' "$work/log" || fail "it does not say why it is not replaced"
rm "$work/dist/$next.tar.gz"
(cd "$work/dist" && sha256sum -- *.tar.gz >SHA256SUMS)
"$ctl" self-update --to "$version" | grep -q " was replaced by $version" || fail "it goes back to no older one"
[ ! -e "$work/prefix/share/runner/new" ] || fail "an older one leaves what it does not have"
rm "$work/prefix/share/runner/from"
! "$ctl" version --check >"$work/log" 2>&1 || fail "version --check looks nowhere and finds something"
grep -q 'name that with --from' "$work/log" || fail "it does not say that it has to be told where to look"
tried "a newer version is found and installed when that is typed, a bad one is not, and what was built stays"
echo old >"$work/prefix/share/runner/old" && echo share/runner/old >>"$work/prefix/share/runner/installed"
sh "$work/prefix/share/runner/install.sh" "$work/dist/$archive" >/dev/null
[ ! -e "$work/prefix/share/runner/old" ] || fail "a file that only the version before had is still there"
tried "an upgrade by what is installed, from a file, takes what only the version before had"
sh "$work/prefix/share/runner/install.sh" --uninstall >/dev/null
[ "$(cd "$work/prefix" && find . | LC_ALL=C sort | tr '\n' ' ')" = '. ./share ./share/mine ' ] || fail "--uninstall left or took something"
tried "uninstall leaves what is not its own, and nothing else"

mkdir -p "$work/prefix/bin" && echo mine >"$work/prefix/bin/runnerctl"
! sh install.sh --prefix "$work/prefix" "$work/dist" >/dev/null 2>&1 || fail "wrote over a foreign program"
[ "$(cat "$work/prefix/bin/runnerctl")" = mine ] || fail "wrote over a foreign program"
[ -z "$(find "$work/prefix" -name '.runner-install*')" ] || fail "a failure left its folder"
tried "a foreign program is not written over"

without curl
if has wget; then
    PATH=$work/without-curl sh install.sh --prefix "$work/by-wget" "$url" >/dev/null
    "$work/by-wget/bin/runnerctl" --version >/dev/null
    tried "installs by wget where there is no curl"
else
    say "NOT TRIED: wget, which is not here"
fi

refused 'cannot get' "$url/nowhere"
refused 'no such archive' --version 9.9.9 "$url"
tried "what is not there is told"
(ulimit -f 8 && refused 'cannot get' "$work/dist") || exit 1
tried "a full disk leaves nothing"
mkdir "$work/broken" && head -c 100000 "$work/dist/$archive" >"$work/broken/$archive"
cp "$work/dist/SHA256SUMS" "$work/broken/"
refused 'sum .* is wrong' "$work/broken"
(cd "$work/broken" && sha256sum "$archive" >SHA256SUMS)
refused 'cannot be read' "$work/broken"
tried "a wrong sum and a broken archive are refused"
