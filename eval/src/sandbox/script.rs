//! The scripted agent: the shell script of a case, with the prologue that every session needs.

use crate::error::EvalError;

use super::Sandbox;

/// Name by which the configuration finds the agent in the sandbox's `PATH`.
pub(crate) const SCRIPTED_AGENT: &str = "scripted-agent";

const PRELUDE: &str = r#"#!/bin/sh
# Made of a case's script: one session of a scripted agent.
set -u
sandbox=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
session=$(($(cat "$sandbox/tmp/sessions" 2>/dev/null || echo 0) + 1))
echo "$session" >"$sandbox/tmp/sessions"
prompt=$(cat)
# answer STATUS SUMMARY [CHILDREN]; `usage` may hold an object before.
answer() {
    printf '{"status": "%s", "summary": "%s", "children": %s%s}\n' \
        "$1" "$2" "${3:-null}" "${usage:+, \"usage\": $usage}" >"$RUNNER_OUTPUT.new"
    mv -- "$RUNNER_OUTPUT.new" "$RUNNER_OUTPUT"
}
"#;

/// Writes the agent.
pub(super) fn install_agent(sandbox: &Sandbox, script: &str) -> Result<(), EvalError> {
    sandbox.write(&format!("bin/{SCRIPTED_AGENT}"), &format!("{PRELUDE}\n{script}\n"))
}
