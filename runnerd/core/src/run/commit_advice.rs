//! Suggests what a person can do about uncommitted files, as commands that name each of them.
//!
//! The files may be an agent's, and there may be secrets next to them: no command takes everything.

use protocol::command::{Command, NextSteps};
use protocol::shell;

/// Most paths named in a command.
const MAX_NAMED: usize = 10;
/// Names of files with secrets; a command that commits one would be bad advice.
const SECRET_NAMES: [&str; 4] = [".env", "id_rsa", "id_ed25519", "id_ecdsa"];
/// Suffixes of files that contain no secrets although their names begin like one.
const SAMPLE_ENDINGS: [&str; 3] = [".example", ".sample", ".template"];

/// Returns the ways to a clean work tree.
pub fn commit_ways(paths: &[String]) -> NextSteps {
    let (secret, others): (Vec<&str>, Vec<&str>) = paths.iter().map(String::as_str).partition(|path| is_secret(path));
    let ignore = || format!("name {} in .gitignore", shell::join_args(secret.iter().copied().take(MAX_NAMED)));
    // Git lists paths itself if they are not text, or too many.
    let is_nameable =
        others.len() <= MAX_NAMED && !others.iter().any(|path| path.contains(char::REPLACEMENT_CHARACTER));
    if !is_nameable {
        return NextSteps::from("look at each with git status, and commit, stash or ignore it by its name")
            .with_command(Command::show_changes());
    }
    let commit = || {
        let named = || others.iter().copied();
        NextSteps::from(Command::stage(named())).join(" && ", "git commit").join("; or: ", Command::stash(named()))
    };
    match (secret.is_empty(), others.is_empty()) {
        (true, _) => commit(),
        (false, true) => ignore().into(),
        (false, false) => commit().join("; and: ", ignore()),
    }
}

/// Whether a file looks as if it contains secrets.
fn is_secret(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_sample = SAMPLE_ENDINGS.iter().any(|end| name.ends_with(end));
    let is_pem = name.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("pem"));
    SECRET_NAMES.contains(&name) || is_pem || name.starts_with(".env.") && !is_sample
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands_for(paths: &[&str]) -> String {
        commit_ways(&paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>()).text().to_owned()
    }

    #[test]
    fn each_path_is_named_as_a_shell_reads_it() {
        let both = "git add -- a.txt 'my file' && git commit; or: git stash push -u -- a.txt 'my file'";
        assert_eq!(commands_for(&["a.txt", "my file"]), both);
    }

    #[test]
    fn a_file_of_secrets_is_never_committed_by_a_command() {
        assert_eq!(commands_for(&["app/.env", ".env.local"]), "name app/.env .env.local in .gitignore");
        assert_eq!(
            commands_for(&[".env", ".env.example"]),
            "git add -- .env.example && git commit; or: git stash push -u -- .env.example; and: name .env in .gitignore"
        );
    }

    #[test]
    fn what_cannot_be_named_is_shown_by_git() {
        let many: Vec<String> = (0..11).map(|number| format!("f{number}")).collect();
        for paths in [many, vec!["a\u{fffd}".to_owned()]] {
            assert_eq!(
                commit_ways(&paths).text(),
                "look at each with git status, and commit, stash or ignore it by its name"
            );
        }
    }
}
