//! Parses the source: the traits of the methods with their comments, and the list of methods that only read.
//!
//! Parsed as text, since a macro expands the traits: formatting by `rustfmt` makes this reliable.

const API: &str = include_str!("../../src/api.rs");
const ACCESS: &str = include_str!("../../../runnerd/src/rpc/access.rs");

/// A trait: the methods of one noun.
pub(crate) struct Section {
    pub namespace: String,
    pub doc: String,
    pub methods: Vec<Method>,
}

/// One method.
#[derive(Debug)]
pub(crate) struct Method {
    /// With its namespace.
    pub name: String,
    pub doc: String,
    /// Type of its parameter; empty if it takes none.
    pub params: String,
    /// Type of its reply, or of the items of its subscription.
    pub reply: String,
    pub is_subscription: bool,
}

/// Returns the traits in the order of the source.
pub(crate) fn sections() -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut doc = Vec::new();
    let mut method = None;
    for line in API.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            doc.push(text);
        } else if line.starts_with("#[rpc(") {
            let namespace = quoted_text(line, "namespace = ").to_owned();
            sections.push(Section { namespace, doc: take_doc(&mut doc), methods: Vec::new() });
        } else if line.starts_with("#[method(") || line.starts_with("#[subscription(") {
            method = Some((line, take_doc(&mut doc)));
        } else if let (true, Some((attribute, doc))) = (line.starts_with("async fn "), method.take()) {
            let section = sections.last_mut().expect("a method is in a trait");
            section.methods.push(parse(&section.namespace, attribute, doc, line));
        } else if !line.starts_with("pub trait") && !line.is_empty() {
            doc.clear();
        }
    }
    sections
}

fn parse(namespace: &str, attribute: &str, doc: String, signature: &str) -> Method {
    let is_subscription = attribute.starts_with("#[subscription(");
    let reply =
        if is_subscription { between(attribute, "item = ", ")") } else { between(signature, "RpcResult<", ">;") };
    Method {
        name: format!("{namespace}.{}", quoted_text(attribute, "name = ")),
        doc,
        params: between(signature, "params: ", ")").to_owned(),
        reply: reply.to_owned(),
        is_subscription,
    }
}

/// Returns the methods that a process inside an iteration may call.
pub(crate) fn reading() -> Vec<&'static str> {
    let list = between(ACCESS, "pub const READ_METHODS: &[&str] = &[", "];");
    list.split('"').skip(1).step_by(2).collect()
}

fn take_doc(doc: &mut Vec<&str>) -> String {
    std::mem::take(doc).join(" ")
}

fn quoted_text<'a>(text: &'a str, before: &str) -> &'a str {
    between(text, &format!("{before}\""), "\"")
}

/// Returns the text between two markers, or nothing.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split_once(before).map_or("", |(_, rest)| rest);
    rest.split_once(after).map_or("", |(found, _)| found)
}

/// Returns word and meaning of every variant of an enum defined with `words!`.
pub(crate) fn words(source: &str, name: &str) -> Vec<(String, String)> {
    let body = between(source, &format!("    {name} {{\n"), "\n    }\n");
    documented_items(body, |line| line.split('"').nth(1).map(str::to_owned))
}

/// Returns tag and meaning of every variant of [`protocol::event::EventKind`].
pub(crate) fn event_kinds() -> Vec<(String, String)> {
    let body = between(include_str!("../../src/event.rs"), "pub enum EventKind {\n", "\n}\n");
    let variants: Vec<&str> = body.lines().filter(|line| !line.starts_with("        ")).collect();
    documented_items(&variants.join("\n"), |line| {
        let name: String = line.trim().chars().take_while(char::is_ascii_alphanumeric).collect();
        (!name.is_empty()).then(|| snake(&name))
    })
}

fn documented_items(body: &str, name: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let mut doc = Vec::new();
    let mut found = Vec::new();
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            doc.push(text);
        } else if let Some(name) = name(line) {
            found.push((name, take_doc(&mut doc)));
        }
    }
    found
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
