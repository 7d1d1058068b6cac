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
use crate::text::sanitize::sanitize;
use crate::ui::Ui;

/// Git settings that may name the key, in order; the second applies if git signs with SSH. Only the user's own settings
/// are read: a session may have written those of the repository.
const REVIEW_KEY_SETTING: &str = "runner.reviewKey";
const SIGNING_KEY_SETTING: &str = "user.signingKey";

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
pub(crate) async fn send_decision(
    ui: &Ui,
    connection: &Connection,
    decision: ReviewDecision<'_>,
    request: impl AsyncFn(Option<String>) -> Result<ReviewReply, Error>,
) -> Result<ReviewReply, Failure> {
    let error = match request(None).await {
        Ok(reply) => return Ok(reply),
        Err(error) => CallError::from(error),
    };
    if !is_refusal(&error, ErrorKind::Unsigned) {
        return Err(error.into());
    }
    let review = connection.client().pending_review(decision.at.clone()).await?;
    let key = find_signing_key().await?;
    ui.print_note(&describe_signing(&review, decision.verdict, &key));
    let statement = ReviewStatement { review: &review, verdict: decision.verdict, reason: decision.reason };
    Ok(request(Some(sign_statement(&key, &statement).await?)).await?)
}

fn describe_signing(review: &PendingReview, verdict: ReviewVerdict, key: &str) -> String {
    let PendingReview { run, node, iteration, commit } = review;
    let commit = commit.get(..12).unwrap_or(commit);
    let (run, node, key) = (sanitize(run), sanitize(node), sanitize(key));
    format!(
        "signing \"{verdict}\" of node {node}, iteration {iteration:04} of run {run}, commit {commit}, with {key}\n"
    )
}

/// Returns the key named in the user's git settings: a file, or a public key.
async fn find_signing_key() -> Result<String, Failure> {
    if let Some(key) = git_setting(REVIEW_KEY_SETTING).await? {
        return Ok(key);
    }
    let is_ssh = git_setting("gpg.format").await?.is_some_and(|format| format == "ssh");
    if let Some(key) = git_setting(SIGNING_KEY_SETTING).await?.filter(|_| is_ssh) {
        return Ok(key);
    }
    let message = "a review of this run has to be signed, and no SSH key is named that signs yours";
    Err(unsigned_failure(message).hint("git config --global runner.reviewKey ~/.ssh/id_ed25519"))
}

async fn git_setting(name: &str) -> Result<Option<String>, Failure> {
    let argv = ["git", "config", "--global", "--includes", "--type=path", "--get", name].map(OsString::from).to_vec();
    let output = run_tool(argv, Vec::new()).await?;
    let value = output.optional_output("git", &format!("reading {name} of git's own configuration"))?;
    Ok(value.map(|value| value.trim_end_matches('\n').to_owned()).filter(|value| !value.is_empty()))
}

/// Signs a decision, and returns the signature without its armor lines.
async fn sign_statement(key: &str, statement: &ReviewStatement<'_>) -> Result<String, Failure> {
    let public_key = write_public_key(key)?;
    let mut argv = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE].map(OsString::from).to_vec();
    match &public_key {
        Some(file) => argv.extend([OsString::from("-U"), "-f".into(), file.path().into()]),
        None => argv.extend(["-f".into(), OsString::from(key)]),
    }
    let output = run_tool(argv, statement.to_string().into_bytes()).await?;
    if !output.status.success() {
        return Err(unsigned_failure("the review could not be signed").caused_by(output.stderr.trim()));
    }
    let lines = output.stdout.lines().filter(|line| !line.starts_with("-----"));
    Ok(lines.map(str::trim).collect())
}

/// Writes a key given by its public half to a file: the agent has the private half.
fn write_public_key(key: &str) -> Result<Option<NamedTempFile>, Failure> {
    let Some(text) = key.strip_prefix("key::").or_else(|| Some(key).filter(|key| key.starts_with("ssh-"))) else {
        return Ok(None);
    };
    let failed = |error| Failure::io("laying out the public key that signs", &error);
    let mut file = tempfile::Builder::new().suffix(".pub").tempfile().map_err(failed)?;
    writeln!(file, "{text}").map_err(failed)?;
    Ok(Some(file))
}

async fn run_tool(argv: Vec<OsString>, input: Vec<u8>) -> Result<CommandOutput, Failure> {
    let name = argv.first().map(|name| name.display().to_string()).unwrap_or_default();
    let call = ProgramCall { argv, folder: Path::new("."), env: &[], input, tail: None };
    program::run_program(call).await.map_err(|error| match error {
        LaunchError::Missing => {
            unsigned_failure(&format!("a review of this run has to be signed, and {name} is not installed"))
        }
        LaunchError::Failed(failure) => failure,
    })
}

fn unsigned_failure(message: &str) -> Failure {
    Failure::new(ExitStatus::Refused, ErrorKind::Unsigned.as_str(), message)
}
