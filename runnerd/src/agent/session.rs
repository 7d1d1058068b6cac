//! A session: its program is started, heard and ended. What it is asked for is a type: an answer, or a review.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::event::Activity;
use runner_core::answer::{Answer, Form};
use runner_core::redact::Secrets;
use runner_core::verdict::{SessionEnd, SessionHow};
use tokio::sync::mpsc;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::backend::{Backend, Launch, Order};
use super::end::{self, Left};
use super::fitness::preflight;
use super::kinds;
use super::output_router::OutputRouter;
use super::probe::{self, Probe, Probed};
use super::{OUTPUT_VARIABLE, blank, keeps_privileges_out, zone};
use crate::config::Executor;
use crate::process::{self, Launcher, Limits, LogFile, Mark, Piece, SpawnError, Spec};

/// Time between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(10);

/// What a session is given.
#[derive(Debug)]
pub struct Session<'a> {
    /// Which agent, and how.
    pub executor: &'a Executor,
    /// The prompt.
    pub prompt: String,
    /// The work tree.
    pub folder: &'a Path,
    /// Git's folder of the repository.
    pub git_folder: PathBuf,
    /// Its environment, but for [`OUTPUT_VARIABLE`].
    pub env: Vec<(OsString, OsString)>,
    /// The record of the iteration, where the session's own files go.
    pub record: PathBuf,
    /// Where the answer goes; absent when the session begins.
    pub output: PathBuf,
    /// Where what it prints goes.
    pub log: PathBuf,
    /// Who sees what it prints as it comes.
    pub live: Option<mpsc::Sender<Piece>>,
    /// Who sees what it does; a step that finds the channel full is left out.
    pub activity: Option<mpsc::Sender<Activity>>,
    /// What must not get from it into a record or a commit.
    pub secrets: Secrets,
    /// What is left of the budget.
    pub budget: Duration,
    /// By which its processes are found.
    pub mark: Mark,
    /// Lock of its shim.
    pub lock: PathBuf,
}

/// Runs a session to its end.
///
/// A program that is missing is an end like others; the error is what may work later.
pub async fn run<A: Answer + Clone>(
    session: Session<'_>,
    launcher: &Launcher,
    stop: &CancellationToken,
) -> Result<SessionEnd<A>, SpawnError> {
    let blank: SessionEnd<A> = blank(session.executor, launcher);
    let misconfigured = |what| SessionEnd { how: SessionHow::Misconfigured { what }, ..blank.clone() };
    let backend = kinds::of(session.executor.kind);
    let fix = backend.about().map(|about| format!("; {}", about.install)).unwrap_or_default();
    match Box::pin(run_with(backend, session, &blank, Around { launcher, stop })).await {
        Err(error) if error.is_misconfigured() => {
            Ok(misconfigured(format!("the agent cannot be started: {error}{fix}")))
        }
        end => end,
    }
}

/// What starts programs, and what ends them before their time.
#[derive(Debug, Clone, Copy)]
struct Around<'a> {
    launcher: &'a Launcher,
    stop: &'a CancellationToken,
}

async fn run_with<A: Answer + Clone>(
    backend: &dyn Backend,
    mut session: Session<'_>,
    blank: &SessionEnd<A>,
    around: Around<'_>,
) -> Result<SessionEnd<A>, SpawnError> {
    let (version, asked) = match fitness(backend, &session, around).await? {
        (Ok(version), asked) => (version, asked),
        (Err(how), _) => return Ok(SessionEnd { how, ..blank.clone() }),
    };
    session.budget = session.budget.saturating_sub(asked);
    let blank = SessionEnd { agent: format!("{}{version}", blank.agent), ..blank.clone() };
    let order = session.order(A::FORM);
    let (launch, reader) = (backend.launch(&order), backend.reader(&order));
    block_in_place(|| write_files(&launch))?;
    let file = (!launch.is_structured).then(|| (session.output.clone(), A::FORM));
    let mut router = OutputRouter::new(reader, file, session.activity.clone());
    let left = Left {
        output: session.output.clone(),
        secrets: session.secrets.clone(),
        kind: session.executor.kind,
        zone: zone::of(&session.env),
    };
    let (mark, lock) = (session.mark.clone(), session.lock.clone());
    let mut report = process::run(around.launcher, spec(session, launch, &mut router), around.stop).await?;
    process::until_gone(&mark, &lock, report.still_alive.take()).await;
    report.elapsed += asked;
    Ok(block_in_place(|| end::of(&report, router.finish(), &left, blank)))
}

/// Returns the version of the agent's program, a space before it, or how the session ends without it; and the time that
/// it took to find out.
async fn fitness<A>(
    backend: &dyn Backend,
    session: &Session<'_>,
    around: Around<'_>,
) -> Result<(Result<String, SessionHow<A>>, Duration), SpawnError> {
    if let Err(unfit) = preflight(backend, session.executor, &session.env) {
        return Ok((Err(SessionHow::Misconfigured { what: unfit.to_string() }), Duration::ZERO));
    }
    let Some(about) = backend.about() else { return Ok((Ok(String::new()), Duration::ZERO)) };
    let probe = Probe {
        about,
        executor: session.executor,
        folder: session.folder,
        env: &session.env,
        mark: session.mark.clone(),
        lock: session.lock.clone(),
        log: session.record.join("version.log"),
        limit: session.budget,
    };
    let (probed, asked) = probe::ask(&probe, around.launcher, around.stop).await?;
    let fitness = match probed {
        Probed::Fit(version) => Ok(format!(" {version}")),
        Probed::Unfit(unfit) => Err(SessionHow::Misconfigured { what: unfit.to_string() }),
        Probed::Faulty(kind, what) => Err(SessionHow::Faulty { kind, what }),
        Probed::Stopped => Err(SessionHow::Cut),
    };
    Ok((fitness, asked))
}

impl Session<'_> {
    fn order(&self, form: Form) -> Order<'_> {
        Order {
            executor: self.executor,
            form,
            folder: self.folder,
            git_folder: &self.git_folder,
            env: &self.env,
            record: &self.record,
            output: &self.output,
        }
    }
}

fn write_files(launch: &Launch) -> Result<(), SpawnError> {
    for (path, bytes) in &launch.files {
        std::fs::write(path, bytes).map_err(|source| SpawnError::Log { path: path.clone(), source })?;
    }
    Ok(())
}

fn spec<'a>(session: Session<'_>, launch: Launch, router: &'a mut OutputRouter) -> Spec<'a> {
    let executor = session.executor;
    let mut env = session.env;
    env.push((OUTPUT_VARIABLE.into(), session.output.into()));
    env.extend(launch.env);
    let wrapper = executor.wrapper.iter().map(OsString::from);
    Spec {
        argv: wrapper.chain(launch.argv).collect(),
        cwd: session.folder.to_owned(),
        env,
        stdin: session.prompt.into_bytes(),
        mark: session.mark,
        lock: session.lock,
        limits: Limits { budget: session.budget, idle: Some(executor.idle_timeout), grace: GRACE },
        log: LogFile { path: session.log, cap_bytes: executor.output_limit_bytes, secrets: session.secrets },
        follower: Some(Box::new(router)),
        splits_output: launch.is_structured,
        farewell: launch.farewell,
        output: session.live,
        no_new_privs: keeps_privileges_out(executor),
    }
}
