//! The runner's own key for signing commits, in the private part of the state folder: out of reach of the programs the
//! daemon starts, as far as that folder is.
//!
//! Created by `ssh-keygen`, which git signs with; never parsed here.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runner_os::dir_permissions;

const SIGNING_DIR: &str = "signing";
const KEY_FILE: &str = "key";

/// The parts of the key that others may know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// File of the private half, as a value for `user.signingKey`.
    pub file: PathBuf,
    /// Its line for git's allowed-signers file.
    pub signer: String,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    /// The disk refused.
    #[error("{doing} {path}", path = .path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program that creates keys is missing or fails.
    #[error("ssh-keygen cannot make a key: {why}")]
    Program {
        /// Its error message.
        why: String,
    },
    /// The public half is missing, or is not a key.
    #[error("{path} is missing, or is no public key", path = .path.display())]
    InvalidPublicKey {
        /// File of the public half.
        path: PathBuf,
    },
}

impl SigningKey {
    /// Finds the key in the private part of a state folder.
    pub fn find(private: &Path) -> Result<Option<Self>, SigningKeyError> {
        let file = private.join(SIGNING_DIR).join(KEY_FILE);
        let public = file.with_extension("pub");
        let text = match fs::read_to_string(&public) {
            Ok(text) => text,
            // A private half on its own is not overwritten.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !private.join(SIGNING_DIR).exists() => {
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SigningKeyError::InvalidPublicKey { path: public });
            }
            Err(source) => return Err(SigningKeyError::Io { doing: "reading", path: public, source }),
        };
        let mut words = text.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(kind), Some(key), Some(name)) => {
                Ok(Some(Self { signer: format!("{name} namespaces=\"git\" {kind} {key}"), file }))
            }
            _ => Err(SigningKeyError::InvalidPublicKey { path: public }),
        }
    }

    /// Creates the key if there is none, completely or not at all; an existing one stays. Returns whether it was
    /// created.
    pub fn find_or_create(private: &Path) -> Result<(Self, bool), SigningKeyError> {
        if let Some(found) = Self::find(private)? {
            return Ok((found, false));
        }
        let folder = private.join(SIGNING_DIR);
        let unfinished = folder.with_extension("new");
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| SigningKeyError::Io { doing, path, source }
        };
        dir_permissions::remove_all(&unfinished).map_err(failed("removing", &unfinished))?;
        DirBuilder::new().mode(0o700).create(&unfinished).map_err(failed("making", &unfinished))?;
        generate_key(&unfinished.join(KEY_FILE))?;
        fs::rename(&unfinished, &folder).map_err(failed("naming", &folder))?;
        let created =
            Self::find(private)?.ok_or_else(|| SigningKeyError::InvalidPublicKey { path: folder.join("key.pub") })?;
        Ok((created, true))
    }
}

/// Makes the program create both halves, which it writes itself.
fn generate_key(file: &Path) -> Result<(), SigningKeyError> {
    let failed = |why: String| SigningKeyError::Program { why };
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", &signer_name(), "-f"]).arg(file).stdin(Stdio::null());
    let output = keygen.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(failed(stderr.lines().next_back().map_or_else(|| output.status.to_string(), str::to_owned)))
}

/// Returns the key's name: the program and the machine, in characters allowed in a signer's name.
fn signer_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.chars().filter(|c| c.is_ascii_alphanumeric() || ".-".contains(*c)).collect();
    format!("runnerd@{}", if host.is_empty() { "localhost" } else { &host })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_its_owner_alone() {
        let private = tempfile::tempdir().expect("a folder");
        assert_eq!(SigningKey::find(private.path()).expect("it can be looked for"), None);
        // Left by a daemon that died meanwhile.
        fs::create_dir(private.path().join("signing.new")).expect("a folder");
        let (key, is_new) = SigningKey::find_or_create(private.path()).expect("a key can be made");
        assert!(is_new && key.signer.contains('@') && key.signer.contains(" namespaces=\"git\" ssh-ed25519 AAAA"));
        for path in [key.file.parent().expect("a folder"), &key.file] {
            let found = fs::metadata(path).expect("it is there");
            assert_eq!(found.permissions().mode() & 0o077, 0, "{}", path.display());
        }
        assert_eq!(SigningKey::find_or_create(private.path()).expect("it is there"), (key.clone(), false));
        fs::write(key.file.with_extension("pub"), "nonsense\n").expect("it can be written");
        assert!(matches!(SigningKey::find_or_create(private.path()), Err(SigningKeyError::InvalidPublicKey { .. })));
        fs::remove_file(key.file.with_extension("pub")).expect("it is there");
        assert!(matches!(SigningKey::find_or_create(private.path()), Err(SigningKeyError::InvalidPublicKey { .. })));
        assert!(key.file.is_file(), "the private half is kept");
    }
}
