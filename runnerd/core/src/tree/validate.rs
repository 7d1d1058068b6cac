//! Parses bytes into a task tree that satisfies every rule, or reports what is wrong with it.
//!
//! Limits on the bytes come first, so that nothing recurses on hostile input; then the schema; then what a schema
//! cannot express. Each fault names the path of the value and the rule.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use protocol::tree::{Node, TREE_VERSION, TaskTree};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::clip::truncate_text;
use crate::text::json::{self, JsonBounds, JsonBoundsError};
use crate::text::strict_json;
use crate::tree::ids::{MAX_ID_BYTES, check_id};
use crate::tree::schema;
use crate::tree::tree_length::canonical_len;
use crate::tree::{self, MAX_DEPTH, MAX_NODES, MAX_TREE_BYTES};

/// Most faults reported for one tree.
const MAX_FAULTS: usize = 20;
/// Most bytes of the text of one fault.
const MAX_RULE_BYTES: usize = 400;
/// Longest title of a node, in bytes.
pub const MAX_TITLE_BYTES: usize = 200;
/// Longest goal of a node, in bytes.
pub const MAX_GOAL_BYTES: usize = 8 * 1024;
/// Most acceptance statements of a node.
pub const MAX_ACCEPTANCE: usize = 20;
/// Longest acceptance statement, in bytes.
pub const MAX_ACCEPTANCE_BYTES: usize = 400;

/// Bounds before parsing: there may be more white space than in the canonical form, and nesting may exceed the depth of
/// a legal tree far enough to name the node that is too deep.
const BOUNDS: JsonBounds = JsonBounds { bytes: 4 * MAX_TREE_BYTES, objects: MAX_NODES + 1, nesting: 4 * MAX_DEPTH };

/// Most bytes of a path in a message; only both ends of a longer one are shown.
const MAX_SHOWN_PATH: usize = 160;

/// One thing that is wrong with a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeFault {
    /// Where: `root.children[0].goal`, with the id of the node; empty if it concerns the text as a whole.
    pub path: String,
    /// The rule, and what was found instead.
    pub rule: String,
}

impl fmt::Display for TreeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.len() {
            0 => f.write_str(&self.rule),
            // The rule must fit on one line with its path, however deep that is.
            length if length > MAX_SHOWN_PATH => {
                let head = &self.path[..self.path.floor_char_boundary(MAX_SHOWN_PATH / 2)];
                let tail = &self.path[self.path.ceil_char_boundary(length - MAX_SHOWN_PATH / 2)..];
                write!(f, "{head}…{tail}: {}", self.rule)
            }
            _ => write!(f, "{}: {}", self.path, self.rule),
        }
    }
}

/// Why a tree is refused although no single field is wrong. Stored as text, from which an audit reads it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeLimit {
    /// There is no regular file.
    #[error("the file is gone")]
    FileGone,
    /// The tree has too many nodes.
    #[error("it has {found} tasks, more than {limit}")]
    Nodes {
        /// Number of nodes.
        found: usize,
        /// Number of nodes allowed.
        limit: usize,
    },
    /// A node is too deep in the tree.
    #[error("it is {found} levels deep, more than {limit}")]
    Depth {
        /// Level of the node.
        found: usize,
        /// Levels allowed.
        limit: usize,
    },
    /// The tree is too long.
    #[error("its canonical form is larger than {limit} bytes")]
    Bytes {
        /// Bytes allowed in canonical form.
        limit: usize,
    },
}

impl TreeLimit {
    /// Parses the text of such a refusal, whatever the limits were then; `None` if the text is something else.
    pub(crate) fn parse(rule_text: &str) -> Option<Self> {
        let rule = rule_text.rsplit_once(": ").map_or(rule_text, |(_, rule)| rule);
        let mut numbers = rule.split(' ').filter_map(|word| word.parse().ok());
        let first = numbers.next().unwrap_or(0);
        let second = numbers.next().unwrap_or(0);
        let nodes = Self::Nodes { found: first, limit: second };
        let depth = Self::Depth { found: first, limit: second };
        let all = [Self::FileGone, nodes, depth, Self::Bytes { limit: first }];
        all.into_iter().find(|fault| fault.to_string() == rule)
    }

    /// Whether the tree is too large or too deep, which the children in an answer can do to any tree.
    pub(crate) fn is_excess(self) -> bool {
        !matches!(self, Self::FileGone)
    }
}

/// Reads the runner's own tree, to which every rule applies, including those on counters and passes.
pub fn load(text: &[u8]) -> Result<TaskTree, Vec<TreeFault>> {
    parse_tree(text, |_| (), |_| ())
}

/// Reads a tree left by an agent, ignoring the fields that the runner owns.
///
/// `passes`, `attempts` and `max_attempts` are returned as false, 0 and 1; the caller sets them. Limits and ids are
/// checked.
pub fn load_agent_tree(text: &[u8]) -> Result<TaskTree, Vec<TreeFault>> {
    let disown = |tree: &mut TaskTree| {
        tree::for_each_node_mut(tree, |node| (node.passes, node.attempts, node.max_attempts) = (false, 0, 1));
    };
    parse_tree(text, reset_owned_fields, disown)
}

/// Reads a tree left by a person. Whether a node with children passes is derived rather than checked.
pub fn load_person_tree(text: &[u8]) -> Result<TaskTree, Vec<TreeFault>> {
    parse_tree(text, |_| (), tree::derive_passes)
}

/// Reads a tree that satisfies every rule after `prepare`; `forgive` runs before the schema check.
fn parse_tree(
    text: &[u8],
    forgive: fn(&mut Value),
    prepare: impl Fn(&mut TaskTree),
) -> Result<TaskTree, Vec<TreeFault>> {
    let objects =
        json::check_bounds(text, BOUNDS).map_err(|error| vec![whole_tree_fault(&describe_bounds_error(&error))])?;
    if let Some(mut tree) = parse_well_formed(text, objects) {
        prepare(&mut tree);
        if check_tree(&tree).is_ok() {
            return Ok(tree);
        }
    }
    let mut value = parse_json(text)?;
    forgive(&mut value);
    let mut tree = deserialize_tree(&value)?;
    prepare(&mut tree);
    check_tree(&tree)?;
    Ok(tree)
}

/// Parses a well-formed tree directly; `None` if the schema may have something to report.
///
/// The types refuse what the schema refuses, except another version, and arrays in place of objects: in that case there
/// are fewer objects than the nodes and the tree around them.
fn parse_well_formed(text: &[u8], objects: usize) -> Option<TaskTree> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    deserializer.disable_recursion_limit();
    let tree = TaskTree::deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    (tree.version == TREE_VERSION && tree::walk(&tree).len() + 1 == objects).then_some(tree)
}

/// Checks what the schema cannot express, on a tree from any source.
pub fn check_tree(tree: &TaskTree) -> Result<(), Vec<TreeFault>> {
    let places = node_places(tree);
    let mut faults = Vec::new();
    let mut ids: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    for (at, place) in places.iter().enumerate() {
        if faults.len() >= MAX_FAULTS {
            break;
        }
        let mut wrong = |rule: String| faults.push(TreeFault::at_node(&render_path(&places, at), &place.node.id, rule));
        check_node(place, &mut wrong);
        if let Some(first) = ids.insert(lowercase(&place.node.id), at) {
            wrong(format!("id is not unique (ignoring case): it is also at {}", render_path(&places, first)));
        }
    }
    if places.len() > MAX_NODES {
        faults.push(TreeFault::of_whole_tree(TreeLimit::Nodes { found: places.len(), limit: MAX_NODES }));
    }
    // The order of siblings does not affect the length.
    if faults.is_empty() && canonical_len(tree) > MAX_TREE_BYTES {
        faults.push(TreeFault::of_whole_tree(TreeLimit::Bytes { limit: MAX_TREE_BYTES }));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// A node, and the way to it from the root.
struct NodePlace<'a> {
    node: &'a Node,
    /// Index of the parent's place, and the node's index among its siblings.
    from: Option<(usize, usize)>,
    depth: usize,
}

/// Returns the places of all nodes, parents before children, siblings in their order in the file.
fn node_places(tree: &TaskTree) -> Vec<NodePlace<'_>> {
    let mut stack = vec![NodePlace { node: &tree.root, from: None, depth: 1 }];
    let mut places = Vec::new();
    while let Some(place) = stack.pop() {
        let parent = places.len();
        let depth = place.depth + 1;
        let children = place.node.children.iter().enumerate().rev();
        stack.extend(children.map(|(at, node)| NodePlace { node, from: Some((parent, at)), depth }));
        places.push(place);
    }
    places
}

/// Returns the path of a node as text.
fn render_path(places: &[NodePlace<'_>], at: usize) -> String {
    let ways = std::iter::successors(places[at].from, |(parent, _)| places[*parent].from);
    let steps: Vec<String> = ways.map(|(_, at)| format!(".children[{at}]")).collect();
    std::iter::once("root".to_owned()).chain(steps.into_iter().rev()).collect()
}

fn lowercase(id: &str) -> Cow<'_, str> {
    if id.bytes().any(|byte| byte.is_ascii_uppercase()) { id.to_ascii_lowercase().into() } else { id.into() }
}

fn check_node(&NodePlace { node, depth, .. }: &NodePlace<'_>, wrong: &mut impl FnMut(String)) {
    if let Err(error) = check_id(&node.id) {
        wrong(error.to_string());
    }
    if depth > MAX_DEPTH {
        wrong(TreeLimit::Depth { found: depth, limit: MAX_DEPTH }.to_string());
    }
    if node.title.len() > MAX_TITLE_BYTES {
        wrong(format!("title is longer than {MAX_TITLE_BYTES} bytes"));
    }
    if node.goal.len() > MAX_GOAL_BYTES {
        wrong(format!("goal is longer than {MAX_GOAL_BYTES} bytes"));
    }
    if node.acceptance.len() > MAX_ACCEPTANCE {
        wrong(format!("acceptance has more than {MAX_ACCEPTANCE} statements"));
    }
    if node.acceptance.iter().any(|statement| statement.len() > MAX_ACCEPTANCE_BYTES) {
        wrong(format!("a statement of acceptance is longer than {MAX_ACCEPTANCE_BYTES} bytes"));
    }
    if node.max_attempts == 0 {
        wrong("max_attempts is 0".to_owned());
    }
    if node.attempts > node.max_attempts {
        wrong(format!("attempts is {}, more than max_attempts {}", node.attempts, node.max_attempts));
    }
    if !node.is_leaf() && node.passes != node.children.iter().all(|child| child.passes) {
        wrong(format!("passes is {}, but a task with subtasks passes exactly when all of them do", node.passes));
    }
}

fn parse_json(text: &[u8]) -> Result<Value, Vec<TreeFault>> {
    let value =
        strict_json::parse(text).map_err(|error| vec![whole_tree_fault(&format!("it is not JSON: {error}"))])?;
    match raw_nodes(&value).into_iter().find(|node| node.depth > MAX_DEPTH) {
        Some(node) => Err(vec![node.fault("", format!("it is deeper than {MAX_DEPTH} levels"))]),
        None => Ok(value),
    }
}

/// Describes an exceeded bound in terms of a tree: every object but the outermost is a node.
fn describe_bounds_error(error: &JsonBoundsError) -> String {
    match error {
        JsonBoundsError::Objects { line, column, .. } => {
            format!("it has more than {MAX_NODES} tasks (line {line}, column {column})")
        }
        JsonBoundsError::Bytes { .. } | JsonBoundsError::Nesting { .. } => error.to_string(),
    }
}

/// A node that has not been parsed yet.
struct RawNode<'a> {
    value: &'a Value,
    path: String,
    depth: usize,
}

impl RawNode<'_> {
    fn fault(&self, field: &str, rule: String) -> TreeFault {
        let id = self.value.get("id").and_then(Value::as_str).unwrap_or("unknown");
        TreeFault::at_node(&format!("{}{field}", self.path), id, rule)
    }
}

/// Returns the values in the positions of nodes, without recursion: parents before children.
fn raw_nodes(value: &Value) -> Vec<RawNode<'_>> {
    let mut stack: Vec<RawNode<'_>> =
        value.get("root").map(|value| RawNode { value, path: "root".to_owned(), depth: 1 }).into_iter().collect();
    let mut nodes = Vec::new();
    while let Some(node) = stack.pop() {
        let children = node.value.get("children").and_then(Value::as_array).into_iter().flatten().enumerate();
        let first = stack.len();
        stack.extend(children.map(|(at, value)| RawNode {
            value,
            path: format!("{}.children[{at}]", node.path),
            depth: node.depth + 1,
        }));
        stack[first..].reverse();
        nodes.push(node);
    }
    nodes
}

fn deserialize_tree(value: &Value) -> Result<TaskTree, Vec<TreeFault>> {
    let faults: Vec<TreeFault> = schema::tree_validator()
        .iter_errors(value)
        .take(MAX_FAULTS)
        .map(|error| {
            let path = readable_path(value, &error.instance_path().to_string());
            TreeFault { path, rule: clip_rule(&error.masked().to_string()) }
        })
        .collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    TaskTree::deserialize(value).map_err(|error| match find_misfits(value) {
        faults if faults.is_empty() => vec![whole_tree_fault(&error.to_string())],
        faults => faults,
    })
}

/// Reports numbers that the schema accepts and the types cannot hold, such as `1.0` or 2^63.
fn find_misfits(value: &Value) -> Vec<TreeFault> {
    let fits_u32 = |number: &Value| number.as_u64().is_some_and(|number| u32::try_from(number).is_ok());
    let misfit = |node: &RawNode<'_>, field: &str, bits: &str, fits: bool| {
        (!fits).then(|| node.fault(&format!(".{field}"), format!("it is no whole number of {bits} bits")))
    };
    let faults = raw_nodes(value).into_iter().flat_map(|node| {
        let field = |name: &str| node.value.get(name).cloned().unwrap_or(Value::Null);
        [
            misfit(&node, "order", "64", field("order").is_i64()),
            misfit(&node, "attempts", "32", fits_u32(&field("attempts"))),
            misfit(&node, "max_attempts", "32", fits_u32(&field("max_attempts"))),
        ]
    });
    faults.flatten().take(MAX_FAULTS).collect()
}

/// Gives the runner-owned fields legal values, so that they cannot make a tree invalid.
fn reset_owned_fields(value: &mut Value) {
    let mut stack: Vec<&mut Value> = value.get_mut("root").into_iter().collect();
    while let Some(node) = stack.pop() {
        let Some(fields) = node.as_object_mut() else { continue };
        for (key, neutral) in
            [("passes", Value::from(false)), ("attempts", Value::from(0)), ("max_attempts", Value::from(1))]
        {
            if let Some(field) = fields.get_mut(key) {
                *field = neutral;
            }
        }
        stack.extend(fields.get_mut("children").and_then(Value::as_array_mut).into_iter().flatten());
    }
}

/// Turns the pointer `/root/children/0/goal` into `root.children[0].goal (id lexer)`.
fn readable_path(value: &Value, pointer: &str) -> String {
    let mut path = String::new();
    let mut at = Some(value);
    let mut id = None;
    for step in pointer.split('/').skip(1) {
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            path.extend(["[", step, "]"]);
        } else {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(step);
        }
        at = at.and_then(|value| match value {
            Value::Array(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            Value::Object(fields) => fields.get(step),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        });
        id = at.and_then(|node| node.get("id")).and_then(Value::as_str).or(id);
    }
    match id {
        Some(id) => format!("{path} (id {})", truncate_text(id, MAX_ID_BYTES)),
        None => path,
    }
}

impl TreeFault {
    fn at_node(path: &str, id: &str, rule: String) -> Self {
        Self { path: format!("{path} (id {})", truncate_text(id, MAX_ID_BYTES)), rule }
    }

    /// Returns a fault that concerns the tree as a whole.
    pub(crate) fn of_whole_tree(limit: TreeLimit) -> Self {
        Self { path: String::new(), rule: limit.to_string() }
    }
}

fn whole_tree_fault(rule: &str) -> TreeFault {
    TreeFault { path: String::new(), rule: clip_rule(rule) }
}

/// Bounds a message, so that an agent's text cannot fill journal and prompt through it.
fn clip_rule(rule: &str) -> String {
    truncate_text(rule, MAX_RULE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_tree_is_read_back() {
        let found = 65;
        let limit = 64;
        let all = [
            TreeLimit::FileGone,
            TreeLimit::Nodes { found, limit },
            TreeLimit::Depth { found, limit },
            TreeLimit::Bytes { limit },
        ];
        for fault in all {
            assert_eq!(TreeLimit::parse(&TreeFault::of_whole_tree(fault).to_string()), Some(fault));
            let below = TreeFault::at_node("root.children[0]", "n1", fault.to_string());
            assert_eq!(TreeLimit::parse(&below.to_string()), Some(fault));
        }
        for other in ["acceptance has more than 20 statements", "id is empty", ""] {
            assert_eq!(TreeLimit::parse(other), None);
        }
    }
}
