#!/bin/sh
# Stands in for `codex`: prints a recorded session, and leaves the files that one leaves.
set -eu
kit=$HOME/codex
if [ "$1" = --version ]; then
    cat "$kit/version"
    exit
fi
for word; do
    case ${before-} in
    -o) last=$word ;;
    --output-schema) schema=$word ;;
    esac
    before=$word
done
cat > "$kit/prompt"
cp "$schema" "$kit/schema"
env > "$kit/env"
day=${CODEX_HOME:-$HOME/.codex}/sessions/2026/11/22
mkdir -p "$day"
cp "$kit/rollout" "$day/rollout-2026-11-22T04-36-16-$(cut -d '"' -f 8 "$kit/stdout" | head -n 1).jsonl"
echo work > work
cat "$kit/stdout"
if [ -e "$kit/arrived" ]; then
    trap 'exit 1' INT
    sleep 600 &
    echo > "$kit/arrived"
    wait
fi
cat "$kit/last" > "$last"
