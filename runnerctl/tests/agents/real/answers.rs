//! Sessions that end well without a valid answer.

use protocol::words::RunStatus;
use runner_testkit::model::{ModelReply, ReplyScript};
use serde_json::json;

use super::agent::RealAgent;
use super::stage::AgentStage;

with_each_agent!(
    words_instead_of_an_answer_are_a_fault,
    empty_answer_is_a_fault,
    answer_of_another_form_is_a_fault,
    stream_that_is_no_json_is_no_answer,
);

/// Asserts that the run fails with this fault, that no attempt is charged, and that the work is kept.
#[track_caller]
fn assert_faulty(agent: RealAgent, reply: ModelReply) {
    let stage = AgentStage::new(agent, ReplyScript::new().then(ModelReply::run("echo 1 > work")).always(reply));
    let output = stage.run();
    let text = format!("{}{}", output.exits(9).stdout, output.stderr);
    assert!(text.contains("answer"), "{text}");
    assert_eq!(stage.repo.node("root").attempts, 0);
    let receipts = stage.assert_ended_as(&["Fault"]);
    assert_eq!(stage.repo.show("HEAD", "work"), "1");
    let spent = receipts[0].trailer("Runner-Usage").unwrap_or_default();
    assert!(spent.contains("in=") && !spent.contains("in=unknown"), "{spent}");
}

fn words_instead_of_an_answer_are_a_fault(agent: RealAgent) {
    assert_faulty(agent, ModelReply::text("I have written the file."));
}

fn empty_answer_is_a_fault(agent: RealAgent) {
    assert_faulty(agent, ModelReply::empty());
}

fn answer_of_another_form_is_a_fault(agent: RealAgent) {
    assert_faulty(agent, ModelReply::answer(json!({"status": "perhaps"})));
}

fn stream_that_is_no_json_is_no_answer(agent: RealAgent) {
    let stage = AgentStage::new(agent, ReplyScript::new().always(ModelReply::raw("data: this is no JSON\n\n")));
    stage.start_run();
    let run = stage.wait_until_stopped();
    assert!(matches!(run.summary.state, RunStatus::Failed | RunStatus::Waiting), "{run:#?}");
    assert_eq!(stage.repo.node("root").attempts, 0, "{run:#?}");
}
