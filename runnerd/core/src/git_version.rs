//! Which versions of the git program have the required features, judging by their version strings.

use protocol::doctor::OLDEST_GIT;

/// A git that cannot be kept from reading configuration written by a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "git {version} cannot be kept from what a session has configured: no run begins with it; install git {}.{} or later where \
     the daemon finds it first",
    OLDEST_GIT[0],
    OLDEST_GIT[1]
)]
pub struct UnsupportedGit {
    /// Its version, as it reports it.
    version: String,
}

/// Refuses a git that must not be used to drive a run.
pub fn refuse_too_old(version: &str) -> Result<(), UnsupportedGit> {
    if is_older(version, OLDEST_GIT) { Err(UnsupportedGit { version: version.to_owned() }) } else { Ok(()) }
}

/// Whether a version such as `2.47.3` or `2.39.5 (Apple Git-154)` is older than another one. A version without a number
/// is not: it is given a try.
pub(crate) fn is_older(version: &str, than: [u32; 2]) -> bool {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if [major, minor] < than)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_names_the_version_that_is_there_and_the_one_that_is_needed() {
        for version in ["2.31.8", "2.30.2.windows.1", "1.99"] {
            let refused = refuse_too_old(version).unwrap_err().to_string();
            assert!(refused.contains(version) && refused.contains("2.32 or later"), "{refused}");
        }
        for version in ["2.32.0", "2.39.5 (Apple Git-154)", "3.0", "of my own"] {
            assert_eq!(refuse_too_old(version), Ok(()), "{version}");
        }
    }
}
