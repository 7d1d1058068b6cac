//! Runs as jobs of a real Slurm, from the command that a person types to the end, including everything that can happen
//! to jobs.
//!
//! After each: no process, an empty scratch folder, and a linear branch that `verify` accepts.

mod cluster;
mod nightly;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use self::cluster::{ClusterSite, SlurmCluster, USUAL, wait_until, without_addresses};
use crate::kit::{GATED, WRITES};

const GOAL: &[&str] = &["-m", "Do it."];

#[test]
fn a_run_that_is_submitted_is_completed_and_a_second_job_of_it_finds_nothing_to_do() {
    let cluster = SlurmCluster::start(USUAL);
    let gate = cluster.remote.repo.script().gate("work");
    cluster.remote.repo.script().step(1, GATED).always(WRITES);
    let job = cluster.submit(GOAL, &[]);
    gate.wait_reached();
    // Only its name tells Slurm that it is the same run.
    let again = cluster.submit(&[], &[]);
    assert_eq!(cluster.job(&again).get("Reason"), "Dependency");
    gate.open();
    assert_eq!(cluster.wait_for_job(&job, "COMPLETED", 0).get("ExitCode"), "0:0");
    assert_eq!(cluster.remote.git(&["show", "runner/x:work.txt"]), "work");
    let tip = cluster.remote.git(&["rev-parse", "runner/x"]);
    cluster.wait_for_job(&again, "COMPLETED", 0);
    assert_eq!(cluster.remote.git(&["rev-parse", "runner/x"]), tip);
    let refused = cluster.try_submit(GOAL, &[]);
    assert!(refused.exits(6).stderr.contains("run x is completed"), "{refused:?}");
    cluster.assert_clean();
}

#[test]
fn a_terminated_job_commits_is_requeued_and_continues() {
    assert_requeued(USUAL);
}

#[test]
fn a_site_that_puts_jobs_back_by_their_exit_code_has_the_same() {
    assert_requeued(ClusterSite { is_requeued_by_code: true, ..USUAL });
}

/// Ends a driver as preemption does, and asserts that the next one continues.
fn assert_requeued(site: ClusterSite) {
    let cluster = SlurmCluster::start(site);
    let gate = cluster.remote.repo.script().gate("work");
    cluster.remote.repo.script().step(1, "echo half > half.txt; gate work").always(WRITES);
    let job = cluster.submit(GOAL, &[]);
    gate.wait_reached();
    cluster.run_program("scancel", &["--signal=TERM", "--batch", &job]);
    cluster.wait_for_job(&job, "COMPLETED", 1);
    assert_eq!(cluster.remote.git(&["show", "runner/x:half.txt"]), "half");
    assert_eq!(cluster.remote.git(&["show", "runner/x:work.txt"]), "work");
    let driver = format!("Runner-Driver: slurm/{job}.1@");
    assert!(cluster.remote.git(&["log", "--format=%b", "runner/x"]).contains(&driver), "{}", cluster.job_output(&job));
    cluster.assert_clean();
}

#[test]
fn a_driver_on_a_node_that_was_lost_is_overtaken_and_keeps_its_work_aside() {
    let mut cluster = SlurmCluster::start(USUAL);
    let gate = cluster.remote.repo.script().gate("work");
    cluster.remote.repo.script().step(1, GATED).always("echo other > other.txt; answer done 'Wrote other.txt.'");
    let job = cluster.submit(GOAL, &[]);
    gate.wait_reached();
    let node = cluster.job(&job).get("NodeList").to_owned();
    cluster.kill_node(&node);
    let ended = cluster.wait_for_job(&job, "COMPLETED", 1);
    assert_ne!(ended.get("NodeList"), node);
    gate.open();
    let aside = format!("refs/runner/rescue/x/{job}.0");
    wait_until("the first driver keeps its work", || !cluster.remote.git(&["for-each-ref", &aside]).is_empty());
    assert_eq!(cluster.remote.git(&["show", &format!("{aside}:work.txt")]), "work");
    assert_eq!(cluster.remote.git(&["show", "runner/x:other.txt"]), "other");
    wait_until("the first driver says why it ends", || {
        cluster.job_output(&job).contains("another driver continues with run x")
    });
    cluster.assert_clean();
}

#[test]
fn of_two_jobs_of_one_run_one_drives_it() {
    let cluster = SlurmCluster::start(USUAL);
    cluster.remote.repo.script().always(WRITES);
    let jobs = ["one", "two"].map(|name| cluster.submit(GOAL, &[&format!("--job-name={name}")]));
    wait_until("both are over", || {
        jobs.iter().all(|job| !["PENDING", "RUNNING"].contains(&cluster.job(job).get("JobState")))
    });
    let ends = jobs.each_ref().map(|job| cluster.job(job).get("ExitCode").to_owned());
    assert!(ends.contains(&"0:0".to_owned()), "{ends:?}");
    assert!(ends.iter().all(|end| ["0:0", "11:0"].contains(&end.as_str())), "{ends:?}");
    assert_eq!(cluster.remote.git(&["for-each-ref", "refs/runner/rescue"]), "");
    cluster.assert_clean();
}

#[test]
fn neither_a_branch_nor_a_goal_is_refused_before_slurm_and_by_the_job() {
    let cluster = SlurmCluster::start(USUAL);
    let refused = cluster.try_submit(&[], &[]);
    assert!(refused.exits(6).stderr.contains("has no run x, and no goal"), "{refused:?}");
    assert_eq!(cluster.run_program("squeue", &["--noheader"]), "");
    let shown = cluster.try_submit(&["--print"], &[]);
    let script = cluster.remote.home.path().join("job.sh");
    fs::write(&script, shown.json()["script"].as_str().expect("it is shown")).expect("it can be written");
    let output = cluster.remote.home.path().join("job.out").display().to_string();
    let job =
        cluster.run_program("sbatch", &["--parsable", "--output", &output, script.to_str().expect("a path is text")]);
    assert_eq!(cluster.wait_for_job(job.trim(), "FAILED", 0).get("ExitCode"), "6:0");
    assert_eq!(cluster.remote.git(&["branch", "--list", "runner/*"]), "");
    cluster.remote.assert_swept();
}

#[test]
fn a_remote_that_is_away_for_a_while_gets_everything_afterwards() {
    let cluster = SlurmCluster::start(USUAL);
    let gate = cluster.remote.repo.script().gate("work");
    cluster.remote.repo.script().step(1, GATED).always(WRITES);
    let job = cluster.submit(GOAL, &[]);
    gate.wait_reached();
    let away = cluster.remote.home.path().join("away.git");
    fs::rename(&cluster.remote.bare, &away).expect("it can be moved");
    gate.open();
    sleep(Duration::from_secs(20));
    fs::rename(&away, &cluster.remote.bare).expect("it can be moved back");
    cluster.wait_for_job(&job, "COMPLETED", 0);
    assert_eq!(cluster.remote.git(&["show", "runner/x:work.txt"]), "work");
    cluster.assert_clean();
}

#[test]
fn after_every_process_was_killed_the_job_continues_from_the_published_commit() {
    let cluster = SlurmCluster::start(USUAL);
    let gate = cluster.remote.repo.script().gate("work");
    cluster.remote.repo.script().step(1, "decompose 'Two parts.' One Two").step(2, "gate work").always(WRITES);
    let job = cluster.submit(GOAL, &[]);
    gate.wait_reached();
    let published = cluster.remote.git(&["rev-parse", "runner/x"]);
    cluster.kill_all();
    cluster.wait_for_job(&job, "FAILED", 0);
    cluster.run_program("scontrol", &["requeue", &job]);
    cluster.wait_for_job(&job, "COMPLETED", 1);
    cluster.remote.git(&["merge-base", "--is-ancestor", &published, "runner/x"]);
    cluster.assert_clean();
}

#[test]
fn a_usage_limit_gives_the_node_back_until_it_is_over() {
    let cluster = SlurmCluster::start(USUAL);
    let until = jiff::Timestamp::now().round(jiff::Unit::Second).expect("it is a time") + Duration::from_hours(3);
    let limit = format!(r#"{{"error":{{"class":"unavailable","message":"usage limit","until":"{until}"}}}}"#);
    cluster.remote.repo.script().step(1, &format!("answer_json '{limit}'")).always(WRITES);
    let job = cluster.submit(GOAL, &[]);
    cluster.wait_for_job(&job, "PENDING", 1);
    wait_until("it waits for the time that the service has named", || cluster.job(&job).get("Reason") == "BeginTime");
    let begins: jiff::civil::DateTime = cluster.job(&job).get("StartTime").parse().expect("it is a time");
    let begins = begins.to_zoned(jiff::tz::TimeZone::system()).expect("it is a time").timestamp();
    // The driver waits a minute longer than configured.
    assert!((until..until + Duration::from_mins(2)).contains(&begins), "{begins} for {until}");
    assert_eq!(cluster.remote.subjects().last().map(String::as_str), Some("release run x"));
    // A job that Slurm starts on a node in the same second in which an earlier one ended there fails, so wait for that
    // end.
    cluster.assert_idle();
    cluster.run_program("scontrol", &["update", &format!("JobId={job}"), "StartTime=now+2"]);
    cluster.wait_for_job(&job, "COMPLETED", 1);
    cluster.assert_clean();
}

#[test]
fn a_run_is_looked_at_and_steered_in_its_job() {
    let cluster = SlurmCluster::start(USUAL);
    let gate = cluster.remote.repo.script().gate("work");
    cluster.remote.repo.script().step(1, "gate work; answer retry 'More.'").always(WRITES);
    let job = cluster.submit(GOAL, &[]);
    gate.wait_reached();
    let ctl = runner_testkit::binary("runnerctl").display().to_string();
    let within = |args: &[&str]| {
        let mut srun = without_addresses(cluster.command("srun"));
        srun.args(["--overlap", &format!("--jobid={job}"), &ctl]).args(args).output().expect("srun runs")
    };
    let shown = within(&["status", "--all", "--json"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("\"running\""), "{shown}");
    let all: serde_json::Value = serde_json::from_str(&shown).expect("it is JSON");
    let place = all["repos"][0]["repo"]["path"].as_str().expect("it has a path");
    let noted = within(&["-C", place, "note", "Mind the tests."]);
    assert!(noted.status.success(), "{noted:?}");
    gate.open();
    cluster.wait_for_job(&job, "COMPLETED", 0);
    assert!(cluster.remote.repo.script().prompt(2).contains("Mind the tests."));
    cluster.assert_clean();
}
