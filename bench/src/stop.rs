//! Time from a user's command to the end of every process: `cancel` and `pause --now` of a session that obeys SIGTERM.

use std::time::Duration;

use protocol::words::RunStatus;
use runner_testkit::{Home, PATIENCE};

use crate::observe::{HOLD_LOCK, time_to_death};
use crate::report::{Report, print_progress};
use crate::samples::Samples;

const STOP_BUDGET: Duration = Duration::from_millis(200);
/// The commands, and the state that each leads to.
const STOP_COMMANDS: [(&[&str], RunStatus); 2] =
    [(&["cancel"], RunStatus::Cancelled), (&["pause", "--now"], RunStatus::Paused)];

/// How often it is measured.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StopArgs {
    /// Times that each is measured.
    #[arg(long, default_value_t = 20)]
    rounds: u32,
}

impl Default for StopArgs {
    fn default() -> Self {
        Self { rounds: 20 }
    }
}

/// Measures each command, the startup of `runnerctl` included.
pub(crate) fn measure(args: &StopArgs, report: &mut Report) {
    print_progress("stop: cancel and pause --now");
    let mut group = report.group("from a word to all processes of the iteration gone");
    for (command, state) in STOP_COMMANDS {
        let home = Home::new();
        let repo = home.scripted_repo("one");
        repo.script().always(&format!("{HOLD_LOCK}gate session"));
        let gate = repo.script().gate("session");
        let lock = repo.script().folder().join("files/alive");
        repo.script().file("alive", "");
        let _daemon = home.daemon();
        let client = home.client();
        let mut times = Samples::default();
        for round in 0..args.rounds {
            home.ctl_in(&repo, &["start", "--yes", "--id", &format!("run{round}"), "-m", "Do it"]).exits(0);
            gate.wait_reached();
            let death_time = times.time(|| {
                home.ctl_in(&repo, command).exits(0);
                time_to_death(&lock, PATIENCE).expect("the lock can be looked at")
            });
            assert!(death_time.is_some(), "something lives on");
            client.wait_for(repo.path(), state);
            if state == RunStatus::Paused {
                home.ctl_in(&repo, &["cancel"]).exits(0);
                client.wait_for(repo.path(), RunStatus::Cancelled);
            }
        }
        group.add_bounded(command.join(" "), &times, 50, STOP_BUDGET);
    }
}
