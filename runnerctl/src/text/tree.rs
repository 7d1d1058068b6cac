//! The task tree as a picture: marks and words, never colour alone.

use std::fmt::Write as _;

use anstyle::Style;
use protocol::reply::TreeReply;
use protocol::tree::Node;

use super::paint::{BAD, DIM, GOOD, LIVE, PLAIN, paint};
use super::safe::safe;
use super::screen::Screen;

/// Returns the picture of a tree, a line per node.
pub(crate) fn picture(reply: &TreeReply, screen: &Screen) -> String {
    let mut drawing = Drawing { current: reply.current.as_deref(), screen, text: String::new() };
    drawing.node(&reply.tree.root, "", "");
    drawing.text
}

struct Drawing<'a> {
    current: Option<&'a str>,
    screen: &'a Screen,
    text: String,
}

/// How a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It passes.
    Passed,
    /// It is worked on, or is next.
    Current,
    /// It is to be done.
    Open,
    /// It is a leaf without attempts left.
    Exhausted,
}

impl Drawing<'_> {
    /// Draws a node behind `lead` and its children behind `below`.
    fn node(&mut self, node: &Node, lead: &str, below: &str) {
        let (mark, style, word) = Standing::of(node, self.current).look(*self.screen);
        let id = safe(&node.id);
        let title = safe(&node.title);
        let counts = paint(DIM, &format!("{word}{}", counts(node)));
        let _ = writeln!(self.text, "{lead}{} {}  {title}  {counts}", paint(style, mark), paint(style, &id));
        let last = node.children.len().saturating_sub(1);
        for (at, child) in node.children.iter().enumerate() {
            let (branch, trunk) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let (ascii_branch, ascii_trunk) = if at == last { ("`- ", "   ") } else { ("|- ", "|  ") };
            let lead = format!("{below}{}", self.screen.pick(branch, ascii_branch));
            let below = format!("{below}{}", self.screen.pick(trunk, ascii_trunk));
            self.node(child, &lead, &below);
        }
    }
}

impl Standing {
    /// Returns how a node stands where `current` is worked on or next.
    pub(crate) fn of(node: &Node, current: Option<&str>) -> Self {
        if node.passes {
            Self::Passed
        } else if node.is_leaf() && node.attempts >= node.max_attempts {
            Self::Exhausted
        } else if current == Some(node.id.as_str()) {
            Self::Current
        } else {
            Self::Open
        }
    }

    /// Returns its mark, its style and its word.
    pub(crate) fn look(self, screen: Screen) -> (&'static str, Style, &'static str) {
        match self {
            Self::Passed => (screen.pick("✔", "[x]"), GOOD, "passed"),
            Self::Current => (screen.pick("●", "[>]"), LIVE, "current"),
            Self::Open => (screen.pick("○", "[ ]"), PLAIN, "open"),
            Self::Exhausted => (screen.pick("✖", "[!]"), BAD, "no attempts left"),
        }
    }
}

/// Returns the attempts of a leaf that used some, or the passed leaves of an inner node.
fn counts(node: &Node) -> String {
    if !node.is_leaf() {
        let (passed, total) = leaves(node);
        return format!(", {passed}/{total} leaves");
    }
    if node.attempts == 0 { String::new() } else { format!(", attempts {}/{}", node.attempts, node.max_attempts) }
}

/// Returns how many leaves below a node pass, and how many there are.
pub(crate) fn leaves(node: &Node) -> (usize, usize) {
    if node.is_leaf() {
        return (usize::from(node.passes), 1);
    }
    node.children.iter().map(leaves).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
}

#[cfg(test)]
pub(crate) mod tests {
    use anstream::adapter::strip_str;
    use protocol::tree::{TREE_VERSION, TaskTree};

    use super::*;

    fn node(id: &str, attempts: u32, children: Vec<Node>) -> Node {
        Node {
            id: id.into(),
            order: 1,
            title: format!("The {id}"),
            goal: String::new(),
            acceptance: Vec::new(),
            passes: false,
            attempts,
            max_attempts: 3,
            children,
        }
    }

    pub(crate) fn reply() -> TreeReply {
        let mut lexer = node("lexer", 0, Vec::new());
        lexer.passes = true;
        let parser = node("parser", 0, vec![lexer, node("ast", 1, Vec::new())]);
        let root = node("root", 0, vec![parser, node("cli", 3, Vec::new()), node("docs", 0, Vec::new())]);
        TreeReply {
            tree: TaskTree { version: TREE_VERSION, root },
            current: Some("ast".into()),
            state: None,
            digest: String::new(),
        }
    }

    #[test]
    fn a_tree_shows_what_passed_and_what_is_next() {
        insta::assert_snapshot!(strip_str(&picture(&reply(), &Screen::fixed())), @r"
        ○ root  The root  open, 1/4 leaves
        ├─ ○ parser  The parser  open, 1/2 leaves
        │  ├─ ✔ lexer  The lexer  passed
        │  └─ ● ast  The ast  current, attempts 1/3
        ├─ ✖ cli  The cli  no attempts left, attempts 3/3
        └─ ○ docs  The docs  open
        ");
    }

    #[test]
    fn a_terminal_without_unicode_gets_ascii() {
        let text = strip_str(&picture(&reply(), &Screen { unicode: false, ..Screen::fixed() })).to_string();
        assert!(text.is_ascii(), "{text}");
        insta::assert_snapshot!(text, @r"
        [ ] root  The root  open, 1/4 leaves
        |- [ ] parser  The parser  open, 1/2 leaves
        |  |- [x] lexer  The lexer  passed
        |  `- [>] ast  The ast  current, attempts 1/3
        |- [!] cli  The cli  no attempts left, attempts 3/3
        `- [ ] docs  The docs  open
        ");
    }
}
