//! A request to the model, as received. Other requests of a client, such as for the list of models, are not included.

use serde_json::Value;

/// The protocol that the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelProtocol {
    /// `OpenAI`'s Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Google's `generateContent`.
    Generate,
}

/// A request.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The protocol that the client speaks.
    pub protocol: ModelProtocol,
    /// Path including the query string.
    pub path: String,
    /// Headers with names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body; null if it is not JSON.
    pub body: Value,
}

impl ModelRequest {
    /// Returns the value of a header, if present.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the name of the requested model.
    pub fn model(&self) -> &str {
        let in_path = || self.path.rsplit_once("/models/").and_then(|(_, rest)| rest.split(':').next());
        self.body["model"].as_str().or_else(in_path).unwrap_or_default()
    }

    /// Returns whether the client requests a streamed reply.
    pub fn wants_stream(&self) -> bool {
        self.body["stream"].as_bool().unwrap_or_else(|| self.path.contains(":stream"))
    }

    /// Returns whether the client offers a tool of that name.
    pub fn offers_tool(&self, tool: &str) -> bool {
        has_tool(&self.body["tools"], tool) || self.turns().iter().any(|item| has_tool(&item["tools"], tool))
    }

    /// Returns the user's messages, including the client's own additions, as one paragraph each.
    pub fn user_text(&self) -> String {
        let mut texts = Vec::new();
        self.turns()
            .iter()
            .filter(|turn| turn["role"] == "user")
            .for_each(|turn| collect_strings(turn, "text", &mut texts));
        texts.join("\n\n")
    }

    /// Returns the results of all tool calls so far, oldest first.
    pub fn tool_results(&self) -> Vec<String> {
        let mut results = Vec::new();
        for turn in self.turns() {
            match turn["type"].as_str().unwrap_or_default() {
                "function_call_output" | "custom_tool_call_output" => results.push(result_text(&turn["output"])),
                _ => {
                    let parts = turn["content"].as_array().into_iter().flatten();
                    let returned = parts.filter(|part| part["type"] == "tool_result");
                    results.extend(returned.map(|part| result_text(&part["content"])));
                    let parts = turn["parts"].as_array().into_iter().flatten();
                    let returned = parts.map(|part| &part["functionResponse"]).filter(|found| found.is_object());
                    results.extend(returned.map(|found| found["response"].to_string()));
                }
            }
        }
        results
    }

    /// Returns whether the conversation has just begun: no tool has returned anything yet.
    pub fn is_first_turn(&self) -> bool {
        self.tool_results().is_empty()
    }

    fn turns(&self) -> &[Value] {
        let name = match self.protocol {
            ModelProtocol::Responses => "input",
            ModelProtocol::Messages => "messages",
            ModelProtocol::Generate => "contents",
        };
        self.body[name].as_array().map(Vec::as_slice).unwrap_or_default()
    }
}

/// Returns whether a list of tools, or a list nested in it, contains a tool.
fn has_tool(tools: &Value, name: &str) -> bool {
    tools
        .as_array()
        .is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name || has_tool(&tool["tools"], name)))
}

/// Returns the text of a tool's result, which is either a string or a list of parts.
fn result_text(value: &Value) -> String {
    let mut texts = Vec::new();
    collect_strings(value, "text", &mut texts);
    value.as_str().map_or_else(|| texts.join("\n"), str::to_owned)
}

/// Collects the strings of all members of a given name at any depth, and `content` if it is a string itself.
fn collect_strings(value: &Value, name: &str, into: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, name, into)),
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(text) if key == name || key == "content" => into.push(text.clone()),
                    other => collect_strings(other, name, into),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
