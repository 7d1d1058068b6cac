#!/bin/sh
# Has programs of the release before and those of today work together, and replaces one by the other under a live run:
# scripts/test-skew.sh [COMMIT]
#
# The release before is the newest tag that is older than this commit. It is built from its own sources and with its own
# lock file, below target/skew.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
# What stands for the release before until there is a tag.
first=4fb3d9c1

end() {
    status=$?
    trap - EXIT
    [ ! -e "$work/home" ] || "$bin/runnerctl" --no-spawn daemon stop >/dev/null 2>&1 || true
    rm -rf -- "$work"
    exit "$status"
}

tried() {
    say "ok: $*"
}

# What is said is shown where it fails, and else kept to be looked at: COMMAND...
quiet() {
    "$@" >"$work/log" 2>&1 || { status=$? && cat "$work/log" >&2 && fail "exit code $status: $*"; }
}

# In a folder of its own: cargo takes the same package of two checkouts for one.
build() {
    mkdir -p "$skew/sources-$commit"
    git archive "$commit" | tar -x -C "$skew/sources-$commit"
    CARGO_TARGET_DIR=$skew/built cargo build --locked --quiet --manifest-path "$skew/sources-$commit/Cargo.toml" \
        --package runnerd --package runnerctl
    cargo build --locked --quiet --workspace
}

# Installs a client and a daemon beside each other: BUILT BUILT
use() {
    ln -f "$1/runnerctl" "$2/runnerd" "$2/runnerd-shim" "$bin/"
}

ctl() {
    quiet "$bin/runnerctl" "$@"
}

# A project whose three sessions say that they are there, wait until they are let go, and write a part each.
project() {
    mkdir "$work/project"
    cd -- "$work/project"
    git init --quiet --initial-branch main
    cat >agent.sh <<AGENT
part=\$(ls | grep -c '^part-')
touch "$work/at-\$part"
until [ -e "$work/go-\$part" ]; do sleep 0.05; done
echo text >"part-\$part"
case \$part in 2) status=done ;; *) status=retry ;; esac
echo '{"status": "'\$status'", "summary": "Wrote a part."}' >"\$RUNNER_OUTPUT"
AGENT
    echo '[ -e part-2 ]' >check.sh
    git add .
    git commit --quiet --message Begin
    ctl init
    ctl config set executor.command '["sh", "agent.sh"]'
    ctl config set executor.kind command
    ctl config set guard.command '["sh", "check.sh"]'
}

# Waits for a minute until something holds: COMMAND...
soon() {
    tries=600
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { "$bin/runnerctl" status >&2 && fail "still not so: $*"; }
        sleep 0.1
    done
}

# Lets the daemon die while a session is at work: PART
die_beside() {
    soon [ -e "$work/at-$1" ]
    ctl --json daemon status
    kill -9 "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])' <"$work/log")"
}

has_ended() {
    ctl --json status
    grep -q '"state":"completed"' "$work/log"
}

# A client asks what people ask, of a daemon of the other release; all of it is read.
asks() {
    ctl status
    ctl log
    ctl --json log 1
    ctl tree
    ctl queue
    ctl repos
    ctl questions
    ctl config show
    ctl doctor
    ctl note 'Mind the gap.'
}

cd -- "$root"
find_tools
before=${1:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' HEAD^ 2>/dev/null || echo "$first")}
if ! commit=$(git rev-parse --verify --quiet "$before^{commit}"); then
    [ "$(git rev-parse --is-shallow-repository)" = true ] || fail "$before is not here: git fetch --tags"
    say "NOT TRIED: this clone is without its history, in which $before is: git fetch --unshallow --tags"
    exit 0
fi
target=${CARGO_TARGET_DIR:-$root/target}
skew=$target/skew
say "building the programs of $before and those of today"
build
# Programs are linked to here; the rest has short paths, as a socket needs it.
bin=$skew/bin
work=$(mktemp -d)
trap end EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$bin" "$work/home"
export HOME="$work/home" XDG_RUNTIME_DIR="$work/home" GIT_CONFIG_GLOBAL="$work/home/.gitconfig"
git config --global user.name Tester
git config --global user.email tester@localhost
old=$skew/built/debug new=$target/debug

use "$old" "$new"
ctl demo --clean --quiet
use "$new" "$old"
ctl demo --clean --quiet
tried "a whole run by either client with the other daemon"

use "$old" "$old"
project
ctl start -m 'Write the parts'
die_beside 0
use "$new" "$new"
touch "$work/go-0"
ctl status
tried "a newer daemon goes on where an older one was killed amid a session"
use "$old" "$new"
soon [ -e "$work/at-1" ]
asks
die_beside 1
use "$old" "$old"
touch "$work/go-1"
ctl status
tried "an older daemon goes on where a newer one was killed amid a session"
use "$new" "$old"
soon [ -e "$work/at-2" ]
asks
touch "$work/go-2"
ctl daemon drain
use "$new" "$new"
soon has_ended
ctl verify
tried "an older one is drained for a newer one, which proves what both did"
