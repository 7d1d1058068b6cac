//! The setup of a workspace: the program of `[workspace] setup`, once, before the baseline and any session.
//!
//! What was not recorded as done is done again. What it leaves that no commit has is remembered, so that it is not taken for
//! somebody's work later. A run in place has no setup.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use protocol::path::WirePath;
use protocol::view::StopReason;
use protocol::words::PhaseName;
use runner_core::iteration::{GuardEnd, GuardHow};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::baseline;
use crate::config::GuardConfig;
use crate::guard;
use crate::process::Mark;
use crate::repo::layout::Layout;
use crate::store::WorkspaceNote;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::iteration::relay;
use crate::worker::iteration::session::Surroundings;
use crate::worker::load::{Loaded, load};
use crate::worker::unready::Unready;

/// The name of its log among the records of the run.
const LOG: &str = "setup.log";
/// Lines of its output that are told where it fails, and bytes of each.
const TOLD: usize = 5;
const MAX_LINE: usize = 200;

/// How a setup came out.
pub(super) enum Setup {
    /// The workspace is ready.
    Done,
    /// It was stopped before its end.
    Stopped,
    /// It failed, and so does the run.
    Failed(StopReason),
}

/// Returns the state at HEAD if the workspace is still to be made ready.
pub(super) fn needed(context: &RunContext) -> Result<Option<Loaded>, Unready> {
    if context.store.workspace().read().map_err(Obstacle::from)?.is_some() {
        return Ok(None);
    }
    let repository = context.repository()?;
    let Some(head) = repository.head()?.commit() else { return Ok(None) };
    // What is wrong with the state is said when the iteration is opened.
    Ok(load(&repository, head).ok())
}

/// Makes the workspace ready, and writes down that it is.
pub(super) async fn setup(context: &RunContext, loaded: &Loaded, stop: &CancellationToken) -> Result<Setup, Unready> {
    if !loaded.config.workspace.setup.is_empty() {
        let mark = format!("{}-{}", context.store.id(), context.run);
        let end = run(Surroundings { context, loaded, mark: &mark, stop }).await?;
        match &end.how {
            GuardHow::Exited(0) => {}
            GuardHow::Cut => return Ok(Setup::Stopped),
            how => return Ok(Setup::Failed(failed(context, loaded, how, &end.output))),
        }
    }
    block_in_place(|| {
        baseline::look_after(context, loaded)?;
        let names = context.repository()?.uncommitted_files()?;
        let paths = names.iter().map(|name| PathBuf::from(OsStr::from_bytes(name)));
        let made = paths.filter(|path| !path.starts_with(Layout::FOLDER)).map(WirePath).collect();
        context.store.workspace().write(&WorkspaceNote { made }).map_err(Obstacle::from)?;
        Ok(Setup::Done)
    })
}

async fn run(around: Surroundings<'_>) -> Result<GuardEnd, Unready> {
    let Surroundings { context, loaded, mark, stop } = around;
    block_in_place(|| baseline::clear(around))?;
    let config = GuardConfig { command: loaded.config.workspace.setup.clone(), ..loaded.config.guard.clone() };
    let program = guard::Guard {
        called: "the setup of the workspace",
        config: &config,
        folder: context.layout.root(),
        env: context.guard_env(&loaded.config.env.guard),
        log: context.layout.run_records(&context.run).join(LOG),
        budget: loaded.config.workspace.setup_timeout,
        live: Some(relay::begin(context, None, PhaseName::Open)),
        secrets: context.secrets.clone(),
        mark: Mark::new(format!("{mark}-{}", PhaseName::Open)),
        lock: context.store.live().join("shim.lock"),
    };
    Ok(guard::run(program, &context.launcher, stop).await.map_err(Obstacle::from)?)
}

fn failed(context: &RunContext, loaded: &Loaded, how: &GuardHow, output: &str) -> StopReason {
    let seconds = loaded.config.workspace.setup_timeout.as_secs();
    let how = match how {
        GuardHow::Missing { what } => what.clone(),
        GuardHow::Exited(code) => format!("the setup of the workspace ended with exit code {code}"),
        GuardHow::Signaled(signal) => format!("the setup of the workspace was ended by signal {signal}"),
        GuardHow::TimedOut => format!("the setup of the workspace did not end within {seconds} seconds"),
        GuardHow::Cut | GuardHow::Lost => "the supervisor of the workspace's setup was killed".to_owned(),
    };
    let mut message = format!("{how}, before any session");
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(TOLD)..];
    if !last.is_empty() {
        let clipped = last.iter().map(|line| runner_core::feedback::clip(line, MAX_LINE)).collect::<Vec<_>>();
        let log = context.layout.run_records(&context.run).join(LOG);
        let _ = write!(message, "; it said: {}; all of it is in {}", clipped.join(" / "), log.display());
    }
    StopReason::new(message, "put right what it says, or: runnerctl config edit; then: runnerctl resume")
}
