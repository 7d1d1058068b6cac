//! Tests in which Slurm takes minutes: its time limits have a resolution of one minute and are checked every half
//! minute.

use super::GOAL;
use super::cluster::{ClusterSite, SlurmCluster, USUAL};
use crate::kit::WRITES;

/// Ends the first driver with `engine` and `interrupt`, and asserts that the next one continues.
fn assert_continues_after(site: ClusterSite, engine: &[&str], interrupt: impl FnOnce(&SlurmCluster)) {
    let cluster = SlurmCluster::start(site);
    let gate = cluster.remote.repo.script().gate("work");
    cluster.remote.repo.script().step(1, "echo half > half.txt; gate work").always(WRITES);
    let job = cluster.submit(GOAL, engine);
    gate.wait_reached();
    interrupt(&cluster);
    cluster.wait_for_job(&job, "COMPLETED", 1);
    assert_eq!(cluster.remote.git(&["show", "runner/x:half.txt"]), "half");
    assert_eq!(cluster.remote.git(&["show", "runner/x:work.txt"]), "work");
    cluster.assert_clean();
}

#[test]
fn a_time_limit_warns_first() {
    assert_continues_after(USUAL, &["--time=1", "--signal=B:TERM@45"], |_| ());
}

#[test]
fn a_preempted_job_continues_when_there_is_room() {
    assert_continues_after(USUAL, &["--partition=low", "--nodes=2", "--exclusive"], |cluster| {
        let output = cluster.run_program("sbatch", &["--partition=high", "--nodes=2", "--exclusive", "--wrap=sleep 5"]);
        assert!(output.contains("Submitted"), "{output}");
    });
}

#[test]
fn without_control_groups_it_is_the_same() {
    let site = ClusterSite { track: "proctrack/linuxproc", ..USUAL };
    assert_continues_after(site, &[], |cluster| {
        cluster.run_program("scancel", &["--signal=TERM", "--batch", "--name=remote-x"]);
    });
}
