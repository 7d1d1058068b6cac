#!/bin/sh
# Stands in for `gemini`: writes down what it sees, does what it is told, and answers.
set -eu
kit=$HOME/gemini
if [ "$1" = --version ]; then
    echo 0.61.0
    exit
fi
cat >"$kit/prompt"
ls -A >"$kit/seen"
echo "$GEMINI_CLI_HOME" >"$kit/home"
[ ! -e "$kit/then" ] || . "$kit/then"
echo work >work
echo '{"status": "done", "summary": "All done.", "children": null}' >"$RUNNER_OUTPUT"
echo '{"type":"result","status":"success","stats":{"input_tokens":1,"output_tokens":1,"cached":0}}'
