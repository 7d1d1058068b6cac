//! Anthropic's Messages: a reply as one message, as a stream of its events, or as its errors.

use serde_json::{Value, json};

use super::events::Events;
use super::fault::Fault;
use super::reply::{Reply, Usage, What};
use super::request::Request;
use super::wire::Sent;

/// Returns the reply to a request in this protocol; `number` tells replies apart.
pub(super) fn render(request: &Request, reply: &Reply, number: usize) -> Sent {
    let message = |blocks: &[Value], stop: &str| {
        Message { request, usage: reply.usage, number, blocks: blocks.to_vec(), stop: stop.to_owned() }.sent()
    };
    match &reply.what {
        What::Run(command) => {
            let input = json!({"command": command, "description": "Run a command", "timeout": 600_000});
            message(&[tool("Bash", &input, number)], "tool_use")
        }
        What::Answer(result) if request.offers("StructuredOutput") => {
            message(&[tool("StructuredOutput", result, number)], "tool_use")
        }
        What::Answer(result) => message(&[text(&result.to_string())], "end_turn"),
        What::Text(said) => message(&[text(said)], "end_turn"),
        What::Nothing => message(&[], "end_turn"),
        What::Cut(said) => message(&[text(said)], "max_tokens"),
        What::Fails(fault) => fails(request, fault),
        What::Status { code, body } => Sent::text(*code, "application/json", body.clone()),
        What::Raw(bytes) => Sent::text(200, "text/event-stream", bytes.clone()),
    }
}

/// One message of the assistant's.
struct Message<'a> {
    request: &'a Request,
    usage: Usage,
    number: usize,
    blocks: Vec<Value>,
    stop: String,
}

impl Message<'_> {
    fn sent(&self) -> Sent {
        if self.request.streams() { Sent::stream(self.events()) } else { Sent::json(200, &self.whole()) }
    }

    fn whole(&self) -> Value {
        self.with(&self.blocks, &json!(self.stop), self.usage.output)
    }

    fn with(&self, blocks: &[Value], stop: &Value, output: u64) -> Value {
        let usage = json!({"input_tokens": self.usage.input - self.usage.cached, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.usage.cached, "output_tokens": output, "service_tier": "standard"});
        json!({"id": format!("msg_{}", self.number), "type": "message", "role": "assistant", "model": self.request.model(),
            "content": blocks, "stop_reason": stop, "stop_sequence": null, "usage": usage})
    }

    fn events(&self) -> Events {
        let mut events = Events::default();
        events.push(&json!({"type": "message_start", "message": self.with(&[], &Value::Null, 1)}));
        for (at, block) in self.blocks.iter().enumerate() {
            let (start, delta) = parts(block);
            events.push(&json!({"type": "content_block_start", "index": at, "content_block": start}));
            events.push(&json!({"type": "content_block_delta", "index": at, "delta": delta}));
            events.push(&json!({"type": "content_block_stop", "index": at}));
        }
        let stop = json!({"stop_reason": self.stop, "stop_sequence": null});
        events.push(&json!({"type": "message_delta", "delta": stop, "usage": {"output_tokens": self.usage.output}}));
        events.push(&json!({"type": "message_stop"}));
        events
    }
}

/// Returns how a block begins, and all of it that is streamed.
fn parts(block: &Value) -> (Value, Value) {
    let mut start = block.clone();
    if block["type"] == "text" {
        start["text"] = json!("");
        return (start, json!({"type": "text_delta", "text": block["text"]}));
    }
    start["input"] = json!({});
    (start, json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool(name: &str, input: &Value, number: usize) -> Value {
    json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": input})
}

fn fails(request: &Request, fault: &Fault) -> Sent {
    match fault {
        Fault::UsageLimit(resets_at) => {
            let sent = error(
                429,
                "rate_limit_error",
                "This request would exceed your account's rate limit. Please try again later.",
            );
            sent.header("anthropic-ratelimit-unified-status", &"rejected")
                .header("anthropic-ratelimit-unified-reset", resets_at)
                .header("anthropic-ratelimit-unified-representative-claim", &"five_hour")
        }
        Fault::RateLimit(after) => {
            let sent = error(429, "rate_limit_error", "Number of requests has exceeded your rate limit.");
            after.iter().fold(sent, |sent, seconds| sent.header("retry-after", seconds))
        }
        Fault::Quota => {
            let message = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.";
            error(400, "invalid_request_error", message)
        }
        Fault::Unauthorized => error(401, "authentication_error", "invalid x-api-key"),
        Fault::Forbidden => error(403, "permission_error", "Your account does not have access to Claude Code."),
        Fault::UnknownModel => error(404, "not_found_error", &format!("model: {}", request.model())),
        Fault::Overloaded => error(529, "overloaded_error", "Overloaded"),
        Fault::Broken => error(500, "api_error", "Internal server error"),
        Fault::TooLong => error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        Fault::Schema => error(400, "invalid_request_error", "tools.0.custom.input_schema: JSON schema is invalid"),
        Fault::Invalid(why) => error(400, "invalid_request_error", why),
    }
}

fn error(status: u16, kind: &str, message: &str) -> Sent {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
    Sent::json(status, &body)
}
