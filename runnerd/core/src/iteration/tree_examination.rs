//! Decides who may change what in the task tree, by comparing From's tree with the one that a session left.
//!
//! Returns the finding and the tree as it would be taken (owned fields reset, children of the answer inserted); whether
//! it is taken is up to the verdict.

use std::collections::BTreeMap;

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::tree::{ChildSpec, Node, TaskTree};
use protocol::words::Role;

use crate::tree::validate::{self, TreeFault, TreeLimit};
use crate::tree::{self, PlacedNode};
use crate::verdict::{RuleBreach, SessionRule, TreeFinding};

/// Most bytes of an invalid tree that are kept for the next session.
const MAX_INVALID_TEXT: usize = 8 * 1024;

/// Most nodes that a session adds.
const MAX_ADDED: usize = 12;
/// Most nodes that a repair adds: those that the session before it has lost do not count against its own.
const MAX_REPAIRED: usize = 2 * MAX_ADDED;
/// Most single children in a row.
const MAX_SINGLE: usize = 2;

/// What a session started from, and what it left.
#[derive(Debug, Clone, Copy)]
pub struct SessionTree<'a> {
    /// The tree at From.
    pub from: &'a TaskTree,
    /// Id of the selected leaf.
    pub node: &'a str,
    /// Role of the session.
    pub role: Role,
    /// The file as the session left it; `None` if it is missing or not a regular file.
    pub text: Option<&'a [u8]>,
    /// The session's answer, if it gave one.
    pub answer: Option<&'a AgentAnswer>,
    /// Attempts that new nodes get.
    pub max_attempts: u32,
}

/// Result of an examination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeExamination {
    /// What was found.
    pub finding: TreeFinding,
    /// The tree as it would be taken; `None` unless it is legal.
    pub tree: Option<TaskTree>,
}

/// Compares the tree that a session left with From's.
pub fn examine_tree(session: &SessionTree<'_>) -> TreeExamination {
    let Some(text) = session.text else {
        return invalid_tree(vec![TreeFault::of_whole_tree(TreeLimit::FileGone)], b"");
    };
    match validate::load_agent_tree(text) {
        Ok(agent_tree) => examine_parsed_tree(session, agent_tree),
        Err(faults) => invalid_tree(faults, text),
    }
}

/// Same as [`examine_tree`], for a session whose text has been parsed into this tree, which on its own satisfies every rule.
pub fn examine_parsed_tree(session: &SessionTree<'_>, mut agent_tree: TaskTree) -> TreeExamination {
    reset_owned_fields(&mut agent_tree, session.from, session.max_attempts);
    if agent_tree == *session.from {
        return examine_unchanged_tree(session);
    }
    match find_breach(session.from, &agent_tree) {
        Some(breach) => TreeExamination { finding: TreeFinding::Illegal(breach), tree: None },
        None => take_tree(session, agent_tree, session.text.unwrap_or_default()),
    }
}

/// Same as [`examine_tree`], for a session that left From's text, which is already known to satisfy every rule.
pub fn examine_unchanged_tree(session: &SessionTree<'_>) -> TreeExamination {
    let mut agent_tree = session.from.clone();
    if answered_children(session).is_some() {
        return take_tree(session, agent_tree, session.text.unwrap_or_default());
    }
    tree::sort(&mut agent_tree);
    TreeExamination {
        finding: TreeFinding::Legal { gained: count_gained(session, &agent_tree), reworded: false },
        tree: Some(agent_tree),
    }
}

/// Finishes a tree in which no node breaks a rule, by inserting the children in the answer.
fn take_tree(session: &SessionTree<'_>, mut agent_tree: TaskTree, text: &[u8]) -> TreeExamination {
    let gained = count_gained(session, &agent_tree);
    let finding = TreeFinding::Legal { gained, reworded: is_reworded(session, &agent_tree) };
    if let Some(children) = answered_children(session).filter(|_| gained == 0) {
        tree::insert_children(&mut agent_tree, session.node, children, session.max_attempts);
    }
    tree::derive_passes(&mut agent_tree);
    tree::sort(&mut agent_tree);
    match validate::check_tree(&agent_tree) {
        Ok(()) => match find_growth_breach(session, &agent_tree) {
            Some(breach) => TreeExamination { finding: TreeFinding::Illegal(breach), tree: None },
            None => TreeExamination { finding, tree: Some(agent_tree) },
        },
        Err(faults) => invalid_tree(faults, text),
    }
}

/// Returns the breach of a session that has added too much, or one more to a chain of single children.
fn find_growth_breach(session: &SessionTree<'_>, agent_tree: &TaskTree) -> Option<RuleBreach> {
    let known = tree::index(session.from);
    let after = tree::index(agent_tree);
    let is_new = |placed: &PlacedNode<'_>| !known.contains_key(placed.node.id.as_str());
    let added: Vec<PlacedNode<'_>> = tree::walk(agent_tree).into_iter().filter(is_new).collect();
    let limit = if session.role == Role::Repair { MAX_REPAIRED } else { MAX_ADDED };
    if added.len() > limit {
        let details = format!("it added {}; let a part of them be divided by their own sessions", added.len());
        return Some(RuleBreach { rule: SessionRule::NodeCount, at: session.node.to_owned(), details });
    }
    added.iter().find(|placed| count_single(**placed, &after) > MAX_SINGLE).map(|placed| RuleBreach {
        rule: SessionRule::SingleChild,
        at: placed.node.id.clone(),
        details: "it and the two above it have no siblings; do the work, or divide it into 2 or more".to_owned(),
    })
}

/// Returns how many nodes in a row, from this one upwards, are the single children of their parents.
fn count_single<'a>(placed: PlacedNode<'a>, nodes: &BTreeMap<&'a str, PlacedNode<'a>>) -> usize {
    let parent = |placed: &PlacedNode<'a>| nodes.get(placed.parent?.id.as_str()).copied();
    let is_single = |placed: &PlacedNode<'a>| placed.parent.is_some_and(|parent| parent.children.len() == 1);
    std::iter::successors(Some(placed), parent).take_while(is_single).count()
}

fn invalid_tree(faults: Vec<TreeFault>, text: &[u8]) -> TreeExamination {
    TreeExamination { finding: TreeFinding::Invalid { faults, text: clip_invalid_text(text), blob: None }, tree: None }
}

/// Returns the part of an invalid tree's text that is kept.
pub fn clip_invalid_text(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(MAX_INVALID_TEXT)]).into_owned()
}

/// Sets the fields that the runner owns: to From's values, or to those of a new node.
fn reset_owned_fields(agent_tree: &mut TaskTree, from: &TaskTree, max_attempts: u32) {
    let known = tree::index(from);
    tree::for_each_node_mut(agent_tree, |node| {
        let before = known.get(node.id.as_str()).map(|placed| placed.node);
        node.passes = before.is_some_and(|before| before.passes);
        node.attempts = before.map_or(0, |before| before.attempts);
        node.max_attempts = before.map_or(max_attempts, |before| before.max_attempts);
    });
}

/// Returns the first breach in the order of the rules; for one rule, the first in From's tree.
fn find_breach(from: &TaskTree, agent_tree: &TaskTree) -> Option<RuleBreach> {
    let after = tree::index(agent_tree);
    let breaches: Vec<RuleBreach> =
        tree::walk(from).into_iter().filter_map(|before| find_node_breach(before, &after)).collect();
    breaches.into_iter().min_by_key(|breach| breach.rule)
}

fn find_node_breach(before: PlacedNode<'_>, after: &BTreeMap<&str, PlacedNode<'_>>) -> Option<RuleBreach> {
    let id = &before.node.id;
    let breach = |rule: SessionRule, details: String| Some(RuleBreach { rule, at: id.clone(), details });
    let Some(now) = after.get(id.as_str()) else {
        let rule = if before.node.passes { SessionRule::PassedNode } else { SessionRule::KeepNodes };
        return breach(rule, "the task is gone, or has another id".to_owned());
    };
    let old_parent = before.parent.map(|node| &node.id);
    let new_parent = now.parent.map(|node| &node.id);
    if old_parent != new_parent {
        let rule = if before.node.passes { SessionRule::PassedNode } else { SessionRule::KeepPlace };
        return breach(rule, format!("its parent is {}", new_parent.map_or("none", String::as_str)));
    }
    if before.node.passes {
        return changed_field(before.node, now.node)
            .and_then(|field| breach(SessionRule::PassedNode, format!("`{field}` differs")));
    }
    None
}

/// Returns the first field in which a passed node differs; runner-owned fields have already been reset.
fn changed_field(before: &Node, now: &Node) -> Option<&'static str> {
    let ids = |node: &Node| {
        let mut ids: Vec<String> = node.children.iter().map(|child| child.id.clone()).collect();
        ids.sort();
        ids
    };
    let fields = [
        ("order", before.order == now.order),
        ("title", before.title == now.title),
        ("goal", before.goal == now.goal),
        ("acceptance", before.acceptance == now.acceptance),
        ("children", ids(before) == ids(now)),
    ];
    fields.into_iter().find(|(_, same)| !same).map(|(name, _)| name)
}

/// Whether the goal or acceptance differs of the selected node, or of one that passes with it because all else in it has.
fn is_reworded(session: &SessionTree<'_>, agent_tree: &TaskTree) -> bool {
    let mut passed = agent_tree.clone();
    tree::for_each_node_mut(&mut passed, |node| node.passes |= node.id == session.node);
    tree::derive_passes(&mut passed);
    let after = tree::index(&passed);
    tree::walk(session.from).into_iter().map(|placed| placed.node).any(|before| {
        let now = after.get(before.id.as_str()).map(|placed| placed.node);
        let is_settled = before.id == session.node || !before.passes && now.is_some_and(|now| now.passes);
        let wording = |node: &Node| (node.goal.clone(), node.acceptance.clone());
        is_settled && now.map(wording) != Some(wording(before))
    })
}

/// Returns the number of children that the selected node gained in the tree.
fn count_gained(session: &SessionTree<'_>, agent_tree: &TaskTree) -> u32 {
    let gained = tree::find(agent_tree, session.node).map_or(0, |node| node.children.len());
    u32::try_from(gained).unwrap_or(u32::MAX)
}

/// Returns the children in the answer.
fn answered_children<'a>(session: &SessionTree<'a>) -> Option<&'a [ChildSpec]> {
    let answer = session.answer.filter(|answer| answer.status == AnswerStatus::Decomposed)?;
    answer.children.as_deref()
}
