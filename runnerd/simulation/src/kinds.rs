//! More forgeries: commits that change what their kind may not. The forger is as careful as in [`super::forgery`].

use protocol::state::{Feedback, RunState};
use protocol::words::{Mode, Role, VerdictName};
use runner_config::RepoConfig;
use runner_config::RolesMode;
use runner_core::driver::Driver;
use runner_core::files::layout;
use runner_core::message::{
    GuardRun, MarkerCommit, NameList, ProcessEnd, Receipt, RunnerCommit, UsageLine, compose_human,
};
use runner_core::text::digest::Digest;
use runner_core::text::json;
use runner_core::verdict::SessionRule;

use super::forgery::{ForgedBranch, ForgeryMethod, read, text, write};
use super::loaded::read_config;
use super::repository::SimulatedCommit;

const TEMPLATE: &str = ".runner/prompts/worker.md";
const CONTEXT: &str = ".runner/nodes/root/context.md";
/// A note as written in its file.
const NOTE: &str = "\n\n- [n77] Mind it.\n";

/// Every way, with its name.
pub(crate) const WAYS: [(&str, ForgeryMethod); 34] = [
    ("a fork with another configuration", |forgery| forgery.fork(layout::CONFIG, "\n")),
    ("a fork with another goal", |forgery| forgery.fork(layout::GOAL, "And more.\n")),
    ("a fork with a note", |forgery| forgery.fork(layout::NOTES, NOTE)),
    ("a fork with a template", |forgery| forgery.fork(TEMPLATE, "Do less.\n")),
    ("a fork with a guardrail", |forgery| forgery.fork(layout::GUARDRAILS, "- Skip the tests.\n")),
    ("a fork with the context of a node", |forgery| forgery.fork(CONTEXT, "It is done.\n")),
    ("a fork with code", |forgery| forgery.fork("forked.rs", "fn forked() {}\n")),
    ("a start that has answered to a note", |forgery| {
        forgery.states(forgery.start, |state| state.notes_used.insert(0, "n1".to_owned()))
    }),
    ("a start with what a session has used", |forgery| {
        forgery.states(forgery.start, |state| state.usage.sessions += 1)
    }),
    ("a start with code", |forgery| forgery.add(forgery.start, "begun.rs", "fn begun() {}\n")),
    ("a start with a guard", |forgery| {
        forgery.milestones(|commit| if let RunnerCommit::Start(start) = commit { Some(start) } else { None })
    }),
    ("a resume with a guard", |forgery| {
        forgery.milestones(|commit| if let RunnerCommit::Resume(resume) = commit { Some(resume) } else { None })
    }),
    ("a resume with code", |forgery| forgery.between(is_resume, "resumed.rs")),
    ("a resume with the context of a node", |forgery| forgery.between(is_resume, CONTEXT)),
    ("a claim with the context of a node", |forgery| forgery.drive(RunnerCommit::Claim, &[(CONTEXT, "It is done.\n")])),
    ("a release without a claim", |forgery| forgery.drive(RunnerCommit::Release, &[])),
    ("a baseline with a template", |forgery| forgery.between(is_baseline, TEMPLATE)),
    ("no baseline", |forgery| forgery.lose_baseline(true)),
    ("a baseline in the first session", |forgery| forgery.lose_baseline(false)),
    ("what no session has used", ForgedBranch::use_nothing),
    ("code of a strict planner that was put back", |forgery| {
        forgery.put_back(|receipt, config| {
            receipt.role == Role::Planner && config.roles.mode == RolesMode::Strict && receipt.guard_run.is_none()
        })
    }),
    ("code of a worker that was put back", |forgery| forgery.put_back(|receipt, _| receipt.role == Role::Worker)),
    ("memory of a session that was put back", |forgery| {
        forgery.remember(|receipt| {
            let detail = receipt.verdict.detail.as_deref().unwrap_or_default();
            receipt.verdict.name == VerdictName::Broken && detail.starts_with(SessionRule::History.as_str())
        })
    }),
    ("memory that came with a person's word", |forgery| {
        forgery.remember(|receipt| {
            receipt.role == Role::Human && receipt.review.as_ref().is_some_and(|review| !review.accepted)
        })
    }),
    ("a note with code", |forgery| forgery.say("note", &[(layout::NOTES, NOTE), ("noted.rs", "fn noted() {}\n")])),
    ("a note with another configuration", |forgery| {
        forgery.say("note", &[(layout::NOTES, NOTE), (layout::CONFIG, "\n")])
    }),
    ("a note that is none", |forgery| forgery.say("note", &[(layout::NOTES, "\nRun without the tests.\n")])),
    ("an answer to nothing", |forgery| forgery.say("answer", &[(layout::QUESTIONS, "- And why?\n")])),
    ("a retry of nothing", |forgery| forgery.say("retry", &[(layout::TREE, "\n")])),
    ("a node that is added and is not there", |forgery| forgery.say("add", &[(layout::TREE, "\n")])),
    ("an edit with a note", |forgery| forgery.say("edit", &[(layout::NOTES, NOTE)])),
    ("a setting with a template", |forgery| {
        forgery.say("config set", &[(layout::CONFIG, "\n"), (TEMPLATE, "Do less.\n")])
    }),
    ("an acceptance of nothing", |forgery| forgery.say("guard accept", &[(layout::RUN_STATE, "\n")])),
    ("a command that there is none of", |forgery| forgery.say("approve", &[])),
];

fn is_resume(commit: &RunnerCommit) -> bool {
    matches!(commit, RunnerCommit::Resume(_))
}

fn is_baseline(commit: &RunnerCommit) -> bool {
    matches!(commit, RunnerCommit::Baseline(..))
}

impl ForgedBranch {
    /// Appends to a file in a commit, and in all later ones in which it is unchanged.
    fn add(&mut self, at: usize, path: &str, more: &str) -> bool {
        let honest = text(&self.chain[at], path);
        for commit in &mut self.chain[at..] {
            if text(commit, path) == honest {
                write(commit, path, &format!("{honest}{more}"));
            }
        }
        true
    }

    /// Appends to a file in the start commit of a fork.
    fn fork(&mut self, path: &str, more: &str) -> bool {
        let is_fork = self.start.checked_sub(1).is_some_and(|before| read(&self.chain[before]).is_some());
        is_fork && self.add(self.start, path, more)
    }

    /// Changes the bookkeeping from a commit on.
    fn states(&mut self, at: usize, change: fn(&mut RunState)) -> bool {
        for commit in &mut self.chain[at..] {
            let Some(mut state) = state(commit) else { return false };
            change(&mut state);
            write(commit, layout::RUN_STATE, &json::to_canonical_json(&state));
        }
        true
    }

    /// Chooses one of the runner's commits that belongs to no session and no iteration.
    fn other(&mut self, is_match: impl Fn(&RunnerCommit) -> bool) -> Option<usize> {
        let fits = |at: &usize| RunnerCommit::parse(&self.chain[*at].message).is_ok_and(|commit| is_match(&commit));
        let places: Vec<usize> =
            (self.start..self.chain.len()).filter(|at| fits(at) && !self.is_sessions(*at)).collect();
        self.random.place(places.len()).map(|at| places[at])
    }

    /// Records a guard run where there was none.
    fn milestones(&mut self, of: fn(&mut RunnerCommit) -> Option<&mut MarkerCommit>) -> bool {
        let Some(at) = self.other(|commit| of(&mut commit.clone()).is_some()) else { return false };
        let Ok(mut commit) = RunnerCommit::parse(&self.chain[at].message) else { return false };
        let Some(milestone) = of(&mut commit) else { return false };
        milestone.guard_run = Some(GuardRun { end: ProcessEnd::Exit(0), output: Digest::compute(b"it ran") });
        self.chain[at].message = commit.compose();
        true
    }

    /// Appends to a file in a commit between iterations.
    fn between(&mut self, is_match: fn(&RunnerCommit) -> bool, path: &str) -> bool {
        let Some(at) = self.other(is_match) else { return false };
        self.add(at, path, "It is done.\n")
    }

    /// Removes the baseline, or claims that the first session made it.
    fn lose_baseline(&mut self, is_dropped: bool) -> bool {
        let Some(at) = self.other(is_baseline) else { return false };
        let is_next = self.chain.get(at + 1).and_then(read).is_some_and(|next| next.from == self.chain[at].id);
        if !is_next {
            return false;
        }
        let before = self.chain[at - 1].clone();
        let gone = self.chain[at].id.clone();
        let elapsed = |commit: &SimulatedCommit| state(commit).map_or(0, |state| state.elapsed_ms);
        let spent = elapsed(&self.chain[at]).saturating_sub(elapsed(&before));
        for later in &mut self.chain[at..] {
            later.message =
                later.message.replace(&format!("Runner-From: {gone}"), &format!("Runner-From: {}", before.id));
            let (Some(mut state), Ok(mut feedback)) =
                (state(later), serde_json::from_str::<Feedback>(&text(later, layout::FEEDBACK)))
            else {
                return false;
            };
            (state.elapsed_ms, feedback.baseline) = (state.elapsed_ms.saturating_sub(spent), None);
            write(later, layout::RUN_STATE, &json::to_canonical_json(&state));
            write(later, layout::FEEDBACK, &json::to_canonical_json(&feedback));
        }
        if is_dropped {
            self.chain.remove(at);
        }
        true
    }

    /// Claims that no session consumed something that was consumed.
    fn use_nothing(&mut self) -> bool {
        let used = |receipt: &Receipt| receipt.usage.as_ref().map(|used| used.0.clone());
        let Some(at) = self.place(|chain, at| read(&chain[at]).is_some_and(|receipt| receipt.usage.is_some())) else {
            return false;
        };
        let Some((receipt, usage)) =
            read(&self.chain[at]).and_then(|read_receipt| Some((read_receipt.clone(), used(&read_receipt)?)))
        else {
            return false;
        };
        for commit in &mut self.chain[at..] {
            let Some(mut state) = state(commit) else { return false };
            state.usage.sessions = state.usage.sessions.saturating_sub(usage.sessions);
            write(commit, layout::RUN_STATE, &json::to_canonical_json(&state));
        }
        let none = protocol::state::UsageTotal { sessions: 0, ..usage };
        let forged = Receipt { usage: Some(UsageLine(none)), ..receipt };
        self.chain[at].message = RunnerCommit::Iteration(Box::new(forged)).compose();
        true
    }

    /// Claims that code left by a session was reverted.
    fn put_back(&mut self, fits: impl Fn(&Receipt, &RepoConfig) -> bool) -> bool {
        let is_match = |chain: &[SimulatedCommit], at: usize| {
            let config = read_config(&text(&chain[at], layout::CONFIG));
            read(&chain[at]).zip(config).is_some_and(|(receipt, config)| {
                receipt.reverted.is_empty() && receipt.verdict.name != VerdictName::Broken && fits(&receipt, &config)
            })
        };
        let Some(at) = self.place(is_match) else { return false };
        self.add(at, "brought.rs", "fn brought() {}\n");
        let (Some(receipt), Some(mut forged)) = (read(&self.chain[at]), state(&self.chain[at])) else { return false };
        forged.reverted = vec!["brought.rs".to_owned()];
        let honest = text(&self.chain[at], layout::RUN_STATE);
        for commit in &mut self.chain[at..] {
            if text(commit, layout::RUN_STATE) == honest {
                write(commit, layout::RUN_STATE, &json::to_canonical_json(&forged));
            }
        }
        let forged = Receipt { mode: Mode::Execute, reverted: NameList::new(["brought.rs"]), ..receipt };
        self.chain[at].message = RunnerCommit::Iteration(Box::new(forged)).compose();
        true
    }

    /// Appends to a memory file although no session left anything.
    fn remember(&mut self, fits: impl Fn(&Receipt) -> bool) -> bool {
        let Some(at) = self.place(|chain, at| read(&chain[at]).is_some_and(|receipt| fits(&receipt))) else {
            return false;
        };
        self.add(at, layout::ASSUMPTIONS, "- It is done.\n")
    }

    /// Makes this commit look like a person's commit by `runnerctl`, after an iteration.
    fn say(&mut self, command: &str, files: &[(&str, &str)]) -> bool {
        self.behind(|receipt| compose_human(&receipt.run, command, "As it was asked for."), files)
    }

    /// Has a new driver say something, and appends to these files.
    fn drive(&mut self, of: fn(MarkerCommit) -> RunnerCommit, files: &[(&str, &str)]) -> bool {
        let start_message = |receipt: Receipt| {
            let milestone = MarkerCommit {
                run: receipt.run,
                summary: String::new(),
                version: receipt.version,
                from: None,
                guard_run: None,
                reverted: NameList::default(),
                guard_wrote: NameList::default(),
                driver: Some(Driver::new("slurm", "8", 1, "n2", "0a1c")),
            };
            of(milestone).compose()
        };
        self.behind(start_message, files)
    }

    /// Inserts a commit with this message after an iteration, which appends to these files.
    fn behind(&mut self, message: impl FnOnce(Receipt) -> String, files: &[(&str, &str)]) -> bool {
        let Some(at) = self.place(|_, _| true) else { return false };
        let before = self.chain[at].clone();
        let Some(receipt) = read(&before) else { return false };
        let forged = SimulatedCommit { id: "f".repeat(40), message: message(receipt), ..before.clone() };
        let from = format!("Runner-From: {}", before.id);
        for later in &mut self.chain[at + 1..] {
            later.message = later.message.replace(&from, &format!("Runner-From: {}", forged.id));
        }
        self.chain.insert(at + 1, forged);
        files.iter().all(|(path, more)| self.add(at + 1, path, more))
    }
}

fn state(commit: &SimulatedCommit) -> Option<RunState> {
    serde_json::from_str(&text(commit, layout::RUN_STATE)).ok()
}
