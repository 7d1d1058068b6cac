//! Runs agents, guards and reviewers, and ensures that nothing of them is left behind: the only module that starts
//! them.
//!
//! Every program runs under a *shim*: a small single-threaded process, whose code is the crate `supervisor`.
//!
//! ```text
//! daemon ── line: commands ─────────▶ shim ── TERM, KILL, wait ──▶ leader and all that descends from it
//!    ▲ ▲                             │                              │
//!    │ └───── words: how it goes ────┘                              │
//!    └─────── stdout and stderr: one pipe, or one each ─────────────┘
//! ```
//!
//! - The shim owns the kill. It is the subreaper of everything below it, enforces the deadline itself, and takes the
//!   end of the line (whose other end only the daemon holds) as the order to kill. A daemon that hangs, stops or dies
//!   neither extends a budget nor leaves a process behind. "Nothing is left" is the kernel's answer `ECHILD`.
//! - If the machine offers it, a PID namespace and a control group are put around the program: both kill everything at
//!   once, and the namespace hides shim and daemon. The shim stays outside, and its walk remains the proof.
//! - The daemon reads the output, notices silence, ends the drain after the leader's exit, and enforces a deadline
//!   later than the shim's: a shim that was stopped or killed is given up, and what it left is found by its [`Mark`].
//!
//! Nothing here knows what an agent, a guard or a run is.

mod capabilities;
mod capture;
mod inhibit;
pub mod orphans;
mod output;
mod pipe_reader;
mod probe;
mod program;
mod shim;
mod shim_link;
mod spawn;
mod spec;
mod supervise;
mod watchdog;

use supervisor::since_boot;
use tokio_util::sync::CancellationToken;

pub use capabilities::{HostCapabilities, UnusedLevel};
pub use inhibit::{Inhibitor, SleepInhibition, SleepState};
pub use orphans::{StillAlive, SweepReport, end_survivors, wait_until_gone};
pub use probe::{ProbeOptions, probe_host};
pub use program::find as find_program;
pub use spawn::{Launcher, SpawnError};
pub use spec::{
    LogFile, OutputFollower, OutputPiece, OutputStream, ProgramEnd, ProgramReport, ProgramSpec, TimeLimits,
};
pub use supervisor::table::{read as read_of_process, read_text as read_text_of_process};
pub use supervisor::{DescriptorLimit, Mark, StopPolicy, shield_daemon};

use self::{
    capture::LogCapture,
    output::{OutputListeners, ProgramOutput},
    supervise::ProgramSupervision,
    watchdog::ProgramWatchdog,
};

/// Runs one program, and everything that it starts, to the end.
///
/// Cancelling `stop` ends it in order: SIGTERM, the grace, SIGKILL. Dropping the future kills at once. An error means
/// that nothing ran; whatever happens to a program that ran is in the [`ProgramReport`].
pub async fn run_program(
    launcher: &Launcher,
    mut spec: ProgramSpec<'_>,
    stop: &CancellationToken,
) -> Result<ProgramReport, SpawnError> {
    let start = since_boot();
    if stop.is_cancelled() {
        return Ok(ProgramReport::not_started(ProgramEnd::Stopped));
    }
    spec.limits = spec.limits.with_bounded_grace();
    let capture = LogCapture::create_capture(&spec.log, &spec.cwd).await?;
    let (link, pipes) = spawn::start_program(launcher, &spec, start).await?;
    let supervision = ProgramSupervision {
        link,
        output: ProgramOutput::new(pipes, capture, OutputListeners { follower: spec.follower, watcher: spec.output }),
        watchdog: ProgramWatchdog::new(start, spec.limits),
        containment: launcher.capabilities().level_for(spec.no_new_privs),
        mark: spec.mark,
        began: start,
    };
    Ok(supervision.wait_for_end(stop).await)
}
