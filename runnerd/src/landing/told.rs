//! What landed commits say: title, goal and summary of a leaf, as the run's own commits have them.

use protocol::tree::{Node, TaskTree};
use runner_core::audit::Whose;
use runner_core::landing::cuts::Cut;
use runner_core::landing::{Landed, LandedMessage, Words};
use runner_core::message::RunnerCommit;
use runner_core::tree;

use super::LandError;
use super::branch::Branch;
use crate::git::Repository;
use crate::repo::goal::Goal;
use crate::verify::VerifyError;
use crate::worker;

/// The key of a goal's front matter that names what its run brings home for another one: `<run>@<commit> <node>`.
pub(super) const SETTLES: &str = "settles";

/// What a landed commit brings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Brought<'a> {
    /// The last commit of it.
    pub(super) cut: &'a Cut,
    /// The cuts of a whole run that becomes one commit.
    pub(super) of: Option<&'a [Cut]>,
    /// Whether nothing of the run that changes a file comes behind it.
    pub(super) is_last: bool,
}

/// Words messages of one run.
#[derive(Debug)]
pub(super) struct Teller<'a> {
    branch: &'a Branch,
    tree: TaskTree,
    goal: Goal,
    git: String,
}

impl<'a> Teller<'a> {
    /// Reads what the messages are made from: tree and goal at the tip, where all that passed still stands as it passed.
    pub(super) fn new(repository: &Repository, branch: &'a Branch) -> Result<Self, LandError> {
        let loaded = worker::load(repository, branch.target.tip);
        let loaded = loaded.map_err(|error| VerifyError::State(Box::new(error)))?;
        Ok(Self { branch, tree: loaded.tree, goal: loaded.goal, git: repository.git_version()? })
    }

    /// Returns the id of the tree's root: it stands for the whole run.
    pub(super) fn root(&self) -> &str {
        &self.tree.root.id
    }

    /// Returns the message of a landed commit.
    pub(super) fn message(&self, brought: &Brought<'_>, landed: &Landed) -> String {
        let Brought { cut, of, is_last } = *brought;
        let head = self.branch.head(&cut.commit);
        let own = head.map(|head| String::from_utf8_lossy(head.recoded.as_ref().unwrap_or(&head.message)).into_owned());
        let also = self.also(is_last);
        let landed: Vec<Landed> = also.into_iter().chain([landed.clone()]).collect();
        let message = |subject: Words<'_>, body: &[Words<'_>]| {
            let message = LandedMessage { subject, body, others: &cut.others, git: &self.git, landed: &landed };
            message.compose()
        };
        match (of, &cut.node) {
            (Some(cuts), _) => {
                let list: Vec<String> = cuts.iter().filter_map(|cut| self.line(cut)).collect();
                let (goal, list) = (self.goal_text(), list.join("\n"));
                message(self.title_of(&self.tree.root), &[self.as_goal(&goal), Words::OfAgent(&list)])
            }
            (None, Some(node)) => {
                let node = tree::find(&self.tree, node).ok_or(node);
                let title = node.map_or_else(|id| Words::OfAgent(id), |node| self.title_of(node));
                let (goal, summary) = (self.goal_text(), self.summary(cut).unwrap_or_default());
                let goal = match node {
                    Ok(node) if self.is_root(node) => self.as_goal(&goal),
                    Ok(node) => Words::OfAgent(&node.goal),
                    Err(_) => Words::OfAgent(""),
                };
                message(title, &[goal, Words::OfAgent(&summary)])
            }
            (None, None) => {
                let (subject, others) = (Words::OfPerson(""), &cut.others);
                let message = LandedMessage { subject, body: &[], others, git: &self.git, landed: &landed };
                message.behind(&own.unwrap_or_default())
            }
        }
    }

    /// Returns what else is brought home with the last of a run that is done: what it was made to settle.
    fn also(&self, is_last: bool) -> Vec<Landed> {
        if is_last && self.tree.root.passes { settles(self.goal.text()) } else { Vec::new() }
    }

    fn receipt(&self, commit: &str) -> Option<&RunnerCommit> {
        let at = self.branch.plan.all().iter().position(|head| head.id == commit)?;
        self.branch.plan.whose(at).and_then(Whose::runners)
    }

    fn summary(&self, cut: &Cut) -> Option<String> {
        match self.receipt(&cut.commit)? {
            RunnerCommit::Iteration(receipt) => Some(receipt.summary.clone()),
            RunnerCommit::Start(_)
            | RunnerCommit::Baseline(..)
            | RunnerCommit::Resume(_)
            | RunnerCommit::Claim(_)
            | RunnerCommit::Release(_) => None,
        }
    }

    fn line(&self, cut: &Cut) -> Option<String> {
        let node = tree::find(&self.tree, cut.node.as_deref()?)?;
        Some(format!("- {}", node.title))
    }

    /// Returns text of the goal as a person's, unless the daemon has made it of what a run has left.
    fn as_goal<'t>(&self, text: &'t str) -> Words<'t> {
        if settles(self.goal.text()).is_empty() { Words::OfPerson(text) } else { Words::OfAgent(text) }
    }

    fn is_root(&self, node: &Node) -> bool {
        node.id == self.tree.root.id
    }

    /// Returns the title of a node: a person's where it is the headline of the goal.
    fn title_of<'n>(&self, node: &'n Node) -> Words<'n> {
        let is_headline = self.is_root(node) && self.goal.headline().as_deref() == Some(&node.title);
        if is_headline { Words::OfPerson(&node.title) } else { Words::OfAgent(&node.title) }
    }

    /// Returns the goal of the run without the heading that is its title.
    fn goal_text(&self) -> String {
        let body = self.goal.body().trim();
        let heading = body.lines().next().is_some_and(|line| line.starts_with("# "));
        if heading { body.split_once('\n').map_or("", |(_, rest)| rest).trim().to_owned() } else { body.to_owned() }
    }
}

/// Returns what the front matter of a goal says that its run brings home for others.
fn settles(goal: &str) -> Vec<Landed> {
    let front = goal.lines().skip(1).take_while(|line| line.trim_end() != "---");
    let front = front.take(if goal.starts_with("---") { usize::MAX } else { 0 });
    let named = front.filter_map(|line| line.strip_prefix(SETTLES)?.strip_prefix(": ")?.trim().parse().ok());
    named.collect()
}
