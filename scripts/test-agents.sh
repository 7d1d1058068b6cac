#!/bin/sh
# Runs whole runs with the real agents, against a scripted model on loopback; no request leaves the machine.
# scripts/test-agents.sh [ARGUMENTS OF `cargo nextest run` OR `cargo test`]
#
# npm installs the agents into target/agents, once, from the registry of the user's own configuration. RUNNER_AGENTS
# names another folder, whose node_modules has these versions.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
# shellcheck source=scripts/crates.sh
. "$(dirname -- "$0")/crates.sh"
codex=0.171.0
claude=2.1.332
opencode=1.18.33
gemini=0.61.0

# Tells whether the programs in a folder are those that the tests were written for.
are_in() {
    installed=$("$1/node_modules/.bin/codex" --version 2>/dev/null) && [ "$installed" = "codex-cli $codex" ] &&
        installed=$("$1/node_modules/.bin/claude" --version 2>/dev/null) && [ "${installed%% *}" = "$claude" ] &&
        installed=$("$1/node_modules/.bin/opencode" --version 2>/dev/null) && [ "$installed" = "$opencode" ] &&
        installed=$("$1/node_modules/.bin/gemini" --version 2>/dev/null) && [ "$installed" = "$gemini" ]
}

install_into() {
    has npm || fail "npm is missing: install Node.js 20 or newer"
    say "installing codex $codex, claude $claude, opencode $opencode and gemini $gemini into ${1#"$root"/}"
    mkdir -p "$1"
    echo '{"private": true}' >"$1/package.json"
    npm install --prefix "$1" --no-audit --no-fund --save-exact --loglevel error \
        "@openai/codex@$codex" "@anthropic-ai/claude-code@$claude" "opencode-ai@$opencode" "@google/gemini-cli@$gemini" >&2 || fail "npm cannot install the agents"
    # Where npm runs no scripts of packages, the program is not in its place yet.
    are_in "$1" || (cd -- "$1/node_modules/@anthropic-ai/claude-code" && node install.cjs) || true
    are_in "$1" || (cd -- "$1/node_modules/opencode-ai" && node postinstall.mjs >&2) || true
    are_in "$1" || fail "the agents do not run: see \`$1/node_modules/.bin/codex --version\`, and those of the others"
}

find_tools
cd -- "$root"
if [ -n "${RUNNER_AGENTS:-}" ]; then
    are_in "$RUNNER_AGENTS" || fail "RUNNER_AGENTS=$RUNNER_AGENTS has not codex $codex, claude $claude, opencode $opencode and gemini $gemini"
else
    RUNNER_AGENTS=$root/target/agents
    are_in "$RUNNER_AGENTS" || install_into "$RUNNER_AGENTS"
fi
export RUNNER_AGENTS
# shellcheck disable=SC2086
exec scripts/test.sh $default_crates --test agents --profile agents "$@"
