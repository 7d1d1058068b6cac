//! What a session of the prompt lab begins with: task tree, configuration, and the scripted session before it. Pure.
//!
//! A reviewer judges what a scripted worker says is done. A repair follows a scripted planner that left an invalid tree; so it
//! works on the root, which planners begin with. The agent that is tried is configured for its own role alone.

use serde_json::{Value, json};
use toml::Table;

use super::cell::PromptSession;
use super::input::{PriorWork, PromptInput};
use super::role::LabRole;
use crate::sandbox::SCRIPTED;

/// The folder of a lab that holds what the session before leaves.
pub(super) const LEFT: &str = "left";

/// Returns the id of the node that the session is on.
pub(super) fn node(role: LabRole) -> &'static str {
    match role {
        LabRole::Planner | LabRole::Repair => "root",
        LabRole::Worker | LabRole::Reviewer => "task",
    }
}

/// The first session on a root is a planner's; a worker needs a leaf below it.
pub(super) fn tree(role: LabRole, input: &PromptInput) -> Value {
    let node = |id: &str, title: &str, acceptance: &[String], children: Value| {
        json!({
            "id": id, "order": 1, "title": title, "goal": input.goal, "acceptance": acceptance, "passes": false,
            "attempts": 0, "max_attempts": 3, "children": children,
        })
    };
    let root = match role {
        LabRole::Planner | LabRole::Repair => node("root", "The goal", &input.acceptance, json!([])),
        LabRole::Worker | LabRole::Reviewer => {
            let task = node("task", "The task", &input.acceptance, json!([]));
            node("root", "The goal", &[], json!([task]))
        }
    };
    json!({"version": 1, "root": root})
}

/// Nothing is guarded unless the input says so: what counts is what was decided.
pub(super) fn config(session: &PromptSession, input: &PromptInput) -> Table {
    let guard = if input.guard.is_empty() { vec!["true".to_owned()] } else { input.guard.clone() };
    let guard = table([("command", guard.into()), ("baseline", false.into())]);
    let mut config = table([("guard", guard.into())]);
    let tried = tried(session);
    let scripted = || table([("kind", "command".into()), ("command", vec![SCRIPTED].into())]);
    let executor = match session.role {
        LabRole::Planner | LabRole::Worker => tried,
        LabRole::Repair => with(tried, "plan", scripted()),
        LabRole::Reviewer => {
            config.insert("review".into(), table([("by", "agent".into())]).into());
            with(scripted(), "review", tried)
        }
    };
    with(config, "executor", executor)
}

/// The agent that is tried.
fn tried(session: &PromptSession) -> Table {
    let mut executor = table([("kind", session.executor.clone().into())]);
    if !session.command.is_empty() {
        executor.insert("command".into(), session.command.clone().into());
    }
    if let Some(model) = &session.model {
        executor.insert("model".into(), model.clone().into());
    }
    executor
}

/// Returns what the session before does.
pub(super) fn script(before: &PriorWork) -> Option<String> {
    let answer = match before {
        PriorWork::Nothing => return None,
        PriorWork::Work(_) => "done \"The goal is met.\"",
        PriorWork::Tree(_) => "decomposed \"The goal is divided.\"",
    };
    Some(format!("cp -R -- \"$lab/{LEFT}/.\" . && answer {answer}"))
}

fn table<const N: usize>(pairs: [(&str, toml::Value); N]) -> Table {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn with(mut table: Table, key: &str, below: Table) -> Table {
    table.insert(key.to_owned(), below.into());
    table
}
