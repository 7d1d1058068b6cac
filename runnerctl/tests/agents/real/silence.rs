//! Sessions that hang, before or after their result.

use runner_testkit::model::{ModelReply, ReplyScript};

use super::agent::RealAgent;
use super::stage::{StageSetup, done_reply, with_work};

with_each_agent!(
    service_that_never_replies_is_a_fault_of_silence,
    stream_that_stalls_is_a_fault_of_silence,
    answer_counts_though_the_agent_stays,
);

/// Enough time for an agent to start on a busy machine.
const SILENCE: &str = "idle_timeout_secs = 8";

#[track_caller]
fn assert_silent(agent: RealAgent, reply: ModelReply) {
    let stage = StageSetup::for_agent(agent)
        .with_config(|config| config.executor(SILENCE))
        .start(ReplyScript::new().always(reply));
    let output = stage.run();
    let text = format!("{}{}", output.exits(9).stdout, output.stderr);
    assert!(text.contains("printed nothing"), "{text}");
    assert_eq!(stage.repo.node("root").attempts, 0);
    stage.assert_ended_as(&["Fault"]);
}

fn service_that_never_replies_is_a_fault_of_silence(agent: RealAgent) {
    assert_silent(agent, ModelReply::silence());
}

fn stream_that_stalls_is_a_fault_of_silence(agent: RealAgent) {
    assert_silent(agent, done_reply("Half of it.").stalled());
}

fn answer_counts_though_the_agent_stays(agent: RealAgent) {
    let wrapper = ["sh", "-c", "\"$@\"; [ \"$2\" = --version ] || exec sleep 600", "sh"];
    let setup =
        StageSetup::for_agent(agent).with_config(move |config| config.executor(&format!("wrapper = {wrapper:?}")));
    let stage = setup.start(with_work(ReplyScript::new()));
    stage.run().exits(0);
    let receipts = stage.assert_ended_as(&["Accepted"]);
    assert_eq!(receipts[0].body, "Wrote the file.");
    assert!(stage.repo.meta(1).usage.output_tokens.is_some_and(|tokens| tokens > 0));
}
