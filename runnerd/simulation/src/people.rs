//! People around a run: they make requests, commit by hand, follow the advice of a stopped run, and make mistakes.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use protocol::tree::TaskTree;
use protocol::view::StopReason;
use runner_config::{Patterns, RepoConfig};
use runner_core::driver::{ClaimState, Driver};
use runner_core::files::change::{self, ChangeRequest, NodeAddition};
use runner_core::files::layout;
use runner_core::files::notes;
use runner_core::files::questions;
use runner_core::iteration::Phase;
use runner_core::message::{MarkerCommit, RunnerCommit};
use runner_core::run::{RecordState, RequestRefusal, RunAction, RunRequest, StartRequest, StartSpec};
use runner_core::tree;

use super::daemon::{DaemonHalt, SimulatedRun, StepResult, promise, replay};
use super::definition::{DEFINITION, JUSTFILE};
use super::loaded::{LoadedState, config_text, goal_text, read_config};
use super::repository::{FileMap, SimulatedCommit};

impl SimulatedRun {
    /// Makes a request while the run is active.
    pub(crate) fn ask_meanwhile(&mut self) -> StepResult<()> {
        if !self.random.one_in(self.habits.people) {
            return Ok(());
        }
        match self.random.below(12) {
            0 => self.want(RunRequest::Pause { now: false }),
            1 => self.want(RunRequest::Pause { now: true }),
            2 => self.want(RunRequest::Cancel),
            3 => {
                let refused = self.ask(RunRequest::Step)?.is_err();
                promise(refused, || "P13: a step of a run is taken that is being driven".to_owned())
            }
            _ => {
                self.ask_for_change();
                Ok(())
            }
        }
    }

    /// Makes a request that is never refused for an active run; one that ends the session is remembered.
    pub(crate) fn want(&mut self, request: RunRequest) -> StepResult<()> {
        let effects = self.ask(request)?.map_err(|refusal| DaemonHalt::Broken(format!("P13: refused: {refusal:?}")))?;
        let stop =
            effects.iter().find_map(|effect| if let RunAction::Stop(cause) = effect { Some(*cause) } else { None });
        self.stop = stop.or(self.stop);
        Ok(())
    }

    /// Requests a change of the files: it is checked against the committed state, and committed before the next
    /// session.
    fn ask_for_change(&mut self) {
        let Ok(loaded) = self.tip() else { return };
        let leaves = open_leaves(&loaded.tree);
        let Some(leaf) = self.random.place(leaves.len()).map(|at| leaves[at].clone()) else { return };
        let number = self.random.below(100);
        let change = match self.random.below(8) {
            0 => ChangeRequest::Note {
                id: notes::next_id(loaded.text(layout::NOTES)),
                text: format!("Mind part {number}."),
            },
            1 => match questions::parse_questions(loaded.text(layout::QUESTIONS)).pop() {
                Some(question) => ChangeRequest::Answer { question: question.id, text: format!("Yes, {number}.") },
                None => return,
            },
            2 => ChangeRequest::Retry { node: leaf },
            3 => ChangeRequest::Add(addition(&leaf, number)),
            4 | 5 => match change::select_files_to_accept(&self.guarded(&loaded), [].iter()) {
                Ok(files) if !files.is_empty() => ChangeRequest::Accept { files },
                _ => return,
            },
            6 => self.setting(&loaded),
            _ => {
                let mut edited = (*loaded.tree).clone();
                if let Some(node) = tree::find_mut(&mut edited, &leaf) {
                    node.goal = format!("Part {number}, says a person.");
                }
                ChangeRequest::Edit { base: tree::canonical(&loaded.tree), edited: tree::canonical(&edited) }
            }
        };
        self.changes.push((change, None));
    }

    /// Sets a key of the configuration.
    fn setting(&mut self, loaded: &LoadedState) -> ChangeRequest {
        let base = loaded.text(layout::CONFIG).to_owned();
        let (key, value) = match self.random.below(3) {
            0 => ("review.by", *self.random.pick(&["off", "human", "agent"])),
            1 => ("guard.on_change", *self.random.pick(&["both", "report", "revert"])),
            _ => ("stall_after", "6"),
        };
        let text = runner_config::set(&base, key, value).expect("the key takes the value");
        let value = runner_config::get(&text, key).ok().and_then(|entry| entry.value);
        ChangeRequest::Config { key: key.to_owned(), value, base, text }
    }

    /// Commits what a person has changed; a changed justfile is thereby accepted.
    pub(crate) fn commit_as_person(&mut self, message: &str) {
        let id = |files: &FileMap| files.get(JUSTFILE).map(|blob| blob.id.to_string());
        let before = id(&self.repository.head().files);
        let now = id(&self.repository.work);
        // Commits made during a session belong to the session.
        let is_free = self
            .journal
            .as_ref()
            .is_none_or(|journal| matches!(replay(journal), Ok(Phase::Open | Phase::Brief { .. })));
        if before != now && is_free {
            self.accepted = now;
        }
        self.repository.commit_all(message);
    }

    /// Applies what a person accepts of the guard's definition. A later commit of the same file by hand replaces a
    /// request.
    pub(crate) fn accepts(&mut self, files: &BTreeMap<String, Option<String>>) {
        let id = |commit: &SimulatedCommit| commit.files.get(JUSTFILE).map(|blob| blob.id.to_string());
        let last = self.repository.ancestors(&self.repository.tip).find(|ancestor| is_last_word(ancestor));
        let is_by_hand = last.is_some_and(|last| id(last) != id(self.repository.head()));
        if let Some(form) = files.get(JUSTFILE).filter(|_| !is_by_hand) {
            self.accepted.clone_from(form);
        }
    }

    /// Commits something by hand between two sessions.
    pub(crate) fn commit_by_hand(&mut self) {
        let is_free = self.journal.is_none() && self.amends.is_none();
        if !is_free || !self.random.one_in(self.habits.people.saturating_mul(2)) {
            return;
        }
        let Ok(loaded) = self.tip() else { return };
        let number = self.random.below(1_000);
        match self.random.below(15) {
            13 | 14 => return self.say_who_drives(),
            10 => self.rename_in_definition(),
            11 => drop(self.repository.work.remove("ci/check.sh")),
            12 => {
                // The file is moved and removed from the definition in one commit.
                self.rename_in_definition();
                self.change_config(|config| config.guard.definition = Some(Patterns::new([DEFINITION[0]])));
            }
            8 => {
                let called = *self.random.pick(&["ci/check.sh", "src/check.sh", "ci/part-00.sh"]);
                self.repository.write(JUSTFILE, format!("ci: # by hand {number}\n\tsh {called}\n").as_bytes());
            }
            9 => self.change_config(|config| {
                let is_short = config.guard.definition_globs().is_some_and(|globs| globs.len() == 1);
                config.guard.definition =
                    Some(Patterns::new(DEFINITION.into_iter().take(if is_short { 2 } else { 1 })));
            }),
            0 | 1 => self.repository.write("src/lib.rs", format!("// by hand {number}\n").as_bytes()),
            2 => self.change_config(|config| config.stall_after = 4),
            3 => self.change_config(|config| config.max_attempts_default = 4),
            4 => self.write_tree(&loaded.tree, |tree| {
                tree::for_each_node_mut(tree, |node| {
                    if !node.passes {
                        node.max_attempts += 1;
                    }
                });
            }),
            5 => {
                // Not committed: the next session does not begin with it.
                self.repository.write("src/lib.rs", format!("// not yet {number}\n").as_bytes());
                return;
            }
            _ => self.overstep(&loaded),
        }
        self.commit_as_person("A person's commit");
        if self.random.one_in(4) {
            self.say_who_drives();
        }
    }

    /// Has another driver claim or release the run if nothing is left to commit; sometimes after a forbidden commit.
    fn say_who_drives(&mut self) {
        if *self.repository.head().files != self.repository.work {
            return;
        }
        let driver = Some(Driver::new("slurm", "7", 1, "n2", "0a1b"));
        let marker = MarkerCommit { from: None, driver, ..self.milestone(String::new()) };
        let chain = self.repository.chain();
        let claim = ClaimState::from_messages(chain.iter().rev().map(|commit| commit.message.as_bytes()));
        let is_held = claim != ClaimState::Unclaimed && self.random.one_in(2);
        let commit = if is_held { RunnerCommit::Release(marker) } else { RunnerCommit::Claim(marker) };
        self.repository.commit_all(&commit.compose());
    }

    /// Does something a person may not do: the run is held until it is undone.
    fn overstep(&mut self, loaded: &LoadedState) {
        self.amends = Some((*loaded.files).clone());
        let open = open_leaves(&loaded.tree).pop().unwrap_or_default();
        match self.random.below(4) {
            0 => self.write_tree(&loaded.tree, |tree| {
                if let Some(node) = tree::find_mut(tree, &open) {
                    node.passes = true;
                }
                tree::derive_passes(tree);
            }),
            1 => self.repository.write(layout::TREE, b"not a tree\n"),
            2 => self.repository.write(layout::GOAL, goal_text("run-2", "Another.\n").as_bytes()),
            _ => self.write_tree(&loaded.tree, |tree| {
                tree::for_each_node_mut(
                    tree,
                    |node| if node.passes { node.title.push('?') } else { node.attempts = 0 },
                );
            }),
        }
    }

    fn write_tree(&mut self, tree: &TaskTree, change: impl FnOnce(&mut TaskTree)) {
        let mut tree = tree.clone();
        change(&mut tree);
        self.repository.write(layout::TREE, tree::canonical(&tree).as_bytes());
    }

    fn change_config(&mut self, change: impl FnOnce(&mut RepoConfig)) {
        if let Some(mut config) = read_config(&self.repository.text(layout::CONFIG)) {
            change(&mut config);
            self.repository.write(layout::CONFIG, config_text(&config).as_bytes());
        }
    }

    /// Undoes what a person may not have done, and commits other changes in the work tree; returns true.
    pub(crate) fn make_amends(&mut self) -> bool {
        if let Some(files) = self.amends.take() {
            // Files left there by a session are not overwritten.
            if self.journal.is_some() && !self.repository.changes().is_empty() {
                self.commit_as_person("A person keeps what lies about");
            }
            for path in [layout::TREE, layout::GOAL] {
                if let Some(blob) = files.get(path) {
                    self.repository.work.insert(path.to_owned(), blob.clone());
                }
            }
        }
        if !self.repository.changes().is_empty() {
            self.commit_as_person("A person puts it right");
        }
        true
    }

    /// Restores the last readable state if the committed one cannot be read: a guard may have left it, and a person
    /// committed it along with everything else.
    fn correct(&mut self) {
        if self.tip().is_ok() {
            return;
        }
        let readable = self.repository.ancestors(&self.repository.tip).find(|commit| LoadedState::of(commit).is_ok());
        let Some(files) = readable.map(|commit| (*commit.files).clone()) else { return };
        for path in [layout::TREE, layout::CONFIG] {
            self.repository.work.extend(files.get_key_value(path).map(|(path, blob)| (path.clone(), blob.clone())));
        }
        self.commit_as_person("A person corrects it");
    }

    /// Looks at a stopped run, and continues it as it suggests.
    pub(crate) fn at_rest(&mut self) -> StepResult<()> {
        if self.random.one_in(24) {
            // Before or after that, someone makes another request; if it ends the run, the run is started again.
            let request = [RunRequest::Cancel, RunRequest::Pause { now: false }, RunRequest::Step];
            let request = self.random.pick(&request).clone();
            return self.ask_at_rest(request);
        }
        match self.record.state {
            RecordState::WaitsForService(wait) if self.random.one_in(4) => {
                self.pass(SignedDuration::from_secs(wait.timer_sleep(self.now).as_secs().min(2)));
                self.go_on(None, true)
            }
            RecordState::WaitsForService(wait) => {
                self.now = self.now.max(wait.until);
                Ok(())
            }
            RecordState::WaitsForPerson => self.say(),
            RecordState::Held => {
                self.make_amends();
                self.correct();
                self.go_on(None, false)
            }
            RecordState::Paused if self.random.one_in(8) => self.ask_at_rest(RunRequest::Step),
            RecordState::Paused => self.go_on(None, false),
            RecordState::Over { .. } => {
                let reason = self.record.reason.clone();
                self.follow_advice(
                    reason.ok_or_else(|| DaemonHalt::Broken("P13: it ended without a reason".to_owned()))?,
                )
            }
            RecordState::Queued | RecordState::Running => Err(DaemonHalt::Broken(format!(
                "P13: it is {}, and nothing continues with it",
                self.record.state.status()
            ))),
        }
    }

    fn ask_at_rest(&mut self, request: RunRequest) -> StepResult<()> {
        if self.ask(request)?.is_ok_and(|effects| effects.contains(&RunAction::AwaitStep)) {
            self.steps.push(self.run.to_owned());
            // `step` does not follow what the end of the run said.
            self.last_end = None;
        }
        Ok(())
    }

    /// Resumes the run; if it is stuck, a person may have to fix something first.
    pub(crate) fn go_on(&mut self, more: Option<u32>, now: bool) -> StepResult<()> {
        let mut answer = self.ask(RunRequest::Resume { now, more, rechecked: false })?;
        if answer == Err(RequestRefusal::IsCancelled) {
            let beginning =
                StartSpec { base: None, goal: None, keep_tree: true, fork: false, config: None, id_stem: None };
            let path = self.record.path.clone();
            answer = self.ask(RunRequest::Start(StartRequest {
                path,
                goal: None,
                goal_file: None,
                start_spec: beginning,
                queue_only: false,
                is_begun: true,
            }))?;
        }
        match answer {
            Ok(_) => Ok(()),
            Err(RequestRefusal::StillStuck(why) | RequestRefusal::StillAtLimit(why)) => {
                self.make_amends();
                self.advised = Some(why);
                Ok(())
            }
            Err(refusal) => Err(DaemonHalt::Broken(format!("P13: it says that it can be resumed: {refusal:?}"))),
        }
    }

    /// Follows the advice in the reason of an end.
    fn follow_advice(&mut self, reason: StopReason) -> StepResult<()> {
        // A refusal is newer than the end.
        let reason = self.advised.take().unwrap_or(reason);
        let command = reason.command.unwrap_or_default();
        if let Some(rest) = command.strip_prefix("runnerctl retry ") {
            let node = rest.split(' ').next().unwrap_or_default().to_owned();
            let change = if self.random.one_in(3) {
                ChangeRequest::Add(addition(&node, 1))
            } else {
                ChangeRequest::Retry { node }
            };
            self.changes.push((change, None));
        } else if command.starts_with("runnerctl config set max_") {
            self.make_amends();
            self.change_config(|config| {
                (config.max_cost, config.max_tokens, config.max_run) = (None, None, None);
            });
            self.commit_as_person("Raise it");
        }
        self.commit_changes()?;
        let more = command.contains("--more").then(|| 1 + u32::try_from(self.random.below(20)).unwrap_or(0));
        self.go_on(more, false)
    }
}

fn addition(parent: &str, number: u64) -> NodeAddition {
    NodeAddition {
        parent: parent.to_owned(),
        title: format!("Part {number}"),
        goal: format!("Part {number} of it is there."),
        acceptance: Vec::new(),
        after: None,
        order: None,
    }
}

/// Whether a commit is the runner's, and does more than record who drives the run.
pub(crate) fn is_last_word(commit: &SimulatedCommit) -> bool {
    RunnerCommit::parse(&commit.message)
        .is_ok_and(|commit| !matches!(commit, RunnerCommit::Claim(_) | RunnerCommit::Release(_)))
}

/// Returns the open leaves of a tree.
pub(crate) fn open_leaves(tree: &TaskTree) -> Vec<String> {
    let nodes = tree::walk(tree).into_iter().map(|placed| placed.node);
    nodes.filter(|node| node.is_leaf() && !node.passes).map(|node| node.id.clone()).collect()
}
