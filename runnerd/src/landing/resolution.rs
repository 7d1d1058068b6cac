//! Checks whether a run that was created to bring in another one has done so: the merge is repeated, and the files of
//! the run are compared with it.

use std::collections::BTreeSet;

use runner_core::landing::resolution::{ResolutionFault, check_resolved_file};
use runner_core::landing::{LandedTrailer, LandingRefusal, MissingCommits};
use runner_git::{EntryKind, GitError, Id, MergeResult, Repository, TreeMerge};

use super::branch::RunBranch;
use super::{LandContext, LandError};
use crate::verify::{self, VerifyError, VerifyTarget};

/// The end of a run that brings in others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resolution<'a> {
    /// Id of the run.
    pub(super) run: &'a str,
    /// The commit at which it began.
    pub(super) base: Id,
    /// Its last commit that lands.
    pub(super) end: Id,
    /// The files that a person has accepted as they are.
    pub(super) accepted: &'a [String],
}

impl Resolution<'_> {
    /// Fails unless the files show what `settled` has changed, or a person has accepted them.
    pub(super) fn check(&self, site: &LandContext<'_>, settled: &LandedTrailer) -> Result<(), LandError> {
        let branch = find_branch(site, settled)?;
        let MissingCommits::Missing(landing) = branch.find_missing(site.repository, &self.base)?.commits else {
            return Ok(());
        };
        if !landing.groups.iter().any(|group| group.commit == settled.commit) {
            return Err(LandingRefusal::NothingPassed { run: settled.run.clone() }.into());
        }
        let folder = site.repository.read_runner_folder(&self.base)?;
        let tree = |commit: &Id| site.repository.replace_runner_folder(commit, &folder);
        let base = parse_id(&landing.base)?;
        let end = parse_id(&settled.commit)?;
        let merger = site.create_merger(&self.base)?;
        let merge = TreeMerge { base: tree(&base)?, ours: tree(&self.base)?, theirs: tree(&end)? };
        let (tree, conflicts) = match merger.merge(&merge)? {
            MergeResult::Clean(tree) => (tree, Vec::new()),
            MergeResult::Conflict { tree, paths, .. } => (tree, paths),
        };
        let faults = self.find_faults(site.repository, &merger.wrap_tree(&tree, None)?, &conflicts)?;
        if faults.is_empty() {
            return Ok(());
        }
        Err(LandingRefusal::Unresolved { run: self.run.to_owned(), settled: settled.run.clone(), faults }.into())
    }

    fn find_faults(
        &self,
        repository: &Repository,
        merged: &Id,
        conflicts: &[String],
    ) -> Result<Vec<(String, ResolutionFault)>, GitError> {
        let changed = repository.changed_paths(merged, &self.end)?.into_iter();
        let changed = changed.filter(|path| !path.starts_with(b".runner/"));
        let changed = changed.map(|path| String::from_utf8_lossy(&path).into_owned());
        let paths: BTreeSet<String> = changed.chain(conflicts.iter().cloned()).collect();
        let mut faults = Vec::new();
        for path in paths.into_iter().filter(|path| !self.accepted.contains(path)) {
            let checked = if conflicts.contains(&path) {
                let read = |commit: &Id| read_text(repository, commit, &path);
                match (read(merged)?, read(&self.end)?) {
                    (Some(merged), Some(resolved)) => check_resolved_file(&merged, &resolved),
                    _ => Err(ResolutionFault::NoLines),
                }
            } else {
                Err(ResolutionFault::NotMerged)
            };
            faults.extend(checked.err().map(|fault| (path, fault)));
        }
        Ok(faults)
    }
}

/// Reads the branch that has the commit to bring in, local or fetched.
fn find_branch(site: &LandContext<'_>, settled: &LandedTrailer) -> Result<RunBranch, LandError> {
    let run = &settled.run;
    for tip in verify::list_run_tips(site.repository, run)? {
        let target = VerifyTarget { run: run.clone(), tip };
        let plan = verify::plan_audit(site.repository, &target, site.stop)?;
        let branch = RunBranch { target, plan };
        if branch.find_commit(&settled.commit).is_some() {
            return Ok(branch);
        }
    }
    let why = format!("commit {} is not among the first parents of branch runner/{run}", settled.commit);
    Err(LandingRefusal::NotProven { run: run.clone(), why, is_unseen: false }.into())
}

fn read_text(repository: &Repository, commit: &Id, path: &str) -> Result<Option<Vec<u8>>, GitError> {
    let entry = repository.find_entry(commit, path)?;
    let entry = entry.filter(|entry| matches!(entry.kind, EntryKind::File | EntryKind::Executable));
    entry.map(|entry| repository.read_blob(&entry.id)).transpose()
}

fn parse_id(text: &str) -> Result<Id, LandError> {
    text.parse().map_err(|_| VerifyError::InvalidCommit(text.to_owned()).into())
}
