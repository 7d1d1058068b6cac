//! A request for the model's next word, as it came. Other questions of a client, like its list of models, are none.

use serde_json::Value;

/// How the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelProtocol {
    /// `OpenAI`'s Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
}

/// A request.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// How the client speaks.
    pub protocol: ModelProtocol,
    /// Path with what follows the question mark.
    pub path: String,
    /// Headers with names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body; null where it is no JSON.
    pub body: Value,
}

impl ModelRequest {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the model that is asked for.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// Tells whether the answer is wanted as a stream.
    pub fn wants_stream(&self) -> bool {
        self.body["stream"].as_bool().unwrap_or(false)
    }

    /// Tells whether the client offers a tool of that name.
    pub fn offers_tool(&self, tool: &str) -> bool {
        has_tool(&self.body["tools"], tool) || self.turns().iter().any(|item| has_tool(&item["tools"], tool))
    }

    /// Returns what the user said, the client's own additions included, a paragraph each.
    pub fn user_text(&self) -> String {
        let mut texts = Vec::new();
        self.turns()
            .iter()
            .filter(|turn| turn["role"] == "user")
            .for_each(|turn| collect_strings(turn, "text", &mut texts));
        texts.join("\n\n")
    }

    /// Returns what tools have returned so far, oldest first.
    pub fn tool_results(&self) -> Vec<String> {
        let mut results = Vec::new();
        for turn in self.turns() {
            match turn["type"].as_str().unwrap_or_default() {
                "function_call_output" | "custom_tool_call_output" => results.push(result_text(&turn["output"])),
                _ => {
                    let parts = turn["content"].as_array().into_iter().flatten();
                    let returned = parts.filter(|part| part["type"] == "tool_result");
                    results.extend(returned.map(|part| result_text(&part["content"])));
                }
            }
        }
        results
    }

    /// Tells whether the conversation has only begun: no tool has returned anything.
    pub fn is_first_turn(&self) -> bool {
        self.tool_results().is_empty()
    }

    fn turns(&self) -> &[Value] {
        let name = match self.protocol {
            ModelProtocol::Responses => "input",
            ModelProtocol::Messages => "messages",
        };
        self.body[name].as_array().map(Vec::as_slice).unwrap_or_default()
    }
}

/// Tells whether a list of tools, or a list within it, has a tool.
fn has_tool(tools: &Value, name: &str) -> bool {
    tools
        .as_array()
        .is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name || has_tool(&tool["tools"], name)))
}

/// Returns the text of a tool's result, which is a string or a list of parts.
fn result_text(value: &Value) -> String {
    let mut texts = Vec::new();
    collect_strings(value, "text", &mut texts);
    value.as_str().map_or_else(|| texts.join("\n"), str::to_owned)
}

/// Collects the strings of all members of one name, at any depth, and the content where it is a string itself.
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
