//! Anthropic's Messages protocol: renders a reply as one message, as a stream of its events, or as an error.

use serde_json::{Value, json};

use super::events::SseEvents;
use super::fault::ServiceFault;
use super::reply::{ModelReply, ReplyContent, TokenUsage};
use super::request::ModelRequest;
use super::wire::HttpReply;

/// Renders the reply to a request in this protocol; `number` makes ids in replies unique.
pub(super) fn render(request: &ModelRequest, reply: &ModelReply, number: usize) -> HttpReply {
    let message = |blocks: &[Value], stop: &str| {
        AssistantMessage { request, usage: reply.usage, number, blocks: blocks.to_vec(), stop: stop.to_owned() }
            .to_http_reply()
    };
    match &reply.what {
        ReplyContent::Run(command) => {
            let input = json!({"command": command, "description": "Run a command", "timeout": 600_000});
            message(&[tool_block("Bash", &input, number)], "tool_use")
        }
        ReplyContent::Answer(result) if request.offers_tool("StructuredOutput") => {
            message(&[tool_block("StructuredOutput", result, number)], "tool_use")
        }
        ReplyContent::Answer(result) => message(&[text_block(&result.to_string())], "end_turn"),
        ReplyContent::Text(text) => message(&[text_block(text)], "end_turn"),
        ReplyContent::Empty => message(&[], "end_turn"),
        ReplyContent::Truncated(text) => message(&[text_block(text)], "max_tokens"),
        ReplyContent::Fault(fault) => render_fault(request, fault),
        ReplyContent::Status { code, body } => HttpReply::text(*code, "application/json", body.clone()),
        ReplyContent::Raw(bytes) => HttpReply::text(200, "text/event-stream", bytes.clone()),
    }
}

/// One message of the assistant.
struct AssistantMessage<'a> {
    request: &'a ModelRequest,
    usage: TokenUsage,
    number: usize,
    blocks: Vec<Value>,
    stop: String,
}

impl AssistantMessage<'_> {
    fn to_http_reply(&self) -> HttpReply {
        if self.request.wants_stream() {
            HttpReply::stream(self.to_events())
        } else {
            HttpReply::json(200, &self.to_json())
        }
    }

    fn to_json(&self) -> Value {
        self.json_with(&self.blocks, &json!(self.stop), self.usage.output)
    }

    fn json_with(&self, blocks: &[Value], stop: &Value, output: u64) -> Value {
        let usage = json!({"input_tokens": self.usage.input - self.usage.cached, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.usage.cached, "output_tokens": output, "service_tier": "standard"});
        json!({"id": format!("msg_{}", self.number), "type": "message", "role": "assistant", "model": self.request.model(),
            "content": blocks, "stop_reason": stop, "stop_sequence": null, "usage": usage})
    }

    fn to_events(&self) -> SseEvents {
        let mut events = SseEvents::default();
        events.push(&json!({"type": "message_start", "message": self.json_with(&[], &Value::Null, 1)}));
        for (at, block) in self.blocks.iter().enumerate() {
            let (start, delta) = split_block(block);
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

/// Returns the start of a content block, and the delta that streams the rest.
fn split_block(block: &Value) -> (Value, Value) {
    let mut start = block.clone();
    if block["type"] == "text" {
        start["text"] = json!("");
        return (start, json!({"type": "text_delta", "text": block["text"]}));
    }
    start["input"] = json!({});
    (start, json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}))
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool_block(name: &str, input: &Value, number: usize) -> Value {
    json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": input})
}

fn render_fault(request: &ModelRequest, fault: &ServiceFault) -> HttpReply {
    match fault {
        ServiceFault::UsageLimit(resets_at) => {
            let sent = error_reply(
                429,
                "rate_limit_error",
                "This request would exceed your account's rate limit. Please try again later.",
            );
            sent.header("anthropic-ratelimit-unified-status", &"rejected")
                .header("anthropic-ratelimit-unified-reset", resets_at)
                .header("anthropic-ratelimit-unified-representative-claim", &"five_hour")
        }
        ServiceFault::RateLimit(after) => {
            let sent = error_reply(429, "rate_limit_error", "Number of requests has exceeded your rate limit.");
            after.iter().fold(sent, |sent, seconds| sent.header("retry-after", seconds))
        }
        ServiceFault::Quota => {
            let message = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.";
            error_reply(400, "invalid_request_error", message)
        }
        ServiceFault::Unauthorized => error_reply(401, "authentication_error", "invalid x-api-key"),
        ServiceFault::Forbidden => {
            error_reply(403, "permission_error", "Your account does not have access to Claude Code.")
        }
        ServiceFault::UnknownModel => error_reply(404, "not_found_error", &format!("model: {}", request.model())),
        ServiceFault::Overloaded => error_reply(529, "overloaded_error", "Overloaded"),
        ServiceFault::Broken => error_reply(500, "api_error", "Internal server error"),
        ServiceFault::TooLong => {
            error_reply(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
        }
        ServiceFault::Schema => {
            error_reply(400, "invalid_request_error", "tools.0.custom.input_schema: JSON schema is invalid")
        }
        ServiceFault::Invalid(why) => error_reply(400, "invalid_request_error", why),
    }
}

fn error_reply(status: u16, kind: &str, message: &str) -> HttpReply {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
    HttpReply::json(status, &body)
}
