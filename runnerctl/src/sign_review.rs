//! A person's review decision on a finished task, signed with their SSH key if the run requires that.
//!
//! `ssh-keygen` signs, as it does for git: a key may be in a file, in an agent or on a security key.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use jsonrpsee::core::client::Error;
use protocol::api::{IterationApiClient as _, ReviewApiClient as _};
use protocol::client::{CallError, Connection};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::reply::ReviewReply;
use protocol::request::{AtIteration, AtRun, LogParams, LogStream};
use protocol::review::{NAMESPACE, PendingReview, ReviewStatement};
use protocol::view::TextView;
use protocol::words::ReviewVerdict;
use tempfile::NamedTempFile;

use crate::confirm::ask_yes_no;
use crate::failure::{Failure, is_refusal};
use crate::program::{self, CommandOutput, LaunchError, ProgramCall};
use crate::text::sanitize::{sanitize, sanitize_lines};
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
    /// The iteration, if the person named one.
    pub(crate) iter: Option<u32>,
    /// Approval or rejection.
    pub(crate) verdict: ReviewVerdict,
    /// The reason.
    pub(crate) reason: &'a str,
}

/// Sends a decision on an iteration, and sends it again with a signature if the run requires one.
pub(crate) async fn send_decision(
    ui: &Ui,
    connection: &Connection,
    decision: ReviewDecision<'_>,
    request: impl AsyncFn(u32, Option<String>) -> Result<ReviewReply, Error>,
) -> Result<ReviewReply, Failure> {
    let iter = match decision.iter {
        Some(iter) => iter,
        None => ask_iteration(ui, connection, &decision).await?,
    };
    let error = match request(iter, None).await {
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
    Ok(request(iter, Some(sign_statement(&key, &statement).await?)).await?)
}

/// Shows the iteration that awaits a review, and asks whether to decide on it; without a terminal, it has to be named.
async fn ask_iteration(ui: &Ui, connection: &Connection, decision: &ReviewDecision<'_>) -> Result<u32, Failure> {
    let client = connection.client();
    let PendingReview { run, node, iteration, .. } = client.pending_review(decision.at.clone()).await?;
    let command = if decision.verdict == ReviewVerdict::Accept { "approve" } else { "reject" };
    let refused = |message: String| Failure::new(ExitStatus::Refused, ErrorKind::Unconfirmed.as_str(), message);
    let way = format!(
        "runnerctl log {iteration} --diff --run {run}, then: runnerctl {command} --run {run} --iter {iteration}"
    );
    let way = if decision.verdict == ReviewVerdict::Accept { way } else { way + " REASON" };
    if !ui.can_ask() {
        let message = format!("no iteration is named; {iteration} of run {run} awaits your review, of task {node}");
        return Err(refused(message).hint(way));
    }
    let at = AtIteration { path: decision.at.path.clone(), run: Some(run.clone()), iter: Some(iteration), wait: None };
    let title = client.get(at.clone()).await?.iteration.title.unwrap_or_default();
    let diff = client.log(LogParams { at, stream: LogStream::Diff, offset: 0, raw: false }).await;
    // A diff that is not there, as in a clone, is not shown.
    let size = diff.map(|diff| describe_diff(&diff)).unwrap_or_default();
    let question = format!("{node}  {title}\niteration {iteration} of run {run}{size}\n{command} it? [y/N] ");
    if ask_yes_no(&sanitize_lines(&question))? {
        Ok(iteration)
    } else {
        Err(refused("nothing was decided".into()).hint(way))
    }
}

/// Returns how much a diff changes outside of `.runner/`, as far as it was read.
fn describe_diff(diff: &TextView) -> String {
    let mut files = 0;
    let mut added = 0;
    let mut removed = 0;
    for part in diff.text.split("diff --git ").skip(1).filter(|part| !part.starts_with("a/.runner/")) {
        let count = |sign: char| {
            part.lines().skip_while(|line| !line.starts_with("@@")).filter(|line| line.starts_with(sign)).count()
        };
        (files, added, removed) = (files + 1, added + count('+'), removed + count('-'));
    }
    let more = if diff.size.is_some_and(|size| size > diff.next_offset) { " and more" } else { "" };
    let noun = if files == 1 { "file" } else { "files" };
    format!(", {files} {noun}, +{added} -{removed}{more}")
}

fn describe_signing(review: &PendingReview, verdict: ReviewVerdict, key: &str) -> String {
    let PendingReview { run, node, iteration, commit } = review;
    let commit = commit.get(..12).unwrap_or(commit);
    let run = sanitize(run);
    let node = sanitize(node);
    let key = sanitize(key);
    format!(
        "signing \"{verdict}\" of task {node}, iteration {iteration:04} of run {run}, commit {commit}, with {key}\n"
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
    let mut file = tempfile::Builder::new().suffix(".pub").tempfile().map_err(|error| Failure::temp_file(&error))?;
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
