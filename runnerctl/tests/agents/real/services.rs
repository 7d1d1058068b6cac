//! Services that are exhausted, broken, or refuse the login: none of this costs an attempt.

use jiff::{Span, Timestamp};
use protocol::words::RunStatus;
use runner_testkit::Daemon;
use runner_testkit::model::{ModelReply, ModelRequest, ReplyScript};

use super::agent::RealAgent;
use super::stage::{AgentStage, StageSetup, done_reply, with_work};

with_each_agent!(
    usage_limit_is_waited_out_until_its_reset,
    wait_for_another_day_survives_the_death_of_the_daemon,
    broken_service_is_waited_for_and_costs_no_attempt,
    service_that_asks_for_an_hour_is_waited_for,
    work_before_a_broken_service_is_kept,
    dropped_stream_is_asked_again_by_the_agent_itself,
    service_that_drops_every_stream_is_waited_for,
    refused_key_fails_the_run_and_names_the_fix,
    unknown_model_fails_the_run_and_names_the_fix,
    exceeded_context_costs_an_attempt,
);

/// The reset time of a plan's limit, some hours from now.
fn reset_time() -> Timestamp {
    let soon = Timestamp::now().as_second() + 3 * 3_600;
    Timestamp::from_second(soon - soon % 60).expect("it is a time")
}

/// Asserts that the run waits, that the node has no attempt, and that no commit was made.
#[track_caller]
fn assert_waits(stage: &AgentStage) -> protocol::view::RunView {
    let run = stage.wait_for_state(RunStatus::Waiting);
    assert_eq!(stage.repo.node("root").attempts, 0);
    stage.assert_ended_as(&[]);
    assert_eq!(stage.repo.run_state("HEAD").next_iter, 1, "the number is used again");
    run
}

/// Continues at once, with a service that has recovered.
fn recover(stage: &AgentStage) {
    stage.model.set_script(with_work(ReplyScript::new()));
    stage.ctl(&["resume", "--now"]).exits(0);
    stage.wait_for_state(RunStatus::Completed);
    let receipts = stage.assert_ended_as(&["Accepted"]);
    assert_eq!(receipts[0].trailer("Runner-Attempts"), Some("0/3"));
}

fn usage_limit_is_waited_out_until_its_reset(agent: RealAgent) {
    let reset = reset_time();
    let script = ReplyScript::new().always(ModelReply::usage_limit(reset.as_second()));
    let stage = StageSetup::for_agent(agent).with_plan().in_zone("Asia/Kolkata").start(script);
    stage.start_run();
    let run = assert_waits(&stage);
    let until = run.wait_until.expect("the time is known");
    assert_eq!((until.as_second() - reset.as_second()), 60, "{until} is not a minute after {reset}");
    let status = stage.ctl(&["status"]);
    assert!(status.exits(0).stdout.contains("limit"), "{}", status.stdout);
    assert_eq!(stage.model.requests().len(), 1, "a limit is not asked again");
    recover(&stage);
}

fn wait_for_another_day_survives_the_death_of_the_daemon(agent: RealAgent) {
    let reset = reset_time().checked_add(Span::new().hours(72)).expect("it is a time");
    let script = ReplyScript::new().always(ModelReply::usage_limit(reset.as_second()));
    let mut stage = StageSetup::for_agent(agent).with_plan().in_zone("America/St_Johns").start(script);
    stage.start_run();
    let run = assert_waits(&stage);
    assert_eq!(run.wait_until.map(|until| until.as_second() - reset.as_second()), Some(60), "{run:#?}");
    stage.restart(Daemon::kill);
    let again = assert_waits(&stage);
    assert_eq!((again.wait_until, again.summary.reason), (run.wait_until, run.summary.reason));
    recover(&stage);
}

fn broken_service_is_waited_for_and_costs_no_attempt(agent: RealAgent) {
    let stage = AgentStage::new(agent, ReplyScript::new().always(ModelReply::broken()));
    stage.start_run();
    let run = assert_waits(&stage);
    assert!(run.wait_until.is_some_and(|until| until > Timestamp::now()), "{run:#?}");
    recover(&stage);
}

fn work_before_a_broken_service_is_kept(agent: RealAgent) {
    let stage = AgentStage::new(
        agent,
        ReplyScript::new().then(ModelReply::run("echo early > early")).always(ModelReply::broken()),
    );
    stage.start_run();
    stage.wait_for_state(RunStatus::Waiting);
    let receipts = stage.assert_ended_as(&["Unavailable"]);
    assert_eq!(
        (receipts[0].trailer("Runner-Attempts"), stage.repo.show("HEAD", "early")),
        (Some("0/3"), "early".into())
    );
    stage.model.set_script(with_work(ReplyScript::new()));
    stage.ctl(&["resume", "--now"]).exits(0);
    stage.wait_for_state(RunStatus::Completed);
    stage.assert_ended_as(&["Unavailable", "Accepted"]);
}

fn dropped_stream_is_asked_again_by_the_agent_itself(agent: RealAgent) {
    let stage = AgentStage::new(agent, with_work(ReplyScript::new().then(done_reply("Never heard whole.").dropped())));
    stage.run().exits(0);
    stage.assert_ended_as(&["Accepted"]);
    assert_eq!(stage.model.requests().len(), 3);
}

fn service_that_drops_every_stream_is_waited_for(agent: RealAgent) {
    let streamed = |request: &ModelRequest| request.wants_stream();
    let stage = AgentStage::new(
        agent,
        ReplyScript::new().when(streamed, done_reply("Cut.").dropped()).always(ModelReply::hang_up()),
    );
    stage.start_run();
    assert_waits(&stage);
    recover(&stage);
}

fn refused_key_fails_the_run_and_names_the_fix(agent: RealAgent) {
    let stage = AgentStage::new(agent, ReplyScript::new().always(ModelReply::unauthorized()));
    let output = stage.run();
    let text = format!("{}{}", output.exits(9).stdout, output.stderr);
    assert!(text.contains(agent.kind()) && text.contains("runnerctl resume"), "{text}");
    assert_eq!(stage.repo.node("root").attempts, 0);
    stage.assert_ended_as(&[]);
}

fn unknown_model_fails_the_run_and_names_the_fix(agent: RealAgent) {
    let stage = AgentStage::new(agent, ReplyScript::new().always(ModelReply::unknown_model()));
    let output = stage.run();
    let text = format!("{}{}", output.exits(9).stdout, output.stderr);
    assert!(text.contains("model"), "{text}");
    assert_eq!(stage.repo.node("root").attempts, 0);
    stage.assert_ended_as(&[]);
}

fn exceeded_context_costs_an_attempt(agent: RealAgent) {
    let script = ReplyScript::new().then(ModelReply::run("echo early > early")).then(ModelReply::too_long());
    let stage = AgentStage::new(agent, with_work(script));
    stage.run().exits(0);
    let receipts = stage.assert_ended_as(&["Broken", "Accepted"]);
    assert_eq!(receipts[0].trailer("Runner-Attempts"), Some("1/3"));
    assert!(receipts[0].trailer("Runner-Verdict").is_some_and(|verdict| verdict.contains("context")), "{receipts:#?}");
}

fn service_that_asks_for_an_hour_is_waited_for(agent: RealAgent) {
    let setup = StageSetup::for_agent(agent).with_config(|config| config.executor("idle_timeout_secs = 10"));
    let stage = setup.start(ReplyScript::new().always(ModelReply::rate_limit(Some(3_600))));
    stage.start_run();
    assert_waits(&stage);
    recover(&stage);
}
