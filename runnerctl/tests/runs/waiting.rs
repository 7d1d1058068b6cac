//! Unavailable services: what a run waits for, how that is shown, and what ends the wait.

use jiff::{SignedDuration, Timestamp};
use protocol::words::RunStatus;

use crate::play::{ExpectedRow, RunPlay, sample};

const ACCEPTED: ExpectedRow = ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" };

/// A session whose service is unavailable until a time.
fn out_until(until: Option<Timestamp>) -> String {
    let until = until.map_or_else(|| "null".to_owned(), |until| format!("\"{until}\""));
    let error = format!("{{\"class\":\"unavailable\",\"until\":{until},\"message\":\"usage limit reached\"}}");
    format!("answer_json '{{\"error\":{error}}}'")
}

/// A time that a service may state, to the second.
fn hours_ahead(hours: i64) -> Timestamp {
    let now = Timestamp::from_second(Timestamp::now().as_second()).expect("now is a time");
    now + SignedDuration::from_hours(hours)
}

#[test]
fn wait_lasts_until_a_minute_after_the_stated_time_and_survives_the_death_of_the_daemon() {
    let mut play = RunPlay::new();
    let stated = hours_ahead(3);
    play.script().step(1, &out_until(Some(stated)));
    play.start_run();
    let waits = play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    assert_eq!(waits.wait_until, Some(stated + SignedDuration::from_secs(60)));
    play.kill_and_restart();
    let after = play.client().run(play.repo.path());
    assert_eq!((after.summary.state, after.wait_until), (RunStatus::Waiting, waits.wait_until));
    assert_eq!(after.summary.reason, waits.summary.reason);
    assert_eq!(play.script().session_count(), 1, "no session starts before");
    assert_eq!(play.repo.receipts(), []);
    let shown = play.home.ctl_in(&play.repo, &["status"]).stdout;
    assert!(shown.contains("usage limit reached") && shown.contains("runnerctl resume --now"), "{shown}");
    play.home.ctl_in(&play.repo, &["resume"]).exits(6);
    play.home.ctl_in(&play.repo, &["resume", "--now"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(1).assert_row(&ACCEPTED);
}

#[test]
fn time_that_is_too_far_away_is_named_and_not_waited_for() {
    let play = RunPlay::new();
    play.script().step(1, &out_until(Some(hours_ahead(24 * 300))));
    let before = Timestamp::now();
    play.start_run();
    let run = play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    let wait = before.duration_until(run.wait_until.expect("it says until when"));
    assert!(wait < SignedDuration::from_secs(120), "{wait}");
    assert!(run.summary.reason.is_some_and(|why| why.message.contains("too far away")));
}

#[test]
fn service_that_stays_out_is_asked_after_longer_and_longer_times() {
    let play = RunPlay::new();
    play.script().always(&out_until(None));
    play.start_run();
    let client = play.client();
    for (session, minutes) in [(1, 1), (2, 5), (3, 15)] {
        let is_pending = |run: &protocol::view::RunView| {
            run.summary.state == RunStatus::Waiting && play.script().session_count() == session
        };
        let run = client.wait_until(play.repo.path(), is_pending);
        let wait = Timestamp::now().duration_until(run.wait_until.expect("it says until when"));
        let least = SignedDuration::from_secs(60 * minutes - 30);
        let most = SignedDuration::from_secs(60 * minutes);
        assert!(wait > least && wait <= most, "{minutes}: {wait}");
        play.home.ctl_in(&play.repo, &["pause"]).exits(0);
        play.home.ctl_in(&play.repo, &["resume"]).exits(0);
        client.wait_for(play.repo.path(), RunStatus::Waiting);
        assert_eq!(play.script().session_count(), session, "to pause is not to ask again");
        play.home.ctl_in(&play.repo, &["resume", "--now"]).exits(0);
    }
}

#[test]
fn work_that_a_session_left_before_its_limit_is_committed() {
    let play = RunPlay::with_tree(&sample(), |config| config);
    let stated = hours_ahead(2);
    play.script().step(1, &format!("echo half > work\n{}", out_until(Some(stated))));
    play.start_run();
    let run = play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    assert_eq!(run.wait_until, Some(stated + SignedDuration::from_secs(60)));
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Unavailable", status: "waiting", guard: "skipped", attempts: "0/3" });
    seen.assert_detail("usage limit reached");
    assert_eq!(play.repo.show("HEAD", "work"), "half");
    assert!(play.repo.feedback("HEAD").nodes.is_empty());
}

#[test]
fn step_of_a_run_that_waits_asks_at_once() {
    let play = RunPlay::with_tree(&sample(), |config| config);
    play.script().step(1, &out_until(Some(hours_ahead(2))));
    play.start_run();
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    play.home.ctl_in(&play.repo, &["step"]).exits(0);
    play.iteration_at(1).assert_row(&ACCEPTED);
}
