//! Compares committed files with what the rules lead to: which node, which field, expected and found.

use std::collections::BTreeMap;

use protocol::tree::{Node, TaskTree};
use protocol::verify::AuditRule;
use serde::Serialize;
use serde_json::Value;

use super::findings::AuditFindings;
use crate::files::layout;
use crate::text::json;
use crate::tree;

/// Reported if only the form of a file is wrong.
const CANONICAL_FORM: &str = "the canonical form";
const OTHER_FORM: &str = "the same content in another form";
/// Most nodes reported per tree.
const MAX_NAMED: usize = 20;

/// A file of a commit.
#[derive(Debug)]
pub(super) struct CommittedFile<'a, T> {
    /// Its parsed value.
    pub value: &'a T,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Compares a commit's task tree with the one that the rules lead to; `before` is From's.
pub(super) fn compare_trees(
    before: &TaskTree,
    expected: &TaskTree,
    found: &CommittedFile<'_, TaskTree>,
    findings: &mut AuditFindings,
) {
    if tree::is_canonical(expected, found.bytes) {
        return;
    }
    let old = tree::index(before);
    let right = tree::index(expected);
    let actual = tree::index(found.value);
    let mut ids: Vec<&str> = right.keys().chain(actual.keys()).copied().collect();
    ids.sort_unstable();
    ids.dedup();
    let mut named = 0;
    for id in ids {
        let has_passed = old.get(id).is_some_and(|placed| placed.node.passes);
        let expected = right.get(id).copied();
        let found = actual.get(id).copied();
        for (field, expected, found) in differing_node_fields(expected, found) {
            let rule = match field {
                "passes" => AuditRule::Passes,
                _ if has_passed => AuditRule::Passed,
                _ => AuditRule::Tree,
            };
            named += 1;
            if named <= MAX_NAMED {
                findings.add_violation(rule, &format!("node {id}: {field}"), &expected, &found);
            }
        }
    }
    if named == 0 {
        findings.add_violation(AuditRule::Tree, layout::TREE, CANONICAL_FORM, OTHER_FORM);
    }
}

/// Returns the fields in which two nodes differ, with both values.
fn differing_node_fields(
    expected: Option<tree::PlacedNode<'_>>,
    found: Option<tree::PlacedNode<'_>>,
) -> Vec<(&'static str, String, String)> {
    let (Some(expected), Some(found)) = (expected, found) else {
        let describe = |placed: Option<tree::PlacedNode<'_>>| if placed.is_some() { "a node" } else { "no such node" };
        return vec![("place", describe(expected).to_owned(), describe(found).to_owned())];
    };
    let parent = |placed: &tree::PlacedNode<'_>| placed.parent.map_or("none", |node| node.id.as_str()).to_owned();
    let values = |placed: &tree::PlacedNode<'_>| {
        let Node { order, title, goal, acceptance, passes, attempts, max_attempts, .. } = placed.node;
        [
            ("parent", parent(placed)),
            ("order", order.to_string()),
            ("title", title.clone()),
            ("goal", goal.clone()),
            ("acceptance", acceptance.join("; ")),
            ("passes", passes.to_string()),
            ("attempts", attempts.to_string()),
            ("max_attempts", max_attempts.to_string()),
        ]
    };
    let pairs = values(&expected).into_iter().zip(values(&found));
    pairs
        .filter(|(right, actual)| right != actual)
        .map(|((field, right), (_, actual))| (field, right, actual))
        .collect()
}

/// Compares one of the runner's JSON files with the value that the rules lead to, field by field.
pub(super) fn compare_values<T: Serialize>(
    rule: AuditRule,
    path: &str,
    expected: &T,
    found: &CommittedFile<'_, T>,
    findings: &mut AuditFindings,
) {
    if json::is_canonical(expected, found.bytes) {
        return;
    }
    let differing = differing_fields(expected, found.value);
    for (field, expected, found) in &differing {
        findings.add_violation(rule, &format!("{path}: {field}"), expected, found);
    }
    if differing.is_empty() {
        findings.add_violation(rule, path, CANONICAL_FORM, OTHER_FORM);
    }
}

/// Returns the fields in which two values differ, with both values.
pub(super) fn differing_fields<T: Serialize>(expected: &T, found: &T) -> Vec<(String, String, String)> {
    let fields = |value: &T| match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields.into_iter().collect::<BTreeMap<_, _>>(),
        _ => BTreeMap::new(),
    };
    let right = fields(expected);
    let mut actual = fields(found);
    let pairs = right.into_iter().map(|(name, right)| {
        let found = actual.remove(&name).unwrap_or(Value::Null);
        (name, right, found)
    });
    let pairs = pairs.filter(|(_, right, found)| right != found);
    pairs.map(|(name, right, found)| (name, right.to_string(), found.to_string())).collect()
}
