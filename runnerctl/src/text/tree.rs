//! Draws the task tree with marks and words, never only with colour.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstream::adapter::strip_str;
use anstyle::Style;
use protocol::reply::TreeReply;
use protocol::state::UsageTotal;
use protocol::tree::Node;
use protocol::view::IterationView;
use unicode_width::UnicodeWidthStr as _;

use super::measure::format_duration;
use super::paint::{BAD, DIM, GOOD, LIVE, PLAIN, paint};
use super::sanitize::sanitize;
use super::screen::Screen;
use super::table::truncate;
use super::usage::render_short_cost;

/// Least width of a title, whatever the terminal's width.
const MIN_TITLE_WIDTH: usize = 12;

/// Which part of a tree is drawn.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TreeOptions {
    /// Levels below the root; `None` shows all.
    pub(crate) depth: Option<usize>,
    /// Leave out what passes.
    pub(crate) open: bool,
    /// Fold branches that pass.
    pub(crate) folded: bool,
}

/// The usage of the sessions on each node, by its id.
#[derive(Debug, Default)]
pub(crate) struct NodeCosts(BTreeMap<String, (u64, UsageTotal)>);

impl NodeCosts {
    /// Sums over iterations.
    pub(crate) fn from_iterations(iterations: &[IterationView]) -> Self {
        let mut nodes: BTreeMap<String, (u64, UsageTotal)> = BTreeMap::new();
        for view in iterations {
            let (ms, total) = nodes.entry(view.node.clone()).or_default();
            *ms += view.duration_ms.unwrap_or_default();
            if let Some(usage) = &view.usage {
                total.sessions += usage.sessions;
                total.cost_unknown += usage.cost_unknown;
                let known = usage.cost_micro_usd.map(|cost| cost + total.cost_micro_usd.unwrap_or_default());
                total.cost_micro_usd = known.or(total.cost_micro_usd);
            }
        }
        Self(nodes)
    }

    /// Returns time and cost of the sessions on a node, each after a comma.
    fn render(&self, node: &str) -> String {
        let Some((ms, usage)) = self.0.get(node) else { return String::new() };
        let after_comma = |text: String| if text.is_empty() { text } else { format!(", {text}") };
        let time = if *ms == 0 { String::new() } else { format_duration(*ms) };
        after_comma(time) + &after_comma(render_short_cost(usage))
    }
}

/// Returns a drawing of the whole tree, one line per node.
pub(crate) fn render_tree(reply: &TreeReply, screen: &Screen) -> String {
    render_tree_with(reply, TreeOptions::default(), &NodeCosts::default(), screen)
}

/// Returns a drawing of a part of a tree, with the usage of its nodes.
pub(crate) fn render_tree_with(reply: &TreeReply, options: TreeOptions, costs: &NodeCosts, screen: &Screen) -> String {
    let mut renderer = TreeRenderer { current: reply.current.as_deref(), options, costs, screen, text: String::new() };
    renderer.draw_node(&reply.tree.root, &NodePrefix::default());
    renderer.text
}

/// The position at which a node is drawn.
#[derive(Default)]
struct NodePrefix {
    /// Prefix of the node.
    lead: String,
    /// Prefix of its children.
    child_lead: String,
    /// Levels below the root.
    depth: usize,
}

struct TreeRenderer<'a> {
    current: Option<&'a str>,
    options: TreeOptions,
    costs: &'a NodeCosts,
    screen: &'a Screen,
    text: String,
}

/// The state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeStatus {
    /// It passes.
    Passed,
    /// It is worked on, or is next.
    Current,
    /// It is open.
    Open,
    /// It is a leaf without attempts left.
    Exhausted,
}

impl TreeRenderer<'_> {
    /// Draws a node, and its children unless they are folded.
    fn draw_node(&mut self, node: &Node, NodePrefix { lead, child_lead, depth }: &NodePrefix) {
        let (mark, style, label) = NodeStatus::from_node(node, self.current).appearance(*self.screen);
        let id = sanitize(&node.id);
        let title = sanitize(&node.title);
        let children: Vec<&Node> = node.children.iter().filter(|child| !(self.options.open && child.passes)).collect();
        let is_folded =
            (*depth > 0 && self.options.folded && node.passes) || self.options.depth.is_some_and(|most| *depth >= most);
        let folded = if is_folded && !children.is_empty() { ", folded" } else { "" };
        let counts = paint(DIM, &format!("{label}{}{}{folded}", render_counts(node), self.costs.render(&node.id)));
        let others = format!("{lead}{mark} {id}    {}", strip_str(&counts)).width();
        let room = self.screen.width.map_or(usize::MAX, |width| width.saturating_sub(others).max(MIN_TITLE_WIDTH));
        let title = truncate(&title, room, self.screen);
        let _ = if self.screen.is_plain {
            writeln!(self.text, "level {depth}: {id}, {title}, {counts}")
        } else {
            writeln!(self.text, "{lead}{} {}  {title}  {counts}", paint(style, mark), paint(style, &id))
        };
        let last = children.len().saturating_sub(1);
        for (at, child) in children.into_iter().enumerate().filter(|_| !is_folded) {
            let (branch, trunk) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let (ascii_branch, ascii_trunk) = if at == last { ("`- ", "   ") } else { ("|- ", "|  ") };
            let lead = format!("{child_lead}{}", self.screen.pick_symbol(branch, ascii_branch));
            let child_lead = format!("{child_lead}{}", self.screen.pick_symbol(trunk, ascii_trunk));
            self.draw_node(child, &NodePrefix { lead, child_lead, depth: depth + 1 });
        }
    }
}

impl NodeStatus {
    /// Returns the state of a node, given the node `current` that is worked on or next.
    pub(crate) fn from_node(node: &Node, current: Option<&str>) -> Self {
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
    pub(crate) fn appearance(self, screen: Screen) -> (&'static str, Style, &'static str) {
        match self {
            Self::Passed => (screen.pick_symbol("✔", "[x]"), GOOD, "passed"),
            Self::Current => (screen.pick_symbol("●", "[>]"), LIVE, "current"),
            Self::Open => (screen.pick_symbol("○", "[ ]"), PLAIN, "open"),
            Self::Exhausted => (screen.pick_symbol("✖", "[!]"), BAD, "no attempts left"),
        }
    }
}

/// Returns the attempts of a leaf if it used any, or the passed leaves of an inner node.
fn render_counts(node: &Node) -> String {
    if !node.is_leaf() {
        let (passed, total) = count_leaves(node);
        return format!(", {passed}/{total} tasks");
    }
    if node.attempts == 0 { String::new() } else { format!(", attempts {}/{}", node.attempts, node.max_attempts) }
}

/// Returns the number of passed leaves below a node, and of all leaves.
pub(crate) fn count_leaves(node: &Node) -> (usize, usize) {
    if node.is_leaf() {
        return (usize::from(node.passes), 1);
    }
    node.children.iter().map(count_leaves).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
}

#[cfg(test)]
pub(crate) mod tests {
    use protocol::tree::{TREE_VERSION, TaskTree};

    use super::*;

    fn sample_node(id: &str, attempts: u32, children: Vec<Node>) -> Node {
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

    pub(crate) fn sample_reply() -> TreeReply {
        let mut lexer = sample_node("lexer", 0, Vec::new());
        lexer.passes = true;
        let parser = sample_node("parser", 0, vec![lexer, sample_node("ast", 1, Vec::new())]);
        let root =
            sample_node("root", 0, vec![parser, sample_node("cli", 3, Vec::new()), sample_node("docs", 0, Vec::new())]);
        TreeReply {
            tree: TaskTree { version: TREE_VERSION, root },
            current: Some("ast".into()),
            state: None,
            digest: String::new(),
        }
    }

    #[test]
    fn a_tree_shows_what_passed_and_what_is_next() {
        insta::assert_snapshot!(strip_str(&render_tree(&sample_reply(), &Screen::fixed())), @r"
        ○ root  The root  open, 1/4 tasks
        ├─ ○ parser  The parser  open, 1/2 tasks
        │  ├─ ✔ lexer  The lexer  passed
        │  └─ ● ast  The ast  current, attempts 1/3
        ├─ ✖ cli  The cli  no attempts left, attempts 3/3
        └─ ○ docs  The docs  open
        ");
    }

    fn render_part(depth: Option<usize>, open: bool, folded: bool) -> String {
        let mut reply = sample_reply();
        let parser = &mut reply.tree.root.children[0];
        parser.passes = true;
        parser.children.iter_mut().for_each(|leaf| leaf.passes = true);
        let costs = NodeCosts::from_iterations(&crate::text::samples::run().recent);
        strip_str(&render_tree_with(&reply, TreeOptions { depth, open, folded }, &costs, &Screen::fixed())).to_string()
    }

    #[test]
    fn branches_that_pass_are_folded_left_out_or_drawn() {
        insta::assert_snapshot!(render_part(None, false, true), @r"
        ○ root  The root  open, 2/4 tasks
        ├─ ✔ parser  The parser  passed, 2/2 tasks, folded
        ├─ ✖ cli  The cli  no attempts left, attempts 3/3
        └─ ○ docs  The docs  open
        ");
        insta::assert_snapshot!(render_part(None, true, false), @r"
        ○ root  The root  open, 2/4 tasks
        ├─ ✖ cli  The cli  no attempts left, attempts 3/3
        └─ ○ docs  The docs  open
        ");
        assert_eq!(render_part(Some(0), false, false), "○ root  The root  open, 2/4 tasks, folded\n");
        assert_eq!(render_part(Some(1), false, false), render_part(None, false, true));
        assert_eq!(render_part(None, false, false).lines().count(), 6);
    }

    #[test]
    fn a_node_tells_what_all_of_its_sessions_took() {
        let red = crate::text::samples::iteration();
        let unknown = UsageTotal { sessions: 1, cost_unknown: 1, ..UsageTotal::default() };
        let costs = NodeCosts::from_iterations(&[red.clone(), IterationView { usage: Some(unknown), ..red }]);
        assert_eq!((costs.render("parser.lex").as_str(), costs.render("other").as_str()), (", 28s, >$0.42", ""));
    }

    #[test]
    fn a_plain_reading_tells_the_level_in_words() {
        let plain = Screen { is_plain: true, unicode: false, ..Screen::fixed() };
        insta::assert_snapshot!(strip_str(&render_tree(&sample_reply(), &plain)), @r"
        level 0: root, The root, open, 1/4 tasks
        level 1: parser, The parser, open, 1/2 tasks
        level 2: lexer, The lexer, passed
        level 2: ast, The ast, current, attempts 1/3
        level 1: cli, The cli, no attempts left, attempts 3/3
        level 1: docs, The docs, open
        ");
    }

    #[test]
    fn a_terminal_without_unicode_gets_ascii() {
        let text = strip_str(&render_tree(&sample_reply(), &Screen { unicode: false, ..Screen::fixed() })).to_string();
        assert!(text.is_ascii(), "{text}");
        insta::assert_snapshot!(text, @r"
        [ ] root  The root  open, 1/4 tasks
        |- [ ] parser  The parser  open, 1/2 tasks
        |  |- [x] lexer  The lexer  passed
        |  `- [>] ast  The ast  current, attempts 1/3
        |- [!] cli  The cli  no attempts left, attempts 3/3
        `- [ ] docs  The docs  open
        ");
    }
}
