//! The daemon dies while an isolated run comes to be: between reservation, workspace and record. Row 107.

use std::fs;

use runner_testkit::{Afflicted, Fault, Home};

use crate::disk::course::sampled;

/// What is made durable, what gets a name, and what is made.
const CALLS: &str = "fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat";

/// Lets the daemon die at a call, and returns whether the run is there after the next start. It is whole then, or nothing
/// of it is left.
fn begin_and_die(at: u32) -> bool {
    let home = Home::new();
    let repo = home.scripted("plain");
    let dying = Afflicted::start(&home, &Fault::death(CALLS, at));
    home.ctl_in(&repo, &["start", "--isolated", "--yes", "--queue-only", "--id", "tidy", "-m", "Do it."]);
    dying.stop();
    let _daemon = home.daemon();
    let known = home.ctl_in(&repo, &["queue", "--json"]);
    let is_there = known.code == 0 && known.json()["runs"].as_array().is_some_and(|runs| !runs.is_empty());
    let reserved = repo.git(&["for-each-ref", "--format=%(refname)", "refs/runner"]);
    assert_eq!(reserved, if is_there { "refs/runner/reserved/tidy" } else { "" }, "died at {at}");
    let sources = fs::read_dir(home.state().join("workspaces")).into_iter().flatten().flatten();
    let workspaces = sources.flat_map(|source| fs::read_dir(source.path()).into_iter().flatten().flatten());
    assert_eq!(workspaces.count(), usize::from(is_there), "died at {at}");
    if is_there {
        home.ctl_in(&repo, &["cancel"]).exits(0);
    }
    repo.assert_sound();
    is_there
}

#[test]
fn row_107_daemon_that_dies_while_an_isolated_run_comes_to_be_leaves_it_whole_or_nothing() {
    let every = sampled(9, 60);
    let there = (every.from..every.from + every.limit).step_by(every.step).filter(|at| begin_and_die(*at)).count();
    assert!(there > 0, "no course gets as far as the record of the run");
}
