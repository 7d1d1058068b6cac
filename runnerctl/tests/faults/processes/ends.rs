//! How a session or a guard ends: on its own, by a signal, at a timeout. Rows 1 to 5, 18, 23, 31 and 32.

use runner_testkit::Home;

use crate::stage::{AT_ONCE, FaultStage, HOUR};

#[test]
fn row_01_agent_that_does_its_work_makes_one_commit() {
    let stage = FaultStage::new();
    stage.script().step(1, "echo mine > mine.txt; answer done 'It is done.'");
    stage.run().exits(0);
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
}

#[test]
fn row_02_agent_that_exits_with_a_code_is_a_fault_and_both_its_streams_are_kept() {
    let stage = FaultStage::new();
    stage.script().step(1, "echo mine > mine.txt; echo out; echo err >&2; exit 3");
    stage.assert_fails_with("it exited with code 3");
    assert_eq!(stage.repo.read_record(1, "executor.log"), "out\nerr\n");
    assert_eq!(stage.repo.meta(1).agent_exit, Some(3));
    stage.assert_ended_as(&["Fault"], &["mine\n"]);
}

#[test]
fn row_03_death_by_a_signal_is_told_from_an_exit_code() {
    let stage = FaultStage::new();
    stage.script().step(1, "echo mine > mine.txt; kill -SEGV $$");
    stage.assert_fails_with("it died of signal 11");
    assert_eq!(stage.repo.meta(1).agent_exit, Some(-11));
    stage.assert_ended_as(&["Fault"], &["mine\n"]);
}

#[test]
fn row_04_agent_that_ignores_sigterm_is_killed_at_the_end_of_its_budget() {
    let (stage, clock) = FaultStage::with_clock(Home::new());
    stage.script().step(1, "echo mine > mine.txt; become ignores-term");
    stage.run_over_budget(&clock, 1).exits(4);
    stage.assert_ended_as(&["Timeout"], &["mine\n"]);
}

#[test]
fn row_05_clean_up_within_the_grace_is_completed_and_one_beyond_it_is_cut_off() {
    for (seconds, is_completed) in [("0.3", true), ("100", false)] {
        // Four seconds to start, and four to end.
        let stage = FaultStage::with_time_limit(8);
        stage.script().step(1, &format!("echo mine > mine.txt; become slow-term {seconds}"));
        stage.run().exits(4);
        assert_eq!(stage.repo.read_record(1, "executor.log").contains("CLEANED"), is_completed);
        assert!(stage.time_spent() < AT_ONCE, "{:?}", stage.time_spent());
        stage.assert_ended_as(&["Timeout"], &["mine\n"]);
    }
}

#[test]
fn row_18_agent_without_memory_is_a_fault_as_is_one_that_the_kernel_kills_for_it() {
    let ends = [("become eats-memory 200000000", "exited with code 1"), ("kill -KILL $$", "died of signal 9")];
    for (end, reason) in ends {
        let stage = FaultStage::new();
        stage.script().step(1, &format!("echo mine > mine.txt; {end}"));
        stage.assert_fails_with(reason);
        stage.assert_ended_as(&["Fault"], &["mine\n"]);
    }
}

#[test]
fn row_23_program_that_reads_input_finds_its_end_and_no_terminal() {
    let stage = FaultStage::new();
    let has_none = "cat > /dev/null; test ! -t 0 && ! (: < /dev/tty) 2> /dev/null";
    stage.script().step(1, &format!("{has_none} && echo mine > mine.txt && answer done 'It is done.'"));
    stage.script().guard_always(&format!("{has_none}\n"));
    stage.run().exits(0);
    assert!(stage.script().prompt(1).len() > 100, "the prompt came before the end");
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
}

#[test]
fn row_31_guard_that_hangs_is_a_timeout_and_not_a_red_guard() {
    let (stage, clock) = FaultStage::with_clock(Home::new());
    stage.script().step(1, "echo mine > mine.txt; answer done 'It is done.'").guard_always("become ignores-term");
    stage.run_over_budget(&clock, 1).exits(4);
    assert_eq!(stage.repo.node("root").attempts, 0, "no attempt is charged");
    stage.assert_ended_as(&["Timeout"], &["mine\n"]);
}

#[test]
fn row_32_answer_that_was_there_in_time_counts_though_the_agent_used_up_the_budget() {
    let stage = FaultStage::with_time_limit(4);
    stage.script().step(1, "echo mine > mine.txt; trap '' TERM; answer done 'It is done.'; sleep 60");
    stage.script().guard_always("touch \"$kit/asked\"");
    stage.run().exits(0);
    assert!(stage.script().folder().join("asked").exists(), "the guard was not started");
    stage.assert_ended_as(&["Accepted"], &["mine\n"]);
}

#[test]
fn row_32_guard_has_what_the_agent_left_of_the_budget() {
    let (stage, clock) = FaultStage::with_clock(Home::new());
    let [working, ready] = ["working", "ready"].map(|name| stage.script().gate(name));
    stage.script().step(1, "echo mine > mine.txt; gate working; answer done 'It is done.'");
    stage.script().guard_always("become ignores-term");
    let late = || {
        working.wait_reached();
        clock.set(HOUR / 6, 0);
        working.open();
        ready.wait_reached();
        // Less than the whole budget after the guard has started.
        clock.set(HOUR / 6 * 4, 0);
    };
    stage.home.run_while(&stage.repo, &["-m", "Do it"], late).exits(4);
    stage.assert_ended_as(&["Timeout"], &["mine\n"]);
}
