//! One run for each row of the table of verdicts, seen from outside.

use protocol::words::{RunStatus, VerdictName};

use crate::play::{ExpectedRow, HOUR, LEAVE, RUN, RunPlay, leaf, node, sample};

fn failure_of_b(play: &RunPlay) -> String {
    let feedback = play.repo.feedback("HEAD");
    feedback.nodes["b"].failures.last().expect("the failure is recorded").text.clone()
}

#[test]
fn accepted_leaf_passes_and_is_listed_in_the_progress() {
    let play = RunPlay::new();
    play.script().step(1, "echo 1 > result.txt\necho working\nanswer done 'The result is written.'");
    let seen = play.run_first(4);
    assert_eq!(play.record(1, "executor.log"), "working\n");
    assert!(play.record(1, "output.json").contains("The result is written."));
    seen.assert_row(&ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" });
    assert_eq!(seen.receipt.body, "The result is written.");
    assert_eq!(seen.receipt.headline.as_deref(), Some("Title of b: finished"));
    assert_eq!(seen.receipt.trailer("Runner-Role"), Some("worker"));
    assert_eq!(seen.receipt.trailer("Runner-Mode"), Some("execute"));
    assert!(seen.receipt.trailer("Runner-Guard").unwrap().starts_with("exit=0 sha256:"));
    let mut expected = sample();
    node(&mut expected, "b").passes = true;
    assert_eq!(play.repo.tree("HEAD"), expected);
    assert!(play.repo.feedback("HEAD").nodes.is_empty());
    assert!(play.repo.show("HEAD", ".runner/state/progress.md").contains("b — Title of b (iteration 0001)"));
    assert_eq!(play.repo.show("HEAD", "result.txt"), "1");
    assert_eq!(play.client().run(play.repo.path()).summary.state, RunStatus::Limit);
}

#[test]
fn red_guard_charges_the_attempt_and_tells_what_it_said() {
    let play = RunPlay::new();
    play.script().step(1, "echo half > result.txt\nanswer done 'It should work.'");
    play.script().guard_step(1, "echo 'FAIL: the result is half'\nexit 1");
    let seen = play.run_first(4);
    seen.assert_row(&ExpectedRow { verdict: "RedGuard", status: "done", guard: "fail", attempts: "1/3" });
    assert!(seen.receipt.trailer("Runner-Guard").unwrap().starts_with("exit=1 "));
    assert!(failure_of_b(&play).contains("FAIL: the result is half"));
    assert!(play.record(1, "guard.log").contains("FAIL: the result is half"));
    assert_eq!((play.repo.node("b").passes, play.repo.node("b").attempts), (false, 1));
    assert_eq!(play.repo.show("HEAD", "result.txt"), "half", "work is never discarded");
}

#[test]
fn retry_charges_the_attempt_and_passes_the_summary_on() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    play.script().step(1, "answer retry 'The parser is left.'").step(2, "answer retry 'The lexer is left.'");
    play.run().exits(4);
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Retry", status: "retry", guard: "skipped", attempts: "1/3" });
    assert_eq!(seen.receipt.trailer("Runner-Guard"), None);
    assert_eq!(seen.receipt.trailer("Runner-Mode"), Some("decompose"));
    play.iteration_at(2).assert_row(&ExpectedRow {
        verdict: "Retry",
        status: "retry",
        guard: "skipped",
        attempts: "2/3",
    });
    assert!(play.script().prompt(2).contains("The parser is left."));
    let history = &play.repo.feedback("HEAD").nodes["b"].history;
    let summaries: Vec<_> = history.iter().map(|attempt| (attempt.iter, attempt.summary.as_deref())).collect();
    assert_eq!(summaries, [(1, Some("The parser is left.")), (2, Some("The lexer is left."))]);
}

#[test]
fn planner_that_makes_the_last_attempt_smaller_is_charged_nothing_once() {
    let mut tree = sample();
    node(&mut tree, "b").attempts = 2;
    let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 2"));
    play.script_tree_change(|left| node(left, "b").goal = "A smaller goal".to_owned());
    play.script().step(1, &format!("{LEAVE}answer retry 'It is smaller now.'"));
    play.script().step(2, "sed -i 's/A smaller goal/The smallest goal/' \"$tree\"\nanswer retry 'Smaller still.'");
    play.run().exits(3);
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Narrowed", status: "retry", guard: "skipped", attempts: "2/3" });
    assert_eq!(seen.receipt.trailer("Runner-Role"), Some("planner"));
    assert_eq!(play.repo.tree(&seen.receipt.commit).root.children[1].goal, "A smaller goal");
    assert_eq!(play.repo.run_state("HEAD").narrowed, ["b"]);
    play.iteration_at(2).assert_row(&ExpectedRow {
        verdict: "Retry",
        status: "retry",
        guard: "skipped",
        attempts: "3/3",
    });
    assert_eq!(play.client().run(play.repo.path()).summary.state, RunStatus::Stuck);
}

#[test]
fn children_of_the_answer_are_inserted_in_their_order() {
    let play = RunPlay::new();
    play.script().step(1, "decompose 'Two parts.' first second");
    let seen = play.run_first(4);
    seen.assert_row(&ExpectedRow { verdict: "Decomposed", status: "decomposed", guard: "skipped", attempts: "0/3" });
    let children = play.repo.node("b").children;
    let seen: Vec<_> = children.iter().map(|node| (node.id.as_str(), node.order, node.title.as_str())).collect();
    assert_eq!(seen, [("b.1", 1, "first"), ("b.2", 2, "second")]);
    assert!(children.iter().all(|node| !node.passes && node.attempts == 0 && node.max_attempts == 3));
    assert_eq!(play.repo.run_state("HEAD").decomposed_in_row, 1);
}

#[test]
fn children_that_were_added_to_the_tree_are_taken() {
    let play = RunPlay::new();
    play.script_tree_change(|tree| node(tree, "b").children = vec![leaf("late", 9), leaf("early", -3)]);
    play.script().step(1, &format!("{LEAVE}answer decomposed 'Two parts, in the tree.'"));
    play.run_first(4).assert_row(&ExpectedRow {
        verdict: "Decomposed",
        status: "decomposed",
        guard: "skipped",
        attempts: "0/3",
    });
    let ids: Vec<String> = play.repo.node("b").children.into_iter().map(|node| node.id).collect();
    assert_eq!(ids, ["early", "late"]);
}

#[test]
fn sessions_without_a_valid_answer_are_faults_that_keep_the_work() {
    let (play, clock) = RunPlay::with_clock(|config| config.top("max_consecutive_faults = 6"));
    let gate = play.script().gate("silent");
    let steps = [
        (
            "git clean -qfdx; echo 1 > work\nexit 3",
            "exit code: it exited with code 3; it removed .runner/iterations, where its answer belongs",
        ),
        ("echo 2 > work\nkill -9 $$", "crash: it died of signal 9"),
        ("echo 3 > work", "no answer: it gave no answer"),
        ("echo 4 > work\nanswer_json '{\"status\":\"perhaps\",\"summary\":\"x\"}'", "invalid answer: "),
        ("echo 5 > work\nanswer done ''", "invalid answer: "),
        ("echo 6 > work\ngate silent", "silence: it printed nothing"),
    ];
    for (session, (step, _)) in (1..).zip(steps) {
        play.script().step(session, step);
    }
    // Longer than the silence limit, shorter than the budget.
    let silent = || {
        gate.wait_reached();
        clock.set(HOUR / 3, 0);
    };
    play.run_while(silent).exits(9);
    for (iter, (_, detail)) in (1..).zip(steps) {
        let seen = play.iteration_at(iter);
        seen.assert_row(&ExpectedRow { verdict: "Fault", status: "fault", guard: "skipped", attempts: "0/3" })
            .assert_detail(detail);
        assert_eq!(play.repo.show(&seen.receipt.commit, "work"), iter.to_string());
        assert_eq!(play.repo.run_state(&seen.receipt.commit).consecutive_faults, iter);
    }
    let run = play.client().run(play.repo.path());
    assert_eq!(run.summary.state, RunStatus::Failed);
    assert!(run.summary.reason.unwrap().message.starts_with("6 sessions in a row"));
    assert!(failure_of_b(&play).contains("it printed nothing"));
}

#[test]
fn an_answer_resets_the_count_of_faults() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_consecutive_faults = 2\nmax_iterations = 3"));
    play.script().step(1, "exit 1").step(2, "answer retry 'Nearly.'").step(3, "exit 1");
    play.run().exits(4);
    let faults = [1, 2, 3].map(|iter| play.repo.run_state(&play.iteration_at(iter).receipt.commit).consecutive_faults);
    assert_eq!(faults, [1, 0, 1]);
}

#[test]
fn unavailable_service_leaves_no_commit_and_the_number_is_used_again() {
    let play = RunPlay::new();
    play.script().step(1, "answer_json '{\"error\":{\"class\":\"unavailable\",\"message\":\"usage limit reached\"}}'");
    play.start_run();
    let client = play.client();
    let run = client.wait_for(play.repo.path(), RunStatus::Waiting);
    assert!(run.wait_until.is_some());
    assert!(run.summary.reason.unwrap().message.contains("usage limit reached"));
    assert_eq!(play.repo.receipts(), []);
    assert!(play.has_record("0001.w1") && !play.has_record("0001"));
    play.repo.assert_sound();
    play.home.ctl_in(&play.repo, &["resume", "--now"]).exits(0);
    client.wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(1).assert_row(&ExpectedRow {
        verdict: "Accepted",
        status: "done",
        guard: "pass",
        attempts: "0/3",
    });
    assert_eq!(play.script().prompt(1), play.script().prompt(2), "the prompt is a function of From");
}

#[test]
fn session_over_its_budget_ends_the_run_as_timed_out() {
    let (play, clock) = RunPlay::with_clock(|config| config);
    let gate = play.script().gate("working");
    play.script().step(1, "echo half > work\ngate working");
    play.run_over_budget(&gate, &clock).exits(4);
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Timeout", status: "timeout", guard: "skipped", attempts: "0/3" })
        .assert_detail("during work");
    assert_eq!(play.repo.show("HEAD", "work"), "half");
    assert_eq!(play.client().run(play.repo.path()).summary.state, RunStatus::TimedOut);
}

#[test]
fn guard_over_the_budget_ends_the_run_as_timed_out() {
    let (play, clock) = RunPlay::with_clock(|config| config);
    let gate = play.script().gate("guarding");
    play.script().guard_step(1, "echo begun\ngate guarding");
    play.run_over_budget(&gate, &clock).exits(4);
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Timeout", status: "timeout", guard: "skipped", attempts: "0/3" })
        .assert_detail("during guard");
    assert!(!play.repo.node("b").passes);
}

#[test]
fn timeouts_are_tried_again_where_that_is_configured() {
    let (play, clock) = RunPlay::with_clock(|config| config.top("on_timeout = \"retry\"\nmax_iterations = 2"));
    let [working, guarding] = ["working", "guarding"].map(|name| play.script().gate(name));
    play.script().step(1, "gate working").guard_step(1, "echo slow\ngate guarding");
    let late = || {
        working.wait_reached();
        clock.set(HOUR, 0);
        guarding.wait_reached();
        clock.set(2 * HOUR, 0);
    };
    play.run_while(late).exits(4);
    play.iteration_at(1)
        .assert_row(&ExpectedRow { verdict: "Fault", status: "fault", guard: "skipped", attempts: "0/3" })
        .assert_detail("timeout");
    play.iteration_at(2).assert_row(&ExpectedRow {
        verdict: "RedGuard",
        status: "done",
        guard: "fail",
        attempts: "1/3",
    });
}

#[test]
fn misconfigured_agent_that_changed_nothing_leaves_no_commit() {
    let play = RunPlay::new();
    play.script()
        .step(1, "answer_json '{\"error\":{\"class\":\"misconfigured\",\"message\":\"log in with `agent login`\"}}'");
    play.run().exits(9);
    assert_eq!(play.repo.receipts(), []);
    play.repo.assert_sound();
    let run = play.client().run(play.repo.path());
    assert_eq!(run.summary.state, RunStatus::Failed);
    assert!(run.summary.reason.unwrap().message.contains("log in with `agent login`"));
    play.home.ctl_in(&play.repo, &["resume"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(1).assert_row(&ExpectedRow {
        verdict: "Accepted",
        status: "done",
        guard: "pass",
        attempts: "0/3",
    });
}

#[test]
fn guard_whose_program_is_gone_fails_the_run_and_keeps_the_work() {
    let play = RunPlay::new();
    play.script().step(1, "echo 1 > work\nrm \"$kit/../../bin/guard-one\"\nanswer done 'Done.'");
    let seen = play.run_first(9);
    seen.assert_row(&ExpectedRow { verdict: "Misconfigured", status: "fault", guard: "skipped", attempts: "0/3" })
        .assert_detail("guard-one");
    assert_eq!(play.repo.show("HEAD", "work"), "1");
}

#[test]
fn pause_now_commits_the_work_as_interrupted_and_resume_continues() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    let gate = play.script().gate("working");
    play.script().step(1, "echo half > work\nanswer done 'Said too early.'\ngate working");
    play.start_run();
    gate.wait_reached();
    play.home.ctl_in(&play.repo, &["pause", "--now"]).exits(0);
    let client = play.client();
    client.wait_for(play.repo.path(), RunStatus::Paused);
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Interrupted", status: "interrupted", guard: "skipped", attempts: "0/3" });
    seen.assert_detail("pause --now");
    assert_eq!(play.repo.show("HEAD", "work"), "half");
    play.home.ctl_in(&play.repo, &["resume"]).exits(0);
    client.wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(2).assert_row(&ExpectedRow {
        verdict: "Accepted",
        status: "done",
        guard: "pass",
        attempts: "0/3",
    });
}

#[test]
fn cancel_ends_the_guard_and_keeps_branch_and_work() {
    let play = RunPlay::with_tree(&sample(), |config| config);
    let gate = play.script().gate("checking");
    play.script().step(1, "echo 1 > work\nanswer done 'Done.'").guard_step(1, "gate checking");
    play.start_run();
    gate.wait_reached();
    play.home.ctl_in(&play.repo, &["cancel"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Cancelled);
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Interrupted", status: "interrupted", guard: "skipped", attempts: "0/3" })
        .assert_detail("cancel");
    assert_eq!(play.repo.git(&["branch", "--show-current"]), format!("runner/{RUN}"));
    assert!(!play.repo.node("b").passes);
}

#[test]
fn run_is_completed_when_every_leaf_passes() {
    let play = RunPlay::with_tree(&sample(), |config| config);
    play.script().always("echo $n > work\nanswer done \"Step $n.\"");
    play.run().exits(0);
    let nodes: Vec<String> = play.repo.receipts().iter().map(|receipt| receipt.subject.clone()).collect();
    let expected = ["0001 node b", "0002 node c1", "0003 node c2"];
    let expected = expected.map(|place| format!("chore(loop): run {RUN} iter {place} status=done guard=pass"));
    assert_eq!(nodes, expected);
    assert!(play.repo.tree("HEAD").root.passes, "inner nodes pass with their children");
    assert!(play.repo.node("c").passes);
    play.iteration_at(3);
}

#[test]
fn leaf_without_attempts_left_stops_the_run_as_stuck() {
    let play = RunPlay::with_tree(&sample(), |config| config);
    play.script().always("answer retry \"Try $n.\"");
    let output = play.run();
    output.exits(3);
    assert_eq!(play.repo.receipts().len(), 3);
    assert_eq!(play.repo.node("b").attempts, 3);
    let roles = [1, 2, 3].map(|iter| play.iteration_at(iter).receipt.trailer("Runner-Role").map(str::to_owned));
    assert_eq!(roles.map(Option::unwrap), ["worker", "worker", "planner"]);
    let reason = play.client().run(play.repo.path()).summary.reason.unwrap();
    assert!(reason.message.contains('b') && reason.command.is_some(), "{reason:?}");
}

#[test]
fn same_answer_again_and_again_is_a_stall() {
    let mut tree = sample();
    node(&mut tree, "b").max_attempts = 50;
    let play = RunPlay::with_tree(&tree, |config| config.top("stall_after = 3"));
    play.script().always("answer retry '  Still   TRYING. '");
    play.script().step(2, "answer retry 'still trying.'");
    play.run().exits(3);
    assert_eq!(play.repo.receipts().len(), 3);
    assert_eq!(play.repo.run_state("HEAD").stall.count, 3);
}

#[test]
fn what_a_session_consumed_is_in_receipt_record_and_run_state() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    let usage = "\"usage\":{\"in\":100,\"cached\":20,\"out\":7,\"cost_micro_usd\":1500}";
    play.script()
        .step(1, &format!("answer_json '{{\"status\":\"retry\",\"summary\":\"a\",\"children\":null,{usage}}}'"));
    play.script().step(2, "answer retry 'Without numbers.'");
    play.run().exits(4);
    let first = play.iteration_at(1);
    let line = first.receipt.trailer("Runner-Usage").unwrap();
    assert!(line.contains("in=100 cached=20 out=7 cost_usd=0.0015"), "{line}");
    assert_eq!(first.meta.usage.input_tokens, Some(100));
    let line = play.iteration_at(2).receipt.trailer("Runner-Usage").unwrap_or("absent").to_owned();
    assert!(line == "absent" || line.contains("cost_usd=unknown"), "{line}");
    let usage = play.repo.run_state("HEAD").usage;
    assert_eq!((usage.sessions, usage.output_tokens, usage.cost_micro_usd), (2, Some(7), Some(1500)));
    let recent = play.client().run(play.repo.path()).recent;
    assert_eq!(recent[0].verdict, VerdictName::Retry);
}

#[test]
fn failure_in_the_middle_of_a_long_log_leads_the_next_prompt() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    play.script().always("answer done 'It should work.'");
    let report = "---- shop::adds stdout ----\n\nthread 'shop::adds' (7) panicked at src/shop.rs:12:9:\nleft is not right\n\n\n\
                  failures:\n    shop::adds\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n";
    play.script().file("report", report);
    let noise =
        |word| format!("for n in $(seq 4000); do echo \"$n {word} $((n % 7)) things: $(((n * 7) % 9))x\"; done");
    let guard = format!("{}\ncat \"$kit/files/report\"\n{}\nexit 1", noise("built"), noise("swept"));
    play.script().guard_always(&guard);
    play.run().exits(4);
    let failure = failure_of_b(&play);
    let report = "[failures: 1, reported by cargo test]\n---- shop::adds stdout ----\n\nthread 'shop::adds' (7) panicked at \
                  src/shop.rs:12:9:\nleft is not right\n";
    assert!(failure.starts_with(report) && failure.len() <= 16 * 1024, "{failure}");
    assert!(
        failure.contains("\n1 built 1 things: 7x\n") && failure.contains("\n4000 swept 3 things: 1x\n"),
        "{failure}"
    );
    assert!(play.script().prompt(2).contains(report));
    assert!(play.repo.read(".runner/context/failure.md").contains(report));
}

/// How often the line about a failure is in the guardrails of a revision.
fn guardrails(play: &RunPlay, revision: &str) -> usize {
    play.repo.show(revision, ".runner/state/guardrails.md").matches("has failed twice in the same way").count()
}

#[test]
fn same_failure_twice_at_one_node_becomes_one_guardrail() {
    let mut tree = sample();
    node(&mut tree, "b").max_attempts = 5;
    let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 5"));
    play.script().always("answer done 'It should work.'");
    play.script().step(2, "echo '- never sell on sundays' >> .runner/state/guardrails.md\nanswer done 'Again.'");
    for (run, detail) in [(1, "db:5432 after 3s"), (2, "db:9001 after 1.5s"), (3, "cache"), (4, "db:1 after 9s")] {
        play.script().guard_step(run, &format!("echo 'FAIL: no answer from {detail}'\nexit 1"));
    }
    play.run().exits(4);
    let counts: Vec<usize> = (1..=4).map(|iter| guardrails(&play, &play.iteration_at(iter).receipt.commit)).collect();
    assert_eq!(counts, [0, 1, 1, 1]);
    let line = "\n- never sell on sundays\n- `b` has failed twice in the same way [";
    let text = play.repo.show("HEAD", ".runner/state/guardrails.md");
    assert!(text.contains(line) && text.contains("]: FAIL: no answer from db:9001 after 1.5s"), "{text}");
    assert_eq!(play.iteration_at(2).receipt.trailer("Runner-Reverted"), None);
    assert!(!play.script().prompt(2).contains("has failed twice"));
    assert!(play.script().prompt(3).contains("- `b` has failed twice in the same way ["));
}
