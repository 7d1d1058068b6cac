#!/bin/sh
# Scripted agent: the n-th session runs steps/<n>.sh, else steps/default.sh.
kit=$(cd "${0%/*}/../scripts/NAME" && pwd)
export kit
read -r n < "$kit/count"
n=$((n + 1))
echo "$n" > "$kit/count.new" && mv "$kit/count.new" "$kit/count"
echo "begin $n" >> "$kit/sessions.log"
[ -e "$kit/deaf/$n" ] || cat > "$kit/prompts/$n.md"
tree=.runner/state/tree.json

# answer STATUS SUMMARY: without children.
answer() { printf '{"status":"%s","summary":"%s","children":null}' "$1" "$2" > "$RUNNER_OUTPUT"; }
# accept REASON, reject REASON: of a reviewer.
accept() { printf '{"verdict":"accept","reasons":["%s"]}' "$1" > "$RUNNER_OUTPUT"; }
reject() { printf '{"verdict":"reject","reasons":["%s"]}' "$1" > "$RUNNER_OUTPUT"; }
# answer_json JSON: as it is.
answer_json() { printf '%s' "$1" > "$RUNNER_OUTPUT"; }
# decompose SUMMARY TITLE...: one child for each title.
decompose() {
    summary=$1; shift; children=
    for title; do
        children="$children${children:+,}{\"title\":\"$title\",\"goal\":\"Do $title.\",\"acceptance\":[\"$title is done\"]}"
    done
    answer_json "{\"status\":\"decomposed\",\"summary\":\"$summary\",\"children\":[$children]}"
}
# gate NAME: waits until the test opens it.
gate() { echo > "$kit/gates/$1.in"; read -r _ < "$kit/gates/$1.out"; }

# misbehave HOW...: one of the programs of misbehave.py, as a child. become HOW...: in the place of this shell.
misbehave() { python3 "$kit/misbehave.py" "$@"; }
become() { exec python3 "$kit/misbehave.py" "$@"; }

step="$kit/steps/$n.sh"
[ -e "$step" ] || step="$kit/steps/default.sh"
trap 'echo "end $n" >> "$kit/sessions.log"' EXIT
. "$step"
