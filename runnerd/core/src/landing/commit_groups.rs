//! Where the chain of a run's commits is cut: at each leaf that passed, and at a person's own commit if nothing is
//! outstanding. Everything else is folded into the next cut.

use super::ChainCommit;
use crate::audit::CommitOwner;

/// Commits that are landed as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitGroup {
    /// Index of the last of them, whose files are landed.
    pub position: usize,
    /// Id of that commit.
    pub commit: String,
    /// The node that passed with it; `None` for a person's own commit.
    pub node: Option<String>,
    /// People who wrote some of the folded commits, as `Name <address>`, except for its author.
    pub co_authors: Vec<String>,
}

/// Cuts a chain of commits, oldest first, whose parent has files with this id.
pub(super) fn group_commits(commits: &[ChainCommit<'_>], before: &str) -> Vec<CommitGroup> {
    let (mut cuts, mut folded): (Vec<CommitGroup>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut settled = before;
    let mut last = before;
    for (at, commit) in commits.iter().enumerate() {
        let node = passed_node(commit.owner);
        let is_outstanding = last != settled;
        let is_own = commit.owner == CommitOwner::Person && !is_outstanding && commit.code != last;
        if node.is_some() || is_own {
            let others = folded_authors(commits, &folded, &commit.author);
            cuts.push(CommitGroup { position: at, commit: commit.id.to_owned(), node, co_authors: others });
            folded.clear();
            settled = &commit.code;
        } else if commit.code != last {
            folded.push(at);
        }
        last = &commit.code;
    }
    // Nothing proves what follows the last leaf that passed.
    while cuts.last().is_some_and(|cut| cut.node.is_none()) {
        cuts.pop();
    }
    cuts
}

/// Returns the node that passed with a commit.
fn passed_node(owner: CommitOwner<'_>) -> Option<String> {
    owner.runner_commit()?.accepted_receipt().map(|receipt| receipt.node.clone())
}

/// Returns the people who wrote the folded commits, except for the author of the commit they are folded into. A
/// session's own commits are ignored, because it can name any author.
fn folded_authors(commits: &[ChainCommit<'_>], folded: &[usize], author: &str) -> Vec<String> {
    let mut others: Vec<String> = Vec::new();
    for commit in folded.iter().map(|at| &commits[*at]).filter(|commit| commit.owner == CommitOwner::Person) {
        if commit.author != author && !others.contains(&commit.author) {
            others.push(commit.author.clone());
        }
    }
    others
}
