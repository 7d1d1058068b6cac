//! `verify` for programs: SARIF that is valid for its schema, Markdown, `--strict`, and findings that a revision
//! already has.

use std::sync::LazyLock;

use jsonschema::Validator;
use protocol::verify::{AuditRule, AuditSince};
use runner_testkit::ProgramOutput;
use serde_json::{Value, json};

use crate::audits::{parse_report, play_two};
use crate::play::RunPlay;

const TREE: &str = ".runner/state/tree.json";

/// The schema of the standard, as published by OASIS.
static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    // The published pattern of a language has a superfluous bracket, so it is not a valid regular expression.
    let text = include_str!("sarif-2.1.0.schema.json").replace("-[a-zA-Z]{2}]?$", "-[a-zA-Z]{2}?$");
    let schema = serde_json::from_str(&text).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema compiles")
});

/// Returns the only run of a log, which must be valid for the schema.
#[track_caller]
fn parse_sarif(output: &ProgramOutput, code: i32) -> Value {
    let log: Value = serde_json::from_str(&output.exits(code).stdout).expect("SARIF is JSON");
    let faults: Vec<String> =
        SCHEMA.iter_errors(&log).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert_eq!(faults, [""; 0]);
    assert_eq!(log["runs"].as_array().map(Vec::len), Some(1));
    log["runs"][0].clone()
}

fn verify(play: &RunPlay, more: &[&str]) -> ProgramOutput {
    play.home.ctl_in(&play.repo, &[&["verify"], more].concat())
}

/// A branch of two iterations on which someone has marked a leaf as passed.
fn forged_play() -> RunPlay {
    let play = play_two();
    play.repo
        .write(TREE, &play.repo.read(TREE).replacen("\"passes\": false", "\"passes\": true", 1))
        .commit("It | `passes`");
    play
}

#[test]
fn findings_are_results_with_rule_file_and_commit() {
    let mut play = play_two();
    play.home.expect_forgery();
    let run = parse_sarif(&verify(&play, &["--format", "sarif"]), 0);
    assert_eq!(run["results"], json!([]));
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    assert_eq!(rules.len(), AuditRule::ALL.len());
    play.repo
        .write(TREE, &play.repo.read(TREE).replacen("\"passes\": false", "\"passes\": true", 1))
        .commit("It | `passes`");
    let tip = play.repo.git(&["rev-parse", "HEAD"]);
    let run = parse_sarif(&verify(&play, &["--format", "sarif"]), 10);
    let results = run["results"].as_array().expect("results");
    let result =
        results.iter().find(|entry| entry["ruleId"] == "valid").unwrap_or_else(|| panic!("none: {results:#?}"));
    assert_eq!(result["level"], "error");
    let place = &result["locations"][0];
    assert_eq!(place["physicalLocation"]["artifactLocation"]["uri"], TREE);
    assert_eq!(place["logicalLocations"][0]["fullyQualifiedName"], format!("commit/{tip}"));
    let at = usize::try_from(result["ruleIndex"].as_u64().expect("a place")).expect("small");
    assert_eq!(run["tool"]["driver"]["rules"][at]["id"], "valid");
    let markdown = verify(&play, &["--format", "markdown"]);
    let stdout = &markdown.exits(10).stdout;
    assert!(stdout.contains("| violation | `") && stdout.contains("| valid | "), "{stdout}");
    assert!(stdout.contains("<code>It &#124; &#96;passes&#96;</code>"), "a subject stays text: {stdout}");
    assert_eq!(parse_report(&verify(&play, &["--format", "json"])), parse_report(&verify(&play, &["--json"])));
    assert!(
        verify(&play, &["--json", "--format", "sarif"]).exits(2).stderr.contains("runnerctl verify --format sarif")
    );
}

#[test]
fn what_a_revision_has_is_counted_and_no_more_called_proven() {
    let play = forged_play();
    let proven = "each by an accepted iteration";
    let since = |revision: &str| verify(&play, &["--since", revision]);
    let before = since("HEAD~1");
    assert!(before.exits(10).stdout.contains(" before"), "{}", before.stdout);
    let all = since("HEAD");
    let stdout = &all.exits(0).stdout;
    assert!(stdout.contains("0 violations, 0 warnings since ") && stdout.contains(", 1 violation and "), "{stdout}");
    assert!(!stdout.contains(proven), "an earlier commit breaks a rule: {stdout}");
    let of = parse_report(&verify(&play, &["--since", "HEAD", "--json"])).since;
    let tip = play.repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(of, Some(AuditSince { commit: tip, violations: 1, warnings: 0 }));
    assert!(since("nowhere").exits(1).stderr.contains("`nowhere` names no commit"), "a typing mistake hides nothing");
    play.repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let stdout = since("HEAD~1").exits(0).stdout.clone();
    assert!(stdout.contains(proven), "{stdout}");
}

#[test]
fn what_was_not_seen_is_a_violation_where_it_is_strict_and_a_result_in_any_case() {
    let play = play_two();
    let shallow = play.home.path().join("shallow").display().to_string();
    let url = format!("file://{}", play.repo.path().display());
    play.repo.git(&[
        "clone",
        "-q",
        "--depth",
        "2",
        "--branch",
        &play.repo.git(&["branch", "--show-current"]),
        &url,
        &shallow,
    ]);
    let found = |more: &[&str]| play.home.ctl(&[&["verify", &shallow], more].concat());
    let strict = parse_report(&found(&["--strict", "--json"])).findings;
    assert_eq!(strict.iter().map(|finding| finding.rule).collect::<Vec<_>>(), [AuditRule::Unseen]);
    assert_eq!(parse_report(&found(&["--json"])).findings, []);
    let level = |more: &[&str], code| {
        parse_sarif(&found(&[&["--format", "sarif"], more].concat()), code)["results"][0]["level"].clone()
    };
    assert_eq!(level(&[], 10), "error");
    assert_eq!(level(&["--strict"], 10), "error");
    assert_eq!(level(&["--allow-shallow"], 0), "warning");
}
