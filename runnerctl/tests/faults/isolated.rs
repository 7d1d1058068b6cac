//! The daemon dies while an isolated run is created, between reservation, workspace and record, or while a finished one
//! is removed. Rows 107 and 119.

use std::fs;

use runner_testkit::{FaultyDaemon, Home, SystemFault};

use crate::disk::course::sampled;

/// Calls that flush, rename or create.
const CALLS: &str = "fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat";

fn workspaces(home: &Home) -> usize {
    let sources = fs::read_dir(home.state().join("workspaces")).into_iter().flatten().flatten();
    sources.flat_map(|source| fs::read_dir(source.path()).into_iter().flatten().flatten()).count()
}

/// Number of repositories for which the daemon has state.
fn registered_count(home: &Home) -> usize {
    fs::read_dir(home.private().join("repos")).into_iter().flatten().flatten().count()
}

/// Calls that remove, move or flush.
const REMOVING: &str = "unlink,unlinkat,rmdir,rename,renameat,renameat2,fsync,fdatasync";

/// Kills the daemon at a call, and returns whether the run exists after the next start. Either it is complete, or
/// nothing of it is left.
fn begin_and_die(at: u32) -> bool {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    let dying = FaultyDaemon::start(&home, &SystemFault::kill_at(CALLS, at));
    home.ctl_in(&repo, &["start", "--isolated", "--yes", "--queue-only", "--id", "tidy", "-m", "Do it."]);
    dying.stop();
    let _daemon = home.daemon();
    let known = home.ctl_in(&repo, &["queue", "--json"]);
    let exists = known.code == 0 && known.json()["runs"].as_array().is_some_and(|runs| !runs.is_empty());
    let reserved = repo.git(&["for-each-ref", "--format=%(refname)", "refs/runner"]);
    assert_eq!(reserved, if exists { "refs/runner/reserved/tidy" } else { "" }, "died at {at}");
    assert_eq!(workspaces(&home), usize::from(exists), "died at {at}");
    assert!(registered_count(&home) <= 1 + usize::from(exists), "died at {at}");
    if exists {
        home.ctl_in(&repo, &["cancel"]).exits(0);
    }
    repo.assert_sound();
    exists
}

#[test]
fn row_107_daemon_that_dies_during_the_creation_of_an_isolated_run_leaves_it_whole_or_nothing() {
    let every = sampled(9, 60);
    let deaths = (every.from..every.from + every.limit).step_by(every.step).filter(|at| begin_and_die(*at)).count();
    assert!(deaths > 0, "no course gets as far as the record of the run");
}

/// Kills the daemon at a call while it removes a finished run, and returns whether that call was reached.
fn remove_and_die(at: u32) -> bool {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    repo.script().always("echo work > work.txt; answer done 'Done.'");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--isolated", "--yes", "--id", "tidy", "-m", "Do it.", "--wait"]).exits(0);
    drop(daemon);
    let dying = FaultyDaemon::start(&home, &SystemFault::kill_at(REMOVING, at));
    home.ctl_in(&repo, &["gc"]);
    let has_died = dying.stop() > 0;
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["gc"]).exits(0);
    let left = repo.git(&["for-each-ref", "--format=%(refname)", "refs/runner/reserved", "refs/runner/at"]);
    assert_eq!(left, "", "died at {at}: the id is not given back");
    assert_eq!((workspaces(&home), registered_count(&home)), (0, 1), "died at {at}");
    repo.git(&["branch", "-D", "runner/tidy"]);
    home.ctl_in(&repo, &["start", "--isolated", "--yes", "--id", "tidy", "-m", "Do it.", "--wait"]).exits(0);
    // If the source has taken over the record of the first run, the second one has the next id.
    let branch = repo.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/runner"]);
    assert!(["runner/tidy", "runner/tidy-2"].contains(&branch.trim()), "died at {at}: {branch}");
    has_died
}

#[test]
fn row_119_daemon_that_dies_while_a_run_that_is_over_is_removed_leaves_no_reservation() {
    let every = sampled(11, 90);
    let dead = (every.from..every.from + every.limit).step_by(every.step).filter(|at| remove_and_die(*at)).count();
    assert!(dead > 0, "no removal was cut off");
}
