//! `verify` as a person uses it: on clones, on a branch with an active run, and with guards run again.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::verify::{AuditReport, AuditRule, Severity};
use runner_testkit::{PATIENCE, ProgramOutput};

use crate::play::{RUN, RunPlay, sample};

/// Parses the output of `verify --json`; the exit code must match the violations and the parts not seen.
#[track_caller]
pub(crate) fn parse_report(output: &ProgramOutput) -> AuditReport {
    let mut answer = output.json();
    answer.as_object_mut().expect("an answer is an object").remove("schema");
    let report: AuditReport = serde_json::from_value(answer).expect("the report has its form");
    let is_broken = report.findings.iter().any(|finding| finding.severity == Severity::Violation);
    let is_broken = is_broken || !report.unseen.is_empty();
    assert_eq!(output.code, if is_broken { 10 } else { 0 }, "{}", output.stderr);
    report
}

/// A branch of two iterations.
pub(crate) fn play_two() -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    play.script().always("echo $n > \"file$n\"\nanswer done 'Done.'");
    play.run().exits(4);
    play
}

#[test]
fn bare_shallow_and_detached_clones_are_audited_without_any_record() {
    let play = play_two();
    let at = |name: &str| play.home.path().join(name).display().to_string();
    let url = format!("file://{}", play.repo.path().display());
    let branch = format!("runner/{RUN}");
    let [bare, shallow, detached] = ["bare.git", "shallow", "detached"].map(at);
    play.repo.git(&["clone", "-q", "--bare", &url, &bare]);
    play.repo.git(&["clone", "-q", "--depth", "2", "--branch", &branch, &url, &shallow]);
    play.repo.git(&["clone", "-q", &url, &detached]);
    play.repo.git(&["-C", &detached, "checkout", "-q", "--detach", &format!("origin/{branch}")]);
    for folder in [&bare, &detached] {
        let report = parse_report(play.home.ctl(&["verify", folder, "--json"]).exits(0));
        assert_eq!((report.counts.iterations, report.counts.prompts), (2, 2), "{folder}");
        assert_eq!(report.unseen, [""; 0], "{folder}");
    }
    let output = play.home.ctl(&["verify", &shallow, "--allow-shallow"]);
    assert!(output.exits(0).stdout.contains("partly not checked"), "{}", output.stdout);
    let report = parse_report(play.home.ctl(&["verify", &shallow, "--json"]).exits(10));
    assert_eq!((report.counts.iterations, report.counts.prompts), (1, 1));
    assert_eq!(report.unseen.len(), 1, "missing commits are reported");
    assert_eq!(report.brought, ["a", "b"], "tasks that passed before are unknown");
}

#[test]
fn a_file_that_a_commit_adds_and_that_is_not_here_is_unseen_wherever_it_stands() {
    let mut play = play_two();
    play.home.expect_forgery();
    let blob = play.repo.git(&["rev-parse", "HEAD:file1"]);
    let object = play.repo.path().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    fs::remove_file(object).expect("the file is an object of its own");
    let verify = |more: &[&str]| play.home.ctl_in(&play.repo, &[&["verify"], more].concat());
    let found = parse_report(verify(&["--json"]).exits(10));
    assert_eq!(found.unseen.len(), 1, "{:?}", found.unseen);
    assert!(found.unseen[0].starts_with("file file1 of commit "), "{:?}", found.unseen);
    assert_eq!((&found.findings[..], found.counts.iterations), (&[][..], 2), "the rest is judged nevertheless");
    let strict = parse_report(verify(&["--strict", "--json"]).exits(10)).findings;
    assert_eq!(strict.iter().map(|finding| finding.rule).collect::<Vec<_>>(), [AuditRule::Unseen]);
    assert!(verify(&["--allow-shallow"]).exits(0).stdout.contains("partly not checked"));
}

#[test]
fn what_decisions_are_made_from_and_is_not_here_counts_once() {
    let mut play = play_two();
    play.home.expect_forgery();
    let blob = play.repo.git(&["rev-parse", "HEAD:.runner/state/tree.json"]);
    let object = play.repo.path().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    fs::remove_file(object).expect("the file is an object of its own");
    for more in [&[][..], &["--strict"]] {
        let output = play.home.ctl_in(&play.repo, &[&["verify", "--json"], more].concat());
        let found = parse_report(output.exits(10));
        let rules: Vec<AuditRule> = found.findings.iter().map(|finding| finding.rule).collect();
        assert_eq!((&rules[..], found.unseen.len()), (&[AuditRule::Valid][..], 1), "{more:?}: {found:#?}");
    }
}

#[test]
fn guards_are_run_again_in_a_folder_that_is_gone_afterwards() {
    let play = play_two();
    let seen = play.script().folder().join("seen");
    play.script().guard_always(&format!("ls >> '{}'; pwd >> '{}'; exit 1", seen.display(), seen.display()));
    let refused = play.home.ctl_in(&play.repo, &["verify", "--rerun-guards"]);
    assert!(refused.exits(6).stderr.contains("--yes"), "it names the commands first: {}", refused.stderr);
    let output = play.home.ctl_in(&play.repo, &["verify", "--rerun-guards", "--yes", "--json"]);
    let found = parse_report(output.exits(0)).findings;
    assert_eq!(found.len(), 2, "one for each pass: {found:#?}");
    assert!(
        found.iter().all(|finding| (finding.rule, finding.severity) == (AuditRule::Rerun, Severity::Warning)),
        "{found:#?}"
    );
    assert_eq!((found[0].iter, found[0].found.as_str()), (Some(1), "exit=1"));
    let text = std::fs::read_to_string(&seen).expect("the guard has run");
    assert!(text.contains("file1") && !text.contains(&play.repo.path().display().to_string()), "{text}");
    let left = std::fs::read_dir(play.home.state().join("tmp")).expect("the daemon made it").count();
    assert_eq!(left, 0, "nothing is left behind");
    assert_eq!(play.repo.git(&["worktree", "list"]).lines().count(), 1);
    play.repo.assert_sound();
    let output = play.home.ctl_in(&play.repo, &["verify", "--rerun-guards", "--strict", "--yes", "--json"]);
    let found = parse_report(output.exits(10)).findings;
    assert!(
        found.iter().all(|finding| (finding.rule, finding.severity) == (AuditRule::Rerun, Severity::Violation)),
        "{found:#?}"
    );
    let since = ["verify", "--rerun-guards", "--since", "HEAD~1", "--yes"];
    let output = play.home.ctl_in(&play.repo, &since);
    assert!(output.exits(0).stdout.contains("1 warning"), "the last pass alone: {}", output.stdout);
    assert!(output.stderr.contains("guard 2 of 2: iteration 0002, task c1"), "{}", output.stderr);
}

#[test]
fn a_guard_that_is_run_again_ends_with_who_waits_for_it() {
    let mut play = play_two();
    let gate = play.script().gate("again");
    play.script().guard_always("gate again; exit 1");
    let mut client = play.home.ctl_command(&play.repo, &["verify", "--rerun-guards", "--yes"]);
    let mut client = client.spawn().expect("the client can be started");
    gate.wait_reached();
    kill(Pid::from_raw(client.id().cast_signed()), Signal::SIGINT).expect("the client is there");
    assert!(!client.wait().expect("it ends").success());
    let folder = play.home.state().join("tmp");
    let deadline = Instant::now() + PATIENCE;
    while std::fs::read_dir(&folder).expect("the daemon made it").next().is_some() {
        assert!(Instant::now() < deadline, "the guard is still running");
        thread::sleep(Duration::from_millis(5));
    }
    play.home.ctl_in(&play.repo, &["verify"]).exits(0);
    let dead = folder.join("of-a-killed-daemon");
    std::fs::create_dir(&dead).expect("it can be made");
    play.stop_and_restart();
    assert!(!dead.exists(), "the next daemon clears it away");
}
