//! How programs end: on their own, at a timeout, on request.

use std::time::Duration;

use runner_process::{ProgramEnd, StopPolicy};

use crate::kit::{AnswerProbe, PATIENCE, RunningProgram, TestFolder, run_to_end};

#[tokio::test]
async fn exit_code_is_reported() {
    let bench = TestFolder::new();
    let report = run_to_end(bench.sh("echo out; echo err >&2; exit 3")).await;
    assert_eq!((report.end, report.survivors), (ProgramEnd::Exited(3), 0));
    assert_eq!(bench.log(), "out\nerr\n");
}

#[tokio::test]
async fn signal_is_not_taken_for_an_exit_code() {
    let bench = TestFolder::new();
    assert_eq!(run_to_end(bench.sh("kill -SEGV $$")).await.end, ProgramEnd::Signaled(11));
    assert_eq!(run_to_end(bench.sh("kill -40 $$")).await.end, ProgramEnd::Signaled(40));
    assert_eq!(run_to_end(bench.sh("exit 139")).await.end, ProgramEnd::Exited(139));
}

#[tokio::test]
async fn budget_ends_a_program_that_ignores_sigterm() {
    let bench = TestFolder::new();
    let mut spec = bench.agent("ignores-term");
    spec.limits.budget = Duration::from_secs(1);
    spec.limits.grace = Duration::from_millis(300);
    let report = run_to_end(spec).await;
    assert_eq!(report.end, ProgramEnd::TimedOut);
    assert!(report.elapsed >= Duration::from_secs(1), "{:?}", report.elapsed);
    // Any later and the shim would have been given up: so it was the shim that enforced the budget.
    assert!(report.elapsed < Duration::from_secs(6), "{:?}", report.elapsed);
}

#[tokio::test]
async fn grace_beyond_the_budget_leaves_time_to_work() {
    let bench = TestFolder::new();
    let mut spec = bench.sh("sleep 0.1; exit 6");
    spec.limits.budget = Duration::from_secs(10);
    spec.limits.grace = Duration::from_secs(100);
    assert_eq!(run_to_end(spec).await.end, ProgramEnd::Exited(6));
}

#[tokio::test]
async fn clean_up_within_the_grace_is_completed() {
    let bench = TestFolder::new();
    let mut running = RunningProgram::start(bench.patient("slow-term 0.3"));
    running.lines.processes(1).await;
    running.stop.cancel();
    assert_eq!(running.report().await.end, ProgramEnd::Stopped);
    assert!(bench.log().contains("CLEANED"));
}

#[tokio::test]
async fn clean_up_beyond_the_grace_is_cut_off() {
    let bench = TestFolder::new();
    let mut spec = bench.agent("slow-term 100");
    spec.limits.grace = Duration::from_millis(200);
    let mut running = RunningProgram::start(spec);
    running.lines.processes(1).await;
    running.stop.cancel();
    assert_eq!(running.report().await.end, ProgramEnd::Stopped);
    assert!(!bench.log().contains("CLEANED"));
}

#[tokio::test]
async fn every_process_is_asked_once_to_end() {
    let bench = TestFolder::new();
    let mut running = RunningProgram::start(bench.patient("counts-term"));
    running.lines.processes(2).await;
    running.stop.cancel();
    running.report().await;
    assert_eq!(bench.log().matches("ASKED ONCE\n").count(), 2, "{}", bench.log());
}

#[tokio::test]
async fn stop_before_the_start_runs_nothing() {
    let bench = TestFolder::new();
    let running = RunningProgram::start(bench.sh("touch ran"));
    running.stop.cancel();
    assert_eq!(running.report().await.end, ProgramEnd::Stopped);
    assert!(!bench.path("ran").exists());
}

#[tokio::test]
async fn silence_ends_a_program() {
    let bench = TestFolder::new();
    let mut spec = bench.sh("echo one; sleep 1000");
    // It must start within this time.
    spec.limits.idle = Some(Duration::from_secs(4));
    assert_eq!(run_to_end(spec).await.end, ProgramEnd::Silent);
    assert_eq!(bench.log(), "one\n");
}

#[tokio::test]
async fn program_that_prints_is_not_silent() {
    let bench = TestFolder::new();
    // Longer than the silence limit, but never silent for long, even on a busy machine.
    let mut spec = bench.sh("for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.5; done");
    spec.limits.idle = Some(Duration::from_secs(4));
    assert_eq!(run_to_end(spec).await.end, ProgramEnd::Exited(0));
}

#[tokio::test]
async fn program_that_stays_after_its_answer_is_ended() {
    let bench = TestFolder::new();
    let mut spec = bench.sh("touch answer; sleep 1000");
    let answer = bench.path("answer");
    spec.follower = Some(Box::new(AnswerProbe(move || answer.exists())));
    let report = run_to_end(spec).await;
    assert_eq!(report.end, ProgramEnd::Lingered);
    assert!(report.elapsed >= Duration::from_secs(10), "{:?}", report.elapsed);
}

#[tokio::test]
async fn program_that_answers_and_ends_has_ended_by_itself() {
    let bench = TestFolder::new();
    let mut spec = bench.sh("sleep 0.1");
    spec.follower = Some(Box::new(AnswerProbe(|| true)));
    assert_eq!(run_to_end(spec).await.end, ProgramEnd::Exited(0));
}

#[tokio::test]
async fn interrupt_reaches_the_program_alone_and_what_it_leaves_is_killed() {
    let bench = TestFolder::new();
    let mut spec =
        bench.sh("trap 'echo told; exit 7' INT\n(trap 'echo child told' INT TERM; sleep 1000) &\necho ready; wait");
    spec.stop_policy = StopPolicy::Interrupt;
    // Processes that were not asked to end are not waited for.
    spec.limits.grace = PATIENCE * 4;
    let mut running = RunningProgram::start(spec);
    assert_eq!(running.lines.next().await.as_deref(), Some("ready"));
    running.stop.cancel();
    let report = running.report().await;
    assert_eq!((report.end, bench.log().as_str()), (ProgramEnd::Stopped, "ready\ntold\n"));
    assert!(report.survivors > 0, "the child was left");
}
