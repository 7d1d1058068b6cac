//! Entry point of the daemon's binary, which is also the program of its shims and probes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use protocol::paths::Paths;
use runner_config::DaemonConfig;
use runnerd::daemon::{self, DaemonError, DaemonParts};
use runnerd::daemon_config::load_daemon_config;
use runnerd::job;
use runnerd::logging::{self, LogDestination, Logging};
use runnerd::memory;
use runnerd::rpc::DaemonLocks;
use runnerd::service::ActivatedSocket;
use runnerd::startup::Readiness;
use runnerd::state_dir::{self, ResealReport};
use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Longest wait for the first blocking thread.
const FIRST_THREAD_LIMIT: Duration = Duration::from_secs(5);
/// How often a blocking thread is given work, so that one always exists.
const KEEP_THREAD_INTERVAL: Duration = Duration::from_mins(2);
/// How long an idle blocking thread is kept: those of a busy hour exit, except for at most two.
const THREAD_KEEP_ALIVE: Duration = Duration::from_mins(5);

/// Drives coding agents through a task tree in git repositories. `runnerctl` controls it.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
struct DaemonArgs {
    /// Socket to listen on.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Log to standard error, even if that is not a terminal.
    #[arg(long)]
    log_stderr: bool,
    /// Accept and seal all files of the state directory as they are, list them, and exit. For a lost key, or for files
    /// that you changed yourself: read them first.
    #[arg(long, conflicts_with = "launched")]
    reseal: bool,
    /// Read the settings as at a start, report why they are refused, and exit.
    #[arg(long, conflicts_with_all = ["launched", "reseal"])]
    check: bool,
    /// Started by a client: leave its session and report on standard output.
    #[arg(long, hide = true)]
    launched: bool,
    #[command(subcommand)]
    command: Option<DaemonCommand>,
}

#[derive(Debug, Subcommand)]
enum DaemonCommand {
    Drive(Box<job::DriveOptions>),
}

fn main() -> ExitCode {
    if let Some(code) = supervisor::main() {
        return code;
    }
    if let Err(error) = runner_process::shield_daemon() {
        print_error(&format!("error: shielding the daemon from its children: {error}"));
        return ExitCode::FAILURE;
    }
    let mut args = DaemonArgs::parse();
    if let Some(DaemonCommand::Drive(options)) = args.command.take() {
        return drive(&args, *options);
    }
    let result = match &args {
        DaemonArgs { reseal: true, .. } => reseal(&args),
        DaemonArgs { check: true, .. } => load_settings(&args).map(drop),
        _ => run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "not started");
            print_error(&format!("error: {error:#}"));
            error.downcast_ref::<DaemonError>().map_or(ExitCode::FAILURE, |error| error.exit_code().into())
        }
    }
}

/// Drives one run as a job, and exits with it.
fn drive(args: &DaemonArgs, options: job::DriveOptions) -> ExitCode {
    let run_job = || -> anyhow::Result<u8> {
        let (paths, config) = load_settings(args)?;
        memory::limit_arenas();
        let runtime = build_runtime()?;
        let code = runtime.block_on(job::drive(options, &paths, &config));
        runtime.shutdown_timeout(Duration::from_secs(1));
        Ok(code?)
    };
    match run_job() {
        Ok(code) => code.into(),
        Err(error) => {
            let job = error.downcast_ref::<job::JobError>();
            print_error(&format!("error: {error:#}"));
            if let Some(hint) = job.and_then(job::JobError::hint) {
                print_error(&format!("\nhint: {hint}"));
            }
            job.map_or(ExitCode::FAILURE, |error| error.exit_code().into())
        }
    }
}

/// Reseals the state folder while no daemon is using it.
fn reseal(args: &DaemonArgs) -> anyhow::Result<()> {
    let (paths, _) = load_settings(args)?;
    let _locks = DaemonLocks::acquire(&paths).map_err(DaemonError::from)?;
    let ResealReport { new_key, sealed: taken, skipped: left } =
        state_dir::reseal(&paths.state).map_err(DaemonError::from)?;
    for path in &taken {
        print_line(&format!("taken as it is: {}", path.display()));
    }
    for path in &left {
        print_line(&format!("left, not understood: {}", path.display()));
    }
    let key = if new_key { "a new key was made" } else { "the key is the one that was there" };
    print_line(&format!("{} resealed, {} skipped; {key}", taken.len(), left.len()));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the answer of a command that ends")]
fn print_line(line: &str) {
    println!("{line}");
}

fn run(args: &DaemonArgs) -> anyhow::Result<()> {
    let readiness = if args.launched {
        Readiness::take_stdout().context("leaving the session of the client")?
    } else {
        Readiness::for_service_manager()
    };
    match prepare(args) {
        Ok((parts, logging, runtime)) => {
            let result = runtime.block_on(daemon::run(parts, &logging, readiness));
            runtime.shutdown_timeout(Duration::from_secs(1));
            Ok(result?)
        }
        Err(error) => {
            readiness.report_failure(error.as_ref());
            Err(error)
        }
    }
}

/// Prepares the parts of the daemon; the threads come last.
fn prepare(args: &DaemonArgs) -> anyhow::Result<(DaemonParts, Logging, Runtime)> {
    let activated = if args.launched { None } else { ActivatedSocket::from_env()? };
    let (configured, config) = load_settings(args)?;
    let paths = match &activated {
        Some(passed) => configured.clone().with_socket(&passed.path, "the socket of the service manager")?,
        None => configured.clone(),
    };
    let destination = if args.log_stderr { LogDestination::Stderr } else { LogDestination::Auto };
    memory::limit_arenas();
    let runtime = build_runtime()?;
    let logging = logging::init(&paths.log_dir(), destination, Some(config.log_level.as_str()))?;
    if configured.socket_named && configured.socket != paths.socket {
        tracing::warn!(named = %configured.socket.display(), "not listening: the service manager passed another socket");
    }
    Ok((DaemonParts { paths, config, passed: activated }, logging, runtime))
}

/// Starts the runtime with its threads, and one blocking thread.
///
/// If no more threads can be started, blocking work waits for an existing one, so there must always be one.
fn build_runtime() -> anyhow::Result<Runtime> {
    // The library panics if it cannot start its own.
    drop(thread::Builder::new().spawn(|| ()).context("starting a thread")?);
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(8 * 1024 * 1024)
        .thread_keep_alive(THREAD_KEEP_ALIVE)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let first = async { timeout(FIRST_THREAD_LIMIT, spawn_blocking(|| ())).await };
    runtime.block_on(first).context("no thread can be started")?.context("starting a thread")?;
    runtime.spawn(keep_blocking_thread());
    Ok(runtime)
}

/// Gives the blocking threads work before the last of them exits.
async fn keep_blocking_thread() {
    let mut interval = tokio::time::interval(KEEP_THREAD_INTERVAL);
    loop {
        interval.tick().await;
        // Finishes at once, unless the runtime is shutting down.
        let _ = spawn_blocking(|| ()).await;
    }
}

fn load_settings(args: &DaemonArgs) -> anyhow::Result<(Paths, DaemonConfig)> {
    let paths = Paths::find(args.socket.as_deref())?;
    let config = load_daemon_config(&paths.config)?;
    let paths = match &config.socket {
        Some(socket) if !paths.socket_named => paths.with_socket(socket, "socket in config.toml")?,
        _ => paths,
    };
    // Before the log, which is in that folder. A folder in use must not be moved: taking the lock will report it.
    match state_dir::check_not_development(&paths.state) {
        Err(error) if !DaemonLocks::are_held(&paths) => Err(DaemonError::from(error))?,
        _ => Ok((paths, config)),
    }
}

/// Prints why the daemon did not start; there may be no log yet.
#[expect(clippy::print_stderr, reason = "the only message before there is a log")]
fn print_error(message: &str) {
    eprintln!("{message}");
}
