#!/bin/sh
# Records terminals in which the programs are used, anew, as the pictures in docs/pictures: scripts/tour.sh
#
# What is seen is real: a daemon and a repository of their own, scripted agents, no account. asciinema records, and svg-term
# draws; both are installed into target/tools.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
# shellcheck source=scripts/page.sh
. "$(dirname -- "$0")/page.sh"
asciinema_version=2.4.0
svg_term_version=2.1.1
pictures=$root/docs/pictures
columns=96

# A person who types each line, waits a moment, and lets it run.
typist() {
    cat >"$lab/typist.py" <<'PYTHON'
import subprocess, sys, time

for line in sys.argv[1:]:
    print("\033[32m$\033[0m ", end="", flush=True)
    for letter in line:
        print(letter, end="", flush=True)
        time.sleep(0.03)
    time.sleep(0.4)
    print(flush=True)
    subprocess.run(["sh", "-c", line], check=True)
    print(flush=True)
    time.sleep(1.5)
PYTHON
}

# Records lines that are typed in a folder of the lab: NAME ROWS FOLDER LINE...
record() {
    name=$1 rows=$2 folder=$lab/$3
    shift 3
    words=''
    for line in "$@"; do
        words="$words '$(printf '%s' "$line" | sed "s/'/'\\\\''/g")'"
    done
    say "recording $name"
    (cd -- "$folder" && TERM=xterm-256color asciinema rec --quiet --overwrite --cols "$columns" --rows "$rows" \
        --idle-time-limit 2 --command "python3 '$lab/typist.py' $words" "$lab/$name.cast")
    "$tools/svg-term/node_modules/.bin/svg-term" --in "$lab/$name.cast" --out "$pictures/tour-$name.svg" \
        --window --width "$columns" --height "$rows"
}

# The project of the quick start's run without an account, with an agent that takes its time.
greeter() {
    mkdir "$lab/greeter"
    cd -- "$lab/greeter"
    cat >check.sh <<'SH'
for word in Hello world; do
    grep -qs "$word" greeting.txt || { echo "FAIL greeting.txt lacks: $word"; exit 1; }
done
SH
    cat >agent.sh <<'SH'
case $(cat) in *"lacks: world"*) text="Hello, world" ;; *) text=Hello ;; esac
sleep 3
echo "$text" >greeting.txt
echo '{"status": "done", "summary": "Wrote greeting.txt."}' >"$RUNNER_OUTPUT"
SH
    git init --quiet --initial-branch main
    git add .
    git commit --quiet --message Begin
    runnerctl init --quiet >/dev/null
    runnerctl config set executor.command '["sh", "agent.sh"]' >/dev/null
    runnerctl config set executor.kind command >/dev/null
    runnerctl config set guard.command '["sh", "check.sh"]' >/dev/null
}

find_node
find_rust
PATH=$tools/venv/bin:$PATH
from_wheel asciinema "$asciinema_version" asciinema || fail "asciinema cannot be installed, see target/tools/asciinema.log"
npm install --silent --no-fund --no-audit --prefix "$tools/svg-term" "svg-term-cli@$svg_term_version" >&2 || fail "svg-term cannot be installed"
(cd -- "$root" && cargo build --locked --quiet --workspace)
lab=$(mktemp -d "${TMPDIR:-/tmp}/tour.XXXX")
PATH=${CARGO_TARGET_DIR:-$root/target}/debug:$PATH
export PATH HOME="$lab/home" XDG_RUNTIME_DIR="$lab/run" XDG_CONFIG_HOME="$lab/config" XDG_STATE_HOME="$lab/state"
mkdir "$HOME" "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
trap 'runnerctl daemon stop >/dev/null 2>&1 || true; rm -rf -- "$lab"' EXIT
trap 'exit 1' HUP INT TERM
git config --global user.name You
git config --global user.email you@example.org
typist
record demo 30 . 'runnerctl demo --dir roman'
record morning 34 roman 'runnerctl log' 'runnerctl log 3 --guard' 'runnerctl tree' 'runnerctl verify'
(greeter)
record first-run 30 greeter 'runnerctl start --yes -m "Greet the whole world in greeting.txt." --wait' 'runnerctl status'
say "in $pictures: $(cd -- "$pictures" && echo tour-*.svg)"
