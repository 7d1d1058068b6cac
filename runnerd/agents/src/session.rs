//! A session: starts its program, follows its output and ends it. The kind of answer is a type parameter: an answer, or
//! a review.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::event::Activity;
use runner_config::Executor;
use runner_core::files::answer::{AnswerForm, SessionAnswer};
use runner_core::text::redact::Secrets;
use runner_core::verdict::{SessionEnd, SessionEndKind};
use runner_process::{Launcher, LogFile, Mark, OutputPiece, ProgramSpec, SpawnError, TimeLimits};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::agent_check::run_preflight;
use super::backend::{AgentBackend, LaunchPlan, LaunchRequest};
use super::backends;
use super::end::{self, SessionLeftovers};
use super::inherited;
use super::output_router::OutputRouter;
use super::session_home::{self, SessionDirs, TEMP_VARIABLE};
use super::version_probe::{self, VersionProbe, VersionResult};
use super::{OUTPUT_VARIABLE, blank_end, denies_privileges, zone};

/// Time between the request to exit and the kill.
const GRACE: Duration = Duration::from_secs(10);

/// What a session is given.
#[derive(Debug)]
pub struct AgentSession<'a> {
    /// Which agent, and its settings.
    pub executor: &'a Executor,
    /// The prompt, sent on standard input.
    pub prompt: String,
    /// Root of the work tree.
    pub folder: &'a Path,
    /// Git's folder of the repository.
    pub git_folder: PathBuf,
    /// Its environment, except for [`OUTPUT_VARIABLE`].
    pub env: Vec<(OsString, OsString)>,
    /// The record of the iteration, where the session's own files go.
    pub record: PathBuf,
    /// Where its folders are created, unless a wrapper has its own file system.
    pub dirs: SessionDirs,
    /// The file for the answer; it does not exist when the session begins.
    pub output: PathBuf,
    /// The file for its output.
    pub log: PathBuf,
    /// Receives its output as it is printed.
    pub output_sender: Option<mpsc::Sender<OutputPiece>>,
    /// Receives its steps; a step is dropped if the channel is full.
    pub activity_sender: Option<mpsc::Sender<Activity>>,
    /// Secrets that must not get from it into a record or a commit.
    pub secrets: Secrets,
    /// The remaining budget.
    pub budget: Duration,
    /// The mark by which its processes are found.
    pub mark: Mark,
    /// Lock of its shim.
    pub lock: PathBuf,
}

/// Runs a session to its end.
///
/// A missing program is an end like others; an error is something that may work later.
pub async fn run_session<A: SessionAnswer + Clone>(
    session: AgentSession<'_>,
    launcher: &Launcher,
    stop: &CancellationToken,
) -> Result<SessionEnd<A>, SpawnError> {
    let blank: SessionEnd<A> = blank_end(session.executor, launcher);
    let misconfigured = |what| SessionEnd { how: SessionEndKind::Misconfigured { what }, ..blank.clone() };
    let backend = backends::backend_for(session.executor.kind);
    let fix = backend.info().map(|about| format!("; {}", about.install)).unwrap_or_default();
    match Box::pin(run_backend(backend, session, &blank, SessionControls { launcher, stop })).await {
        Err(error) if error.is_misconfigured() => {
            Ok(misconfigured(format!("the agent cannot be started: {error}{fix}")))
        }
        end => end,
    }
}

/// What starts programs, and what stops them early.
#[derive(Debug, Clone, Copy)]
struct SessionControls<'a> {
    launcher: &'a Launcher,
    stop: &'a CancellationToken,
}

async fn run_backend<A: SessionAnswer + Clone>(
    backend: &dyn AgentBackend,
    mut session: AgentSession<'_>,
    blank: &SessionEnd<A>,
    controls: SessionControls<'_>,
) -> Result<SessionEnd<A>, SpawnError> {
    let dirs = session.dirs.clone();
    let has_own = session.executor.wrapper.is_empty();
    let created = has_own.then(|| block_in_place(|| dirs.create())).transpose()?;
    if has_own {
        session.env.retain(|(name, _)| name != TEMP_VARIABLE);
        session.env.push((TEMP_VARIABLE.into(), dirs.temp().into()));
    }
    let (version, probe_time) = match check_fitness(backend, &session, controls).await? {
        (Ok(version), asked) => (version, asked),
        (Err(how), _) => return Ok(SessionEnd { how, ..blank.clone() }),
    };
    session.budget = session.budget.saturating_sub(probe_time);
    let inherited: String = session.executor.inherit.items().iter().flat_map(|item| [" +", item]).collect();
    let blank = SessionEnd { agent: format!("{}{version}{inherited}", blank.agent), ..blank.clone() };
    let servers = match block_in_place(|| inherited::find_servers(backend, session.executor, &session.env)) {
        Ok(servers) => servers,
        Err(error) => {
            return Ok(SessionEnd { how: SessionEndKind::Misconfigured { what: error.to_string() }, ..blank });
        }
    };
    let order = session.launch_request(A::FORM, created.as_ref().map(|_| dirs.home()), &servers);
    let launch = backend.plan_launch(&order);
    let reader = backend.output_reader(&order);
    block_in_place(|| session_home::write_files(&launch))?;
    let file = (!launch.is_structured).then(|| (session.output.clone(), A::FORM));
    let mut router = OutputRouter::new(reader, file, session.activity_sender.clone());
    let leftovers = SessionLeftovers {
        output: session.output.clone(),
        secrets: session.secrets.clone(),
        kind: session.executor.kind,
        zone: zone::session_zone(&session.env),
    };
    let mark = session.mark.clone();
    let lock = session.lock.clone();
    let mut report =
        runner_process::run_program(controls.launcher, program_spec(session, launch, &mut router), controls.stop)
            .await?;
    runner_process::wait_until_gone(&mark, &lock, report.still_alive.take()).await;
    report.elapsed += probe_time;
    Ok(block_in_place(|| {
        let end = end::session_end(&report, router.finish(), &leftovers, blank);
        drop(created);
        end
    }))
}

/// Returns the version of the agent's program, preceded by a space, or how the session ends without it; and the time
/// that it took to find out.
async fn check_fitness<A>(
    backend: &dyn AgentBackend,
    session: &AgentSession<'_>,
    controls: SessionControls<'_>,
) -> Result<(Result<String, SessionEndKind<A>>, Duration), SpawnError> {
    if let Err(error) = run_preflight(backend, session.executor, &session.env) {
        return Ok((Err(SessionEndKind::Misconfigured { what: error.to_string() }), Duration::ZERO));
    }
    let Some(about) = backend.info() else { return Ok((Ok(String::new()), Duration::ZERO)) };
    let probe = VersionProbe {
        info: about,
        executor: session.executor,
        folder: session.folder,
        env: &session.env,
        mark: session.mark.clone(),
        lock: session.lock.clone(),
        log: session.record.join("version.log"),
        limit: session.budget,
    };
    let (probed, probe_time) = version_probe::probe_version(&probe, controls.launcher, controls.stop).await?;
    let fitness = match probed {
        VersionResult::Supported(version) => Ok(format!(" {version}")),
        VersionResult::Unavailable(error) => Err(SessionEndKind::Misconfigured { what: error.to_string() }),
        VersionResult::Faulty(kind, what) => Err(SessionEndKind::Faulty { kind, what }),
        VersionResult::Stopped => Err(SessionEndKind::Cut),
    };
    Ok((fitness, probe_time))
}

impl AgentSession<'_> {
    fn launch_request<'a>(
        &'a self,
        form: AnswerForm,
        home: Option<&'a Path>,
        servers: &'a Map<String, Value>,
    ) -> LaunchRequest<'a> {
        LaunchRequest {
            executor: self.executor,
            form,
            folder: self.folder,
            git_folder: &self.git_folder,
            env: &self.env,
            record: &self.record,
            home,
            servers,
            output: &self.output,
        }
    }
}

fn program_spec<'a>(session: AgentSession<'_>, launch: LaunchPlan, router: &'a mut OutputRouter) -> ProgramSpec<'a> {
    let executor = session.executor;
    let mut env = session.env;
    env.push((OUTPUT_VARIABLE.into(), session.output.into()));
    env.extend(launch.env);
    let wrapper = executor.wrapper.iter().map(OsString::from);
    ProgramSpec {
        argv: wrapper.chain(launch.argv).collect(),
        cwd: session.folder.to_owned(),
        env,
        stdin: session.prompt.into_bytes(),
        mark: session.mark,
        lock: session.lock,
        limits: TimeLimits { budget: session.budget, idle: Some(executor.idle_timeout), grace: GRACE },
        log: LogFile { path: session.log, cap_bytes: executor.output_limit_bytes, secrets: session.secrets },
        follower: Some(Box::new(router)),
        separates_output: launch.is_structured,
        stop_policy: launch.stop_policy,
        output: session.output_sender,
        no_new_privs: denies_privileges(executor),
    }
}
