//! Shows a line of the agent's work in a form for people. No decision depends on it.

use jiff::Timestamp;
use protocol::event::{Activity, ActivityKind};
use runner_core::feedback::clip_output;
use serde_json::Value;

/// Size limit in bytes of a step.
const MAX_TEXT: usize = 4 << 10;

/// The inputs by which a tool call is described, the most telling first.
const KEY_INPUTS: [&str; 9] =
    ["command", "file_path", "notebook_path", "pattern", "url", "query", "description", "prompt", "path"];

/// Returns the step that a line shows.
pub(super) fn parse_activity(line: &Value) -> Option<Activity> {
    match line["type"].as_str()? {
        "assistant" => content_parts(line).find_map(message_step),
        "user" => content_parts(line).find_map(tool_result_step),
        "system" => notice_step(line),
        "rate_limit_event" => limit_step(&line["rate_limit_info"]),
        "result" => end_step(line),
        _ => None,
    }
}

fn content_parts(line: &Value) -> impl Iterator<Item = &Value> {
    line["message"]["content"].as_array().into_iter().flatten()
}

fn make_step(what: ActivityKind, text: &str) -> Option<Activity> {
    let text = text.trim();
    (!text.is_empty()).then(|| Activity { what, text: clip_output(text, MAX_TEXT) })
}

fn message_step(content: &Value) -> Option<Activity> {
    match content["type"].as_str()? {
        "text" => make_step(ActivityKind::Message, content["text"].as_str()?),
        "thinking" => make_step(ActivityKind::Reasoning, content["thinking"].as_str()?),
        "tool_use" => tool_step(content["name"].as_str()?, &content["input"]),
        _ => None,
    }
}

/// Describes a tool call. The answer is shown when it is accepted, not as a tool call.
fn tool_step(name: &str, input: &Value) -> Option<Activity> {
    let key_input = KEY_INPUTS.iter().find_map(|field| input[field].as_str()).unwrap_or_default();
    match name {
        "StructuredOutput" => None,
        "Bash" => make_step(ActivityKind::Tool, key_input),
        "Edit" | "Write" | "NotebookEdit" => make_step(ActivityKind::FileChange, key_input),
        _ => make_step(ActivityKind::Tool, &format!("{name} {key_input}")),
    }
}

fn tool_result_step(content: &Value) -> Option<Activity> {
    let content = (content["type"] == "tool_result").then_some(&content["content"])?;
    let text = content.as_str().or_else(|| content.as_array()?.iter().find_map(|part| part["text"].as_str()));
    make_step(ActivityKind::ToolResult, text?)
}

fn notice_step(line: &Value) -> Option<Activity> {
    let text = |field: &str| line[field].as_str().unwrap_or("unknown");
    let notice = match line["subtype"].as_str()? {
        "init" => format!("claude {} with {}", text("claude_code_version"), text("model")),
        "api_retry" => format!(
            "asked again, {} of {}: {}",
            line["attempt"],
            line["max_retries"],
            line["error_status"].as_u64().map_or_else(|| text("error").to_owned(), |status| status.to_string())
        ),
        "permission_denied" => format!("{} was denied: {}", text("tool_name"), text("message")),
        "compact_boundary" => "the session was compacted".to_owned(),
        "informational" => text("content").to_owned(),
        _ => return None,
    };
    make_step(ActivityKind::Notice, &notice)
}

fn limit_step(info: &Value) -> Option<Activity> {
    let status = info["status"].as_str().filter(|status| *status != "allowed")?;
    let until = resets_at(info).map(|until| format!(" until {until}")).unwrap_or_default();
    let kind = info["rateLimitType"].as_str().unwrap_or("usage");
    make_step(ActivityKind::Notice, &format!("{kind} limit: {status}{until}"))
}

fn end_step(line: &Value) -> Option<Activity> {
    if line["is_error"] == true {
        return make_step(ActivityKind::Notice, line["result"].as_str().or_else(|| line["errors"][0].as_str())?);
    }
    let denied: Vec<&str> =
        line["permission_denials"].as_array()?.iter().filter_map(|denial| denial["tool_name"].as_str()).collect();
    let text = if denied.is_empty() { String::new() } else { format!("denied: {}", denied.join(", ")) };
    make_step(ActivityKind::Notice, &text)
}

/// Returns when a limit ends, according to the service.
pub(super) fn resets_at(info: &Value) -> Option<Timestamp> {
    Timestamp::from_second(info["resetsAt"].as_i64()?).ok()
}
