//! Sets up a workspace: runs the program of `[workspace] setup` once, before the baseline and any session.
//!
//! It is repeated unless its end was recorded. Uncommitted files that it leaves, and folders that it creates, are
//! remembered, so that they are not mistaken for someone's work later. A run in place has no setup.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use protocol::path::WirePath;
use protocol::view::StopReason;
use protocol::words::PhaseName;
use runner_config::GuardConfig;
use runner_core::iteration::{GuardEnd, GuardEndKind};
use runner_process::Mark;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::baseline;
use crate::guard;
use crate::repo::layout::Layout;
use crate::store::WorkspaceRecord;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::iteration::relay;
use crate::worker::iteration::session::ProcessContext;
use crate::worker::load::CommittedState;
use crate::worker::prepare_error::PrepareError;
use crate::worker::tool_folders::FolderList;

/// The name of its log in the records of the run.
const LOG_NAME: &str = "setup.log";
/// Lines of output shown if it fails, and the size limit of each in bytes.
const SHOWN_LINES: usize = 5;
const MAX_LINE: usize = 200;

/// How a setup ended.
pub(super) enum SetupOutcome {
    /// The workspace is ready.
    Done,
    /// It was stopped before its end.
    Stopped,
    /// It failed, and so does the run.
    Failed(StopReason),
}

/// Returns the state at HEAD if the workspace still needs its setup.
pub(super) fn find_pending_setup(context: &RunContext) -> Result<Option<CommittedState>, PrepareError> {
    if context.store.workspace_file().read().map_err(EffectError::from)?.is_some() {
        return Ok(None);
    }
    Ok(baseline::load_own_state(context)?)
}

/// Runs the setup, and records that it is done.
pub(super) async fn run_setup(
    context: &RunContext,
    loaded: &CommittedState,
    stop: &CancellationToken,
) -> Result<SetupOutcome, PrepareError> {
    let before = block_in_place(|| FolderList::read(&context.repository()?).map_err(EffectError::from))?;
    if !loaded.config.workspace.setup.is_empty() {
        let mark = format!("{}-{}", context.store.id(), context.run);
        let end = run_program(ProcessContext { context, loaded, mark: &mark, stop }).await?;
        match &end.how {
            GuardEndKind::Exited(0) => {}
            GuardEndKind::Cut => return Ok(SetupOutcome::Stopped),
            how => return Ok(SetupOutcome::Failed(setup_failure(context, loaded, how, &end.output))),
        }
    }
    block_in_place(|| {
        baseline::restore_after_program(context, loaded)?;
        let repository = context.repository()?;
        let mut created = FolderList::read(&repository)?.new_since(&before);
        let names = repository.list_uncommitted_files()?;
        let paths = names.iter().map(|name| PathBuf::from(OsStr::from_bytes(name)));
        let is_made = |path: &PathBuf| created.iter().any(|folder| path.starts_with(folder.as_path()));
        let files = paths.filter(|path| !path.starts_with(Layout::FOLDER) && !is_made(path)).map(WirePath);
        let files: Vec<_> = files.collect();
        created.extend(files);
        context.store.workspace_file().write(&WorkspaceRecord { created }).map_err(EffectError::from)?;
        Ok(SetupOutcome::Done)
    })
}

async fn run_program(process: ProcessContext<'_>) -> Result<GuardEnd, PrepareError> {
    let ProcessContext { context, loaded, mark, stop } = process;
    block_in_place(|| baseline::prepare_program(process))?;
    let config = GuardConfig { command: loaded.config.workspace.setup.clone(), ..loaded.config.guard.clone() };
    let program = guard::GuardCall {
        display_name: "the setup of the workspace",
        config: &config,
        reports: None,
        folder: context.layout.root(),
        env: context.guard_env(&loaded.config.env.guard),
        log: context.layout.run_records(&context.run).join(LOG_NAME),
        budget: loaded.config.workspace.setup_timeout,
        output: Some(relay::relay_output(context, None, PhaseName::Open)),
        secrets: context.secrets.clone(),
        mark: Mark::new(format!("{mark}-{}", PhaseName::Open)),
        lock: context.store.live_dir().join("shim.lock"),
    };
    Ok(guard::run_guard(program, &context.launcher, stop).await.map_err(EffectError::from)?)
}

fn setup_failure(context: &RunContext, loaded: &CommittedState, how: &GuardEndKind, output: &str) -> StopReason {
    let seconds = loaded.config.workspace.setup_timeout.as_secs();
    let reason = match how {
        GuardEndKind::Missing { what } => what.clone(),
        GuardEndKind::Exited(code) => format!("the setup of the workspace ended with exit code {code}"),
        GuardEndKind::Signaled(signal) => format!("the setup of the workspace was ended by signal {signal}"),
        GuardEndKind::TimedOut => format!("the setup of the workspace did not end within {seconds} seconds"),
        GuardEndKind::Cut | GuardEndKind::Lost => "the supervisor of the workspace's setup was killed".to_owned(),
    };
    let mut message = format!("{reason}, before any session");
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
    if !last.is_empty() {
        let clipped = last.iter().map(|line| runner_core::feedback::clip_output(line, MAX_LINE)).collect::<Vec<_>>();
        let log = context.layout.run_records(&context.run).join(LOG_NAME);
        let _ = write!(message, "; it said: {}; all of it is in {}", clipped.join(" / "), log.display());
    }
    StopReason::new(message, "put right what it says, or: runnerctl config edit; then: runnerctl resume")
}
