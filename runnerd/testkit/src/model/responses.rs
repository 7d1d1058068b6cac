//! `OpenAI`'s Responses: a reply as a stream of its events or as its errors.

use serde_json::{Value, json};

use super::events::Events;
use super::fault::Fault;
use super::reply::{Reply, Usage, What};
use super::request::Request;
use super::wire::Sent;

/// Returns the reply to a request in this protocol; `number` tells replies apart.
pub(super) fn render(request: &Request, reply: &Reply, number: usize) -> Sent {
    let id = format!("resp_{number}");
    match &reply.what {
        What::Run(command) => turn(&id, reply, &[call(request, command, number)]),
        What::Answer(result) => turn(&id, reply, &[message(&result.to_string(), number)]),
        What::Text(text) => turn(&id, reply, &[message(text, number)]),
        What::Nothing => turn(&id, reply, &[]),
        What::Cut(text) => cut(&id, reply, &message(text, number)),
        What::Fails(fault) => fails(request, fault, &id),
        What::Status { code, body } => Sent::text(*code, "application/json", body.clone()),
        What::Raw(bytes) => Sent::text(200, "text/event-stream", bytes.clone()),
    }
}

/// Calls the shell: as a function, or in a program where the client takes nothing else.
fn call(request: &Request, command: &str, number: usize) -> Value {
    let id = format!("call_{number}");
    let arguments = json!({"cmd": command, "yield_time_ms": 600_000});
    if request.offers("exec_command") || !request.offers("exec") {
        let arguments = arguments.to_string();
        return json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": "exec_command",
            "arguments": arguments, "status": "completed"});
    }
    let program = format!("const result = await tools.exec_command({arguments}); text(result);");
    json!({"type": "custom_tool_call", "id": format!("ctc_{number}"), "call_id": id, "name": "exec", "input": program,
        "status": "completed"})
}

fn message(text: &str, number: usize) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed", "content": content})
}

fn turn(id: &str, reply: &Reply, items: &[Value]) -> Sent {
    let mut events = begun(id, items);
    let usage = usage(reply.usage);
    events.push(&json!({"type": "response.completed", "response":
        {"id": id, "object": "response", "status": "completed", "output": items, "usage": usage}}));
    Sent::stream(events)
}

fn cut(id: &str, reply: &Reply, item: &Value) -> Sent {
    let mut events = begun(id, std::slice::from_ref(item));
    events.push(&json!({"type": "response.incomplete", "response":
        {"id": id, "object": "response", "status": "incomplete", "usage": usage(reply.usage),
         "incomplete_details": {"reason": "max_output_tokens"}}}));
    Sent::stream(events)
}

fn begun(id: &str, items: &[Value]) -> Events {
    let mut events = Events::default();
    events.push(
        &json!({"type": "response.created", "response": {"id": id, "object": "response", "status": "in_progress"}}),
    );
    for (at, item) in items.iter().enumerate() {
        events.push(&json!({"type": "response.output_item.added", "output_index": at, "item": item}));
        events.push(&json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    events
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    })
}

fn fails(request: &Request, fault: &Fault, id: &str) -> Sent {
    let model = request.model();
    match fault {
        Fault::UsageLimit(resets_at) => {
            let body = json!({"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached",
                "plan_type": "plus", "resets_at": resets_at}});
            Sent::json(429, &body)
                .header("x-codex-primary-used-percent", &"100.0")
                .header("x-codex-primary-window-minutes", &"300")
                .header("x-codex-primary-reset-at", resets_at)
        }
        Fault::RateLimit(after) => {
            let sent = error(429, "requests", "rate_limit_exceeded", &format!("Rate limit reached for {model}."));
            after.iter().fold(sent, |sent, seconds| sent.header("retry-after", seconds))
        }
        Fault::Quota => failed(id, "insufficient_quota", "You exceeded your current quota, please check your plan."),
        Fault::Unauthorized => {
            error(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: dummy.")
        }
        Fault::Forbidden => error(403, "invalid_request_error", "forbidden", "Your organization must be verified."),
        Fault::UnknownModel => {
            let message = format!("The model `{model}` does not exist or you do not have access to it.");
            error(404, "invalid_request_error", "model_not_found", &message)
        }
        Fault::Overloaded => failed(id, "server_is_overloaded", "The server is overloaded."),
        Fault::Broken => {
            error(500, "server_error", "server_error", "The server had an error while processing your request.")
        }
        Fault::TooLong => failed(id, "context_length_exceeded", "Your input exceeds the context window of this model."),
        Fault::Schema => {
            error(400, "invalid_request_error", "invalid_json_schema", "Invalid schema for response_format.")
        }
        Fault::Invalid(why) => error(400, "invalid_request_error", "invalid_request", why),
    }
}

fn error(status: u16, kind: &str, code: &str, message: &str) -> Sent {
    Sent::json(status, &json!({"error": {"message": message, "type": kind, "param": null, "code": code}}))
}

/// Fails in the stream, after it has begun.
fn failed(id: &str, code: &str, message: &str) -> Sent {
    let mut events = begun(id, &[]);
    events.push(&json!({"type": "response.failed", "response":
        {"id": id, "object": "response", "status": "failed", "error": {"code": code, "message": message}}}));
    Sent::stream(events)
}
