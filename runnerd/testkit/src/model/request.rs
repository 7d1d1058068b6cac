//! A request for the model's next word, as it came. Other questions of a client, like its list of models, are none.

use serde_json::Value;

/// How the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `OpenAI`'s Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// How the client speaks.
    pub protocol: Protocol,
    /// Path with what follows the question mark.
    pub path: String,
    /// Headers with names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body; null where it is no JSON.
    pub body: Value,
}

impl Request {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the model that is asked for.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// Tells whether the answer is wanted as a stream.
    pub fn streams(&self) -> bool {
        self.body["stream"].as_bool().unwrap_or(false)
    }

    /// Tells whether the client offers a tool of that name.
    pub fn offers(&self, tool: &str) -> bool {
        holds_tool(&self.body["tools"], tool) || self.turns().iter().any(|item| holds_tool(&item["tools"], tool))
    }

    /// Returns what the user said, the client's own additions included, a paragraph each.
    pub fn said(&self) -> String {
        let mut texts = Vec::new();
        self.turns().iter().filter(|turn| turn["role"] == "user").for_each(|turn| collect(turn, "text", &mut texts));
        texts.join("\n\n")
    }

    /// Returns what tools have returned so far, oldest first.
    pub fn results(&self) -> Vec<String> {
        let mut results = Vec::new();
        for turn in self.turns() {
            match turn["type"].as_str().unwrap_or_default() {
                "function_call_output" | "custom_tool_call_output" => results.push(text_of(&turn["output"])),
                _ => {
                    let parts = turn["content"].as_array().into_iter().flatten();
                    let returned = parts.filter(|part| part["type"] == "tool_result");
                    results.extend(returned.map(|part| text_of(&part["content"])));
                }
            }
        }
        results
    }

    /// Tells whether the conversation has only begun: no tool has returned anything.
    pub fn opens(&self) -> bool {
        self.results().is_empty()
    }

    fn turns(&self) -> &[Value] {
        let name = match self.protocol {
            Protocol::Responses => "input",
            Protocol::Messages => "messages",
        };
        self.body[name].as_array().map(Vec::as_slice).unwrap_or_default()
    }
}

/// Tells whether a list of tools, or a list within it, has a tool.
fn holds_tool(tools: &Value, name: &str) -> bool {
    tools
        .as_array()
        .is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name || holds_tool(&tool["tools"], name)))
}

/// Returns the text of a tool's result, which is a string or a list of parts.
fn text_of(value: &Value) -> String {
    let mut texts = Vec::new();
    collect(value, "text", &mut texts);
    value.as_str().map_or_else(|| texts.join("\n"), str::to_owned)
}

/// Collects the strings of all members of one name, at any depth, and the content where it is a string itself.
fn collect(value: &Value, name: &str, into: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, name, into)),
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(text) if key == name || key == "content" => into.push(text.clone()),
                    other => collect(other, name, into),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
