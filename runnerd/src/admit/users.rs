//! The user's own git configuration, where a session has changed it: what git would obey is looked at by a person first.
//! What is put back of it is not decided here.

use protocol::error::{ErrorData, ErrorKind};

use super::git_error;
use crate::git::UsersRules;
use crate::repo::kept::{Kept, KeptError};

/// Refuses a git configuration of the user's that is as a session has left it, until they have confirmed it by an option
/// that they typed: a question about commands does not confirm it.
///
/// `suspects` is the note that remembers how; it goes once it has served. One that cannot be read stays, and nothing
/// begins.
pub fn users_configuration(suspects: &Kept<UsersRules>, confirmed: bool) -> Result<(), ErrorData> {
    match is_as_left(suspects)? {
        None => Ok(()),
        Some(true) if !confirmed => Err(as_left()),
        Some(_) => suspects.remove().map_err(|error| not_kept(&error)),
    }
}

/// Refuses such a configuration to whoever is about to push with their own git; the note stays.
pub fn users_push(suspects: &Kept<UsersRules>, confirmed: bool) -> Result<(), ErrorData> {
    let is_refused = !confirmed && is_as_left(suspects)? == Some(true);
    if is_refused { Err(as_left()) } else { Ok(()) }
}

/// Whether the user's git configuration is as a session has left it; none where no session has changed it.
fn is_as_left(suspects: &Kept<UsersRules>) -> Result<Option<bool>, ErrorData> {
    let Some(left) = suspects.read().map_err(|error| not_kept(&error))? else { return Ok(None) };
    Ok(Some(left == UsersRules::now().map_err(|error| git_error(&error))?))
}

fn as_left() -> ErrorData {
    let message = "your own git configuration was changed while a session was at work, and git would obey it";
    ErrorData::new(ErrorKind::Held, message)
        .hint("look at it: git config --global --list --show-origin; then the same command with --yes")
}

/// Turns an error of a note into one for the client.
fn not_kept(error: &KeptError) -> ErrorData {
    let KeptError::Damaged { path, .. } = error else {
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
    use crate::repo::kept::Vault;
    use crate::repo::seal::Key;

    #[test]
    fn what_a_session_has_left_is_refused_until_it_is_confirmed_and_a_push_does_not_confirm_it() {
        let home = tempfile::tempdir().unwrap();
        let vault = Vault::new(home.path().to_owned(), Key::random().unwrap());
        let suspects: Kept<UsersRules> = vault.note(&RealDisk, "suspects.json");
        assert_eq!(users_push(&suspects, false), Ok(()), "no session has changed anything");
        suspects.write(&UsersRules::now().unwrap()).unwrap();
        assert_eq!(users_push(&suspects, false).unwrap_err().kind, ErrorKind::Held, "no question may confirm it");
        assert_eq!(users_push(&suspects, true), Ok(()));
        assert_eq!(users_configuration(&suspects, false).unwrap_err().kind, ErrorKind::Held);
        assert_eq!(users_configuration(&suspects, true), Ok(()));
        assert_eq!(suspects.read().unwrap(), None, "it has served");
    }
}
