//! `OpenAI`'s Responses protocol: renders a reply as a stream of its events or as an error.

use serde_json::{Value, json};

use super::events::SseEvents;
use super::fault::ServiceFault;
use super::reply::{ModelReply, ReplyContent, TokenUsage};
use super::request::ModelRequest;
use super::wire::HttpReply;

/// Renders the reply to a request in this protocol; `number` makes ids in replies unique.
pub(super) fn render(request: &ModelRequest, reply: &ModelReply, number: usize) -> HttpReply {
    let id = format!("resp_{number}");
    match &reply.what {
        ReplyContent::Run(command) => completed_turn(&id, reply, &[shell_call(request, command, number)]),
        ReplyContent::Answer(result) => completed_turn(&id, reply, &[message_item(&result.to_string(), number)]),
        ReplyContent::Text(text) => completed_turn(&id, reply, &[message_item(text, number)]),
        ReplyContent::Empty => completed_turn(&id, reply, &[]),
        ReplyContent::Truncated(text) => incomplete_turn(&id, reply, &message_item(text, number)),
        ReplyContent::Fault(fault) => render_fault(request, fault, &id),
        ReplyContent::Status { code, body } => HttpReply::text(*code, "application/json", body.clone()),
        ReplyContent::Raw(bytes) => HttpReply::text(200, "text/event-stream", bytes.clone()),
    }
}

/// Calls the shell: as a function, or within a program if the client accepts nothing else.
fn shell_call(request: &ModelRequest, command: &str, number: usize) -> Value {
    let id = format!("call_{number}");
    let arguments = json!({"cmd": command, "yield_time_ms": 600_000});
    if request.offers_tool("exec_command") || !request.offers_tool("exec") {
        let arguments = arguments.to_string();
        return json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": "exec_command",
            "arguments": arguments, "status": "completed"});
    }
    let program = format!("const result = await tools.exec_command({arguments}); text(result);");
    json!({"type": "custom_tool_call", "id": format!("ctc_{number}"), "call_id": id, "name": "exec", "input": program,
        "status": "completed"})
}

fn message_item(text: &str, number: usize) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed", "content": content})
}

fn completed_turn(id: &str, reply: &ModelReply, items: &[Value]) -> HttpReply {
    let mut events = start_events(id, items);
    let usage = usage_json(reply.usage);
    events.push(&json!({"type": "response.completed", "response":
        {"id": id, "object": "response", "status": "completed", "output": items, "usage": usage}}));
    HttpReply::stream(events)
}

fn incomplete_turn(id: &str, reply: &ModelReply, item: &Value) -> HttpReply {
    let mut events = start_events(id, std::slice::from_ref(item));
    events.push(&json!({"type": "response.incomplete", "response":
        {"id": id, "object": "response", "status": "incomplete", "usage": usage_json(reply.usage),
         "incomplete_details": {"reason": "max_output_tokens"}}}));
    HttpReply::stream(events)
}

fn start_events(id: &str, items: &[Value]) -> SseEvents {
    let mut events = SseEvents::default();
    events.push(
        &json!({"type": "response.created", "response": {"id": id, "object": "response", "status": "in_progress"}}),
    );
    for (at, item) in items.iter().enumerate() {
        events.push(&json!({"type": "response.output_item.added", "output_index": at, "item": item}));
        events.push(&json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    events
}

fn usage_json(usage: TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    })
}

fn render_fault(request: &ModelRequest, fault: &ServiceFault, id: &str) -> HttpReply {
    let model = request.model();
    match fault {
        ServiceFault::UsageLimit(resets_at) => {
            let body = json!({"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached",
                "plan_type": "plus", "resets_at": resets_at}});
            HttpReply::json(429, &body)
                .header("x-codex-primary-used-percent", &"100.0")
                .header("x-codex-primary-window-minutes", &"300")
                .header("x-codex-primary-reset-at", resets_at)
        }
        ServiceFault::RateLimit(after) => {
            let sent = error_reply(429, "requests", "rate_limit_exceeded", &format!("Rate limit reached for {model}."));
            after.iter().fold(sent, |sent, seconds| sent.header("retry-after", seconds))
        }
        ServiceFault::Quota => {
            failed_reply(id, "insufficient_quota", "You exceeded your current quota, please check your plan.")
        }
        ServiceFault::Unauthorized => {
            error_reply(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: dummy.")
        }
        ServiceFault::Forbidden => {
            error_reply(403, "invalid_request_error", "forbidden", "Your organization must be verified.")
        }
        ServiceFault::UnknownModel => {
            let message = format!("The model `{model}` does not exist or you do not have access to it.");
            error_reply(404, "invalid_request_error", "model_not_found", &message)
        }
        ServiceFault::Overloaded => failed_reply(id, "server_is_overloaded", "The server is overloaded."),
        ServiceFault::Broken => {
            error_reply(500, "server_error", "server_error", "The server had an error while processing your request.")
        }
        ServiceFault::TooLong => {
            failed_reply(id, "context_length_exceeded", "Your input exceeds the context window of this model.")
        }
        ServiceFault::Schema => {
            error_reply(400, "invalid_request_error", "invalid_json_schema", "Invalid schema for response_format.")
        }
        ServiceFault::Invalid(why) => error_reply(400, "invalid_request_error", "invalid_request", why),
    }
}

fn error_reply(status: u16, kind: &str, code: &str, message: &str) -> HttpReply {
    HttpReply::json(status, &json!({"error": {"message": message, "type": kind, "param": null, "code": code}}))
}

/// Fails within the stream, after it has begun.
fn failed_reply(id: &str, code: &str, message: &str) -> HttpReply {
    let mut events = start_events(id, &[]);
    events.push(&json!({"type": "response.failed", "response":
        {"id": id, "object": "response", "status": "failed", "error": {"code": code, "message": message}}}));
    HttpReply::stream(events)
}
