//! Merges one run onto a commit: returns the commits it becomes there, or why it does not fit. Moves no reference.

use protocol::landing::{LandForm, LandedCommit};
use runner_core::landing::commit_groups::CommitGroup;
use runner_core::landing::{LandPlan, LandedTrailer, LandingRefusal, NO_NODE};
use runner_git::{Id, Identity, MergeResult, NewCommit, Repository, RunnerFolder, TreeMerge, TreeMerger};

use super::branch::{RunBranch, parse_author};
use super::commit_message::{CommitMessageBuilder, LandedLeaf};
use super::resolution::Resolution;
use super::{LandContext, LandError};

/// Options of a merge.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergeOptions<'a> {
    /// Form of the landed commits.
    pub(super) form: LandForm,
    /// Whether `.runner/` is included.
    pub(super) with_runner: bool,
    /// Identity of the committer.
    pub(super) committer: &'a Identity,
    /// Whether the commits are signed.
    pub(super) sign: bool,
    /// The files of a resolution that a person has accepted.
    pub(super) accepted: &'a [String],
}

/// A run to be merged onto a commit.
#[derive(Debug)]
pub(super) struct RunMerge<'a> {
    site: &'a LandContext<'a>,
    repository: &'a Repository,
    branch: &'a RunBranch,
    landing: &'a LandPlan,
    onto: (&'a str, Id),
    options: MergeOptions<'a>,
    merger: TreeMerger<'a>,
    messages: CommitMessageBuilder<'a>,
}

/// Range of one merge: from which commit of the run to which.
#[derive(Debug, Clone, Copy)]
struct MergeSpan<'a> {
    base: &'a Id,
    end: &'a Id,
    node: Option<&'a str>,
}

/// Result of a merge.
#[derive(Debug, Clone)]
struct MergeStep<'a> {
    tree: Id,
    group: &'a CommitGroup,
}

impl<'a> RunMerge<'a> {
    /// Prepares to merge a run onto a commit; `onto` is the branch and that commit.
    pub(super) fn new(
        site: &'a LandContext<'a>,
        branch: &'a RunBranch,
        landing: &'a LandPlan,
        onto: (&'a str, Id),
        manner: MergeOptions<'a>,
    ) -> Result<Self, LandError> {
        let repository = site.repository;
        let merger = site.create_merger(&onto.1)?;
        let teller = CommitMessageBuilder::new(repository, branch)?;
        Ok(Self { site, repository, branch, landing, onto, options: manner, merger, messages: teller })
    }

    /// Merges the run, and creates the commits.
    pub(super) fn create_commits(&self) -> Result<Vec<LandedCommit>, LandError> {
        let has_merged = self.has_merged_onto()?;
        match self.options.form {
            LandForm::Leaves if has_merged => {
                let run = self.branch.run().to_owned();
                let onto = self.onto.0.to_owned();
                Err(LandingRefusal::MergedBySession { run, onto }.into())
            }
            LandForm::Leaves => self.create_leaf_commits(),
            LandForm::Squash => self.create_whole_commit(has_merged, &[self.onto.1]),
            LandForm::Merge => self.create_whole_commit(has_merged, &[self.onto.1, self.last_commit()?]),
        }
    }

    /// Returns the tree of the whole run merged at once.
    pub(super) fn squash_tree(&self, has_merged: bool) -> Result<Id, LandError> {
        let base = self.merge_base(has_merged)?;
        let last = self.last_commit()?;
        match self.merge_span(&self.onto.1, MergeSpan { base: &base, end: &last, node: None })? {
            Ok(tree) => Ok(tree),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Whether a commit of the run has merged the target branch.
    pub(super) fn has_merged_onto(&self) -> Result<bool, LandError> {
        let last = self.landing.groups.last().map_or(self.landing.base.as_str(), |cut| cut.commit.as_str());
        for other in self.branch.list_merged_between(&self.landing.base, last) {
            if self.repository.is_ancestor(&other, &self.onto.1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the base commit for merging the whole run.
    fn merge_base(&self, has_merged: bool) -> Result<Id, LandError> {
        if has_merged {
            let base = self.repository.merge_base(&self.onto.1, &self.last_commit()?)?;
            return base.ok_or_else(|| LandingRefusal::Unrelated { run: self.branch.run().to_owned() }.into());
        }
        parse_id(&self.landing.base)
    }

    fn last_commit(&self) -> Result<Id, LandError> {
        parse_id(self.landing.groups.last().map_or(&self.landing.base, |cut| &cut.commit))
    }

    fn create_leaf_commits(&self) -> Result<Vec<LandedCommit>, LandError> {
        let mut tip = self.onto.1;
        let mut base = parse_id(&self.landing.base)?;
        let mut commits = Vec::new();
        for cut in &self.landing.groups {
            let commit = parse_id(&cut.commit)?;
            let span = MergeSpan { base: &base, end: &commit, node: cut.node.as_deref() };
            let tree = self.merge_span(&tip, span)?.map_err(|refusal| self.suggest_squash(refusal))?;
            if tree != self.repository.tree_id(&tip)? {
                let landed = self.create_commit(&MergeStep { tree, group: cut }, &[tip])?;
                tip = parse_id(&landed.commit)?;
                commits.push(landed);
            }
            base = commit;
        }
        if self.repository.tree_id(&tip)? != self.squash_tree(false)? {
            return Err(LandingRefusal::Diverges { run: self.branch.run().to_owned() }.into());
        }
        Ok(commits)
    }

    /// Adds a hint to a refusal: a run whose leaves do not merge one by one may still merge as a whole.
    fn suggest_squash(&self, refusal: LandingRefusal) -> LandError {
        let fits_as_squash = self.landing.groups.len() > 1 && self.squash_tree(false).is_ok();
        LandError::Refused(match refusal {
            LandingRefusal::Conflict { run, node, paths, .. } => {
                LandingRefusal::Conflict { run, node, paths, fits_as_squash }
            }
            refusal => refusal,
        })
    }

    fn create_whole_commit(&self, has_merged: bool, parents: &[Id]) -> Result<Vec<LandedCommit>, LandError> {
        let tree = self.squash_tree(has_merged)?;
        let Some(cut) = self.landing.groups.last() else { return Ok(Vec::new()) };
        if tree == self.repository.tree_id(&self.onto.1)? && parents.len() == 1 {
            return Ok(Vec::new());
        }
        let others = self.landing.groups.iter().flat_map(|cut| cut.co_authors.clone());
        let mut all: Vec<String> = Vec::new();
        others.for_each(|other| {
            if !all.contains(&other) {
                all.push(other);
            }
        });
        let cut = CommitGroup { co_authors: all, ..cut.clone() };
        Ok(vec![self.create_commit(&MergeStep { tree, group: &cut }, parents)?])
    }

    /// Merges what the run has changed between two of its commits onto a commit; `.runner/` is taken from that commit
    /// or from the run.
    fn merge_span(
        &self,
        onto: &Id,
        MergeSpan { base, end: cut, node }: MergeSpan<'_>,
    ) -> Result<Result<Id, LandingRefusal>, LandError> {
        let folder: RunnerFolder =
            self.repository.read_runner_folder(if self.options.with_runner { cut } else { onto })?;
        let tree = |commit: &Id| self.repository.replace_runner_folder(commit, &folder);
        let merge = TreeMerge { base: tree(base)?, ours: tree(onto)?, theirs: tree(cut)? };
        let run = self.branch.run().to_owned();
        let node = node.map(str::to_owned);
        Ok(match self.merger.merge(&merge)? {
            MergeResult::Clean(tree) => Ok(tree),
            MergeResult::Conflict { submodules: paths, .. } if !paths.is_empty() => {
                Err(LandingRefusal::Submodule { run, node, paths })
            }
            MergeResult::Conflict { paths, .. } => {
                Err(LandingRefusal::Conflict { run, node, paths, fits_as_squash: false })
            }
        })
    }

    fn create_commit(&self, step: &MergeStep<'_>, parents: &[Id]) -> Result<LandedCommit, LandError> {
        let MergeStep { tree, group: cut } = step;
        let is_whole = self.options.form != LandForm::Leaves && self.landing.groups.len() > 1;
        let groups = if is_whole { Some(self.landing.groups.as_slice()) } else { None };
        let node = match groups {
            Some(_) => self.messages.root_id().to_owned(),
            None => cut.node.clone().unwrap_or_else(|| NO_NODE.to_owned()),
        };
        let landed = LandedTrailer { run: self.branch.run().to_owned(), commit: cut.commit.clone(), node };
        let last = &self.landing.groups[self.landing.last_change..];
        let is_last = groups.is_some() || last.iter().any(|last| last.commit == cut.commit);
        let settled = self.messages.settled_commits(is_last);
        let accepted = if settled.is_empty() { &[][..] } else { self.options.accepted };
        for settled in &settled {
            let run = self.branch.run();
            let base = self.messages.run_base().ok_or_else(|| LandingRefusal::Unrelated { run: run.to_owned() })?;
            Resolution { run, base, end: parse_id(&cut.commit)?, accepted }.check(self.site, settled)?;
        }
        let message =
            self.messages.build_message(&LandedLeaf { group: cut, whole: groups, is_last, accepted }, &landed);
        let head = self.branch.find_commit(&cut.commit);
        let author = head.map(|head| parse_author(head).1).filter(|line| !line.is_empty());
        let author = author.unwrap_or_else(|| "runnerd <runnerd@localhost> 0 +0000".to_owned());
        let commit = self.repository.create_commit(&NewCommit {
            tree: *tree,
            parents,
            author: Some(&author),
            committer: self.options.committer,
            message: &message,
            sign: self.options.sign,
        })?;
        let subject = message.lines().next().unwrap_or_default().to_owned();
        Ok(LandedCommit { commit: commit.to_string(), subject, node: landed.node, of: landed.commit })
    }
}

fn parse_id(text: &str) -> Result<Id, LandError> {
    text.parse().map_err(|_| crate::verify::VerifyError::InvalidCommit(text.to_owned()).into())
}
