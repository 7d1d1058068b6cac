//! A working tree that is on the branch of a run, and the command that leads back from there.

use protocol::shell;

/// Returns the command that checks out the branch `back`, and first puts away the changes of these files, with which git
/// would refuse it.
pub(crate) fn back_command(back: &str, uncommitted: &[String]) -> String {
    let switch = shell::join_args(["git", "switch", back]);
    if uncommitted.is_empty() {
        return switch;
    }
    let is_own = uncommitted.iter().all(|path| path.starts_with(".runner/"));
    let words: &[&str] =
        if is_own { &["git", "commit", "-m", "Settings", "--"] } else { &["git", "stash", "push", "--"] };
    let paths = uncommitted.iter().map(String::as_str);
    format!("{} && {switch}", shell::join_args(words.iter().copied().chain(paths)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_would_not_take_along_is_committed_or_stashed_before() {
        let command =
            |paths: &[&str]| back_command("main", &paths.iter().map(|path| (*path).into()).collect::<Vec<_>>());
        let commands = [command(&[]), command(&[".runner/state/config.toml"]), command(&["a b", ".runner/GOAL.md"])];
        insta::assert_snapshot!(commands.join("\n"), @r"
        git switch main
        git commit -m Settings -- .runner/state/config.toml && git switch main
        git stash push -- 'a b' .runner/GOAL.md && git switch main
        ");
    }
}
