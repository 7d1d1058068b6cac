//! Messages of landed commits: title, goal and summary of a leaf, taken from the run's own commits.

use std::sync::Arc;

use protocol::tree::{Node, TaskTree};
use runner_config::goal::Goal;
use runner_core::audit::CommitOwner;
use runner_core::landing::commit_groups::CommitGroup;
use runner_core::landing::{LandedMessage, LandedTrailer, MessageText};
use runner_core::message::RunnerCommit;
use runner_core::tree;
use runner_git::{Id, Repository};

use super::LandError;
use super::branch::RunBranch;
use crate::verify::VerifyError;
use crate::worker;

/// The key in a goal's front matter that names what its run lands for another run: `<run>@<commit> <node>`.
pub(super) const SETTLES: &str = "settles";

/// What a landed commit contains.
#[derive(Debug, Clone, Copy)]
pub(super) struct LandedLeaf<'a> {
    /// The last group of commits in it.
    pub(super) group: &'a CommitGroup,
    /// All groups of a run that becomes a single commit.
    pub(super) whole: Option<&'a [CommitGroup]>,
    /// Whether no later commit of the run changes a file.
    pub(super) is_last: bool,
    /// The files of a resolution that a person has accepted.
    pub(super) accepted: &'a [String],
}

/// Composes the commit messages of one run.
#[derive(Debug)]
pub(super) struct CommitMessageBuilder<'a> {
    branch: &'a RunBranch,
    tree: Arc<TaskTree>,
    goal: Arc<Goal>,
    base: Option<Id>,
    git_version: String,
}

impl<'a> CommitMessageBuilder<'a> {
    /// Reads the sources of the messages: tree and goal at the tip, where all passed nodes are unchanged since they
    /// passed.
    pub(super) fn new(repository: &Repository, branch: &'a RunBranch) -> Result<Self, LandError> {
        let loaded = worker::load_state(repository, branch.target.tip);
        let loaded = loaded.map_err(|error| VerifyError::State(Box::new(error)))?;
        Ok(Self {
            branch,
            tree: Arc::clone(&loaded.tree),
            goal: Arc::clone(&loaded.goal),
            base: loaded.run_state.base.as_ref().and_then(|base| base.parse().ok()),
            git_version: repository.git_version()?,
        })
    }

    /// Returns the id of the tree's root, which represents the whole run.
    pub(super) fn root_id(&self) -> &str {
        &self.tree.root.id
    }

    /// Returns the commit at which the run began.
    pub(super) fn run_base(&self) -> Option<Id> {
        self.base
    }

    /// Returns the message for a landed commit.
    pub(super) fn build_message(&self, leaf: &LandedLeaf<'_>, landed: &LandedTrailer) -> String {
        let LandedLeaf { group: cut, whole: of, is_last, accepted } = *leaf;
        let head = self.branch.find_commit(&cut.commit);
        let own = head.map(|head| String::from_utf8_lossy(head.recoded.as_ref().unwrap_or(&head.message)).into_owned());
        let also = self.settled_commits(is_last);
        let landed: Vec<LandedTrailer> = also.into_iter().chain([landed.clone()]).collect();
        let message = |subject: MessageText<'_>, body: &[MessageText<'_>]| {
            let co_authors = &cut.co_authors;
            let git = &self.git_version;
            LandedMessage { subject, body, co_authors, git, landed: &landed, accepted }.compose()
        };
        match (of, &cut.node) {
            (Some(cuts), _) => {
                let list: Vec<String> = cuts.iter().filter_map(|cut| self.format_line(cut)).collect();
                let goal = self.goal_body();
                let list = list.join("\n");
                message(self.attribute_title(&self.tree.root), &[self.attribute_goal(&goal), MessageText::Agent(&list)])
            }
            (None, Some(node)) => {
                let node = tree::find(&self.tree, node).ok_or(node);
                let title = node.map_or_else(|id| MessageText::Agent(id), |node| self.attribute_title(node));
                let goal = self.goal_body();
                let summary = self.find_summary(cut).unwrap_or_default();
                let goal = match node {
                    Ok(node) if self.is_root(node) => self.attribute_goal(&goal),
                    Ok(node) => MessageText::Agent(&node.goal),
                    Err(_) => MessageText::Agent(""),
                };
                message(title, &[goal, MessageText::Agent(&summary)])
            }
            (None, None) => {
                let subject = MessageText::Person("");
                let co_authors = &cut.co_authors;
                let git = &self.git_version;
                let message = LandedMessage { subject, body: &[], co_authors, git, landed: &landed, accepted };
                message.append_to(&own.unwrap_or_default())
            }
        }
    }

    /// Returns what else lands with the last commit of a finished run: what the run was created to settle.
    pub(super) fn settled_commits(&self, is_last: bool) -> Vec<LandedTrailer> {
        if is_last && self.tree.root.passes { parse_settles(self.goal.text()) } else { Vec::new() }
    }

    fn find_receipt(&self, commit: &str) -> Option<&RunnerCommit> {
        let at = self.branch.plan.all_commits().iter().position(|head| head.id == commit)?;
        self.branch.plan.owner(at).and_then(CommitOwner::runner_commit)
    }

    fn find_summary(&self, cut: &CommitGroup) -> Option<String> {
        match self.find_receipt(&cut.commit)? {
            RunnerCommit::Iteration(receipt) => Some(receipt.summary.clone()),
            RunnerCommit::Start(_)
            | RunnerCommit::Baseline(..)
            | RunnerCommit::Resume(_)
            | RunnerCommit::Claim(_)
            | RunnerCommit::Release(_) => None,
        }
    }

    fn format_line(&self, cut: &CommitGroup) -> Option<String> {
        let node = tree::find(&self.tree, cut.node.as_deref()?)?;
        Some(format!("- {}", node.title))
    }

    /// Returns text from the goal as a person's, unless the daemon composed it from what a run has left.
    fn attribute_goal<'t>(&self, text: &'t str) -> MessageText<'t> {
        if parse_settles(self.goal.text()).is_empty() { MessageText::Person(text) } else { MessageText::Agent(text) }
    }

    fn is_root(&self, node: &Node) -> bool {
        node.id == self.tree.root.id
    }

    /// Returns the title of a task; it counts as a person's if it is the headline of the goal.
    fn attribute_title<'n>(&self, node: &'n Node) -> MessageText<'n> {
        let is_headline = self.is_root(node) && self.goal.headline().as_deref() == Some(&node.title);
        if is_headline { MessageText::Person(&node.title) } else { MessageText::Agent(&node.title) }
    }

    /// Returns the run's goal without the heading used as its title.
    fn goal_body(&self) -> String {
        let body = self.goal.body().trim();
        let heading = body.lines().next().is_some_and(|line| line.starts_with("# "));
        if heading { body.split_once('\n').map_or("", |(_, rest)| rest).trim().to_owned() } else { body.to_owned() }
    }
}

/// Returns what a run lands for others, from the front matter of its goal.
fn parse_settles(goal: &str) -> Vec<LandedTrailer> {
    let front = goal.lines().skip(1).take_while(|line| line.trim_end() != "---");
    let front = front.take(if goal.starts_with("---") { usize::MAX } else { 0 });
    let settled = front.filter_map(|line| line.strip_prefix(SETTLES)?.strip_prefix(": ")?.trim().parse().ok());
    settled.collect()
}
