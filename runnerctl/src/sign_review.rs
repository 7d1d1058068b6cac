//! A person's review decision on a finished task, signed with their SSH key if the run requires that.
//!
//! `ssh-keygen` signs, as it does for git: a key may be in a file, in an agent or on a security key.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use jsonrpsee::core::client::Error;
use protocol::api::ReviewApiClient as _;
use protocol::client::{CallError, Connection};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::reply::ReviewReply;
use protocol::request::AtRun;
use protocol::review::{NAMESPACE, PendingReview, ReviewStatement};
use protocol::words::ReviewVerdict;
use tempfile::NamedTempFile;

use crate::failure::{Failure, is_refusal};
use crate::program::{self, CommandOutput, LaunchError, ProgramCall};
use crate::text::sanitize::safe;
use crate::ui::Ui;

/// Git settings that may name the key, in order; the second applies if git signs with SSH. Only the user's own settings
/// are read: a session may have written those of the repository.
const OWN: &str = "runner.reviewKey";
const GITS: &str = "user.signingKey";

/// The decision to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReviewDecision<'a> {
    /// The run it is about.
    pub(crate) at: &'a AtRun,
    /// Approval or rejection.
    pub(crate) verdict: ReviewVerdict,
    /// The reason.
    pub(crate) reason: &'a str,
}

/// Sends a decision, and sends it again with a signature if the run requires one.
pub(crate) async fn say(
    (ui, connection): (&Ui, &Connection),
    saying: ReviewDecision<'_>,
    request: impl AsyncFn(Option<String>) -> Result<ReviewReply, Error>,
) -> Result<ReviewReply, Failure> {
    let error = match request(None).await {
        Ok(reply) => return Ok(reply),
        Err(error) => CallError::from(error),
    };
    if !is_refusal(&error, ErrorKind::Unsigned) {
        return Err(error.into());
    }
    let on = connection.client().pending_review(saying.at.clone()).await?;
    let key = key().await?;
    ui.note(&told(&on, saying.verdict, &key));
    let word = ReviewStatement { on: &on, verdict: saying.verdict, reason: saying.reason };
    Ok(request(Some(signed(&key, &word).await?)).await?)
}

fn told(on: &PendingReview, verdict: ReviewVerdict, key: &str) -> String {
    let PendingReview { run, node, iteration, commit } = on;
    let commit = commit.get(..12).unwrap_or(commit);
    let (run, node, key) = (safe(run), safe(node), safe(key));
    format!(
        "signing \"{verdict}\" of node {node}, iteration {iteration:04} of run {run}, commit {commit}, with {key}\n"
    )
}

/// Returns the key named in the user's git settings: a file, or a public key.
async fn key() -> Result<String, Failure> {
    if let Some(key) = setting(OWN).await? {
        return Ok(key);
    }
    let is_ssh = setting("gpg.format").await?.is_some_and(|format| format == "ssh");
    if let Some(key) = setting(GITS).await?.filter(|_| is_ssh) {
        return Ok(key);
    }
    let message = "a review of this run has to be signed, and no SSH key is named that signs yours";
    Err(unsigned(message).hint("git config --global runner.reviewKey ~/.ssh/id_ed25519"))
}

async fn setting(name: &str) -> Result<Option<String>, Failure> {
    let argv = ["git", "config", "--global", "--includes", "--type=path", "--get", name].map(OsString::from).to_vec();
    let said = run(argv, Vec::new()).await?;
    let value = said.answer("git", &format!("reading {name} of git's own configuration"))?;
    Ok(value.map(|value| value.trim_end_matches('\n').to_owned()).filter(|value| !value.is_empty()))
}

/// Signs a decision, and returns the signature without its armor lines.
async fn signed(key: &str, word: &ReviewStatement<'_>) -> Result<String, Failure> {
    let public = public(key)?;
    let mut argv = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE].map(OsString::from).to_vec();
    match &public {
        Some(file) => argv.extend([OsString::from("-U"), "-f".into(), file.path().into()]),
        None => argv.extend(["-f".into(), OsString::from(key)]),
    }
    let said = run(argv, word.to_string().into_bytes()).await?;
    if !said.ended.success() {
        return Err(unsigned("the review could not be signed").caused_by(said.complaint.trim()));
    }
    let lines = said.out.lines().filter(|line| !line.starts_with("-----"));
    Ok(lines.map(str::trim).collect())
}

/// Writes a key given by its public half to a file: the agent has the private half.
fn public(key: &str) -> Result<Option<NamedTempFile>, Failure> {
    let Some(text) = key.strip_prefix("key::").or_else(|| Some(key).filter(|key| key.starts_with("ssh-"))) else {
        return Ok(None);
    };
    let failed = |error| Failure::io("laying out the public key that signs", &error);
    let mut file = tempfile::Builder::new().suffix(".pub").tempfile().map_err(failed)?;
    writeln!(file, "{text}").map_err(failed)?;
    Ok(Some(file))
}

async fn run(argv: Vec<OsString>, input: Vec<u8>) -> Result<CommandOutput, Failure> {
    let name = argv.first().map(|name| name.display().to_string()).unwrap_or_default();
    let call = ProgramCall { argv, folder: Path::new("."), env: &[], input, tail: None };
    program::run(call).await.map_err(|error| match error {
        LaunchError::Missing => {
            unsigned(&format!("a review of this run has to be signed, and {name} is not installed"))
        }
        LaunchError::Failed(failure) => failure,
    })
}

fn unsigned(message: &str) -> Failure {
    Failure::new(ExitStatus::Refused, ErrorKind::Unsigned.as_str(), message)
}
