//! Recorded sessions and how they are parsed; and the arguments passed to the program.

use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;
use protocol::answer::SessionUsage;
use protocol::event::{Activity, ActivityKind};
use serde_json::{Value, json};

use super::super::backend::{SessionOutput, SessionRest};
use super::super::line_splitter::LineSplitter;
use super::*;

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../samples/claude/", $name, ".stdout"))
    };
}

/// The result of playing a session.
struct ClaudePlayback {
    steps: Vec<Activity>,
    has_answered: bool,
    output: SessionOutput,
}

/// Plays the output in pieces that end at the given offsets.
fn play_pieces(stdout: &[u8], cuts: &[usize]) -> ClaudePlayback {
    let mut reader = Box::new(ClaudeReader::default());
    let mut lines = LineSplitter::default();
    let mut steps = Vec::new();
    let mut cuts = cuts.to_vec();
    cuts.extend([0, stdout.len()]);
    cuts.sort_unstable();
    for cut in cuts.windows(2) {
        lines.push(&stdout[cut[0]..cut[1]], |line| steps.extend(reader.read_line(line)));
    }
    lines.finish(|line| steps.extend(reader.read_line(line)));
    ClaudePlayback {
        steps,
        has_answered: reader.has_answered(),
        output: reader.finish_output(&SessionRest { errors: b"" }),
    }
}

fn play_text(stdout: &str) -> ClaudePlayback {
    play_pieces(stdout.as_bytes(), &[])
}

fn play_lines(lines: &[Value]) -> ClaudePlayback {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    play_text(&lines.join("\n"))
}

fn find_signal<'a>(played: &'a ClaudePlayback, field: &str) -> Option<&'a str> {
    let signals = &played.output.evidence.signals;
    signals.iter().find(|signal| signal.field == field).map(|signal| signal.value.as_str())
}

fn shown_steps(played: &ClaudePlayback) -> Vec<(ActivityKind, &str)> {
    played.steps.iter().map(|step| (step.what, step.text.as_str())).collect()
}

fn token_usage(input: u64, cached: u64, output: Option<u64>, cost: Option<u64>) -> SessionUsage {
    SessionUsage { input_tokens: Some(input), cached_tokens: Some(cached), output_tokens: output, cost_micro_usd: cost }
}

#[test]
fn answer_usage_and_steps_of_a_session_are_heard() {
    let played = play_text(sample!("success"));
    assert_eq!(
        played.output.answer.as_deref(),
        Some(&br#"{"children":null,"status":"done","summary":"All done."}"#[..])
    );
    assert!(played.has_answered);
    assert_eq!(played.output.usage, token_usage(1600, 400, Some(100), Some(6_420)));
    assert_eq!(played.output.session_id.as_deref(), Some("0af185f4-eaf6-4074-bb7f-c821b2af4ddc"));
    assert_eq!(
        shown_steps(&played),
        [
            (ActivityKind::Notice, "claude 2.1.330 with claude-sonnet-4-5"),
            (ActivityKind::Tool, "echo hi > work; echo seen"),
            (ActivityKind::ToolResult, "seen"),
            (ActivityKind::ToolResult, "Structured output provided successfully"),
        ]
    );
}

#[test]
fn retry_that_helped_is_shown_and_no_evidence() {
    let played = play_text(sample!("server-error-then-success"));
    assert!(played.has_answered);
    assert!(
        shown_steps(&played).contains(&(ActivityKind::Notice, "asked again, 1 of 2: 500")),
        "{:?}",
        shown_steps(&played)
    );
    assert_eq!((find_signal(&played, "api_error_status"), find_signal(&played, "error")), (None, None));
}

#[test]
fn exit_without_structured_output_is_no_answer() {
    let played = play_text(sample!("empty-answer"));
    assert!(!played.has_answered && played.output.answer.is_none());
    assert_eq!(find_signal(&played, "subtype"), Some("success"));
    assert_eq!(played.output.usage.output_tokens, Some(150));
}

#[test]
fn usage_limit_brings_its_fields_and_when_it_ends() {
    for sample in [sample!("usage-limit-subscription"), sample!("usage-limit-after-work")] {
        let played = play_text(sample);
        assert_eq!(played.output.answer, None);
        assert_eq!(find_signal(&played, "api_error_status"), Some("429"));
        assert_eq!(find_signal(&played, "error"), Some("rate_limit"));
        assert_eq!(find_signal(&played, "api_error"), Some("usage_limit_reached"));
        assert!(find_signal(&played, "message").is_some_and(|text| text.contains("hit your 5-hour limit")));
        assert!(played.output.evidence.resets_at.is_some());
    }
}

#[test]
fn limit_that_lets_in_again_has_no_end() {
    let event = |status: &str| json!({"type": "rate_limit_event", "rate_limit_info": {"status": status, "resetsAt": 1_795_340_176, "rateLimitType": "five_hour"}});
    assert!(play_lines(&[event("rejected")]).output.evidence.resets_at.is_some());
    assert_eq!(play_lines(&[event("rejected"), event("allowed")]).output.evidence.resets_at, None);
    let steps = play_lines(&[event("allowed"), event("rejected")]).steps;
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].text, "five_hour limit: rejected until 2026-11-22T09:36:16Z");
}

#[test]
fn service_that_cannot_be_reached_is_told_by_fields() {
    let played = play_text(sample!("network-refused"));
    assert_eq!(find_signal(&played, "api_error"), Some("connection_failed"));
    assert_eq!(find_signal(&played, "terminal_reason"), Some("api_error"));
    assert!(find_signal(&played, "message").is_some_and(|text| text.contains("ECONNREFUSED")));
}

#[test]
fn fault_of_the_service_stands_though_the_session_was_killed() {
    let whole = sample!("rate-limit");
    let until_retry: String = whole.lines().take(3).flat_map(|line| [line, "\n"]).collect();
    let played = play_text(&until_retry);
    assert_eq!(
        (find_signal(&played, "api_error_status"), find_signal(&played, "error")),
        (Some("429"), Some("rate_limit"))
    );
    let until_result: String = whole.lines().take(4).flat_map(|line| [line, "\n"]).collect();
    let played = play_text(&until_result);
    assert!(find_signal(&played, "message").is_some_and(|text| text.contains("Request rejected (429)")));
}

#[test]
fn limit_of_turns_is_told_by_its_subtype_and_errors() {
    let played = play_text(sample!("max-turns"));
    assert_eq!(find_signal(&played, "subtype"), Some("error_max_turns"));
    assert_eq!(find_signal(&played, "message"), find_signal(&played, "errors"));
    assert!(find_signal(&played, "errors").is_some());
}

#[test]
fn session_that_was_asked_to_end_says_what_it_consumed() {
    let played = play_text(sample!("killed-sigint"));
    assert!(!played.has_answered);
    assert_eq!(played.output.usage, token_usage(800, 200, Some(50), Some(3_210)));
}

#[test]
fn killed_session_has_input_and_neither_output_nor_cost() {
    let played = play_text(sample!("killed-sigkill"));
    assert_eq!(played.output.usage, token_usage(800, 200, None, None));
    assert_eq!(play_text("").output.usage, SessionUsage::default());
}

#[test]
fn message_in_several_lines_counts_once() {
    let part = |id: &str, text: &str| {
        json!({"type": "assistant", "message": {"id": id, "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 1}}})
    };
    let played = play_lines(&[part("a", "one"), part("a", "two"), part("b", "three")]);
    assert_eq!(played.output.usage, token_usage(30, 4, None, None));
    assert_eq!(played.steps.len(), 3);
}

#[test]
fn second_result_without_an_answer_leaves_the_first_one() {
    let second = json!({"type": "result", "subtype": "success", "is_error": false, "result": "The job has ended.", "result_index": 1,
        "total_cost_usd": 0.01, "modelUsage": {"m": {"inputTokens": 2000, "outputTokens": 120, "cacheReadInputTokens": 400,
        "cacheCreationInputTokens": 7, "costUSD": 0.01, "costBasis": "list"}}});
    let played = play_text(&format!("{}{second}\n", sample!("success")));
    assert!(played.output.answer.is_some_and(|answer| answer.starts_with(br#"{"children":null"#)));
    assert_eq!(played.output.usage, token_usage(2007, 400, Some(120), Some(10_000)));
}

#[test]
fn answer_beside_an_error_is_none() {
    let line = |is_error: bool, subtype: &str| json!({"type": "result", "subtype": subtype, "is_error": is_error, "structured_output": {"status": "done"}});
    assert!(play_lines(&[line(false, "success")]).has_answered);
    assert!(!play_lines(&[line(true, "success")]).has_answered);
    assert!(!play_lines(&[line(false, "error_during_execution")]).has_answered);
    assert!(!play_lines(&[json!({"type": "result", "subtype": "success", "structured_output": null})]).has_answered);
}

#[test]
fn price_that_is_guessed_is_no_cost() {
    let line = |basis: Value| {
        json!({"type": "result", "subtype": "success", "total_cost_usd": 0.5,
        "modelUsage": {"m": {"inputTokens": 1, "outputTokens": 2, "costUSD": 0.5, "costBasis": basis}}})
    };
    assert_eq!(play_lines(&[line(json!("list"))]).output.usage.cost_micro_usd, Some(500_000));
    assert_eq!(play_lines(&[line(Value::Null)]).output.usage.cost_micro_usd, Some(500_000));
    assert_eq!(play_lines(&[line(json!("unknown"))]).output.usage, token_usage(1, 0, Some(2), None));
}

#[test]
fn words_of_the_model_are_no_signal_of_its_service() {
    let played = play_lines(&[json!({"type": "result", "subtype": "success", "is_error": false,
        "result": "You've hit your limit · resets 9:29pm (UTC)"})]);
    assert_eq!(find_signal(&played, "message"), None);
    assert!(find_signal(&played, "said").is_some());
}

#[test]
fn denials_are_shown() {
    let line = json!({"type": "result", "subtype": "success", "permission_denials": [{"tool_name": "Bash"}, {"tool_name": "Write"}]});
    assert_eq!(shown_steps(&play_lines(&[line])), [(ActivityKind::Notice, "denied: Bash, Write")]);
    let line = json!({"type": "system", "subtype": "permission_denied", "tool_name": "Write", "message": "not here"});
    assert_eq!(shown_steps(&play_lines(&[line])), [(ActivityKind::Notice, "Write was denied: not here")]);
}

#[test]
fn use_of_a_tool_is_told_by_its_telling_input() {
    let tool = |name: &str, input: Value| json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "name": name, "input": input}]}});
    let played = play_lines(&[
        tool("Edit", json!({"file_path": "src/a.rs", "old_string": "x"})),
        tool("Grep", json!({"pattern": "fn main", "path": "src"})),
        tool("StructuredOutput", json!({"status": "done"})),
        tool("Odd", json!(7)),
    ]);
    assert_eq!(
        shown_steps(&played),
        [(ActivityKind::FileChange, "src/a.rs"), (ActivityKind::Tool, "Grep fn main"), (ActivityKind::Tool, "Odd")]
    );
}

#[test]
fn line_of_megabytes_is_read_and_shown_in_part() {
    let text = "x".repeat(3 << 20);
    let line = json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": [{"type": "text", "text": text}]}]}});
    let played = play_text(&format!("{line}\n{}", sample!("success")));
    assert!(played.has_answered);
    assert!((4_000..=4_096).contains(&played.steps[0].text.len()), "{}", played.steps[0].text.len());
}

#[test]
fn hostile_lines_are_passed_over() {
    let deep = format!("{}{}", r#"{"type":"result","structured_output":"#.repeat(5_000), "}".repeat(5_000));
    let wrong = [
        json!({"type": 7}),
        json!({"type": "assistant", "message": [1]}),
        json!({"type": "assistant", "message": {"id": 1, "content": {"a": 1}, "usage": "many"}, "error": {}}),
        json!({"type": "assistant", "message": {"id": "a", "content": [[], 1, null], "usage": {"input_tokens": -1}}}),
        json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": i64::MAX}}),
        json!({"type": "result", "modelUsage": {"m": 1}, "total_cost_usd": -3, "errors": {"a": 1}, "is_error": "yes"}),
        json!({"type": "result", "modelUsage": {"a": {"inputTokens": u64::MAX}, "b": {"inputTokens": u64::MAX}}, "total_cost_usd": 1e300}),
        json!({"type": "system", "subtype": "api_retry", "error_status": [1], "attempt": {}}),
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": 5}]}}),
        json!([1, 2]),
        Value::Null,
    ];
    let lines = wrong.map(|line| line.to_string()).join("\n");
    let played = play_text(&format!("{deep}\n{lines}\nnot JSON\n\n"));
    assert!(!played.has_answered);
    assert_eq!(played.output.usage.cost_micro_usd, None);
    assert_eq!(played.output.evidence.resets_at, None);
}

proptest! {
    #[test]
    fn session_is_the_same_however_its_bytes_come(cuts: Vec<prop::sample::Index>) {
        let stdout = sample!("usage-limit-after-work").as_bytes();
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stdout.len() + 1)).collect();
        let pieces = play_pieces(stdout, &cuts);
        let whole = play_pieces(stdout, &[]);
        prop_assert_eq!(pieces.steps, whole.steps);
        prop_assert_eq!(pieces.output.usage, whole.output.usage);
        prop_assert_eq!(pieces.output.evidence, whole.output.evidence);
    }

    #[test]
    fn session_cut_anywhere_answers_only_once_its_last_line_is_whole(cut: prop::sample::Index) {
        let stdout = sample!("success").trim_end();
        let cut = cut.index(stdout.len());
        let played = play_pieces(&stdout.as_bytes()[..cut], &[]);
        prop_assert!(!played.has_answered);
        prop_assert!(played.output.usage.output_tokens.is_none());
    }

    #[test]
    fn any_bytes_are_heard(bytes: Vec<u8>) {
        prop_assert!(!play_pieces(&bytes, &[]).has_answered);
    }
}

/// Returns the arguments and the variables for a configuration.
fn launch_claude(section: &str, env: &[(&str, &str)]) -> (Vec<String>, Vec<(String, String)>) {
    let text = format!("[executor]\nkind = \"claude\"\n{section}");
    let config = runner_config::parse(&text, Path::new("config.toml")).unwrap();
    let env: Vec<(OsString, OsString)> = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let repo = Path::new("/repo");
    let order = LaunchRequest {
        form: AnswerForm::Answer,
        executor: &config.executor.work,
        folder: repo,
        git_folder: repo,
        env: &env,
        record: repo,
        home: None,
        servers: &serde_json::Map::new(),
        output: repo,
    };
    let launch = ClaudeBackend.plan_launch(&order);
    let text = |word: OsString| word.into_string().unwrap();
    let env = launch.env.into_iter().map(|(name, value)| (text(name), text(value)));
    (launch.argv.into_iter().map(text).collect(), env.collect())
}

/// Returns what follows an argument.
fn value_after<'a>(argv: &'a [String], name: &str) -> Option<&'a str> {
    argv.iter().position(|word| word == name).map(|at| argv[at + 1].as_str())
}

#[test]
fn effort_is_an_option_of_its_own() {
    assert_eq!(value_after(&launch_claude("effort = \"low\"", &[]).0, "--effort"), Some("low"));
    assert_eq!(value_after(&launch_claude("", &[]).0, "--effort"), None);
}

#[test]
fn answer_in_the_last_text_counts_where_no_structured_one_is_given() {
    let line = |text: &str| json!({"type": "result", "subtype": "success", "is_error": false, "result": text});
    let answer = r#"{"status":"done","summary":"All."}"#;
    let read = |text: &str| play_lines(&[line(text)]).output.answer;
    assert_eq!(read(&format!("```json\n{answer}\n```")).as_deref(), Some(answer.as_bytes()));
    assert_eq!(read("All is done."), None);
}

#[test]
fn why_the_model_stopped_is_a_signal_unless_nothing_is_wrong() {
    for (reason, shown) in [("refusal", Some("refusal")), ("end_turn", None)] {
        let line =
            json!({"type": "result", "subtype": "success", "is_error": false, "result": "", "stop_reason": reason});
        assert_eq!(find_signal(&play_lines(&[line]), "stop_reason"), shown);
    }
}

#[test]
fn command_line_is_pinned() {
    let (argv, env) = launch_claude("", &[]);
    let schema = value_after(&argv, "--json-schema").unwrap();
    let line: Vec<&str> = argv.iter().map(|word| if word == schema { "SCHEMA" } else { word }).collect();
    insta::assert_snapshot!(line.join(" "), @"claude -p --output-format stream-json --verbose --no-session-persistence --strict-mcp-config --setting-sources  --disable-slash-commands --json-schema SCHEMA --permission-mode bypassPermissions --tools Read,Glob,Grep,Bash,Edit,Write,NotebookEdit,WebFetch,WebSearch");
    let env: Vec<String> =
        env.iter().filter(|(name, _)| name != ROOT_VARIABLE).map(|(name, value)| format!("{name}={value}")).collect();
    insta::assert_snapshot!(env.join("\n"), @"
    CLAUDE_CODE_DISABLE_AUTO_MEMORY=1
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1
    CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS=1
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
    DISABLE_AUTOUPDATER=1
    DISABLE_AUTO_COMPACT=1
    DISABLE_ERROR_REPORTING=1
    DISABLE_TELEMETRY=1
    API_TIMEOUT_MS=300000
    CLAUDE_CODE_MAX_RETRIES=5
    ");
}

#[test]
fn schema_is_one_that_the_program_takes() {
    let (argv, _) = launch_claude("", &[]);
    let schema: Value = serde_json::from_str(value_after(&argv, "--json-schema").unwrap()).unwrap();
    assert_eq!(schema.get("$schema"), None);
    assert_eq!(schema["required"], json!(["status", "summary"]));
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn sandbox_is_kept_by_the_tools_that_are_there_or_by_the_program() {
    let (argv, env) = launch_claude("sandbox = \"read-only\"\n", &[]);
    assert_eq!(value_after(&argv, "--tools"), Some("Read,Glob,Grep,WebFetch,WebSearch"));
    assert_eq!(env.iter().any(|(name, _)| name == ROOT_VARIABLE), geteuid().is_root());
    let (argv, _) = launch_claude("sandbox = \"read-only\"\nnetwork = false\n", &[]);
    assert_eq!((value_after(&argv, "--tools"), value_after(&argv, "--settings")), (Some(READ_TOOLS), None));
    let (argv, env) = launch_claude("network = false\n", &[]);
    assert_eq!(value_after(&argv, "--permission-mode"), Some("acceptEdits"));
    assert_eq!(value_after(&argv, "--tools"), Some(WRITE_TOOLS));
    let settings: Value = serde_json::from_str(value_after(&argv, "--settings").unwrap()).unwrap();
    assert_eq!(settings["sandbox"]["failIfUnavailable"], true);
    assert!(!env.iter().any(|(name, _)| name == ROOT_VARIABLE));
    let (argv, _) = launch_claude("sandbox = \"danger-full-access\"\nnetwork = false\n", &[]);
    assert_eq!(value_after(&argv, "--permission-mode"), Some("bypassPermissions"));
}

#[test]
#[cfg(target_os = "linux")]
fn sandbox_whose_tools_are_missing_is_refused_where_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("PATH".into(), folder.path().into())];
    let check = |section: &str| {
        let text = format!("[executor]\nkind = \"claude\"\n{section}");
        let config = runner_config::parse(&text, Path::new("config.toml")).unwrap();
        ClaudeBackend.preflight(&config.executor.work, &env)
    };
    let error = check("network = false\n").unwrap_err();
    assert!(error.what.contains("there is no bwrap") && error.fix.contains("network = true"), "{error}");
    assert_eq!(check(""), Ok(()));
    assert_eq!(check("network = false\nsandbox = \"read-only\"\n"), Ok(()));
    assert_eq!(check("network = false\nwrapper = [\"podman\"]\n"), Ok(()));
    for tool in SANDBOX_TOOLS {
        let path = folder.path().join(tool);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(check("network = false\n"), Ok(()));
}

#[test]
fn what_the_configuration_adds_comes_last() {
    let (argv, _) = launch_claude("model = \"opus\"\nextra_args = [\"--setting-sources\", \"user\"]\n", &[]);
    assert_eq!(value_after(&argv, "--model"), Some("opus"));
    assert_eq!(argv[argv.len() - 2..], ["--setting-sources", "user"]);
    let (argv, _) = launch_claude("extra_args = [\"--tools\", \"default\"]\n", &[]);
    assert_eq!(value_after(&argv, "--tools"), Some("default"));
}

#[test]
fn patience_that_the_caller_passes_on_is_kept() {
    let (_, env) = launch_claude("", &[("CLAUDE_CODE_MAX_RETRIES", "0")]);
    assert!(!env.iter().any(|(name, _)| name == "CLAUDE_CODE_MAX_RETRIES"));
    assert!(env.iter().any(|(name, _)| name == "API_TIMEOUT_MS"));
}
