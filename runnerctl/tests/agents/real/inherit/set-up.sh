#!/bin/sh
# Writes a person's own set-up of every program: two servers, a skill, and a hook where settings have hooks.
# set-up HOME CONFIG-FOLDER MARKS
set -eu
home=$1 config=$2 marks=$3
server() { printf '"command": "sh", "args": ["-c", "touch %s/%s; sleep 1"]' "$marks" "$1"; }
servers() { printf '{"mine": {%s}, "other": {%s}}' "$(server mine)" "$(server other)"; }
skill() {
    mkdir -p "$1/mine"
    printf -- '---\nname: mine\ndescription: A-SKILL''-OF-MINE\n---\nNothing.\n' >"$1/mine/SKILL.md"
}
hooks='"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch '$marks'/hook"}]}]}'

mkdir -p "$config/opencode" "$home/.gemini"
local_server() { printf '{"type": "local", "command": ["sh", "-c", "touch %s/%s; sleep 1"]}' "$marks" "$1"; }
echo "{\"mcp\": {\"mine\": $(local_server mine), \"other\": $(local_server other)}}" >"$config/opencode/opencode.json"
skill "$config/opencode/skills"

echo "{$hooks, \"mcpServers\": $(servers)}" >"$home/.gemini/settings.json"
skill "$home/.gemini/skills"

echo "{\"mcpServers\": $(servers)}" >"$CLAUDE_CONFIG_DIR/.claude.json"
echo "{$hooks}" >"$CLAUDE_CONFIG_DIR/settings.json"
skill "$CLAUDE_CONFIG_DIR/skills"

for name in mine other; do
    printf '[mcp_servers.%s]\ncommand = "sh"\nargs = ["-c", "touch %s/%s; sleep 1"]\n' $name "$marks" $name
done >"$CODEX_HOME/config.toml"
skill "$CODEX_HOME/skills"
