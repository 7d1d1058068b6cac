//! One run merged onto a commit: the commits that it becomes there, or why it does not fit. No reference moves.

use protocol::landing::{LandForm, LandedCommit};
use runner_core::landing::cuts::Cut;
use runner_core::landing::{Landed, Landing, NO_NODE, Refusal};

use super::branch::{Branch, author};
use super::told::{Brought, Teller};
use super::{LandError, Site};
use crate::git::{Id, Identity, Merge, Merged, Merger, NewCommit, Repository, RunnerFolder};

/// How a run is to be merged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner<'a> {
    /// In which form.
    pub(super) form: LandForm,
    /// Whether `.runner/` comes along.
    pub(super) with_runner: bool,
    /// Who commits.
    pub(super) committer: &'a Identity,
    /// Whether the commits are signed.
    pub(super) sign: bool,
}

/// A run that is to be merged onto a commit.
#[derive(Debug)]
pub(super) struct Fit<'a> {
    repository: &'a Repository,
    branch: &'a Branch,
    landing: &'a Landing,
    onto: (&'a str, Id),
    manner: Manner<'a>,
    merger: Merger<'a>,
    teller: Teller<'a>,
}

/// One merge: from which commit of the run to which.
#[derive(Debug, Clone, Copy)]
struct Span<'a> {
    base: &'a Id,
    cut: &'a Id,
    node: Option<&'a str>,
}

/// A merge that was made.
#[derive(Debug, Clone)]
struct Step<'a> {
    tree: Id,
    cut: &'a Cut,
}

impl<'a> Fit<'a> {
    /// Prepares the merges of a run upon a commit; `onto` is the branch with that commit.
    pub(super) fn new(
        site: &'a Site<'_>,
        (branch, landing): (&'a Branch, &'a Landing),
        onto: (&'a str, Id),
        manner: Manner<'a>,
    ) -> Result<Self, LandError> {
        let repository = site.repository;
        let merger = site.merger(&onto.1)?;
        let teller = Teller::new(repository, branch)?;
        Ok(Self { repository, branch, landing, onto, manner, merger, teller })
    }

    /// Merges, and makes the commits.
    pub(super) fn commits(&self) -> Result<Vec<LandedCommit>, LandError> {
        let has_merged = self.has_merged_onto()?;
        match self.manner.form {
            LandForm::Leaves if has_merged => {
                let (run, onto) = (self.branch.run().to_owned(), self.onto.0.to_owned());
                Err(Refusal::HasMerged { run, onto }.into())
            }
            LandForm::Leaves => self.leaves(),
            LandForm::Squash => self.whole(has_merged, &[self.onto.1]),
            LandForm::Merge => self.whole(has_merged, &[self.onto.1, self.last()?]),
        }
    }

    /// Returns the tree of all of the run in one merge.
    pub(super) fn squashed(&self, has_merged: bool) -> Result<Id, LandError> {
        let (base, last) = (self.base(has_merged)?, self.last()?);
        match self.merged(&self.onto.1, Span { base: &base, cut: &last, node: None })? {
            Ok(tree) => Ok(tree),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Whether a commit of the run has merged the branch itself.
    pub(super) fn has_merged_onto(&self) -> Result<bool, LandError> {
        let last = self.landing.cuts.last().map_or(self.landing.base.as_str(), |cut| cut.commit.as_str());
        for other in self.branch.merged_between(&self.landing.base, last) {
            if self.repository.is_ancestor(&other, &self.onto.1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the commit that a merge of the whole run begins from.
    fn base(&self, has_merged: bool) -> Result<Id, LandError> {
        if has_merged {
            let base = self.repository.merge_base(&self.onto.1, &self.last()?)?;
            return base.ok_or_else(|| Refusal::Unrelated { run: self.branch.run().to_owned() }.into());
        }
        id(&self.landing.base)
    }

    fn last(&self) -> Result<Id, LandError> {
        id(self.landing.cuts.last().map_or(&self.landing.base, |cut| &cut.commit))
    }

    fn leaves(&self) -> Result<Vec<LandedCommit>, LandError> {
        let (mut tip, mut base) = (self.onto.1, id(&self.landing.base)?);
        let mut made = Vec::new();
        for cut in &self.landing.cuts {
            let commit = id(&cut.commit)?;
            let span = Span { base: &base, cut: &commit, node: cut.node.as_deref() };
            let tree = self.merged(&tip, span)?.map_err(|refusal| self.with_way_out(refusal))?;
            if tree != self.repository.tree_id(&tip)? {
                let landed = self.commit(&Step { tree, cut }, &[tip])?;
                tip = id(&landed.commit)?;
                made.push(landed);
            }
            base = commit;
        }
        if self.repository.tree_id(&tip)? != self.squashed(false)? {
            return Err(Refusal::Diverges { run: self.branch.run().to_owned() }.into());
        }
        Ok(made)
    }

    /// A run whose leaves do not merge one by one may do so as a whole.
    fn with_way_out(&self, refusal: Refusal) -> LandError {
        let fits_as_squash = self.landing.cuts.len() > 1 && self.squashed(false).is_ok();
        LandError::Refused(match refusal {
            Refusal::Conflict { run, node, paths, .. } => Refusal::Conflict { run, node, paths, fits_as_squash },
            refusal => refusal,
        })
    }

    fn whole(&self, has_merged: bool, parents: &[Id]) -> Result<Vec<LandedCommit>, LandError> {
        let tree = self.squashed(has_merged)?;
        let Some(cut) = self.landing.cuts.last() else { return Ok(Vec::new()) };
        if tree == self.repository.tree_id(&self.onto.1)? && parents.len() == 1 {
            return Ok(Vec::new());
        }
        let others = self.landing.cuts.iter().flat_map(|cut| cut.others.clone());
        let mut all: Vec<String> = Vec::new();
        others.for_each(|other| {
            if !all.contains(&other) {
                all.push(other);
            }
        });
        let cut = Cut { others: all, ..cut.clone() };
        Ok(vec![self.commit(&Step { tree, cut: &cut }, parents)?])
    }

    /// Merges what the run has changed between two of its commits onto a commit; `.runner/` is as that one has it, or as the
    /// run has it.
    fn merged(&self, onto: &Id, Span { base, cut, node }: Span<'_>) -> Result<Result<Id, Refusal>, LandError> {
        let folder: RunnerFolder = self.repository.runner_folder(if self.manner.with_runner { cut } else { onto })?;
        let tree = |commit: &Id| self.repository.tree_with(commit, &folder);
        let merge = Merge { base: tree(base)?, ours: tree(onto)?, theirs: tree(cut)? };
        let (run, node) = (self.branch.run().to_owned(), node.map(str::to_owned));
        Ok(match self.merger.merge(&merge)? {
            Merged::Clean(tree) => Ok(tree),
            Merged::Conflict { submodules: paths, .. } if !paths.is_empty() => {
                Err(Refusal::Submodule { run, node, paths })
            }
            Merged::Conflict { paths, .. } => Err(Refusal::Conflict { run, node, paths, fits_as_squash: false }),
        })
    }

    fn commit(&self, step: &Step<'_>, parents: &[Id]) -> Result<LandedCommit, LandError> {
        let Step { tree, cut } = step;
        let is_whole = self.manner.form != LandForm::Leaves && self.landing.cuts.len() > 1;
        let of = if is_whole { Some(self.landing.cuts.as_slice()) } else { None };
        let node = match of {
            Some(_) => self.teller.root().to_owned(),
            None => cut.node.clone().unwrap_or_else(|| NO_NODE.to_owned()),
        };
        let landed = Landed { run: self.branch.run().to_owned(), commit: cut.commit.clone(), node };
        let last = &self.landing.cuts[self.landing.last..];
        let is_last = of.is_some() || last.iter().any(|last| last.commit == cut.commit);
        let message = self.teller.message(&Brought { cut, of, is_last }, &landed);
        let head = self.branch.head(&cut.commit);
        let author = head.map(|head| author(head).1).filter(|line| !line.is_empty());
        let author = author.unwrap_or_else(|| "runnerd <runnerd@localhost> 0 +0000".to_owned());
        let commit = self.repository.write(&NewCommit {
            tree: *tree,
            parents,
            author: &author,
            committer: self.manner.committer,
            message: &message,
            sign: self.manner.sign,
        })?;
        let subject = message.lines().next().unwrap_or_default().to_owned();
        Ok(LandedCommit { commit: commit.to_string(), subject, node: landed.node, of: landed.commit })
    }
}

fn id(text: &str) -> Result<Id, LandError> {
    text.parse().map_err(|_| crate::verify::VerifyError::NoCommit(text.to_owned()).into())
}
