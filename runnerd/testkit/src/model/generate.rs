//! Google's `generateContent` protocol: renders a reply as one response, as a stream of one, or as an error.

use serde_json::{Value, json};

use super::events::SseEvents;
use super::fault::ServiceFault;
use super::reply::{ModelReply, ReplyContent};
use super::request::ModelRequest;
use super::wire::HttpReply;

/// Renders the reply to a request in this protocol.
pub(super) fn render(request: &ModelRequest, reply: &ModelReply) -> HttpReply {
    let send = |parts: Value, reason: &str| {
        let usage = json!({"promptTokenCount": reply.usage.input, "cachedContentTokenCount": reply.usage.cached,
            "candidatesTokenCount": reply.usage.output, "totalTokenCount": reply.usage.input + reply.usage.output});
        let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0});
        let body = json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": request.model()});
        if !request.wants_stream() {
            return HttpReply::json(200, &body);
        }
        let mut events = SseEvents::default();
        events.push_unnamed(&body);
        HttpReply::stream(events)
    };
    let text = |content: &str, reason: &str| send(json!([{"text": content}]), reason);
    match &reply.what {
        ReplyContent::Run(command) => {
            let call = json!({"name": "run_shell_command", "args": {"command": command}});
            send(json!([{"functionCall": call}]), "STOP")
        }
        ReplyContent::Answer(result) => text(&result.to_string(), "STOP"),
        ReplyContent::Text(content) => text(content, "STOP"),
        ReplyContent::Empty => send(json!([]), "STOP"),
        ReplyContent::Truncated(content) => text(content, "MAX_TOKENS"),
        ReplyContent::Fault(fault) => render_fault(fault),
        ReplyContent::Status { code, body } => HttpReply::text(*code, "application/json", body.clone()),
        ReplyContent::Raw(bytes) => HttpReply::text(200, "text/event-stream", bytes.clone()),
    }
}

fn render_fault(fault: &ServiceFault) -> HttpReply {
    let (code, status, message) = match fault {
        ServiceFault::UsageLimit(_) | ServiceFault::RateLimit(_) | ServiceFault::Quota => {
            (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.")
        }
        ServiceFault::Unauthorized => (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        ServiceFault::Forbidden => (403, "PERMISSION_DENIED", "The caller does not have permission."),
        ServiceFault::UnknownModel => (404, "NOT_FOUND", "The model is not found."),
        ServiceFault::Overloaded => (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        ServiceFault::Broken => (500, "INTERNAL", "An internal error has occurred."),
        ServiceFault::TooLong => (400, "INVALID_ARGUMENT", "The input token count exceeds the maximum."),
        ServiceFault::Schema => (400, "INVALID_ARGUMENT", "The response schema is invalid."),
        ServiceFault::Invalid(why) => (400, "INVALID_ARGUMENT", why.as_str()),
    };
    HttpReply::json(code, &json!({"error": {"code": code, "message": message, "status": status}}))
}
