//! Agents: from an executor's configuration to a session, and from its end to facts (SPEC 6).
//!
//! One file per kind. What the facts amount to is judged in `runner_core::verdict`.

mod answer_file;
mod command;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::answer::{AgentError, AgentErrorClass, SessionUsage};
use runner_core::redact::Secrets;
use runner_core::verdict::{FaultKind, SessionEnd, SessionHow};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::answer_file::AnswerFile;
use crate::config::{Executor, ExecutorKind};
use crate::process::{self, Ended, Launcher, Limits, LogFile, Mark, Piece, Report, SpawnError, Spec};

/// Variable that names the file for the answer.
pub const OUTPUT_VARIABLE: &str = "RUNNER_OUTPUT";
/// Time between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(10);
/// Most bytes of an error that an agent states of itself.
const MAX_STATED: usize = 2_000;

/// What a session is given.
#[derive(Debug)]
pub struct Session<'a> {
    /// Which agent, and how.
    pub executor: &'a Executor,
    /// The prompt.
    pub prompt: String,
    /// The work tree.
    pub folder: &'a Path,
    /// Its environment, but for [`OUTPUT_VARIABLE`].
    pub env: Vec<(OsString, OsString)>,
    /// Where the answer goes; absent when the session begins.
    pub output: PathBuf,
    /// Where what it prints goes.
    pub log: PathBuf,
    /// Who sees what it prints as it comes.
    pub live: Option<mpsc::Sender<Piece>>,
    /// What must not get from it into a record or a commit.
    pub secrets: Secrets,
    /// What is left of the budget.
    pub budget: Duration,
    /// By which its processes are found.
    pub mark: Mark,
    /// Lock of its shim.
    pub lock: PathBuf,
}

/// Says why an executor cannot be used, before anything is begun.
pub fn unsupported(kind: ExecutorKind) -> Option<String> {
    match kind {
        ExecutorKind::Command => None,
        ExecutorKind::Codex | ExecutorKind::Claude | ExecutorKind::Opencode | ExecutorKind::Gemini => Some(format!(
            "executor kind `{kind}` is not built into this version; kind `command` runs any agent program"
        )),
    }
}

/// Runs a session to its end.
///
/// A program that is missing is an end like others; the error is what may work later.
pub async fn run(
    session: Session<'_>,
    launcher: &Launcher,
    stop: &CancellationToken,
) -> Result<SessionEnd, SpawnError> {
    let output = session.output.clone();
    let (mark, lock) = (session.mark.clone(), session.lock.clone());
    let (blank, secrets) = (blank(session.executor, launcher), session.secrets.clone());
    match process::run(launcher, spec(session), stop).await {
        Ok(mut report) => {
            process::until_gone(&mark, &lock, report.still_alive.take()).await;
            Ok(tokio::task::block_in_place(|| {
                let answer = answer_file::read(&output, &secrets);
                redact_answer(&output, &secrets);
                ended(&report, &answer, blank)
            }))
        }
        Err(error) if error.is_misconfigured() => {
            let what = format!("the agent cannot be started: {error}");
            Ok(SessionEnd { how: SessionHow::Misconfigured { what }, ..blank })
        }
        Err(error) => Err(error),
    }
}

/// Takes the secrets out of an answer's file, where it is one.
pub fn redact_answer(file: &Path, secrets: &Secrets) {
    if let Err(error) = answer_file::redact(file, secrets) {
        tracing::warn!(path = %file.display(), %error, "the answer may hold a secret");
    }
}

/// Returns the end of a session that a dead daemon has left; it was held as this daemon would have held it.
pub fn interrupted(executor: &Executor, survivors: u32, launcher: &Launcher) -> SessionEnd {
    SessionEnd { survivors, ..blank(executor, launcher) }
}

fn blank(executor: &Executor, launcher: &Launcher) -> SessionEnd {
    SessionEnd {
        how: SessionHow::Cut,
        exit: None,
        agent: command::stamp(executor),
        output_digest: None,
        usage: SessionUsage::default(),
        elapsed_ms: 0,
        captured_bytes: 0,
        dropped_bytes: 0,
        log_fault: None,
        survivors: 0,
        containment: launcher.offer().level_for(keeps_privileges_out(executor)),
    }
}

/// What a wrapper starts may need its set-user-id programs, as rootless `podman` does.
fn keeps_privileges_out(executor: &Executor) -> bool {
    executor.wrapper.is_empty()
}

fn spec(session: Session<'_>) -> Spec {
    let executor = session.executor;
    let mut env = session.env;
    env.push((OUTPUT_VARIABLE.into(), session.output.clone().into()));
    let answer = session.output;
    Spec {
        argv: command::argv(executor),
        cwd: session.folder.to_owned(),
        env,
        stdin: session.prompt.into_bytes(),
        mark: session.mark,
        lock: session.lock,
        limits: Limits { budget: session.budget, idle: Some(executor.idle_timeout), grace: GRACE },
        log: LogFile { path: session.log, cap_bytes: executor.output_limit_bytes, secrets: session.secrets },
        answered: Some(Box::new(move || {
            matches!(answer_file::read(&answer, &Secrets::default()), AnswerFile::Given { .. })
        })),
        output: session.live,
        no_new_privs: keeps_privileges_out(executor),
    }
}

fn ended(report: &Report, answer: &AnswerFile, blank: SessionEnd) -> SessionEnd {
    SessionEnd {
        how: how(report.ended, answer),
        exit: match report.ended {
            Ended::Exited(code) => Some(code),
            Ended::Signaled(signal) => Some(-signal),
            Ended::TimedOut | Ended::Silent | Ended::Stopped | Ended::Lingered | Ended::SupervisorLost => None,
        },
        output_digest: answer.digest(),
        usage: answer.usage(),
        elapsed_ms: u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX),
        captured_bytes: report.captured_bytes,
        dropped_bytes: report.dropped_bytes,
        log_fault: report.log_fault.as_ref().map(ToString::to_string),
        survivors: report.survivors,
        containment: report.containment,
        ..blank
    }
}

/// Classes the end of a session; what the agent states of itself comes before its exit code, and a budget that ran
/// out before all but an unavailable service.
fn how(ended: Ended, answer: &AnswerFile) -> SessionHow {
    let fault = |kind: FaultKind, what: String| SessionHow::Faulty { kind, what };
    match (ended, answer) {
        (Ended::Stopped, _) => SessionHow::Cut,
        (Ended::TimedOut, answer) if !answer.is_unavailable() => SessionHow::TimedOut,
        (_, AnswerFile::Given { content: Err(stated), .. }) => stated_error(stated),
        (Ended::TimedOut, _) => SessionHow::TimedOut,
        (Ended::Silent, _) => fault(FaultKind::Silence, "it printed nothing for idle_timeout_secs".to_owned()),
        (Ended::SupervisorLost, _) => fault(FaultKind::Crash, "its supervisor was killed".to_owned()),
        (Ended::Signaled(signal), _) => fault(FaultKind::Crash, format!("it died of signal {signal}")),
        (Ended::Exited(code), _) if code != 0 => fault(FaultKind::Exit, format!("it exited with code {code}")),
        (Ended::Exited(_) | Ended::Lingered, AnswerFile::Absent) => {
            fault(FaultKind::NoAnswer, "it wrote nothing to $RUNNER_OUTPUT".to_owned())
        }
        (Ended::Exited(_) | Ended::Lingered, AnswerFile::Invalid { what, .. }) => {
            fault(FaultKind::InvalidAnswer, what.clone())
        }
        (Ended::Exited(_) | Ended::Lingered, AnswerFile::Given { content: Ok(answer), .. }) => {
            SessionHow::Answered(answer.clone())
        }
    }
}

fn stated_error(stated: &AgentError) -> SessionHow {
    let message = runner_core::feedback::clip(&stated.message, MAX_STATED);
    match stated.class {
        AgentErrorClass::Unavailable => SessionHow::Unavailable { why: message, until: stated.until },
        AgentErrorClass::Misconfigured => SessionHow::Misconfigured { what: message },
        AgentErrorClass::ContextExceeded => SessionHow::ContextExceeded { what: message },
    }
}
