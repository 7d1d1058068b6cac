//! The user's own git configuration after a session has changed it: a person must look at it before git obeys it.
//! Restoring it is not decided here.

use protocol::error::{ErrorData, ErrorKind};
use runner_git::UserGitConfig;

use super::git_error;
use crate::repo::sealed::{SealedFile, SealedFileError};

/// Refuses a git configuration of the user that is as a session has left it, until the user has confirmed it by typing
/// an option: answering a question about commands does not confirm it.
///
/// `suspects` is the note that remembers the configuration; it is removed once it has served. An unreadable note stays,
/// and nothing begins.
pub fn check_user_config(suspects: &SealedFile<UserGitConfig>, confirmed: bool) -> Result<(), ErrorData> {
    match is_left_by_session(suspects)? {
        None => Ok(()),
        Some(true) if !confirmed => Err(changed_config_error()),
        Some(_) => suspects.remove().map_err(|error| sealed_file_error(&error)),
    }
}

/// Refuses such a configuration to a caller about to push with the user's git; the note stays.
pub fn check_user_push(suspects: &SealedFile<UserGitConfig>, confirmed: bool) -> Result<(), ErrorData> {
    let is_refused = !confirmed && is_left_by_session(suspects)? == Some(true);
    if is_refused { Err(changed_config_error()) } else { Ok(()) }
}

/// Whether the user's git configuration is as a session has left it; `None` if no session has changed it.
fn is_left_by_session(suspects: &SealedFile<UserGitConfig>) -> Result<Option<bool>, ErrorData> {
    let Some(left) = suspects.read().map_err(|error| sealed_file_error(&error))? else { return Ok(None) };
    Ok(Some(left == UserGitConfig::read().map_err(|error| git_error(&error))?))
}

fn changed_config_error() -> ErrorData {
    let message = "your own git configuration was changed while a session was at work, and git would obey it";
    ErrorData::new(ErrorKind::Held, message)
        .hint("look at it: git config --global --list --show-origin; then the same command with --yes")
}

/// Converts an error of a note to one for the client.
fn sealed_file_error(error: &SealedFileError) -> ErrorData {
    let SealedFileError::Untrusted { path, .. } = error else {
        return ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error);
    };
    let file = path.display();
    ErrorData::new(ErrorKind::Held, error.to_string())
        .hint(format!("look at your own git configuration, git config --global --list, then: rm '{file}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::disk::RealDisk;
    use crate::repo::seal::SealKey;
    use crate::repo::sealed::StateDir;

    #[test]
    fn what_a_session_has_left_is_refused_until_it_is_confirmed_and_a_push_does_not_confirm_it() {
        let home = tempfile::tempdir().unwrap();
        let vault = StateDir::new(home.path().to_owned(), SealKey::random().unwrap());
        let suspects: SealedFile<UserGitConfig> = vault.sealed_file(&RealDisk, "suspects.json");
        assert_eq!(check_user_push(&suspects, false), Ok(()), "no session has changed anything");
        suspects.write(&UserGitConfig::read().unwrap()).unwrap();
        assert_eq!(check_user_push(&suspects, false).unwrap_err().kind, ErrorKind::Held, "no question may confirm it");
        assert_eq!(check_user_push(&suspects, true), Ok(()));
        assert_eq!(check_user_config(&suspects, false).unwrap_err().kind, ErrorKind::Held);
        assert_eq!(check_user_config(&suspects, true), Ok(()));
        assert_eq!(suspects.read().unwrap(), None, "it has served");
    }
}
