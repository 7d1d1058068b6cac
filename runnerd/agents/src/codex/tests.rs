//! Recorded sessions and how they are parsed; and the arguments passed to the program.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use protocol::answer::{AgentAnswer, SessionUsage};
use protocol::event::{Activity, ActivityKind};
use runner_core::text::redact::Secrets;
use serde_json::Value;
use tempfile::TempDir;

use super::super::answer_file::{self, AnswerFile};
use super::super::backend::{SessionOutput, SessionRest};
use super::super::line_splitter::LineSplitter;
use super::*;

/// A recorded session: its output and its files.
struct CodexSample {
    stdout: &'static str,
    stderr: &'static str,
    rollout: &'static str,
    last: &'static str,
}

macro_rules! sample {
    ($name:literal) => {
        CodexSample {
            stdout: include_str!(concat!("../samples/codex/", $name, ".stdout")),
            rollout: include_str!(concat!("../samples/codex/", $name, ".rollout")),
            stderr: "",
            last: "",
        }
    };
}

fn success_sample() -> CodexSample {
    CodexSample { last: include_str!("../samples/codex/success.last"), ..sample!("success") }
}

/// The result of playing a session.
struct CodexPlayback {
    steps: Vec<Activity>,
    has_answered: bool,
    output: SessionOutput,
    left: Vec<String>,
    folder: TempDir,
}

/// Puts the files in place, and plays the output in pieces that end at the given offsets.
fn play_sample(sample: &CodexSample, cuts: &[usize]) -> CodexPlayback {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let at = |name: &str| folder.path().join(name);
    let places = CodexPaths { home: Some(home.clone()), schema: at("schema"), last_message: at("last") };
    fs::write(&places.last_message, sample.last).unwrap();
    let session = sample.stdout.split('"').nth(7).unwrap();
    let day = home.join("sessions/2026/11/22");
    fs::create_dir_all(&day).unwrap();
    fs::write(day.join(format!("rollout-2026-11-22T04-36-16-{session}.jsonl")), sample.rollout).unwrap();
    let mut reader = Box::new(CodexReader::new(places));
    let mut lines = LineSplitter::default();
    let mut steps = Vec::new();
    let mut cuts = [&[0], cuts, &[sample.stdout.len()]].concat();
    cuts.sort_unstable();
    for cut in cuts.windows(2) {
        lines.push(&sample.stdout.as_bytes()[cut[0]..cut[1]], |line| steps.extend(reader.read_line(line)));
    }
    lines.finish(|line| steps.extend(reader.read_line(line)));
    let has_answered = reader.has_answered();
    let output = reader.finish_output(&SessionRest { errors: sample.stderr.as_bytes() });
    let names = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let left = names(&day).chain(names(folder.path())).map(|name| name.into_string().unwrap()).collect();
    CodexPlayback { steps, has_answered, output, left, folder }
}

fn signal_pairs(output: &SessionOutput) -> Vec<(&'static str, &str)> {
    output.evidence.signals.iter().map(|signal| (signal.field, signal.value.as_str())).collect()
}

fn parse_answer(output: &SessionOutput) -> Option<AgentAnswer> {
    match answer_file::parse_answer(output.answer.as_deref()?, &Secrets::default()) {
        AnswerFile::Given { content, .. } => content.ok(),
        AnswerFile::Absent | AnswerFile::Invalid { .. } => None,
    }
}

fn token_usage(input: u64, cached: u64, output: u64) -> SessionUsage {
    SessionUsage {
        input_tokens: Some(input),
        cached_tokens: Some(cached),
        output_tokens: Some(output),
        cost_micro_usd: None,
    }
}

#[test]
fn session_that_answers_is_followed_step_by_step() {
    let played = play_sample(&success_sample(), &[]);
    assert!(played.has_answered);
    assert_eq!(parse_answer(&played.output).unwrap().summary, "All done.");
    assert_eq!(played.output.usage, token_usage(1_600, 400, 100));
    assert_eq!(played.output.session_id.as_deref(), Some("01a2018a-64ce-7382-9db5-d4d138fff34e"));
    assert_eq!(signal_pairs(&played.output), []);
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
    assert_eq!(play_sample(&success_sample(), &[]).left, ["home"]);
}

#[test]
fn answer_is_the_last_message_where_it_was_not_written_down() {
    let played = play_sample(&sample!("success"), &[]);
    assert_eq!(parse_answer(&played.output).unwrap().summary, "All done.");
}

#[test]
fn empty_answer_is_none() {
    let sample =
        CodexSample { stderr: include_str!("../samples/codex/empty-answer.stderr"), ..sample!("empty-answer") };
    let played = play_sample(&sample, &[]);
    assert_eq!(played.output.answer, None);
    assert_eq!(signal_pairs(&played.output), [("stderr", sample.stderr)]);
}

#[test]
fn error_that_the_session_got_over_is_no_cause_of_its_end() {
    let played = play_sample(&sample!("dropped-then-success"), &[]);
    assert!(played.has_answered);
    assert_eq!(signal_pairs(&played.output), []);
    assert!(played.steps.iter().any(|step| step.what == ActivityKind::Notice && step.text.contains("Reconnecting")));
}

#[test]
fn session_that_waited_for_its_service_ended_for_what_it_waited_for() {
    let waiting = "{\"type\":\"turn.started\"}\n{\"type\":\"error\",\"message\":\"Reconnecting... 1/2 (exceeded retry limit, \
                   last status: 429 Too Many Requests)\"}\n";
    let session = |stdout| CodexSample { stdout, stderr: "", rollout: "", last: "" };
    let output = play_sample(&session(waiting), &[]).output;
    assert_eq!(
        output.evidence.first_message().as_deref(),
        Some("exceeded retry limit, last status: 429 Too Many Requests")
    );
    let step = "{\"type\":\"item.completed\",\"item\":{\"type\":\"reasoning\",\"text\":\"On.\"}}\n";
    let went_on: &'static str = format!("{waiting}{step}").leak();
    assert_eq!(play_sample(&session(went_on), &[]).output.evidence.first_message(), None);
}

#[test]
fn usage_limit_is_told_by_its_name_and_its_end() {
    let played = play_sample(&sample!("usage-limit-after-work"), &[]);
    assert!(!played.has_answered);
    assert_eq!(signal_pairs(&played.output)[0], ("error_info", "usage_limit_exceeded"));
    assert!(played.output.evidence.first_message().unwrap().contains("hit your usage limit"));
    assert_eq!(played.output.evidence.resets_at.map(jiff::Timestamp::as_second), Some(1_795_340_176));
    assert_eq!(played.output.usage, token_usage(800, 200, 50));
}

#[test]
fn refused_key_is_told_by_the_status_of_the_reply() {
    let played = play_sample(&sample!("auth-wrong-key"), &[]);
    assert_eq!(signal_pairs(&played.output)[..2], [("error_info", "http_connection_failed"), ("http_status", "401")]);
    assert_eq!(played.output.usage, SessionUsage::default());
    assert_eq!(played.output.evidence.resets_at, None);
}

#[test]
fn full_context_is_told_by_the_compaction_of_a_session_that_gave_no_answer() {
    let filler = "x".repeat((1 << 20) - 10);
    let compacted = format!("{filler}\n{{\"type\":\"compacted\",\"payload\":{{}}}}\n");
    let play = |text: &str, sample: CodexSample| {
        let rollout: &'static str = Box::leak((text.to_owned() + sample.rollout).into_boxed_str());
        play_sample(&CodexSample { rollout, ..sample }, &[])
    };
    let played = play(&compacted, sample!("killed-sigkill"));
    assert_eq!(signal_pairs(&played.output)[0], ("error_info", "context_window_exceeded"));
    assert_eq!((played.output.answer, played.output.usage), (None, token_usage(800, 200, 50)));
    let quoted = compacted.replace('"', "\\\"");
    assert_eq!(signal_pairs(&play(&quoted, sample!("killed-sigkill")).output), [], "a session may write such a text");
    let answered = play(&compacted, success_sample());
    assert_eq!(signal_pairs(&answered.output), []);
    assert!(answered.output.answer.is_some(), "an answer counts");
}

#[test]
fn usage_is_known_after_a_kill() {
    for sample in [sample!("killed-sigkill"), sample!("killed-sigint")] {
        let played = play_sample(&sample, &[]);
        assert_eq!(played.output.usage, token_usage(800, 200, 50));
        assert_eq!(played.output.answer, None);
        assert_eq!(signal_pairs(&played.output), []);
    }
}

#[test]
fn session_in_which_no_command_worked_is_worth_a_notice() {
    let failed = r#"{"type":"item.completed","item":{"type":"command_execution","command":"ls","aggregated_output":"bwrap: execvp","exit_code":1,"status":"failed"}}"#;
    let completed = r#"{"type":"turn.completed","usage":null}"#;
    let reader = || CodexReader::new(CodexPaths::default());
    let notice = |failures: usize| {
        let mut reader = reader();
        for _ in 0..failures {
            reader.read_line(failed.as_bytes());
        }
        reader.read_line(completed.as_bytes()).map(|step| step.text)
    };
    assert_eq!(notice(1), None, "a command may fail");
    assert!(notice(2).unwrap().contains("none of its 2 commands worked"));
}

#[test]
fn long_output_of_a_command_is_not_kept() {
    let mut reader = CodexReader::new(CodexPaths::default());
    let output = "x".repeat(2 << 20);
    let line = format!(
        r#"{{"type":"item.completed","item":{{"type":"command_execution","command":"cat","aggregated_output":"{output}","exit_code":0,"status":"completed"}}}}"#
    );
    assert_eq!(reader.read_line(line.as_bytes()).unwrap().text, "exit code 0: cat");
    let message = format!(r#"{{"type":"item.completed","item":{{"type":"reasoning","text":"two {output}"}}}}"#);
    assert_eq!(reader.read_line(message.as_bytes()).unwrap().text, "two");
}

#[test]
fn lines_that_nobody_knows_are_passed_over() {
    let mut reader = CodexReader::new(CodexPaths::default());
    for line in ["", "{", "[]", "null", r#"{"type":"item.completed"}"#, r#"{"type":"turn.failed","error":7}"#] {
        assert_eq!(reader.read_line(line.as_bytes()), None, "{line}");
    }
    assert!(!reader.has_answered());
}

#[test]
fn rollout_that_is_no_regular_file_stays_unread() {
    let folder = tempfile::tempdir().unwrap();
    let day = folder.path().join("sessions/2026/11/22");
    fs::create_dir_all(&day).unwrap();
    fs::write(folder.path().join("secret"), success_sample().rollout).unwrap();
    let link = day.join("rollout-x-aa.jsonl");
    std::os::unix::fs::symlink(folder.path().join("secret"), &link).unwrap();
    nix::unistd::mkfifo(&day.join("rollout-x-bb.jsonl"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for session in ["aa", "bb", "", "../../../../secret", "*"] {
        assert_eq!(rollout::take_rollout(folder.path(), session), None, "{session}");
    }
    assert!(link.symlink_metadata().is_ok());
}

#[test]
fn end_of_a_large_rollout_is_enough() {
    let sample = sample!("usage-limit-after-work");
    let filler = format!("{{\"payload\":{{\"type\":\"message\",\"text\":\"{}\"}}}}\n", "x".repeat(1 << 20)).repeat(9);
    let text: &'static str = Box::leak((filler + sample.rollout).into_boxed_str());
    let played = play_sample(&CodexSample { rollout: text, ..sample }, &[]);
    assert_eq!(signal_pairs(&played.output)[0].1, "usage_limit_exceeded");
    assert_eq!(played.output.usage, token_usage(800, 200, 50));
    drop(played.folder);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn session_is_the_same_however_its_output_comes(cuts: Vec<prop::sample::Index>) {
        let sample = success_sample();
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(sample.stdout.len())).collect();
        let whole = play_sample(&sample, &[]);
        let cut = play_sample(&sample, &cuts);
        prop_assert_eq!(whole.steps, cut.steps);
        prop_assert_eq!(whole.output.answer, cut.output.answer);
        prop_assert_eq!(whole.output.usage, cut.output.usage);
    }
}

#[test]
fn session_is_the_same_whole_and_byte_by_byte() {
    let sample = success_sample();
    let whole = play_sample(&sample, &[]);
    let bytes = play_sample(&sample, &(0..sample.stdout.len()).collect::<Vec<_>>());
    assert_eq!((whole.steps, whole.output.usage), (bytes.steps, bytes.output.usage));
}

#[test]
fn session_cut_off_anywhere_has_no_answer() {
    let whole = success_sample().stdout;
    let end = whole.rfind("{\"type\":\"turn.completed\"").unwrap();
    for length in 60..end {
        let sample = CodexSample { stdout: &whole[..length], last: "", ..success_sample() };
        let mut reader = CodexReader::new(CodexPaths::default());
        sample.stdout.lines().for_each(|line| drop(reader.read_line(line.as_bytes())));
        assert!(!reader.has_answered(), "{length}");
    }
}

fn codex_arguments(settings: &str) -> Vec<String> {
    let text = format!("[executor]\nkind = \"codex\"\n{settings}\n");
    let config = runner_config::parse(&text, Path::new("config.toml")).unwrap();
    let order = LaunchRequest {
        form: AnswerForm::Answer,
        executor: &config.executor.work,
        folder: Path::new("/repo"),
        git_folder: Path::new("/repo/.git"),
        env: &[],
        record: Path::new("/record"),
        home: None,
        servers: &serde_json::Map::new(),
        output: Path::new("/record/output.json"),
    };
    CodexBackend.plan_launch(&order).argv.into_iter().map(|word| word.into_string().unwrap()).collect()
}

/// Returns all values that an option is given.
fn option_values<'a>(argv: &'a [String], option: &str) -> Vec<&'a str> {
    argv.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1].as_str()).collect()
}

#[test]
fn effort_is_a_setting_of_its_own() {
    let argv = codex_arguments("effort = \"high\"");
    assert!(option_values(&argv, "-c").contains(&"model_reasoning_effort=\"high\""), "{argv:?}");
    assert!(!codex_arguments("").iter().any(|word| word.contains("effort")));
}

#[test]
fn sandbox_lets_the_agent_commit_and_nothing_else_beside_the_work_tree() {
    let argv = codex_arguments("");
    assert_eq!(
        (option_values(&argv, "-s"), option_values(&argv, "--add-dir")),
        (vec!["workspace-write"], vec!["/repo/.git"])
    );
    assert!(option_values(&argv, "-c").contains(&"sandbox_workspace_write.network_access=true"));
    let argv = codex_arguments("network = false");
    assert!(option_values(&argv, "-c").contains(&"sandbox_workspace_write.network_access=false"));
    let argv = codex_arguments("sandbox = \"read-only\"");
    assert_eq!((option_values(&argv, "-s"), option_values(&argv, "--add-dir")), (vec!["read-only"], vec![]));
    let argv = codex_arguments("sandbox = \"danger-full-access\"");
    assert!(
        option_values(&argv, "-s").is_empty()
            && argv.contains(&"--dangerously-bypass-approvals-and-sandbox".to_owned())
    );
}

#[test]
fn arguments_of_the_user_come_last_so_that_they_win() {
    let argv = codex_arguments("model = \"gpt-5\"\nextra_args = [\"-c\", \"model_provider=\\\"mine\\\"\"]");
    assert_eq!(argv[argv.len() - 3..], ["-c", "model_provider=\"mine\"", "-"]);
    assert_eq!((option_values(&argv, "-m"), option_values(&argv, "-C")), (vec!["gpt-5"], vec!["/repo"]));
    assert!(option_values(&codex_arguments(""), "-m").is_empty(), "the program chooses");
}

#[test]
fn settings_are_toml() {
    for setting in FIXED_SETTINGS {
        assert!(setting.parse::<toml::Table>().is_ok(), "{setting}");
    }
}

#[test]
fn folder_of_the_program_is_the_one_of_its_environment() {
    let home = |pairs: &[(&str, &str)]| {
        let env: Vec<(OsString, OsString)> = pairs.iter().map(|(name, value)| (name.into(), value.into())).collect();
        codex_home(&env)
    };
    assert_eq!(home(&[("HOME", "/h")]), Some("/h/.codex".into()));
    assert_eq!(home(&[("HOME", "/h"), ("CODEX_HOME", "/c")]), Some("/c".into()));
    assert_eq!(home(&[("HOME", "/h"), ("CODEX_HOME", "")]), Some("/h/.codex".into()));
    assert_eq!(home(&[]), None);
}

/// Whether the service accepts a schema for strict enforcement.
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

#[test]
fn home_is_the_sessions_own_with_a_link_to_the_login() {
    let person = tempfile::tempdir().unwrap();
    for name in ["auth.json", "hooks.json", "AGENTS.md"] {
        fs::write(person.path().join(name), "{}").unwrap();
    }
    let config = runner_config::parse("[executor]\nkind = \"codex\"\n", Path::new("config.toml")).unwrap();
    let env = [("CODEX_HOME".into(), person.path().into())];
    let repo = Path::new("/repo");
    let order = LaunchRequest {
        form: AnswerForm::Answer,
        executor: &config.executor.work,
        folder: repo,
        git_folder: repo,
        env: &env,
        record: repo,
        home: Some(Path::new("/own")),
        servers: &serde_json::Map::new(),
        output: repo,
    };
    let launch = CodexBackend.plan_launch(&order);
    assert_eq!(launch.env, [("CODEX_HOME".into(), "/own".into())]);
    assert_eq!(launch.links, [("/own/auth.json".into(), person.path().join("auth.json"))]);
    assert!(option_values(&codex_arguments(""), "--disable").contains(&"hooks"));
    let wrapped = CodexBackend.plan_launch(&LaunchRequest { home: None, ..order });
    assert!(wrapped.env.is_empty() && wrapped.links.is_empty(), "a wrapper has a world of its own");
}
