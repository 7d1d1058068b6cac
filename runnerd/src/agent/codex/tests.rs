//! Sessions as they were recorded, against what is made of them; and what is passed to the program.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use protocol::answer::{AgentAnswer, SessionUsage};
use protocol::event::{Activity, ActivityKind};
use runner_core::redact::Secrets;
use serde_json::Value;
use tempfile::TempDir;

use super::super::answer_file::{self, AnswerFile};
use super::super::backend::{Heard, Rest};
use super::super::stream::Lines;
use super::*;
use crate::config;

/// A recorded session: what it printed, and what stood in its files.
struct Sample {
    stdout: &'static str,
    stderr: &'static str,
    rollout: &'static str,
    last: &'static str,
    is_marked: bool,
}

macro_rules! sample {
    ($name:literal) => {
        Sample {
            stdout: include_str!(concat!("../samples/codex/", $name, ".stdout")),
            rollout: include_str!(concat!("../samples/codex/", $name, ".rollout")),
            stderr: "",
            last: "",
            is_marked: false,
        }
    };
}

fn success() -> Sample {
    Sample { last: include_str!("../samples/codex/success.last"), ..sample!("success") }
}

/// A session, heard.
struct Played {
    steps: Vec<Activity>,
    has_answered: bool,
    heard: Heard,
    left: Vec<String>,
    folder: TempDir,
}

/// Puts the files where they would be, and lets the output come in pieces that end at the given places.
fn play(sample: &Sample, cuts: &[usize]) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let (home, at) = (folder.path().join("home"), |name: &str| folder.path().join(name));
    let places = Places { home: Some(home.clone()), schema: at("schema"), last: at("last"), mark: at("mark") };
    fs::write(&places.last, sample.last).unwrap();
    if sample.is_marked {
        fs::write(&places.mark, "").unwrap();
    }
    let session = sample.stdout.split('"').nth(7).unwrap();
    let day = home.join("sessions/2026/11/22");
    fs::create_dir_all(&day).unwrap();
    fs::write(day.join(format!("rollout-2026-11-22T04-36-16-{session}.jsonl")), sample.rollout).unwrap();
    let mut reader = Box::new(CodexReader::new(places));
    let (mut lines, mut steps) = (Lines::default(), Vec::new());
    let mut cuts = [&[0], cuts, &[sample.stdout.len()]].concat();
    cuts.sort_unstable();
    for cut in cuts.windows(2) {
        lines.push(&sample.stdout.as_bytes()[cut[0]..cut[1]], |line| steps.extend(reader.line(line)));
    }
    lines.finish(|line| steps.extend(reader.line(line)));
    let has_answered = reader.has_answered();
    let heard = reader.finish(&Rest { errors: sample.stderr.as_bytes() });
    let names = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let left = names(&day).chain(names(folder.path())).map(|name| name.into_string().unwrap()).collect();
    Played { steps, has_answered, heard, left, folder }
}

fn signals(heard: &Heard) -> Vec<(&'static str, &str)> {
    heard.evidence.signals.iter().map(|signal| (signal.field, signal.value.as_str())).collect()
}

fn answer(heard: &Heard) -> Option<AgentAnswer> {
    match answer_file::of(heard.answer.as_deref()?, &Secrets::default()) {
        AnswerFile::Given { content, .. } => content.ok(),
        AnswerFile::Absent | AnswerFile::Invalid { .. } => None,
    }
}

fn usage(input: u64, cached: u64, output: u64) -> SessionUsage {
    SessionUsage {
        input_tokens: Some(input),
        cached_tokens: Some(cached),
        output_tokens: Some(output),
        cost_micro_usd: None,
    }
}

#[test]
fn session_that_answers_is_followed_step_by_step() {
    let played = play(&success(), &[]);
    assert!(played.has_answered);
    assert_eq!(answer(&played.heard).unwrap().summary, "All done.");
    assert_eq!(played.heard.usage, usage(1_600, 400, 100));
    assert_eq!(played.heard.session_id.as_deref(), Some("01a2018a-64ce-7382-9db5-d4d138fff34e"));
    assert_eq!(signals(&played.heard), []);
    let steps: Vec<String> = played.steps.iter().map(|step| format!("{:?}: {}", step.what, step.text)).collect();
    insta::assert_snapshot!(steps.join("\n"), @r#"
    Notice: Model metadata for `gpt-5.2-codex` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.
    Tool: /bin/bash -lc 'echo hi > work; echo seen'
    ToolResult: exit code 0: /bin/bash -lc 'echo hi > work; echo seen'
    seen
    Message: {"children":null,"status":"done","summary":"All done."}
    "#);
}

#[test]
fn neither_rollout_nor_files_of_the_session_are_left() {
    assert_eq!(play(&success(), &[]).left, ["home"]);
}

#[test]
fn answer_is_the_last_message_where_it_was_not_written_down() {
    let played = play(&sample!("success"), &[]);
    assert_eq!(answer(&played.heard).unwrap().summary, "All done.");
}

#[test]
fn empty_answer_is_none() {
    let sample = Sample { stderr: include_str!("../samples/codex/empty-answer.stderr"), ..sample!("empty-answer") };
    let played = play(&sample, &[]);
    assert_eq!(played.heard.answer, None);
    assert_eq!(signals(&played.heard), [("stderr", sample.stderr)]);
}

#[test]
fn error_that_the_session_got_over_is_no_cause_of_its_end() {
    let played = play(&sample!("dropped-then-success"), &[]);
    assert!(played.has_answered);
    assert_eq!(signals(&played.heard), []);
    assert!(played.steps.iter().any(|step| step.what == ActivityKind::Notice && step.text.contains("Reconnecting")));
}

#[test]
fn session_that_waited_for_its_service_ended_for_what_it_waited_for() {
    let waiting = "{\"type\":\"turn.started\"}\n{\"type\":\"error\",\"message\":\"Reconnecting... 1/2 (exceeded retry limit, \
                   last status: 429 Too Many Requests)\"}\n";
    let session = |stdout| Sample { stdout, stderr: "", rollout: "", last: "", is_marked: false };
    let heard = play(&session(waiting), &[]).heard;
    assert_eq!(heard.evidence.message(), Some("exceeded retry limit, last status: 429 Too Many Requests"));
    let step = "{\"type\":\"item.completed\",\"item\":{\"type\":\"reasoning\",\"text\":\"On.\"}}\n";
    let went_on: &'static str = format!("{waiting}{step}").leak();
    assert_eq!(play(&session(went_on), &[]).heard.evidence.message(), None);
}

#[test]
fn usage_limit_is_told_by_its_name_and_its_end() {
    let played = play(&sample!("usage-limit-after-work"), &[]);
    assert!(!played.has_answered);
    assert_eq!(signals(&played.heard)[0], ("error_info", "usage_limit_exceeded"));
    assert!(played.heard.evidence.message().unwrap().contains("hit your usage limit"));
    assert_eq!(played.heard.evidence.resets_at.map(jiff::Timestamp::as_second), Some(1_795_340_176));
    assert_eq!(played.heard.usage, usage(800, 200, 50));
}

#[test]
fn refused_key_is_told_by_the_status_of_the_reply() {
    let played = play(&sample!("auth-wrong-key"), &[]);
    assert_eq!(signals(&played.heard)[..2], [("error_info", "http_connection_failed"), ("http_status", "401")]);
    assert_eq!(played.heard.usage, SessionUsage::default());
    assert_eq!(played.heard.evidence.resets_at, None);
}

#[test]
fn full_context_is_told_by_the_mark_of_the_hook() {
    let played = play(&Sample { is_marked: true, ..sample!("compaction-forbidden-by-hook") }, &[]);
    assert_eq!(signals(&played.heard)[0], ("error_info", "context_window_exceeded"));
    assert_eq!(played.heard.answer, None);
    assert_eq!(played.heard.usage, usage(900_000, 0, 50));
    assert_eq!(played.left, ["home"]);
}

#[test]
fn usage_is_known_after_a_kill() {
    for sample in [sample!("killed-sigkill"), sample!("killed-sigint")] {
        let played = play(&sample, &[]);
        assert_eq!(played.heard.usage, usage(800, 200, 50));
        assert_eq!(played.heard.answer, None);
        assert_eq!(signals(&played.heard), []);
    }
}

#[test]
fn session_in_which_no_command_worked_is_worth_a_notice() {
    let failed = r#"{"type":"item.completed","item":{"type":"command_execution","command":"ls","aggregated_output":"bwrap: execvp","exit_code":1,"status":"failed"}}"#;
    let completed = r#"{"type":"turn.completed","usage":null}"#;
    let reader = || CodexReader::new(Places { home: None, schema: "".into(), last: "".into(), mark: "".into() });
    let notice = |failures: usize| {
        let mut reader = reader();
        for _ in 0..failures {
            reader.line(failed.as_bytes());
        }
        reader.line(completed.as_bytes()).map(|step| step.text)
    };
    assert_eq!(notice(1), None, "a command may fail");
    assert!(notice(2).unwrap().contains("none of its 2 commands worked"));
}

#[test]
fn long_output_of_a_command_is_not_kept() {
    let mut reader = CodexReader::new(Places { home: None, schema: "".into(), last: "".into(), mark: "".into() });
    let output = "x".repeat(2 << 20);
    let line = format!(
        r#"{{"type":"item.completed","item":{{"type":"command_execution","command":"cat","aggregated_output":"{output}","exit_code":0,"status":"completed"}}}}"#
    );
    assert_eq!(reader.line(line.as_bytes()).unwrap().text, "exit code 0: cat");
    let message = format!(r#"{{"type":"item.completed","item":{{"type":"reasoning","text":"two {output}"}}}}"#);
    assert_eq!(reader.line(message.as_bytes()).unwrap().text, "two");
}

#[test]
fn lines_that_nobody_knows_are_passed_over() {
    let mut reader = CodexReader::new(Places { home: None, schema: "".into(), last: "".into(), mark: "".into() });
    for line in ["", "{", "[]", "null", r#"{"type":"item.completed"}"#, r#"{"type":"turn.failed","error":7}"#] {
        assert_eq!(reader.line(line.as_bytes()), None, "{line}");
    }
    assert!(!reader.has_answered());
}

#[test]
fn rollout_that_is_no_regular_file_stays_unread() {
    let folder = tempfile::tempdir().unwrap();
    let day = folder.path().join("sessions/2026/11/22");
    fs::create_dir_all(&day).unwrap();
    fs::write(folder.path().join("secret"), success().rollout).unwrap();
    let link = day.join("rollout-x-aa.jsonl");
    std::os::unix::fs::symlink(folder.path().join("secret"), &link).unwrap();
    nix::unistd::mkfifo(&day.join("rollout-x-bb.jsonl"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for session in ["aa", "bb", "", "../../../../secret", "*"] {
        assert_eq!(rollout::take(folder.path(), session), None, "{session}");
    }
    assert!(link.symlink_metadata().is_ok());
}

#[test]
fn end_of_a_large_rollout_is_enough() {
    let sample = sample!("usage-limit-after-work");
    let filler = format!("{{\"payload\":{{\"type\":\"message\",\"text\":\"{}\"}}}}\n", "x".repeat(1 << 20)).repeat(9);
    let text: &'static str = Box::leak((filler + sample.rollout).into_boxed_str());
    let played = play(&Sample { rollout: text, ..sample }, &[]);
    assert_eq!(signals(&played.heard)[0].1, "usage_limit_exceeded");
    assert_eq!(played.heard.usage, usage(800, 200, 50));
    drop(played.folder);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn session_is_the_same_however_its_output_comes(cuts: Vec<prop::sample::Index>) {
        let sample = success();
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(sample.stdout.len())).collect();
        let (whole, cut) = (play(&sample, &[]), play(&sample, &cuts));
        prop_assert_eq!(whole.steps, cut.steps);
        prop_assert_eq!(whole.heard.answer, cut.heard.answer);
        prop_assert_eq!(whole.heard.usage, cut.heard.usage);
    }
}

#[test]
fn session_is_the_same_whole_and_byte_by_byte() {
    let sample = success();
    let whole = play(&sample, &[]);
    let bytes = play(&sample, &(0..sample.stdout.len()).collect::<Vec<_>>());
    assert_eq!((whole.steps, whole.heard.usage), (bytes.steps, bytes.heard.usage));
}

#[test]
fn session_cut_off_anywhere_has_no_answer() {
    let whole = success().stdout;
    let end = whole.rfind("{\"type\":\"turn.completed\"").unwrap();
    for length in 60..end {
        let sample = Sample { stdout: &whole[..length], last: "", ..success() };
        let mut reader = CodexReader::new(Places { home: None, schema: "".into(), last: "".into(), mark: "".into() });
        sample.stdout.lines().for_each(|line| drop(reader.line(line.as_bytes())));
        assert!(!reader.has_answered(), "{length}");
    }
}

fn arguments(settings: &str) -> Vec<String> {
    let text = format!("[executor]\nkind = \"codex\"\n{settings}\n");
    let config = config::parse(&text, Path::new("config.toml")).unwrap();
    let order = Order {
        form: Form::Answer,
        executor: &config.executor.work,
        folder: Path::new("/repo"),
        git_folder: Path::new("/repo/.git"),
        env: &[],
        record: Path::new("/record"),
        output: Path::new("/record/output.json"),
    };
    Codex.launch(&order).argv.into_iter().map(|word| word.into_string().unwrap()).collect()
}

/// Returns what an option is given, each time that it is given.
fn given<'a>(argv: &'a [String], option: &str) -> Vec<&'a str> {
    argv.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1].as_str()).collect()
}

#[test]
fn sandbox_lets_the_agent_commit_and_nothing_else_beside_the_work_tree() {
    let argv = arguments("");
    assert_eq!((given(&argv, "-s"), given(&argv, "--add-dir")), (vec!["workspace-write"], vec!["/repo/.git"]));
    assert!(given(&argv, "-c").contains(&"sandbox_workspace_write.network_access=true"));
    let argv = arguments("network = false");
    assert!(given(&argv, "-c").contains(&"sandbox_workspace_write.network_access=false"));
    let argv = arguments("sandbox = \"read-only\"");
    assert_eq!((given(&argv, "-s"), given(&argv, "--add-dir")), (vec!["read-only"], vec![]));
    let argv = arguments("sandbox = \"danger-full-access\"");
    assert!(given(&argv, "-s").is_empty() && argv.contains(&"--dangerously-bypass-approvals-and-sandbox".to_owned()));
}

#[test]
fn arguments_of_the_user_come_last_so_that_they_win() {
    let argv = arguments("model = \"gpt-5\"\nextra_args = [\"-c\", \"model_provider=\\\"mine\\\"\"]");
    assert_eq!(argv[argv.len() - 3..], ["-c", "model_provider=\"mine\"", "-"]);
    assert_eq!((given(&argv, "-m"), given(&argv, "-C")), (vec!["gpt-5"], vec!["/repo"]));
    assert!(given(&arguments(""), "-m").is_empty(), "the program chooses");
}

#[test]
fn settings_are_toml() {
    for setting in SETTINGS {
        assert!(setting.parse::<toml::Table>().is_ok(), "{setting}");
    }
}

#[test]
fn folder_of_the_program_is_the_one_of_its_environment() {
    let home = |pairs: &[(&str, &str)]| {
        let env: Vec<(OsString, OsString)> = pairs.iter().map(|(name, value)| (name.into(), value.into())).collect();
        home(&env)
    };
    assert_eq!(home(&[("HOME", "/h")]), Some("/h/.codex".into()));
    assert_eq!(home(&[("HOME", "/h"), ("CODEX_HOME", "/c")]), Some("/c".into()));
    assert_eq!(home(&[("HOME", "/h"), ("CODEX_HOME", "")]), Some("/h/.codex".into()));
    assert_eq!(home(&[]), None);
}

/// What the service takes in a schema that it enforces.
fn is_strict(schema: &Value) -> bool {
    let Some(keys) = schema.as_object() else { return false };
    let known = ["type", "enum", "description", "properties", "required", "additionalProperties", "items"];
    let nested = schema["properties"].as_object().map(|fields| fields.values().collect::<Vec<_>>());
    let names = schema["properties"].as_object().map(|fields| fields.keys().collect::<Vec<_>>());
    let required =
        schema["required"].as_array().map(|names| names.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    let is_closed = names.is_none_or(|mut names| {
        let mut required = required.unwrap_or_default();
        names.sort_unstable();
        required.sort_unstable();
        names == required && schema["additionalProperties"] == Value::Bool(false)
    });
    is_closed
        && keys.keys().all(|key| known.contains(&key.as_str()))
        && nested.into_iter().flatten().chain(keys.get("items")).all(is_strict)
}

#[test]
fn schema_of_the_answer_is_strict_and_asks_for_what_is_read() {
    let strict: Value = serde_json::from_str(ANSWER_SCHEMA).unwrap();
    assert!(is_strict(&strict));
    let contract: Value =
        serde_json::from_str(include_str!("../../../../schemas/agent-output.v1.schema.json")).unwrap();
    let fields = |schema: &Value| schema.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&strict["properties"]), fields(&contract["properties"]));
    let part = &contract["$defs"]["ChildSpec"]["properties"];
    assert_eq!(fields(&strict["properties"]["children"]["items"]["properties"]), fields(part));
    let kinds = contract["$defs"]["AnswerStatus"]["oneOf"].as_array().unwrap();
    let kinds: Vec<&Value> = kinds.iter().map(|kind| &kind["const"]).collect();
    assert_eq!(strict["properties"]["status"]["enum"].as_array().unwrap().iter().collect::<Vec<_>>(), kinds);
}
