//! Sessions stopped in the middle of a tool call whose processes have moved to their own sessions.

use protocol::words::RunStatus;
use runner_testkit::model::{ModelReply, ReplyScript};

use super::agent::RealAgent;
use super::stage::{AgentStage, with_work};

with_each_agent!(
    tool_call_that_is_stopped_leaves_nothing_alive_and_its_work_is_kept,
    daemon_killed_during_a_tool_call_continues_and_leaves_no_process_alive,
);

/// A session whose first command leaves processes of all kinds behind, and which does not end. It passes the gate
/// before.
fn assert_stuck_in_tool(stage: &AgentStage) {
    let gate = stage.repo.script().gate("called");
    let arrival = stage.repo.script().folder().join("gates/called.in");
    let command = format!(
        "echo early > early; setsid sleep 600 & nohup sleep 600 > nohup.log & (trap '' TERM INT; setsid -f sleep 600); \
         echo > {}; wait; sleep 600",
        arrival.display()
    );
    stage.model.set_script(ReplyScript::new().then(ModelReply::run(&command)));
    stage.start_run();
    gate.wait_reached();
}

fn tool_call_that_is_stopped_leaves_nothing_alive_and_its_work_is_kept(agent: RealAgent) {
    let stage = AgentStage::new(agent, ReplyScript::new());
    assert_stuck_in_tool(&stage);
    stage.ctl(&["pause", "--now"]).exits(0);
    stage.wait_for_state(RunStatus::Paused);
    let receipts = stage.assert_ended_as(&["Interrupted"]);
    assert_eq!(
        (receipts[0].trailer("Runner-Attempts"), stage.repo.show("HEAD", "early")),
        (Some("0/3"), "early".into())
    );
    let usage = stage.repo.meta(1).usage;
    assert!(usage.input_tokens.is_some(), "what was spent before the stop is not known: {usage:?}");
    stage.model.set_script(with_work(ReplyScript::new()));
    stage.ctl(&["resume"]).exits(0);
    stage.wait_for_state(RunStatus::Completed);
    stage.assert_ended_as(&["Interrupted", "Accepted"]);
}

fn daemon_killed_during_a_tool_call_continues_and_leaves_no_process_alive(agent: RealAgent) {
    let mut stage = AgentStage::new(agent, ReplyScript::new());
    assert_stuck_in_tool(&stage);
    stage.model.set_script(with_work(ReplyScript::new()));
    stage.restart(runner_testkit::Daemon::kill);
    stage.wait_for_state(RunStatus::Completed);
    stage.assert_ended_as(&["Interrupted", "Accepted"]);
}
