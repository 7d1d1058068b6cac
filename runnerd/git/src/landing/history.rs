//! Which commits one branch has that another lacks, and what their messages say.

use crate::repository::program::GitCommand;
use crate::{GitError, Id, Repository};

impl Repository {
    /// Returns the commits on the first-parent chain of `tip` that `onto` lacks, newest first.
    pub fn first_parents_not_in(&self, tip: &Id, onto: &Id) -> Result<Vec<Id>, GitError> {
        let git =
            GitCommand::new(self, "rev-list").args(["--first-parent", &tip.to_string(), &format!("^{onto}"), "--"]);
        let listed = git.run()?;
        Ok(String::from_utf8_lossy(&listed).lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Returns the commits of `tip` that `other` lacks and whose message has a line beginning with `word`, in letters of
    /// either case, with their messages, newest first.
    pub fn find_commits_mentioning(
        &self,
        tip: &Id,
        other: Option<&Id>,
        word: &str,
    ) -> Result<Vec<(Id, String)>, GitError> {
        let grep = format!("^{word}");
        let format = ["--format=tformat:%H%n%B", "--encoding=UTF-8", "--no-show-signature", "--no-color", "-z"];
        let git =
            GitCommand::new(self, "log").args(format).args(["--no-patch", "-i", "--grep", &grep, &tip.to_string()]);
        let git = git.args(other.map(|other| format!("^{other}"))).arg("--");
        let listed = git.run()?;
        let record = |record: &[u8]| {
            let text = String::from_utf8_lossy(record);
            let (id, message) = text.split_once('\n')?;
            Some((id.trim().parse().ok()?, message.to_owned()))
        };
        Ok(listed.split(|byte| *byte == 0).filter_map(record).collect())
    }

    /// Returns the newest common ancestor of two commits; `None` if there is none.
    pub fn merge_base(&self, one: &Id, other: &Id) -> Result<Option<Id>, GitError> {
        let found = GitCommand::new(self, "merge-base").args([one.to_string(), other.to_string()]).run_optional()?;
        Ok(found.and_then(|id| String::from_utf8_lossy(&id).trim().parse().ok()))
    }
}
