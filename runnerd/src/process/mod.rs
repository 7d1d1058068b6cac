//! Runs agents, guards and reviewers, and makes sure that nothing of them is left: the only place that starts them.
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
//! - The shim owns the kill. It is the subreaper of everything below it, holds the deadline itself, and takes the end
//!   of the line (whose other end only the daemon holds) as the order to kill. A daemon that hangs, stops or dies
//!   neither extends a budget nor leaves a process behind. "Nothing is left" is the kernel's answer `ECHILD`.
//! - Where the machine offers it, a PID namespace and a control group are put around the program: both end everything at
//!   once, and the namespace hides shim and daemon. The shim stays outside, and its walk remains the proof.
//! - The daemon takes the output, notices silence, ends the drain after the leader's exit, and holds a deadline behind
//!   the shim's: a shim that was stopped or killed is given up, and what it left is found by its [`Mark`].
//!
//! Nothing here knows what an agent, a guard or a run is.

mod capture;
mod inhibit;
mod link;
mod offer;
pub mod orphans;
mod output;
mod probe;
mod program;
mod shim;
mod spawn;
mod spec;
mod supervise;
mod tap;
mod watchdog;

use supervisor::since_boot;
use tokio_util::sync::CancellationToken;

pub use inhibit::{Awake, Inhibitor, Sleep};
pub use offer::{Missing, Offer};
pub use orphans::{StillAlive, Swept, end_survivors, until_gone};
pub use probe::{Wanted, probe};
pub use program::find as find_program;
pub use spawn::{Launcher, SpawnError};
pub use spec::{Ended, Follower, Limits, LogFile, Piece, Report, Spec, Stream};
pub use supervisor::table::{read as read_of_process, read_text as read_text_of_process};
pub use supervisor::{Descriptors, Farewell, Mark, shield_daemon};

use self::{
    capture::Capture,
    output::{Listeners, Output},
    supervise::Supervision,
    watchdog::Watchdog,
};

/// Runs one program to its end, and everything that it started to theirs.
///
/// Cancelling `stop` ends it in order: SIGTERM, the grace, SIGKILL. Dropping the future kills at once. An error means
/// that nothing ran; all that happens to a program that ran is in the [`Report`].
pub async fn run(launcher: &Launcher, mut spec: Spec<'_>, stop: &CancellationToken) -> Result<Report, SpawnError> {
    let began = since_boot();
    if stop.is_cancelled() {
        return Ok(Report::of_nothing(Ended::Stopped));
    }
    spec.limits = spec.limits.with_bounded_grace();
    let capture = Capture::create(&spec.log).await?;
    let (link, pipes) = spawn::start(launcher, &spec, began).await?;
    let supervision = Supervision {
        link,
        output: Output::new(pipes, capture, Listeners { follower: spec.follower, watcher: spec.output }),
        watchdog: Watchdog::new(began, spec.limits),
        containment: launcher.offer().level_for(spec.no_new_privs),
        mark: spec.mark,
        began,
    };
    Ok(supervision.until_over(stop).await)
}
