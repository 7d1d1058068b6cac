//! Runs with a service that works as it should.

use std::fs;

use protocol::state::UsageTotal;
use runner_testkit::model::{ModelReply, ModelRequest, ReplyScript};
use serde_json::json;

use super::agent::RealAgent;
use super::stage::{AgentStage, StageSetup, done_reply, split_reply, with_work};

with_each_agent!(
    goal_is_split_worked_on_and_finished,
    red_guard_is_told_to_the_next_session_which_repairs,
    every_session_is_a_fresh_one_with_its_whole_prompt,
    ceiling_on_cost_ends_the_run_before_the_next_session,
    key_of_the_service_reaches_no_guard,
    what_is_done_is_reviewed_by_a_session_of_its_own,
);

/// In millionths of a dollar: the cost of one reply of the kit's model, at the prices configured here for both agents.
const COST_OF_A_REPLY: u64 = 3_210;

fn goal_is_split_worked_on_and_finished(agent: RealAgent) {
    let leaf = |script: ReplyScript, name: &str| {
        script
            .then(ModelReply::run(&format!("echo {name} | tee {name} work")))
            .then(done_reply(&format!("Wrote {name}.")))
    };
    let script = leaf(leaf(ReplyScript::new().then(split_reply(&["first", "second"])), "first"), "second");
    let stage = AgentStage::new(agent, script);
    stage.run().exits(0);
    let receipts = stage.assert_ended_as(&["Decomposed", "Accepted", "Accepted"]);
    let tree = stage.repo.tree("HEAD");
    assert!(tree.root.passes && tree.root.children.len() == 2, "{tree:#?}");
    assert_eq!(
        (stage.repo.show("HEAD", "first"), stage.repo.show("HEAD", "second")),
        ("first".into(), "second".into())
    );
    assert_eq!(receipts[2].body, "Wrote second.");
    let kind = receipts[1].trailer("Runner-Agent").unwrap_or_default();
    assert!(kind.starts_with(agent.kind()) && kind.contains('.'), "the version is missing: {kind}");
    let usage = stage.repo.run_state("HEAD").usage;
    let expected = UsageTotal {
        sessions: 3,
        input_tokens: Some(5 * 800),
        cached_tokens: Some(5 * 200),
        output_tokens: Some(5 * 50),
        cost_micro_usd: Some(5 * COST_OF_A_REPLY),
        ..UsageTotal::default()
    };
    assert_eq!(usage, expected);
    let spent = receipts[1].trailer("Runner-Usage").unwrap_or_default();
    assert!(spent.contains("in=1600 cached=400 out=100") && spent.contains("cost_usd=0.00642"), "{spent}");
    assert_eq!(stage.repo.meta(2).usage.cost_micro_usd, Some(2 * COST_OF_A_REPLY));
}

fn what_is_done_is_reviewed_by_a_session_of_its_own(agent: RealAgent) {
    let verdict = |verdict: &str, reason: &str| ModelReply::answer(json!({"verdict": verdict, "reasons": [reason]}));
    let script = with_work(ReplyScript::new()).then(verdict("reject", "The file says 1, not 2."));
    let script = script
        .then(ModelReply::run("echo 2 > work"))
        .then(done_reply("It says 2."))
        .then(verdict("accept", "It says 2."));
    let stage =
        StageSetup::for_agent(agent).with_config(|config| config.section("[review]\nby = \"agent\"")).start(script);
    stage.run().exits(0);
    let receipts = stage.assert_ended_as(&["Rejected", "Accepted"]);
    let reviews: Vec<_> = receipts.iter().filter_map(|receipt| receipt.trailer("Runner-Review")).collect();
    assert!(reviews[0].starts_with("reject prompt=") && reviews[1].starts_with("accept prompt="), "{reviews:?}");
    let facts = stage.repo.meta(2).review.expect("the record has its facts");
    assert!(facts.by.starts_with(agent.kind()) && facts.tries == 1, "{facts:?}");
    assert_eq!(stage.repo.run_state("HEAD").usage.sessions, 4);
    let requests = stage.model.requests();
    assert!(requests[2].user_text().contains("# Your role: reviewer"), "the third request is the reviewer's");
    assert!(
        requests[3].user_text().contains("The file says 1, not 2."),
        "the reason is missing: {}",
        requests[3].user_text()
    );
}

fn red_guard_is_told_to_the_next_session_which_repairs(agent: RealAgent) {
    let stage = AgentStage::new(
        agent,
        with_work(ReplyScript::new().then(ModelReply::run("echo 1 > other")).then(done_reply("I think so."))),
    );
    stage.run().exits(0);
    let receipts = stage.assert_ended_as(&["RedGuard", "Accepted"]);
    assert_eq!(receipts[0].trailer("Runner-Attempts"), Some("1/3"));
    let third = stage.model.requests().swap_remove(2);
    assert!(third.user_text().contains("there is no work"), "the guard's word is missing: {}", third.user_text());
}

fn every_session_is_a_fresh_one_with_its_whole_prompt(agent: RealAgent) {
    let stage = AgentStage::new(
        agent,
        with_work(ReplyScript::new().then(ModelReply::run("echo 1 > other")).then(done_reply("I think so."))),
    );
    stage.run().exits(0);
    let requests = stage.model.requests();
    let openings: Vec<&ModelRequest> = requests.iter().filter(|request| request.is_first_turn()).collect();
    assert_eq!((requests.len(), openings.len()), (4, 2), "{}", stage.log());
    for (iter, opening) in (1..).zip(&openings) {
        let prompt = stage.repo.read_record(iter, "prompt.md");
        assert!(opening.user_text().contains(prompt.trim_end()), "{}", opening.user_text());
        assert_eq!(opening.model(), agent.model());
    }
    let second = openings[1].body.to_string();
    assert!(!second.contains("call_1") && !second.contains("toolu_1"), "it knows the first session's calls: {second}");
}

fn ceiling_on_cost_ends_the_run_before_the_next_session(agent: RealAgent) {
    let setup = StageSetup::for_agent(agent).with_config(|config| config.top("max_cost_usd = 0.005"));
    let stage = setup.start(ReplyScript::new().then(ModelReply::run("echo 1 > other")).then(done_reply("I think so.")));
    let output = stage.run();
    assert!(output.exits(4).stdout.contains("max_cost_usd is used up"), "{}{}", output.stdout, output.stderr);
    stage.assert_ended_as(&["RedGuard"]);
    assert_eq!(stage.model.requests().len(), 2);
}

fn key_of_the_service_reaches_no_guard(agent: RealAgent) {
    let script = ReplyScript::new().then(ModelReply::run("env > work")).then(done_reply("Looked around."));
    let stage = AgentStage::new(agent, script);
    stage.repo.script().guard_always("env > \"$kit/env\"");
    stage.run().exits(0);
    stage.assert_ended_as(&["Accepted"]);
    let guard = fs::read_to_string(stage.repo.script().folder().join("env")).expect("the guard ran");
    assert!(!guard.contains("dummy"), "{guard}");
    // Claude passes its key to the commands that it runs: the setting that hides it also forbids running them.
    if agent == RealAgent::Codex {
        assert!(!stage.repo.show("HEAD", "work").contains("dummy"));
    }
}
