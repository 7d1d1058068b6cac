//! Forged branches, which an audit must detect. The forger is careful: ids and digests that chain the commits match.

use std::collections::BTreeMap;

use protocol::state::RunState;
use protocol::test_record::TestRecord;
use protocol::tree::TaskTree;
use protocol::words::{Mode, Role, VerdictName};
use runner_core::files::layout;
use runner_core::message::{GuardFlaky, NameList, ProcessEnd, Receipt, ReviewRun, RunnerCommit, VerdictLine};
use runner_core::text::digest::Digest;
use runner_core::text::json;
use runner_core::tree;
use runner_core::verdict::verdict_row;

use super::random::RandomSource;
use super::repository::{FileMap, SimulatedCommit, StoredBlob, commit_id};

/// A branch that is being forged.
pub(crate) struct ForgedBranch {
    pub(super) chain: Vec<SimulatedCommit>,
    pub(super) random: RandomSource,
    has_prompts: bool,
    /// The run's start; commits before it are not part of the run.
    pub(super) start: usize,
}

/// A way to forge; false if it does not apply to the branch.
pub(super) type ForgeryMethod = fn(&mut ForgedBranch) -> bool;

/// Every way, with its name.
pub(crate) const WAYS: [(&str, ForgeryMethod); 52] = [
    ("a leaf that passes", |forgery| forgery.trees(|node| !node.passes, |node| node.passes = true)),
    ("a person that sets passes", |forgery| forgery.person(|node| !node.passes, |node| node.passes = true)),
    ("attempts that were lowered", |forgery| {
        forgery.trees(|node| node.attempts > 0, |node| node.attempts = node.attempts.saturating_sub(1))
    }),
    ("a person that lowers attempts", |forgery| {
        forgery.person(|node| node.attempts > 0, |node| node.attempts = node.attempts.saturating_sub(1))
    }),
    ("a passed node that was edited", |forgery| forgery.trees(|node| node.passes, |node| node.title.push('!'))),
    ("a passed node that was moved among its siblings", |forgery| {
        forgery.trees(|node| node.passes && node.id != "root", |node| node.order += 50)
    }),
    ("a node that is gone", ForgedBranch::lose_node),
    ("a commit that is gone", ForgedBranch::drop_commit),
    ("two commits that were swapped", ForgedBranch::swap),
    ("another verdict", |forgery| {
        forgery.receipts(|receipt| {
            let other =
                if receipt.verdict.name == VerdictName::Retry { VerdictName::RedGuard } else { VerdictName::Retry };
            receipt.verdict = VerdictLine::new(other, None);
            receipt.status = verdict_row(other).status;
            receipt.guard = verdict_row(other).guard.unwrap_or(receipt.guard);
            true
        })
    }),
    ("another role", |forgery| {
        forgery.receipts(|receipt| {
            receipt.role = if receipt.role == Role::Repair { Role::Worker } else { Role::Repair };
            true
        })
    }),
    ("another node", |forgery| {
        forgery.receipts(|receipt| {
            receipt.node.push_str(".9");
            true
        })
    }),
    ("other attempts", |forgery| {
        forgery.receipts(|receipt| {
            receipt.attempts.allowed += 1;
            true
        })
    }),
    ("another number", |forgery| {
        forgery.receipts(|receipt| {
            receipt.iter += 1;
            true
        })
    }),
    ("another prompt", |forgery| {
        let has_prompts = forgery.has_prompts;
        forgery.receipts(|receipt| {
            receipt.prompt = Some(Digest::compute(b"another"));
            has_prompts
        })
    }),
    ("notes that nobody wrote", |forgery| {
        forgery.receipts(|receipt| {
            receipt.notes = NameList::new(["n77"]);
            true
        })
    }),
    ("code that was not written", ForgedBranch::hide_code),
    ("a guard that was red", |forgery| {
        forgery.receipts(|receipt| {
            let is_accepted = receipt.verdict.name == VerdictName::Accepted;
            receipt.guard_run.as_mut().is_some_and(|run| {
                run.end = ProcessEnd::Exit(1);
                is_accepted
            })
        })
    }),
    ("paths that were put back", |forgery| {
        forgery.receipts(|receipt| {
            receipt.reverted = NameList::new([".runner/GOAL.md.old"]);
            true
        })
    }),
    ("the title of another task", |forgery| {
        forgery.receipts(|receipt| {
            receipt.headline = receipt.headline.replacen(':', " and more:", 1);
            true
        })
    }),
    ("no rules", |forgery| forgery.rules("")),
    ("the rules after these", |forgery| forgery.rules(" rules=2")),
    ("rules that nobody knows", |forgery| forgery.rules(" rules=99")),
    ("rules before the first", |forgery| forgery.rules(" rules=0")),
    ("rules in another spelling", |forgery| forgery.rules(" rules=01")),
    ("another configuration", |forgery| {
        forgery.file(layout::CONFIG, |text| text.replace("stall_after = ", "stall_after = 1"))
    }),
    ("another goal", |forgery| forgery.file(layout::GOAL, |text| format!("{text}And more.\n"))),
    ("another schema", |forgery| forgery.file(layout::SCHEMA, |text| format!("{text}\n"))),
    ("memory that was rewritten", |forgery| forgery.file(layout::ASSUMPTIONS, |text| text.replacen('-', "+", 1))),
    ("other counters", ForgedBranch::counters),
    ("other feedback", |forgery| {
        forgery.file(layout::FEEDBACK, |text| {
            text.replace("\"nodes\": {", "\"nodes\": {\"ghost\": {\"history\": [], \"failures\": []},")
                .replace(",}", "}")
        })
    }),
    ("tests that were never lost", |forgery| {
        forgery.file(layout::TESTS, |text| {
            let Ok(mut tests) = serde_json::from_str::<TestRecord>(text) else { return text.to_owned() };
            tests.lost.clear();
            json::to_canonical_json(&tests)
        })
    }),
    ("tests that have not passed", |forgery| {
        forgery.file(layout::TESTS, |text| text.replacen("\"passed\": [", "\"passed\": [\n    \"adds\",", 1))
    }),
    ("tests that are lost and not named", |forgery| {
        forgery.receipts_that(|receipt| receipt.guard_tests.is_some(), |receipt| receipt.guard_tests = None)
    }),
    ("a flaky guard that was not", |forgery| {
        forgery.receipts_that(
            |receipt| receipt.guard_run.is_some() && receipt.guard_flaky.is_none(),
            |receipt| receipt.guard_flaky = Some(GuardFlaky::default()),
        )
    }),
    ("a flaky guard that is not named", |forgery| {
        forgery.receipts_that(|receipt| receipt.guard_flaky.is_some(), |receipt| receipt.guard_flaky = None)
    }),
    ("a flaky guard of another test", |forgery| {
        forgery.receipts_that(
            |receipt| receipt.guard_flaky.is_some(),
            |receipt| receipt.guard_flaky = Some(GuardFlaky { names: NameList::new(["another"]) }),
        )
    }),
    ("a changed guard that is not announced", |forgery| {
        forgery.receipts_that(is_announced_and_committed, |receipt| receipt.guard_changed = NameList::default())
    }),
    ("a guard that nobody has accepted", |forgery| {
        forgery.file(layout::RUN_STATE, |text| {
            let Ok(mut state) = serde_json::from_str::<RunState>(text) else { return text.to_owned() };
            state.guard_definition.insert("justfile".to_owned(), "0".repeat(40));
            json::to_canonical_json(&state)
        })
    }),
    ("a review that a person has not made", |forgery| {
        forgery.receipts_that(
            |receipt| receipt.verdict.name == VerdictName::Pending,
            |receipt| receipt.verdict = VerdictLine::new(VerdictName::Accepted, None),
        )
    }),
    ("a person's word that was another", |forgery| {
        forgery.receipts_that(
            |receipt| receipt.role == Role::Human,
            |receipt| {
                receipt.review = receipt.review.take().map(|review| ReviewRun { accepted: !review.accepted, ..review });
            },
        )
    }),
    ("a person's word without its signature", |forgery| {
        forgery.receipts_that(|receipt| receipt.signature.is_some(), |receipt| receipt.signature = None)
    }),
    ("a signature of nobody's word", |forgery| {
        forgery.receipts_that(
            |receipt| receipt.review.is_none(),
            |receipt| receipt.signature = "U1NIU0lHAAAAAQ==".parse().ok(),
        )
    }),
    ("another prompt of a reviewer", |forgery| {
        let has_prompts = forgery.has_prompts;
        forgery.receipts_that(
            |receipt| has_prompts && receipt.review.as_ref().is_some_and(|review| review.prompt.is_some()),
            |receipt| {
                let prompt = Some(Digest::compute(b"another"));
                receipt.review = receipt.review.take().map(|review| ReviewRun { prompt, ..review });
            },
        )
    }),
    ("a pass without an answer", |forgery| {
        forgery.receipts_that(
            |receipt| receipt.verdict.name == VerdictName::Accepted && receipt.output.is_some(),
            |receipt| receipt.output = None,
        )
    }),
    ("a pass of nobody", |forgery| {
        forgery.receipts_that(
            |receipt| receipt.verdict.name == VerdictName::Accepted && receipt.agent.is_some(),
            |receipt| receipt.agent = None,
        )
    }),
    ("a review that nobody was asked for", |forgery| {
        forgery.receipts_that(
            |receipt| receipt.review.as_ref().is_some_and(|review| review.prompt.is_some()),
            |receipt| {
                receipt.review = receipt.review.take().map(|review| ReviewRun { prompt: None, output: None, ..review });
            },
        )
    }),
    ("a review without its answer", |forgery| {
        forgery.receipts_that(
            |receipt| receipt.review.as_ref().is_some_and(|review| review.output.is_some()),
            |receipt| receipt.review = receipt.review.take().map(|review| ReviewRun { output: None, ..review }),
        )
    }),
    ("a person's word that an agent has answered", |forgery| {
        forgery.receipts_that(
            |receipt| receipt.role == Role::Human,
            |receipt| receipt.output = Some(Digest::compute(b"an answer")),
        )
    }),
    ("a changed guard behind a count", |forgery| {
        forgery.receipts_that(is_announced_and_committed, |receipt| {
            receipt.guard_changed = "and 1 more".parse().unwrap_or_default();
        })
    }),
    ("code that came with a person's word", ForgedBranch::bring_code),
    ("progress that was not made", |forgery| {
        forgery.file(layout::PROGRESS, |text| format!("{text}- root — all of it\n"))
    }),
];

/// Whether a receipt names files of the guard's definition that its commit contains; restored files, and files that a
/// guard left, are not in the commit.
fn is_announced_and_committed(receipt: &Receipt) -> bool {
    !receipt.guard_changed.is_empty() && receipt.guard_run.is_none() && receipt.reverted.is_empty()
}

impl ForgedBranch {
    /// Starts with a genuine branch.
    pub(crate) fn of(chain: &[SimulatedCommit], start: usize, random: RandomSource, has_prompts: bool) -> Self {
        Self { chain: chain.to_vec(), random, has_prompts, start }
    }

    /// Forges in one way; returns the branch if the way applies.
    pub(crate) fn forged(mut self, way: ForgeryMethod) -> Option<Vec<SimulatedCommit>> {
        way(&mut self).then(|| {
            self.chain_up();
            self.chain
        })
    }

    /// Makes ids and digests match again, as a forger would.
    fn chain_up(&mut self) {
        let mut ids: BTreeMap<String, String> = BTreeMap::new();
        let mut trees: BTreeMap<String, Digest> = BTreeMap::new();
        let mut parent = None;
        for (at, commit) in self.chain.iter_mut().enumerate() {
            for (old, new) in ids.iter().filter(|(old, new)| old != new) {
                commit.message = commit.message.replace(&format!("Runner-From: {old}"), &format!("Runner-From: {new}"));
            }
            if let Some(mut receipt) = read(commit) {
                receipt.tree_from = trees.get(&receipt.from).cloned().unwrap_or(receipt.tree_from);
                commit.message = RunnerCommit::Iteration(Box::new(receipt)).compose();
            }
            let is_base = at == 0;
            let id = if is_base {
                commit.id.clone()
            } else {
                commit_id(parent.as_deref(), &commit.message, &commit.files, at)
            };
            ids.insert(std::mem::replace(&mut commit.id, id.clone()), id.clone());
            if let Some(tree) = tree_of(commit) {
                trees.insert(id.clone(), Digest::compute(tree::canonical(&tree).as_bytes()));
            }
            commit.parent = parent.replace(id);
        }
    }

    /// Chooses a commit that ends an iteration and applies the change.
    pub(super) fn place(&mut self, fits: impl Fn(&[SimulatedCommit], usize) -> bool) -> Option<usize> {
        let places: Vec<usize> = (self.start..self.chain.len())
            .filter(|at| read(&self.chain[*at]).is_some() && !self.is_sessions(*at) && fits(&self.chain, *at))
            .collect();
        self.random.place(places.len()).map(|at| places[at])
    }

    /// Whether there is a commit between From and the receipt of a session, which may repeat an earlier receipt.
    pub(super) fn is_sessions(&self, at: usize) -> bool {
        let mut receipts = self.chain[at + 1..].iter().filter_map(read);
        receipts.any(|receipt| self.chain[..at].iter().any(|commit| commit.id == receipt.from))
    }

    fn receipts(&mut self, change: impl FnOnce(&mut Receipt) -> bool) -> bool {
        let Some(at) = self.place(|_, _| true) else { return false };
        let Some(mut receipt) = read(&self.chain[at]) else { return false };
        let is_changed = change(&mut receipt);
        self.chain[at].message = RunnerCommit::Iteration(Box::new(receipt)).compose();
        is_changed
    }

    /// Changes the rules that a receipt names.
    fn rules(&mut self, named: &str) -> bool {
        let Some(at) = self.place(|_, _| true) else { return false };
        let message = &mut self.chain[at].message;
        *message = message.replace(" rules=1\n", &format!("{named}\n"));
        true
    }

    /// Changes a receipt to which the way applies.
    fn receipts_that(&mut self, fits: impl Fn(&Receipt) -> bool, change: impl FnOnce(&mut Receipt)) -> bool {
        let Some(at) = self.place(|chain, at| read(&chain[at]).is_some_and(|receipt| fits(&receipt))) else {
            return false;
        };
        let Some(mut receipt) = read(&self.chain[at]) else { return false };
        change(&mut receipt);
        self.chain[at].message = RunnerCommit::Iteration(Box::new(receipt)).compose();
        true
    }

    /// Changes a node in an iteration's commit and in all later ones.
    fn trees(&mut self, fits: fn(&protocol::tree::Node) -> bool, change: impl Fn(&mut protocol::tree::Node)) -> bool {
        let Some((at, node)) = self.node(fits) else { return false };
        self.carry(at, &node, change)
    }

    /// Chooses an iteration whose From and commit both have a suitable leaf.
    fn node(&mut self, fits: fn(&protocol::tree::Node) -> bool) -> Option<(usize, String)> {
        let found = |chain: &[SimulatedCommit], at: usize| -> Option<String> {
            let from = read(&chain[at])?.from;
            let from = chain.iter().find(|commit| commit.id == from)?;
            let before = tree_of(from)?;
            let after = tree_of(&chain[at])?;
            let leaves =
                tree::walk(&after).into_iter().map(|placed| placed.node).filter(|node| node.is_leaf() && fits(node));
            let known = leaves.filter(|node| tree::find(&before, &node.id).is_some_and(fits));
            known.map(|node| node.id.clone()).next_back()
        };
        let at = self.place(|chain, at| found(chain, at).is_some())?;
        Some((at, found(&self.chain, at)?))
    }

    fn carry(&mut self, at: usize, node: &str, change: impl Fn(&mut protocol::tree::Node)) -> bool {
        for commit in &mut self.chain[at..] {
            let Some(mut tree) = tree_of(commit) else { return false };
            if let Some(found) = tree::find_mut(&mut tree, node) {
                change(found);
            }
            tree::derive_passes(&mut tree);
            write(commit, layout::TREE, &tree::canonical(&tree));
        }
        true
    }

    /// Adds a person's commit that changes a node.
    fn person(&mut self, fits: fn(&protocol::tree::Node) -> bool, change: impl Fn(&mut protocol::tree::Node)) -> bool {
        let Some((at, node)) = self.node(fits) else { return false };
        if self.is_undone(at, &node) {
            return false;
        }
        let before = self.chain[at].clone();
        let person =
            SimulatedCommit { id: "f".repeat(40), message: "A person's commit\n".to_owned(), ..before.clone() };
        let from = format!("Runner-From: {}", before.id);
        for later in &mut self.chain[at + 1..] {
            later.message = later.message.replace(&from, &format!("Runner-From: {}", person.id));
        }
        self.chain.insert(at + 1, person);
        self.carry(at + 1, &node, change)
    }

    /// Whether people decompose a node before the next session, which discards its earlier result.
    fn is_undone(&self, at: usize, node: &str) -> bool {
        let stretch = self.chain[at + 1..].iter().take_while(|commit| read(commit).is_none());
        let mut trees = stretch.filter_map(tree_of);
        trees.any(|tree| tree::find(&tree, node).is_some_and(|node| !node.is_leaf()))
    }

    fn lose_node(&mut self) -> bool {
        let Some((at, node)) = self.node(|node| !node.passes && node.id != "root") else { return false };
        for commit in &mut self.chain[at..] {
            let Some(mut tree) = tree_of(commit) else { return false };
            tree::for_each_node_mut(&mut tree, |parent| parent.children.retain(|child| child.id != node));
            tree::derive_passes(&mut tree);
            write(commit, layout::TREE, &tree::canonical(&tree));
        }
        true
    }

    fn drop_commit(&mut self) -> bool {
        let Some(at) = self.place(|chain, at| chain[at + 1..].iter().any(|later| read(later).is_some())) else {
            return false;
        };
        let gone = self.chain.remove(at);
        let before = self.chain[at - 1].id.clone();
        for later in &mut self.chain[at..] {
            later.message =
                later.message.replace(&format!("Runner-From: {}", gone.id), &format!("Runner-From: {before}"));
        }
        true
    }

    fn swap(&mut self) -> bool {
        let is_next = |chain: &[SimulatedCommit], at: usize| chain.get(at + 1).is_some_and(|next| read(next).is_some());
        let Some(at) = self.place(is_next) else { return false };
        let first = self.chain[at].clone();
        let second = self.chain[at + 1].clone();
        let from = |commit: &SimulatedCommit| read(commit).map(|receipt| receipt.from).unwrap_or_default();
        let swapped = |commit: &SimulatedCommit, id: &str, base: &str| SimulatedCommit {
            id: id.to_owned(),
            message: commit.message.replace(&from(commit), base),
            ..commit.clone()
        };
        self.chain[at] = swapped(&second, &first.id, &from(&first));
        self.chain[at + 1] = swapped(&first, &second.id, &first.id);
        true
    }

    fn hide_code(&mut self) -> bool {
        let writes = |chain: &[SimulatedCommit], at: usize| {
            let Some(receipt) = read(&chain[at]) else { return false };
            let Some(from) = chain[..at].iter().rfind(|commit| commit.id == receipt.from) else { return false };
            // Restored content was written by no one, or is no longer code.
            let is_back = |path: &str| receipt.reverted.items().iter().any(|back| back.as_slice() == path.as_bytes());
            let mut changed = super::repository::differing(&from.files, &chain[at].files);
            changed.any(|path| !path.starts_with(".runner/") && !is_back(path))
        };
        let Some(at) = self.place(writes) else { return false };
        let Some(receipt) = read(&self.chain[at]) else { return false };
        let hidden = Receipt { mode: Mode::Decompose, guard_wrote: NameList::default(), ..receipt };
        self.chain[at].message = RunnerCommit::Iteration(Box::new(hidden)).compose();
        true
    }

    /// Adds a file to the commit of a person's decision, and to all later commits.
    fn bring_code(&mut self) -> bool {
        let is_word = |chain: &[SimulatedCommit], at: usize| {
            read(&chain[at]).is_some_and(|receipt| receipt.role == Role::Human && receipt.guard_run.is_none())
        };
        let Some(at) = self.place(is_word) else { return false };
        for commit in &mut self.chain[at..] {
            write(commit, "brought.rs", "fn brought() {}\n");
        }
        let Some(receipt) = read(&self.chain[at]) else { return false };
        let forged = Receipt { mode: Mode::Execute, ..receipt };
        self.chain[at].message = RunnerCommit::Iteration(Box::new(forged)).compose();
        true
    }

    /// Changes a file in an iteration's commit and in all later ones until it is rewritten.
    fn file(&mut self, path: &str, change: impl Fn(&str) -> String) -> bool {
        // What a session has added itself may be anything.
        let fits = |chain: &[SimulatedCommit], at: usize| {
            let from =
                read(&chain[at]).and_then(|receipt| chain[..at].iter().rfind(|commit| commit.id == receipt.from));
            let text = |commit: &SimulatedCommit| text(commit, path);
            from.is_some_and(|from| !text(from).is_empty()) && change(&text(&chain[at])) != text(&chain[at])
        };
        let Some(at) = self.place(fits) else { return false };
        let honest = text(&self.chain[at], path);
        let forged = change(&text(&self.chain[at], path));
        for commit in &mut self.chain[at..] {
            if text(commit, path) == honest {
                write(commit, path, &forged);
            }
        }
        true
    }

    fn counters(&mut self) -> bool {
        let way = self.random.below(4);
        self.file(layout::RUN_STATE, |text| {
            let Ok(mut state) = serde_json::from_str::<RunState>(text) else { return text.to_owned() };
            match way {
                0 => state.consecutive_faults += 1,
                1 => state.stall.count += 1,
                2 => state.allowance += 5,
                _ => state.narrowed.push("ghost".to_owned()),
            }
            json::to_canonical_json(&state)
        })
    }
}

pub(super) fn read(commit: &SimulatedCommit) -> Option<Receipt> {
    match RunnerCommit::parse(&commit.message) {
        Ok(RunnerCommit::Iteration(receipt)) => Some(*receipt),
        _ => None,
    }
}

fn tree_of(commit: &SimulatedCommit) -> Option<TaskTree> {
    serde_json::from_str(&text(commit, layout::TREE)).ok()
}

pub(super) fn text(commit: &SimulatedCommit, path: &str) -> String {
    commit.files.get(path).map_or_else(String::new, |blob| String::from_utf8_lossy(&blob.bytes).into_owned())
}

pub(super) fn write(commit: &mut SimulatedCommit, path: &str, text: &str) {
    let mut files: FileMap = (*commit.files).clone();
    files.insert(path.to_owned(), StoredBlob::of(text.as_bytes()));
    commit.files = std::sync::Arc::new(files);
}
