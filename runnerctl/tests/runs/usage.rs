//! The usage of sessions: summed over iterations, attempts without a commit and daemon processes, and compared with the
//! limits.

use protocol::state::UsageTotal;
use protocol::words::RunStatus;
use runner_testkit::Config;

use crate::play::{RunPlay, sample};

/// A session that answers `retry` and reports its usage.
fn retry(summary: &str, usage: &str) -> String {
    format!("answer_json '{{\"status\":\"retry\",\"summary\":\"{summary}\",\"children\":null,\"usage\":{{{usage}}}}}'")
}

/// A session whose service is unavailable, and that reports its usage before.
fn out(usage: &str) -> String {
    let error = "{\"class\":\"unavailable\",\"message\":\"usage limit reached\"}";
    format!("answer_json '{{\"error\":{error},\"usage\":{{{usage}}}}}'")
}

#[test]
fn try_that_left_no_commit_is_counted_though_the_daemon_dies_and_goes_into_the_next_commit() {
    let mut play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    play.script()
        .step(1, &out("\"in\":100,\"out\":7,\"cost_micro_usd\":1500"))
        .step(2, &retry("Nearly.", "\"in\":10,\"cached\":5,\"out\":3,\"cost_micro_usd\":500"))
        .step(3, "answer retry 'Without numbers.'");
    play.start_run();
    play.client().wait_for(play.repo.path(), RunStatus::Waiting);
    play.kill_and_restart();
    let view = play.client().run(play.repo.path());
    assert_eq!((view.usage.sessions, view.usage.input_tokens, view.usage.cost_micro_usd), (1, Some(100), Some(1500)));
    assert_eq!(view.node.expect("a node is next").usage.as_ref(), Some(&view.usage), "it is the node's, too");
    play.home.ctl_in(&play.repo, &["resume", "--now"]).exits(0);
    let run = play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let total = UsageTotal {
        sessions: 3,
        input_tokens: Some(110),
        cached_tokens: Some(5),
        output_tokens: Some(10),
        cost_micro_usd: Some(2000),
        tokens_unknown: 1,
        cost_unknown: 1,
    };
    assert_eq!(run.usage, total);
    assert_eq!(play.repo.run_state("HEAD").usage, total, "it is in the branch, and so in a clone");
    assert_eq!(run.node.expect("a node is next").usage, Some(total));
    let lines =
        [1, 2].map(|iter| play.iteration_at(iter).receipt.trailer("Runner-Usage").unwrap_or_default().to_owned());
    assert_eq!(lines[0], "in=110 cached=5 out=10 cost_usd=0.002000 sessions=2");
    assert_eq!(lines[1], "in=unknown cached=unknown out=unknown cost_usd=unknown");
    let shown = play.home.ctl_in(&play.repo, &["status"]).stdout;
    assert!(shown.contains("cost at least $0.01 (1 of 3 sessions unknown)"), "{shown}");
    let list = play.home.ctl_in(&play.repo, &["log"]).stdout;
    assert!(list.contains("$0.01") && list.contains("$?"), "{list}");
}

#[test]
fn ceiling_is_reached_by_a_try_that_left_no_commit() {
    let prices = "[prices.\"command\"]\ninput = 1.0\noutput = 1.0";
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_cost_usd = 0.01").section(prices));
    play.script().always(&out("\"in\":9999,\"out\":1"));
    play.run().exits(4);
    assert_eq!(play.script().session_count(), 1);
    assert_eq!(play.repo.receipts(), []);
    let run = play.client().run(play.repo.path());
    assert_eq!(run.usage.cost_micro_usd, Some(10_000));
    assert!(run.summary.reason.expect("it says why").message.contains("max_cost_usd"));
    play.home.ctl_in(&play.repo, &["resume"]).exits(6);
    assert_eq!(play.script().session_count(), 1, "resuming forgets no cost");
}

#[test]
fn tokens_read_from_a_cache_count_towards_their_ceiling() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_tokens = 100"));
    play.script().always(&retry("Again $n.", "\"in\":10,\"cached\":80,\"out\":10"));
    play.run().exits(4);
    assert_eq!(play.script().session_count(), 1);
}

#[test]
fn ceiling_that_a_commit_has_made_blind_is_refused() {
    let play = RunPlay::with_tree(&sample(), |config| config);
    play.script().step(1, "answer retry 'Nearly.'");
    let gate = play.script().gate("second");
    play.script().step(2, "gate second; answer retry 'Still.'");
    play.start_run();
    gate.wait_reached();
    play.home.ctl_in(&play.repo, &["pause"]).exits(0);
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Paused);
    play.repo.commit_config(&play.repo.config().top("max_cost_usd = 5.0"));
    play.home.ctl_in(&play.repo, &["step", "--yes"]).exits(1);
    assert_eq!(play.script().session_count(), 2);
}

#[test]
fn time_of_the_baseline_counts() {
    let play = RunPlay::with_tree(&sample(), |_| Config::new(&["agent-one"], &["guard-one"]).top("max_run_secs = 1"));
    play.script().guard_step(1, "exec sleep 1.1");
    play.run().exits(4);
    assert_eq!(play.script().session_count(), 0);
    let run = play.client().run(play.repo.path());
    assert!(run.elapsed_ms >= 1_000, "{}", run.elapsed_ms);
    assert!(run.summary.reason.expect("it says why").message.contains("max_run_secs"));
}
