#!/bin/sh
# Stands in for `claude`: prints a recorded session. Its last line comes when it is asked to end, where somebody waits.
set -eu
kit=$HOME/claude
if [ "$1" = --version ]; then
    cat "$kit/version"
    exit
fi
cat > "$kit/prompt"
printf '%s\n' "$@" > "$kit/argv"
env > "$kit/env"
echo work > work
if [ ! -e "$kit/arrived" ]; then
    cat "$kit/stdout"
    exit "$(cat "$kit/exit")"
fi
sed '$d' "$kit/stdout"
trap 'tail -n 1 "$kit/stdout"; exit 0' INT
sleep 600 &
echo > "$kit/arrived"
wait
