//! Agents that misbehave as processes: they print endlessly, ignore signals, leave children, or do not exit.

use std::fs;
use std::path::Path;

use crate::play::{ExpectedRow, RunPlay, sample};

const ACCEPTED: ExpectedRow = ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" };

#[test]
fn agent_that_does_not_read_a_large_prompt_is_no_fault() {
    let play = RunPlay::with_tree(&sample(), |config| {
        config.top("max_iterations = 1").section("[prompt]\nbudget_bytes = 400000")
    });
    let goal = format!("# Reach the goal\n\n{}", "Many words. ".repeat(5_000));
    play.repo.write(".runner/GOAL.md", &goal);
    play.repo.write(".runner/nodes/b/context.md", &"More of them. ".repeat(12_000));
    play.repo.commit("Say much");
    play.script().deaf_step(1, "exec <&-\nanswer done 'Not read.'");
    play.run_first(4).assert_row(&ACCEPTED);
    let length = play.record(1, "prompt.md").len();
    assert!(length > 65_536, "the prompt of {length} bytes fits into a pipe");
}

#[test]
fn child_that_holds_standard_output_is_ended_with_the_session() {
    let play = RunPlay::new();
    play.script().step(1, "(trap '' TERM HUP; exec sleep 600) &\nsetsid sleep 600 &\nanswer done 'Left two behind.'");
    let seen = play.run_first(4);
    seen.assert_row(&ACCEPTED);
    assert!(seen.meta.survivors_ended >= 1, "{}", seen.meta.survivors_ended);
    assert!(seen.meta.phases.iter().all(|phase| phase.duration_ms < 60_000));
}

#[test]
fn temporary_folder_of_a_session_is_its_own_and_goes_with_it() {
    let play = RunPlay::new();
    let step = "ls -ld \"$TMPDIR\" > \"$kit/mode\"\necho \"$TMPDIR\" > \"$kit/folder\"\nmktemp -d\nmkdir -m 0 \"$TMPDIR/closed\"\n\
                answer done 'Left files.'";
    play.script().step(1, step).guard_step(1, "echo \"$TMPDIR\" > \"$kit/of-the-guard\"");
    play.run_first(4).assert_row(&ACCEPTED);
    let read_fact = |name: &str| fs::read_to_string(play.script().folder().join(name)).expect("the session wrote it");
    let temp = play.home.path().join("tmp");
    assert!(read_fact("folder").starts_with(&format!("{}/runner-", temp.display())), "{}", read_fact("folder"));
    assert!(read_fact("mode").starts_with("drwx------"), "{}", read_fact("mode"));
    assert!(!Path::new(read_fact("folder").trim()).exists(), "it goes with the session");
    assert_eq!(read_fact("of-the-guard").trim(), temp.display().to_string());
}

#[test]
fn child_of_the_guard_is_ended_with_the_guard() {
    let play = RunPlay::new();
    play.script().guard_step(1, "setsid sleep 600 &\nexit 0");
    play.run_first(4).assert_row(&ACCEPTED);
}

#[test]
fn agent_that_stays_after_its_answer_is_ended_and_the_answer_counts() {
    let play = RunPlay::new();
    play.script().step(1, "echo 1 > work\nanswer done 'Done, but here.'\nexec sleep 600");
    let seen = play.run_first(4);
    seen.assert_row(&ACCEPTED);
    assert_eq!(seen.receipt.body, "Done, but here.");
}

#[test]
fn escape_sequences_of_an_agent_do_not_reach_a_terminal() {
    let play = RunPlay::new();
    play.script()
        .step(1, "printf 'red \\033[31mtext\\033]0;title\\007\\n'\nanswer done 'A \\u001b[31mred\\u001b[0m word.'");
    let output = play.run();
    output.exits(4);
    let shown = play.home.ctl_in(&play.repo, &["log", "1", "--agent"]);
    shown.exits(0);
    assert!(shown.stdout.contains("red ") && !shown.stdout.contains('\u{1b}'), "{:?}", shown.stdout);
    assert!(!output.stdout.contains('\u{1b}') && !output.stderr.contains('\u{1b}'));
    assert!(!play.iteration_at(1).receipt.body.contains('\u{1b}'), "nor the commit message");
}

#[test]
fn agent_gets_an_environment_by_an_allow_list() {
    let play = RunPlay::new();
    play.script().step(1, "env > \"$kit/env\"\nanswer done 'Looked.'");
    play.run_first(4).assert_row(&ACCEPTED);
    let text = std::fs::read_to_string(play.script().folder().join("env")).unwrap();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
    for absent in ["XDG_RUNTIME_DIR", "RUNNERD_STATE", "RUNNERD_SOCKET", "GIT_AUTHOR_DATE", "DBUS_SESSION_BUS_ADDRESS"]
    {
        assert!(!names.contains(&absent), "{absent} is passed on");
    }
    for present in ["PATH", "HOME", "RUNNER_OUTPUT"] {
        assert!(names.contains(&present), "{present} is not passed on");
    }
}

#[test]
fn client_inside_an_iteration_may_read_and_not_steer() {
    let play = RunPlay::new();
    let ctl = runner_testkit::binary("runnerctl");
    let ctl = format!("{} --socket \"$kit/../../run/s\"", ctl.display());
    let step = format!(
        "{ctl} status > \"$kit/status\" 2>&1; echo $? > \"$kit/status-code\"\n\
         {ctl} cancel > \"$kit/cancel\" 2>&1; echo $? > \"$kit/cancel-code\"\nanswer done 'Tried.'"
    );
    play.script().step(1, &step);
    play.run_first(4).assert_row(&ACCEPTED);
    let read = |name: &str| std::fs::read_to_string(play.script().folder().join(name)).unwrap();
    assert_eq!(read("status-code").trim(), "0", "{}", read("status"));
    assert_eq!(read("cancel-code").trim(), "6", "{}", read("cancel"));
}
