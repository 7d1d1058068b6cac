//! Commit messages in an encoding other than UTF-8, as `git log` shows them. Which encodings exist, and how to decode
//! them, is left to git.

use std::collections::BTreeMap;

use runner_core::fsck::{is_utf8_encoding, message_encoding};

use crate::repository::program::GitCommand;
use crate::{ChainCommit, GitError, Id, Repository};

impl Repository {
    /// Fills in git's conversion of messages that are not UTF-8; most repositories have none.
    pub fn recode_messages(&self, commits: &mut [ChainCommit]) -> Result<(), GitError> {
        let foreign =
            |commit: &ChainCommit| message_encoding(&commit.header).is_some_and(|name| !is_utf8_encoding(name));
        let foreign: Vec<&mut ChainCommit> = commits.iter_mut().filter(|commit| foreign(commit)).collect();
        if foreign.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = foreign.iter().map(|commit| commit.id.to_string()).collect();
        let mut recoded = self.recode_with_git(&ids)?;
        for commit in foreign {
            let message = recoded.remove(&commit.id).ok_or_else(|| GitError::Corrupt {
                doing: "reading messages as git shows them",
                path: self.git_dir().to_owned(),
                source: format!("nothing of commit {}", commit.id).into(),
            })?;
            commit.recoded_message = Some(message);
        }
        Ok(())
    }

    fn recode_with_git(&self, ids: &[String]) -> Result<BTreeMap<Id, Vec<u8>>, GitError> {
        let args = ["--stdin", "--no-walk=unsorted", "--no-patch", "--no-show-signature", "--no-color", "-z"];
        let git = GitCommand::new(self, "log").env("GIT_NO_LAZY_FETCH", "1").args(args);
        let output =
            git.args(["--encoding=UTF-8", "--format=tformat:%H%n%B"]).input(ids.join("\n").into_bytes()).run()?;
        let message = |record: &[u8]| {
            let end = record.iter().position(|byte| *byte == b'\n')?;
            Some((str::from_utf8(&record[..end]).ok()?.parse().ok()?, record[end + 1..].to_vec()))
        };
        Ok(output.split(|byte| *byte == 0).filter_map(message).collect())
    }
}
