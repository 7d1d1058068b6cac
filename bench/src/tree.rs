//! The rules on a large task tree: parse and validate, select, update, write in canonical form.

use std::fs;
use std::hint::black_box;
use std::time::Duration;

use runner_core::tree;
use runner_core::tree::select::{LeafSelection, select};
use runner_core::tree::validate;
use serde::Serialize as _;

use crate::fixture::{self, DiskKind};
use crate::report::Report;
use crate::samples::Samples;

/// Number of nodes for which the budget applies.
const BUDGET_NODES: u32 = 20_000;
const TREE_BUDGET: Duration = Duration::from_millis(50);

/// How large the trees are.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TreeArgs {
    /// Nodes of the trees.
    #[arg(long, value_delimiter = ',', default_values_t = [200, 2_000, 20_000])]
    nodes: Vec<u32>,
    /// Times that each is measured.
    #[arg(long, default_value_t = 40)]
    rounds: u32,
}

impl Default for TreeArgs {
    fn default() -> Self {
        Self { nodes: vec![200, 2_000, BUDGET_NODES], rounds: 40 }
    }
}

/// Measures every size, alternating with a parser that validates nothing.
pub(crate) fn measure(args: &TreeArgs, report: &mut Report) {
    for nodes in &args.nodes {
        let text = canonical_text(*nodes);
        let folder = tempfile::tempdir_in(DiskKind::Memory.folder()).expect("a folder can be made");
        let path = folder.path().join("tree.json");
        let mut parsed = Samples::default();
        let mut ours = Samples::default();
        for _ in 0..args.rounds {
            parsed.time(|| parse_and_write(&text));
            ours.time(|| fs::write(&path, step(&text))).expect("a file can be written");
        }
        let mut group = report.group(format!("task tree, {nodes} nodes, {} KiB", text.len() / 1024));
        if *nodes == BUDGET_NODES {
            group.add_bounded("validate, select, update, canonical write", &ours, 50, TREE_BUDGET);
        } else {
            group.add_times("validate, select, update, canonical write", &ours);
        }
        group.add_times("serde_json alone: read into values and write", &parsed);
        let each = ours.median().as_secs_f64() * 1e6 / f64::from(*nodes);
        group.add_number("for each node", each, "µs", None);
    }
}

/// Returns the canonical text of a tree, as it is committed.
pub(crate) fn canonical_text(nodes: u32) -> String {
    tree::canonical(&fixture::build_tree(nodes))
}

/// Parses a tree, passes its next leaf, and returns the text of the resulting tree.
///
/// # Panics
///
/// Panics if the tree is invalid or already complete.
#[inline(never)]
pub(crate) fn step(text: &str) -> String {
    let mut tree = validate::load(text.as_bytes()).expect("the tree is valid");
    let LeafSelection::Open(leaf) = select(&tree) else { panic!("the tree has an open leaf") };
    let id = leaf.id.clone();
    tree::find_mut(&mut tree, &id).expect("what was selected is there").passes = true;
    tree::derive_passes(&mut tree);
    tree::sort(&mut tree);
    tree::canonical(&tree)
}

fn parse_and_write(text: &str) {
    let value: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
    let mut written = Vec::with_capacity(text.len());
    value.serialize(&mut serde_json::Serializer::pretty(&mut written)).expect("values can be written");
    black_box(written);
}
