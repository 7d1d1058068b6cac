//! The commands, one file each: options, requests, and output.

pub(crate) mod add;
pub(crate) mod answer;
pub(crate) mod approve;
pub(crate) mod bisect;
pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod deliver;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod fork;
pub(crate) mod gc;
pub(crate) mod guard;
pub(crate) mod help;
pub(crate) mod init;
pub(crate) mod land;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod note;
pub(crate) mod path;
pub(crate) mod pause;
pub(crate) mod questions;
pub(crate) mod queue;
pub(crate) mod reject;
pub(crate) mod repos;
pub(crate) mod resume;
pub(crate) mod retry;
pub(crate) mod select;
pub(crate) mod self_update;
pub(crate) mod service;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stdio;
pub(crate) mod step;
pub(crate) mod submit;
pub(crate) mod tree;
pub(crate) mod ui;
pub(crate) mod uninstall;
pub(crate) mod validate;
pub(crate) mod verify;
pub(crate) mod version;
pub(crate) mod watch;

use protocol::error::ExitStatus;
use protocol::host::Host;
use protocol::words::RunStatus;

use crate::args::{Cli, Command};
use crate::commands::stdio::StdioArgs;
use crate::failure::{Failure, typed_words};
use crate::invocation::Invocation;
use crate::ui::Ui;

/// Runs the command and returns its exit code.
pub(crate) async fn run(ui: &Ui, cli: Cli, hosts: Vec<Host>) -> Result<ExitStatus, Failure> {
    let invocation = Invocation::new(ui, cli.global, hosts)?;
    let result = dispatch(&invocation, cli.command).await.map_err(|failure| failure.with_choice(&typed_words()));
    match &invocation.host {
        Some(host) => result.map_err(|failure| failure.with_host(host)),
        None => result,
    }
}

async fn dispatch(invocation: &Invocation<'_>, command: Command) -> Result<ExitStatus, Failure> {
    match command {
        Command::Init(args) => init::run(invocation, args).await,
        Command::Start(args) => start::run(invocation, args).await,
        Command::Fork(args) => fork::run(invocation, args).await,
        Command::Land(args) => land::run(invocation, args).await,
        Command::Step(args) => step::run(invocation, args).await,
        Command::Path(args) => path::run(invocation, args).await,
        Command::Pause(args) => pause::run(invocation, args).await,
        Command::Resume(args) => resume::run(invocation, args).await,
        Command::Cancel(args) => cancel::run(invocation, args).await,
        Command::Status(args) => status::run(invocation, args).await,
        Command::Watch(args) => watch::run(invocation, args).await,
        Command::Mcp(args) => mcp::run(invocation, args).await,
        Command::Ui(args) => ui::run(invocation, args).await,
        Command::Tree(args) => tree::run(invocation, args).await,
        Command::Select(args) => select::run(invocation, args).await,
        Command::Explain(args) => explain::run(invocation, args).await,
        Command::Validate(args) => validate::run(invocation, args).await,
        Command::Verify(args) => verify::run(invocation, args).await,
        Command::Log(args) => log::run(invocation, args).await,
        Command::Bisect(args) => bisect::run(invocation, args).await,
        Command::Export(args) => export::run(invocation, args).await,
        Command::Gc(args) => gc::run(invocation, args).await,
        Command::Note(args) => note::run(invocation, args).await,
        Command::Questions(args) => questions::run(invocation, args).await,
        Command::Answer(args) => answer::run(invocation, args).await,
        Command::Approve(args) => approve::run(invocation, args).await,
        Command::Reject(args) => reject::run(invocation, args).await,
        Command::Retry(args) => retry::run(invocation, args).await,
        Command::Add(args) => add::run(invocation, args).await,
        Command::Edit(args) => edit::run(invocation, args).await,
        Command::Guard(args) => guard::run(invocation, args).await,
        Command::Deliver(args) => Box::pin(deliver::run(invocation, args)).await,
        Command::Submit(args) => Box::pin(submit::run(invocation, args)).await,
        Command::Queue(args) => queue::run(invocation, args).await,
        Command::Repos(args) => repos::run(invocation, args).await,
        Command::Config(args) => config::run(invocation, args).await,
        Command::Daemon(args) => daemon::run(invocation, args).await,
        Command::Stdio(StdioArgs {}) => stdio::run(invocation).await,
        Command::Service(args) => service::run(invocation, args).await,
        Command::Demo(args) => demo::run(invocation, args).await,
        Command::Doctor(args) => Box::pin(doctor::run(invocation, args)).await,
        Command::Version(args) => version::run(invocation, args).await,
        Command::SelfUpdate(args) => self_update::run(invocation, args).await,
        Command::Uninstall(args) => uninstall::run(invocation, &args).await,
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(invocation, &args),
        Command::Help(args) => help::run(invocation.ui, &args),
        Command::DemoAgent => demo::agent::run(),
    }
}

/// Returns the exit code for a run's state; `None` while the run continues on its own.
pub(crate) fn run_exit_status(state: RunStatus) -> Option<ExitStatus> {
    match state {
        RunStatus::Queued | RunStatus::Running | RunStatus::Waiting => None,
        RunStatus::Paused | RunStatus::Held => Some(ExitStatus::Refused),
        RunStatus::Completed => Some(ExitStatus::Success),
        RunStatus::Stuck => Some(ExitStatus::Stuck),
        RunStatus::Limit | RunStatus::TimedOut => Some(ExitStatus::Limit),
        RunStatus::Failed | RunStatus::Cancelled => Some(ExitStatus::RunEnded),
    }
}
