#!/bin/sh
# Makes packages of programs that are built already and tries them as a stranger does: scripts/test-packages.sh [DIR OF PROGRAMS]
#
# mmdebstrap makes an empty Debian of this machine's sources; in it the .deb is installed, replaced amid a run, removed and
# purged, and a new ordinary user plays the demo. It takes root and Debian's packages mmdebstrap and lintian; the .rpm is
# looked at where there is rpm.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
programs=${1:-${CARGO_TARGET_DIR:-$root/target}/debug}
for program in mmdebstrap lintian dpkg-deb; do
    has "$program" || fail "$program is missing: install Debian's packages mmdebstrap, lintian and dpkg"
done
[ "$(id -u)" -eq 0 ] || fail "an empty Debian is made as root"
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd -- "$root"

tried() {
    say "ok: $*"
}

say "packing the programs of $programs"
scripts/dist.sh --programs "$programs" --out "$work/first" 2>"$work/log" || { cat "$work/log" >&2 && exit 1; }
archive=$(echo "$work"/first/*.tar.gz)
mkdir "$work/next"
cp "$archive" "$work/next/$(basename -- "$archive" | sed 's/^runner-[^-]*/runner-99.0.0/')"
packed() {
    scripts/packages.sh --archive "$1" --out "$2" 2>"$work/log" || { cat "$work/log" >&2 && exit 1; }
}
packed "$archive" "$work/first"
packed "$(echo "$work"/next/*.tar.gz)" "$work/next"
mkdir "$work/again"
packed "$archive" "$work/again"
for package in "$work"/again/*.deb "$work"/again/*.rpm; do
    [ ! -e "$package" ] || cmp "$package" "$work/first/$(basename -- "$package")"
done
tried "the same archive gives the same packages"
lintian --fail-on error --tag-display-limit 0 "$work"/first/*.deb >"$work/log" 2>&1 || { cat "$work/log" >&2 && exit 1; }
tried "lintian has no errors"
if has rpm; then
    rpm --query --package --list "$work"/first/*.rpm 2>/dev/null | grep -qx /usr/bin/runnerd || fail "the .rpm has no runnerd"
    rpm --query --package --requires "$work"/first/*.rpm 2>/dev/null | grep -q '^libc.so.6(GLIBC' || fail "the .rpm asks for no libc"
    tried "the .rpm has the programs, and asks for what they need"
fi

cp "$work"/first/*.deb "$work/first.deb"
cp "$work"/next/*.deb "$work/next.deb"
cat >"$work/try.sh" <<'SH'
set -eu
cd /
say() { printf 'in the empty Debian: %s\n' "$*"; }
ask() { su - stranger -c "$*"; }
apt-get install -y -qq /first.deb >/dev/null
say "installed, with what it depends on: $(runnerctl --version)"
useradd --create-home --shell /bin/bash stranger
ask 'runnerctl demo --clean --quiet' >/demo.log 2>&1 || { cat /demo.log && exit 1; }
say 'a new user has played the demo'
ask 'man -w runnerctl >/dev/null 2>&1 || test -f /usr/share/man/man1/runnerctl.1.gz'
ask 'test -f /usr/share/bash-completion/completions/runnerctl'
ask 'mkdir p && cd p && git init -q -b main && mkdir -p .runner/state'
cat >/home/stranger/p/.runner/state/config.toml <<TOML
[executor]
kind = "command"
command = ["sh", "agent.sh"]
[guard]
command = ["test", "-f", "work.txt"]
TOML
cat >/home/stranger/p/agent.sh <<'AGENT'
touch /home/stranger/begun
while [ ! -e /home/stranger/go ]; do sleep 0.1; done
echo work >work.txt
echo '{"status": "done", "summary": "Wrote work.txt.", "children": null}' >"$RUNNER_OUTPUT"
AGENT
chown -R stranger: /home/stranger/p
ask 'cd p && git add -A && git -c user.name=s -c user.email=s@e commit -qm p && runnerctl start -m "Have it there." --id x --yes' >/dev/null 2>&1
until [ -e /home/stranger/begun ]; do sleep 0.1; done
dpkg -i /next.deb >/dev/null
say "replaced amid a run, by $(dpkg-query -W -f '${Version}' runnerd)"
ask 'touch go; cd p && runnerctl status --run x >/dev/null'
until ask 'cd p && runnerctl status --json' | grep -q '"state":"completed"'; do sleep 0.1; done
ask 'cd p && runnerctl verify --run x >/dev/null && git show runner/x:work.txt >/dev/null && runnerctl daemon stop >/dev/null'
say 'the run has gone on to its end, and its branch is sound'
dpkg -i --force-downgrade /first.deb >/dev/null 2>&1
ask 'cd p && runnerctl status >/dev/null && runnerctl daemon stop >/dev/null'
say 'the version before reads what the later one has left'
apt-get remove -y -qq runnerd >/dev/null
[ ! -e /usr/bin/runnerd ] && [ ! -e /usr/lib/systemd/user/runnerd.service ]
dpkg -i /first.deb >/dev/null
apt-get purge -y -qq runnerd >/dev/null
[ -z "$(find /usr /etc /var -name '*runnerd*' ! -path '/var/log/*' ! -path '/var/lib/apt/*' ! -path '/var/lib/dpkg/*')" ]
say 'removed and purged, and nothing is left but the work of the user'
ask 'test -d p/.git'
SH
say "making an empty Debian"
# shellcheck disable=SC2016
mmdebstrap --quiet --variant=apt --format=null \
    --customize-hook="copy-in $work/first.deb $work/next.deb $work/try.sh /" \
    --customize-hook='chroot "$1" sh /try.sh' bookworm /dev/null
tried "installed, upgraded and downgraded around a run, removed and purged"
