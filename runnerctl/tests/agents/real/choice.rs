//! Which agent runs: another kind while a service is unavailable, and never an unknown version.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use runner_testkit::model::{ModelProtocol, ModelReply, ModelRequest, ReplyScript};

use super::agent::RealAgent;
use super::stage::{AgentStage, StageSetup, split_reply, with_work};

with_each_agent!(
    planner_may_have_another_model,
    program_of_an_old_version_is_refused_with_the_fix,
    program_that_is_missing_is_named_before_a_session,
);

#[test]
fn fallback_continues_while_the_usage_limit_lasts() {
    let is_codex = |request: &ModelRequest| request.protocol == ModelProtocol::Responses;
    let script = with_work(ReplyScript::new().when(is_codex, ModelReply::usage_limit(4_000_000_000)));
    let stage = StageSetup::for_agent(RealAgent::Codex)
        .with_config(|config| config.executor("fallback = [\"claude\"]"))
        .start(script);
    stage.run().exits(0);
    let receipts = stage.assert_ended_as(&["Accepted"]);
    let ran = receipts[0].trailer("Runner-Agent").unwrap_or_default();
    assert!(ran.starts_with("claude "), "{ran}");
    assert_eq!(receipts[0].trailer("Runner-Attempts"), Some("0/3"));
}

fn program_of_an_old_version_is_refused_with_the_fix(agent: RealAgent) {
    let stage = AgentStage::new(agent, ReplyScript::new());
    let path = stage.home.path().join("bin").join(agent.kind());
    fs::remove_file(&path).expect("the link to the agent can be removed");
    fs::write(&path, "#!/bin/sh\necho 0.0.1\n").expect("a program can be written");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("a program can be made executable");
    let output = stage.run();
    assert_ne!(output.code, 0, "{}", output.stdout);
    let text = format!("{}{}", output.stdout, output.stderr);
    assert!(text.contains("0.0.1") && text.contains(agent.kind()), "{text}");
    assert_eq!(stage.model.requests().len(), 0);
}

fn planner_may_have_another_model(agent: RealAgent) {
    let planner = match agent {
        RealAgent::Codex => "gpt-6-sol",
        RealAgent::Claude | RealAgent::Opencode | RealAgent::Gemini => "claude-opus-4-5",
    };
    let setup = StageSetup::for_agent(agent)
        .with_config(move |config| config.section(&format!("[executor.plan]\nmodel = {planner:?}")));
    let stage = setup.start(with_work(ReplyScript::new().then(split_reply(&["only"]))));
    stage.run().exits(0);
    stage.assert_ended_as(&["Decomposed", "Accepted"]);
    let requests = stage.model.requests();
    let models: Vec<&str> = requests.iter().map(ModelRequest::model).collect();
    assert_eq!(models, [planner, agent.model(), agent.model()]);
}

fn program_that_is_missing_is_named_before_a_session(agent: RealAgent) {
    let stage = AgentStage::new(agent, ReplyScript::new());
    fs::remove_file(stage.home.path().join("bin").join(agent.kind())).expect("the link to the agent can be removed");
    let output = stage.run();
    assert_ne!(output.code, 0, "{}", output.stdout);
    assert!(output.stderr.contains(agent.kind()), "{}", output.stderr);
    assert_eq!(stage.model.requests().len(), 0);
}
