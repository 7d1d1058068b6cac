//! A session has what `[executor] inherit` names of the person's own set-up, and nothing else of it.

use std::fs;
use std::path::Path;

use runner_testkit::model::ReplyScript;

use super::agent::RealAgent;
use super::stage::{AgentStage, StageSetup, with_work};

with_all_agents!(
    server_that_is_inherited_runs_and_no_other,
    skills_that_are_inherited_reach_the_model,
    settings_that_are_inherited_have_an_effect,
    server_that_the_person_does_not_have_keeps_a_run_from_starting,
);

/// Sets up servers, a skill and, for programs that have them, a hook; each leaves a mark.
const SET_UP: &str = include_str!("inherit/set-up.sh");

/// A stage whose person has a set-up of every program.
fn stage_with(agent: RealAgent, inherit: &str) -> AgentStage {
    let line = format!("inherit = {inherit}");
    let stage = StageSetup::for_agent(agent)
        .with_config(move |config| config.executor(&line))
        .start(with_work(ReplyScript::new()));
    fs::create_dir(stage.home.path().join("marks")).expect("a folder can be made");
    stage.home.install("set-up", SET_UP);
    let words = format!("set-up {home} {home}/config {home}/marks", home = stage.home.path().display());
    stage.home.run_program(Path::new("/bin/sh"), &["-euc", &words]).exits(0);
    stage
}

fn marks(stage: &AgentStage) -> Vec<String> {
    let entries = fs::read_dir(stage.home.path().join("marks")).expect("the folder can be read");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs to the end, and returns whether the model has read of the skill.
#[track_caller]
fn run_to_the_end(stage: &AgentStage) -> bool {
    stage.run().exits(0);
    stage.assert_ended_as(&["Accepted"]);
    stage.model.requests().iter().any(|request| request.body.to_string().contains("A-SKILL-OF-MINE"))
}

fn server_that_is_inherited_runs_and_no_other(agent: RealAgent) {
    let stage = stage_with(agent, r#"["mcp:mine"]"#);
    assert!(!run_to_the_end(&stage));
    assert_eq!(marks(&stage), ["mine"], "{}", stage.log());
    let receipt = stage.repo.receipts().pop().expect("a receipt");
    let agent = receipt.trailers.iter().find(|(name, _)| name == "Runner-Agent").expect("an agent");
    assert!(agent.1.ends_with(" +mcp:mine"), "{agent:?}");
}

fn skills_that_are_inherited_reach_the_model(agent: RealAgent) {
    let stage = stage_with(agent, r#"["skills"]"#);
    assert!(run_to_the_end(&stage), "{}", stage.log());
    assert!(!marks(&stage).contains(&"other".to_owned()), "{:?}", marks(&stage));
}

fn settings_that_are_inherited_have_an_effect(agent: RealAgent) {
    let stage = stage_with(agent, r#"["settings"]"#);
    assert!(!run_to_the_end(&stage));
    let expected: &[&str] = match agent {
        RealAgent::Claude => &["hook"],
        RealAgent::Codex | RealAgent::Opencode => &["mine", "other"],
        RealAgent::Gemini => &["hook", "mine", "other"],
    };
    assert_eq!(marks(&stage), expected, "{}", stage.log());
}

fn server_that_the_person_does_not_have_keeps_a_run_from_starting(agent: RealAgent) {
    let stage = stage_with(agent, r#"["mcp:mine", "mcp:absent"]"#);
    let output = stage.ctl(&["start", "--yes", "-m", "Write the file work."]);
    assert_ne!(output.code, 0, "{output:?}");
    assert!(output.stderr.contains("the MCP server `absent` is not in "), "{output:?}");
    assert_eq!(stage.model.requests().len(), 0);
}
