//! The quick start from the documentation, typed as written; only the agent is told where its service is.

use std::fs;
use std::path::Path;
use std::process::Command;

use runner_testkit::binary;
use runner_testkit::model::{ModelReply, ReplyScript};

use super::agent::RealAgent;
use super::stage::{AgentStage, done_reply};

with_each_agent!(what_is_typed_leads_to_a_finished_branch);

fn what_is_typed_leads_to_a_finished_branch(agent: RealAgent) {
    let works = ModelReply::run("printf 'A first try.\\nNothing else.\\n' > NOTES.md");
    let stage = AgentStage::new(agent, ReplyScript::new().then(works).then(done_reply("Wrote NOTES.md.")));
    let programs = binary("runnerctl");
    let folder = programs.parent().expect("the program is in a folder").display().to_string();
    let mut shell = Command::new("sh");
    shell.args(["-euc", &type_commands(agent, &stage.model.url())]).current_dir(stage.home.path()).env_clear();
    for (name, value) in stage.home.env() {
        shell.env(name, if name == "PATH" { format!("{folder}:{value}") } else { value.clone() });
    }
    let output = shell.output().expect("a shell runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    for fact in ["completed on branch runner/", "finished  ", "0 violations"] {
        assert!(stdout.contains(fact), "{fact:?} is missing:\n{stdout}");
    }
}

/// Returns the page's block marked `quick-start`, for this agent and this service.
fn type_commands(agent: RealAgent, service: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/quick-start.md");
    let text = fs::read_to_string(page).expect("the page can be read");
    let (_, after) = text.split_once("```sh quick-start\n").expect("the page has a block to type");
    let (block, _) = after.split_once("```").expect("the block ends");
    let (before, after) = block.split_once("runnerctl doctor\n").expect("it asks the doctor");
    let settings =
        agent.settings(service).into_iter().map(|(key, value)| format!("runnerctl config set {key} '{value}'"));
    let settings = settings.collect::<Vec<_>>().join("\n");
    let chosen = "executor.kind codex\n";
    assert!(before.contains(chosen), "it chooses the agent: {before}");
    let before = before.replace(chosen, &format!("executor.kind {}\n", agent.kind()));
    format!("{before}{settings}\nrunnerctl doctor\n{after}")
}
