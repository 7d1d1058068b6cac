//! Detached SSH signatures, checked by `ssh-keygen` against the signed text and a given set of keys.
//!
//! The meaning of a signature is decided elsewhere. Nothing that a repository configures has any influence.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use protocol::review::NAMESPACE;
use runner_core::audit::SignatureStatus;
use runner_core::message::ReviewSignature;
use runner_os::temp_file;
use tempfile::NamedTempFile;

/// Exit code of `ssh-keygen` if a signature is invalid, or its key may not sign.
const REFUSED_EXIT: i32 = 255;

/// A signature, and the text that it is supposed to sign.
#[derive(Debug, Clone, Copy)]
pub struct SignedText<'a> {
    /// The signature.
    pub signature: &'a ReviewSignature,
    /// What was signed.
    pub text: &'a str,
}

/// Who may sign.
#[derive(Debug, Clone, Copy)]
pub struct AllowedSigner<'a> {
    /// A file of allowed signers.
    pub signers: &'a Path,
    /// A file of revoked keys.
    pub revoked: Option<&'a Path>,
    /// When it was signed, as far as that is known.
    pub time: Timestamp,
}

impl SignedText<'_> {
    /// Returns the fingerprint of the signing key, no matter who owns it; `None` if the signature does not match the
    /// text. The signature is written to a temporary file in `folder`.
    pub fn signing_key(&self, folder: &Path) -> io::Result<Option<String>> {
        let file = self.write_signature(folder)?;
        let output = self.run_keygen("check-novalidate", &file, &[])?;
        Ok(output.map(|text| parse_fingerprint(&text)))
    }

    /// Returns whether the signature is by a key that may sign.
    pub fn verify(&self, allowed: &AllowedSigner<'_>, folder: &Path) -> io::Result<SignatureStatus> {
        let file = self.write_signature(folder)?;
        let time = format!("-Overify-time={}", allowed.time.strftime("%Y%m%d%H%M%SZ"));
        let signers = [OsStr::new("-f"), allowed.signers.as_os_str(), OsStr::new(&time)];
        let principals = self.run_keygen("find-principals", &file, &signers)?.unwrap_or_default();
        for principal in principals.lines() {
            let mut args = signers.to_vec();
            args.extend([OsStr::new("-I"), OsStr::new(principal)]);
            args.extend(allowed.revoked.into_iter().flat_map(|file| [OsStr::new("-r"), file.as_os_str()]));
            if let Some(output) = self.run_keygen("verify", &file, &args)? {
                return Ok(SignatureStatus::Valid { principal: principal.to_owned(), key: parse_fingerprint(&output) });
            }
        }
        Ok(self.signing_key(folder)?.map_or(SignatureStatus::Invalid, |key| SignatureStatus::UnknownKey { key }))
    }

    fn write_signature(&self, folder: &Path) -> io::Result<NamedTempFile> {
        let mut file = temp_file::create_in(folder, Path::new("signature"))?;
        file.write_all(self.signature.armored().as_bytes())?;
        Ok(file)
    }

    /// Returns the program's output if it accepts the signature; `None` if it refuses it.
    fn run_keygen(&self, operation: &str, signature: &NamedTempFile, args: &[&OsStr]) -> io::Result<Option<String>> {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-Y", operation, "-n", NAMESPACE, "-s"]).arg(signature.path()).args(args);
        let mut keygen = keygen.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        // If it refuses the signature, it does not read the text.
        let _ = keygen.stdin.take().map(|mut stdin| stdin.write_all(self.text.as_bytes()));
        let output = keygen.wait_with_output()?;
        match output.status.code() {
            Some(0) => Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned())),
            Some(REFUSED_EXIT) => Ok(None),
            // It does not know the operation, or was killed.
            _ => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                let why = stderr.lines().next().unwrap_or("it said nothing");
                Err(io::Error::other(format!("ssh-keygen -Y {operation}: {}: {why}", output.status)))
            }
        }
    }
}

/// Parses the last word of `Good "…" signature … with ED25519 key SHA256:…`.
fn parse_fingerprint(output: &str) -> String {
    output.split_whitespace().next_back().filter(|word| word.starts_with("SHA256:")).unwrap_or_default().to_owned()
}
