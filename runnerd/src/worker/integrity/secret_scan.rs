//! Searches the files that a session changed for known secrets, to report them.
//!
//! Agents own their files: nothing is changed or held back here. Contents between two commits of the session, and git's
//! objects, are not searched.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use protocol::meta::SecretFinding;
use runner_core::text::redact::Secrets;

/// Maximum number of findings reported for an iteration.
const MAX_FINDINGS: usize = 100;
/// Maximum number of bytes searched in one file.
const MAX_FILE: u64 = 64 << 20;
/// Maximum number of bytes searched in all files.
const MAX_TOTAL: u64 = 1 << 30;
/// Bytes searched at a time, in addition to the overlap that a secret may need.
const WINDOW: usize = 1 << 20;

/// Returns which of the changed files hold which secrets; `paths` are relative to the work tree.
pub(crate) fn scan_files(root: &Path, paths: &[Vec<u8>], secrets: &Secrets) -> Vec<SecretFinding> {
    let mut findings = Vec::new();
    let mut budget = MAX_TOTAL;
    for path in paths.iter().collect::<BTreeSet<_>>() {
        if secrets.is_empty() || findings.len() >= MAX_FINDINGS || budget == 0 {
            break;
        }
        let mut names = secrets.names_in(path);
        if let Ok(Some(file)) = open_regular(&root.join(OsStr::from_bytes(path))) {
            // An unreadable file is searched as far as possible: this is a report, not a gate.
            let _ = add_secret_names(file.take(MAX_FILE.min(budget)), secrets, &mut names, &mut budget);
        }
        let display_path = secrets.redact(&String::from_utf8_lossy(path)).into_owned();
        findings.extend(names.into_iter().map(|variable| SecretFinding { path: display_path.clone(), variable }));
    }
    findings.truncate(MAX_FINDINGS);
    findings
}

/// Opens a regular file; follows neither links nor pipes.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

fn add_secret_names(
    mut file: io::Take<File>,
    secrets: &Secrets,
    names: &mut BTreeSet<String>,
    budget: &mut u64,
) -> io::Result<()> {
    let mut window = Vec::new();
    loop {
        let read = (&mut file).take(WINDOW as u64).read_to_end(&mut window)?;
        if read == 0 {
            return Ok(());
        }
        *budget = budget.saturating_sub(read as u64);
        names.append(&mut secrets.names_in(&window));
        let overlap = window.len().min(secrets.max_spelling_len().saturating_sub(1));
        window.drain(..window.len() - overlap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-abcdefgh12345678";

    fn scan_test_files(files: &[(&str, &[u8])]) -> Vec<(String, String)> {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let paths: Vec<Vec<u8>> = files.iter().map(|(name, _)| name.as_bytes().to_vec()).collect();
        let secrets = Secrets::from_variables([("API_KEY", KEY), ("DB_PASSWORD", "correct-horse")]).unwrap();
        scan_files(folder.path(), &paths, &secrets)
            .into_iter()
            .map(|findings| (findings.path, findings.variable))
            .collect()
    }

    fn secret_pair(path: &str, variable: &str) -> (String, String) {
        (path.to_owned(), variable.to_owned())
    }

    #[test]
    fn file_and_variable_are_told_and_not_the_value() {
        let both = format!("{KEY} correct-horse");
        let findings = scan_test_files(&[("a", both.as_bytes()), ("b", b"nothing"), (KEY, b"")]);
        let name = "[redacted: API_KEY]";
        assert_eq!(
            findings,
            [secret_pair("a", "API_KEY"), secret_pair("a", "DB_PASSWORD"), secret_pair(name, "API_KEY")]
        );
    }

    #[test]
    fn secret_across_the_border_of_two_windows_is_found() {
        for before in [WINDOW - 1, WINDOW - KEY.len() + 1, WINDOW - KEY.len() / 2] {
            let text = [&vec![b'.'; before][..], KEY.as_bytes()].concat();
            assert_eq!(scan_test_files(&[("a", &text)]), [secret_pair("a", "API_KEY")], "{before}");
        }
    }

    #[test]
    fn what_is_no_file_is_passed_by() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::from_variables([("API_KEY", KEY)]).unwrap();
        std::fs::write(folder.path().join("elsewhere"), KEY).unwrap();
        std::os::unix::fs::symlink("elsewhere", folder.path().join("link")).unwrap();
        nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        let paths = ["link", "pipe", "folder", "gone"].map(|name| name.as_bytes().to_vec());
        assert!(scan_files(folder.path(), &paths, &secrets).is_empty());
    }
}
