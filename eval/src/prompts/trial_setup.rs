//! Initial state of a session of the prompt trials: task tree, configuration, and the scripted previous session. Pure.
//!
//! A reviewer judges work that a scripted worker claims is done. A repair follows a scripted planner that left an
//! invalid tree, so it works on the root, where planners start. The agent under test is configured only for its own
//! role.

use serde_json::{Value, json};
use toml::Table;

use super::cell::PromptSession;
use super::input::{PriorWork, PromptInput};
use super::role::LabRole;
use crate::sandbox::SCRIPTED_AGENT;

/// Folder of a sandbox with the files that the previous session leaves.
pub(super) const LEFT_FOLDER: &str = "left";

/// Returns the id of the node the session works on.
pub(super) fn node_id(role: LabRole) -> &'static str {
    match role {
        LabRole::Planner | LabRole::Repair => "root",
        LabRole::Worker | LabRole::Reviewer => "task",
    }
}

/// Returns the task tree. The first session on a root is a planner's, so a worker needs a leaf below it.
pub(super) fn build_tree(role: LabRole, input: &PromptInput) -> Value {
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

/// Returns the configuration. There is no guard unless the input names one: what counts is the decision.
pub(super) fn build_config(session: &PromptSession, input: &PromptInput) -> Table {
    let guard = if input.guard.is_empty() { vec!["true".to_owned()] } else { input.guard.clone() };
    let guard = toml_table([("command", guard.into()), ("baseline", false.into())]);
    let mut config = toml_table([("guard", guard.into())]);
    let agent = tried_agent(session);
    let scripted = || toml_table([("kind", "command".into()), ("command", vec![SCRIPTED_AGENT].into())]);
    let executor = match session.role {
        LabRole::Planner | LabRole::Worker => agent,
        LabRole::Repair => insert_table(agent, "plan", scripted()),
        LabRole::Reviewer => {
            config.insert("review".into(), toml_table([("by", "agent".into())]).into());
            insert_table(scripted(), "review", agent)
        }
    };
    insert_table(config, "executor", executor)
}

/// The agent under test.
fn tried_agent(session: &PromptSession) -> Table {
    let mut executor = toml_table([("kind", session.executor.clone().into())]);
    if !session.command.is_empty() {
        executor.insert("command".into(), session.command.clone().into());
    }
    if let Some(model) = &session.model {
        executor.insert("model".into(), model.clone().into());
    }
    executor
}

/// Returns the script of the previous session.
pub(super) fn previous_script(prior_work: &PriorWork) -> Option<String> {
    let answer = match prior_work {
        PriorWork::Nothing => return None,
        PriorWork::Work(_) => "done \"The goal is met.\"",
        PriorWork::Tree(_) => "decomposed \"The goal is divided.\"",
    };
    Some(format!("cp -R -- \"$sandbox/{LEFT_FOLDER}/.\" . && answer {answer}"))
}

fn toml_table<const N: usize>(pairs: [(&str, toml::Value); N]) -> Table {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn insert_table(mut table: Table, key: &str, value: Table) -> Table {
    table.insert(key.to_owned(), value.into());
    table
}
