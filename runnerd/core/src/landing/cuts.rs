//! Where the chain of a run's commits is cut: at each leaf that passed, and at a person's own commit where nothing is
//! outstanding. Everything else folds into the cut behind it.

use super::ChainCommit;
use crate::audit::CommitOwner;

/// Commits that become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitGroup {
    /// The place of the last of them, whose files are landed.
    pub position: usize,
    /// Its id.
    pub commit: String,
    /// The node that passed with it; none for a person's own commit.
    pub node: Option<String>,
    /// The people who wrote some of those that were folded into it, as `Name <address>`; not its author.
    pub co_authors: Vec<String>,
}

/// Cuts a chain of commits, oldest first, that begins upon files with this id.
pub(super) fn group_commits(commits: &[ChainCommit<'_>], before: &str) -> Vec<CommitGroup> {
    let (mut cuts, mut folded): (Vec<CommitGroup>, Vec<usize>) = (Vec::new(), Vec::new());
    let (mut settled, mut last) = (before, before);
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
    // What follows the last leaf that passed is proven by nothing.
    while cuts.last().is_some_and(|cut| cut.node.is_none()) {
        cuts.pop();
    }
    cuts
}

/// Returns the node that passed with a commit.
fn passed_node(owner: CommitOwner<'_>) -> Option<String> {
    owner.runner_commit()?.accepted_receipt().map(|receipt| receipt.node.clone())
}

/// Returns the people who wrote what was folded, besides the author of what it was folded into. What a session has
/// committed itself names whom it likes.
fn folded_authors(commits: &[ChainCommit<'_>], folded: &[usize], author: &str) -> Vec<String> {
    let mut others: Vec<String> = Vec::new();
    for commit in folded.iter().map(|at| &commits[*at]).filter(|commit| commit.owner == CommitOwner::Person) {
        if commit.author != author && !others.contains(&commit.author) {
            others.push(commit.author.clone());
        }
    }
    others
}
