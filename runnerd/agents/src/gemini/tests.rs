//! Recorded sessions and how they are parsed; and the arguments passed to the program.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use protocol::answer::SessionUsage;
use protocol::event::{Activity, ActivityKind};
use serde_json::{Value, json};

use super::super::backend::{SessionOutput, SessionRest};
use super::*;

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../samples/gemini/", $name, ".stdout"))
    };
}

/// The result of playing a session.
struct GeminiPlayback {
    steps: Vec<Activity>,
    has_answered: bool,
    output: SessionOutput,
}

/// Plays a session; `file` is what it left in the file for the answer.
fn play_bytes(stdout: &[u8], file: Option<&str>) -> GeminiPlayback {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("output.json");
    if let Some(text) = file {
        fs::write(&output, text).unwrap();
    }
    let mut reader = Box::new(GeminiReader::new(output, runner_core::files::answer::AnswerForm::Answer));
    let steps = stdout.split(|byte| *byte == b'\n').filter_map(|line| reader.read_line(line)).collect();
    GeminiPlayback {
        steps,
        has_answered: reader.has_answered(),
        output: reader.finish_output(&SessionRest { errors: b"" }),
    }
}

fn play_lines(lines: &[Value], file: Option<&str>) -> GeminiPlayback {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    play_bytes(lines.join("\n").as_bytes(), file)
}

fn find_signal<'a>(played: &'a GeminiPlayback, field: &str) -> Option<&'a str> {
    let signals = &played.output.evidence.signals;
    signals.iter().find(|signal| signal.field == field).map(|signal| signal.value.as_str())
}

fn text_line(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text, "delta": true})
}

fn end_line() -> Value {
    json!({"type": "result", "status": "success", "stats": {}})
}

#[test]
fn answer_usage_and_steps_of_a_session_are_heard() {
    let played = play_bytes(sample!("success").as_bytes(), None);
    assert_eq!(
        played.output.answer.as_deref(),
        Some(&br#"{"status":"done","summary":"All done.","children":null}"#[..])
    );
    assert!(played.has_answered);
    let usage = SessionUsage {
        input_tokens: Some(2_400),
        cached_tokens: Some(600),
        output_tokens: Some(240),
        cost_micro_usd: None,
    };
    assert_eq!(played.output.usage, usage);
    assert_eq!(played.output.session_id.as_deref(), Some("065bad11-ae65-45c8-ab2e-d845e76042f8"));
    let shown: Vec<_> = played.steps.iter().take(4).map(|step| (step.what, step.text.as_str())).collect();
    assert_eq!(
        shown,
        [
            (ActivityKind::Notice, "gemini with gemini-2.5-pro"),
            (ActivityKind::Tool, "echo hi > work; echo seen"),
            (ActivityKind::ToolResult, "seen"),
            (ActivityKind::FileChange, "notes.txt"),
        ]
    );
}

#[test]
fn answer_in_the_file_comes_before_what_is_said() {
    let object = r#"{"status":"retry","summary":"Said."}"#;
    let answer = |lines: &[Value], file: Option<&str>| play_lines(lines, file).output.answer;
    assert_eq!(answer(&[text_line(object), end_line()], Some(r#"{"status":"done","summary":"Written."}"#)), None);
    assert_eq!(answer(&[text_line(object), end_line()], Some("")).as_deref(), Some(object.as_bytes()));
    assert_eq!(answer(&[text_line(object), end_line()], None).as_deref(), Some(object.as_bytes()));
}

#[test]
fn only_one_object_that_is_said_last_is_an_answer() {
    let object = r#"{"status":"retry","summary":"Said."}"#;
    let answer = |lines: &[Value]| play_lines(lines, None).output.answer;
    assert_eq!(answer(&[text_line("Here it is: "), text_line(object), end_line()]).as_deref(), Some(object.as_bytes()));
    assert_eq!(answer(&[text_line(object), text_line(&object.replace("Said", "Not")), end_line()]), None);
    assert_eq!(answer(&[text_line(object), json!({"type": "tool_use", "tool_name": "glob"}), end_line()]), None);
    assert_eq!(answer(&[text_line(object)]), None, "a session that was killed may not have said all");
    assert!(answer(&[text_line("{\"a\":"), text_line("1}"), end_line()]).is_some());
}

#[test]
fn refusal_of_the_service_is_evidence() {
    let played = play_bytes(sample!("auth-wrong-key").as_bytes(), None);
    assert!(!played.has_answered);
    assert!(find_signal(&played, "message").is_some_and(|text| text.contains("UNAUTHENTICATED")));
    let played = play_bytes(sample!("model-unknown").as_bytes(), None);
    assert!(find_signal(&played, "message").is_some_and(|text| text.contains("is not found for API version")));
}

#[test]
fn words_of_the_model_are_no_signal_of_its_service() {
    let played = play_lines(&[text_line("You have exhausted your daily quota."), end_line()], None);
    assert_eq!(find_signal(&played, "message"), None);
    assert!(find_signal(&played, "said").is_some());
}

#[test]
fn killed_session_has_no_usage() {
    let whole = sample!("success");
    let killed = &whole[..whole.rfind("{\"type\":\"result\"").unwrap()];
    assert_eq!(play_bytes(killed.as_bytes(), None).output.usage, SessionUsage::default());
}

#[test]
fn hostile_lines_are_passed_over() {
    let deep = format!("{}{}\n", r#"{"type":"result","stats":"#.repeat(5_000), "}".repeat(5_000));
    let long = text_line(&"x".repeat(3 << 20));
    let wrong = [
        json!({"type": "init", "session_id": "x".repeat(1_000)}),
        json!({"type": "message", "role": "assistant", "content": 7}),
        json!({"type": "tool_use", "tool_name": [], "parameters": "p"}),
        json!({"type": "tool_result"}),
        json!({"type": "result", "status": {}, "error": "e", "stats": {"input_tokens": 1, "cached": u64::MAX, "output_tokens": -1}}),
        Value::Null,
    ];
    let played =
        play_bytes(format!("{deep}{long}\n{}", wrong.map(|line| line.to_string()).join("\n")).as_bytes(), None);
    assert!(!played.has_answered && played.output.session_id.is_none());
    assert_eq!((played.output.usage.input_tokens, played.output.usage.output_tokens), (Some(0), None));
    assert!(played.steps.iter().all(|step| step.text.len() <= 4_096));
}

proptest! {
    #[test]
    fn session_cut_anywhere_answers_only_once_its_last_line_is_whole(cut: prop::sample::Index) {
        let stdout = sample!("success").trim_end().as_bytes();
        let played = play_bytes(&stdout[..cut.index(stdout.len())], None);
        prop_assert!(!played.has_answered && played.output.answer.is_none());
    }

    #[test]
    fn any_bytes_are_heard(bytes: Vec<u8>) {
        prop_assert!(!play_bytes(&bytes, None).has_answered);
    }
}

#[test]
fn network_that_it_cannot_keep_out_is_refused() {
    let check = |section: &str| {
        let config =
            runner_config::parse(&format!("[executor]\nkind = \"gemini\"\n{section}"), Path::new("config.toml"))
                .unwrap();
        GeminiBackend.preflight(&config.executor.work, &[])
    };
    assert_eq!(check(""), Ok(()));
    assert!(check("network = false\n").is_err_and(|error| error.fix.contains("network = true")));
    assert_eq!(check("network = false\nsandbox = \"danger-full-access\"\n"), Ok(()));
}

fn command_line(section: &str) -> String {
    let text = format!("[executor]\nkind = \"gemini\"\n{section}");
    let config = runner_config::parse(&text, Path::new("config.toml")).unwrap();
    let words: Vec<String> =
        gemini_argv(&config.executor.work).into_iter().map(|word| word.into_string().unwrap()).collect();
    words.join(" ")
}

#[test]
fn command_line_is_pinned_and_what_the_configuration_adds_comes_last() {
    insta::assert_snapshot!(command_line(""), @"gemini -p  -o stream-json --skip-trust --approval-mode yolo");
    insta::assert_snapshot!(command_line("model = \"m\"\nsandbox = \"read-only\"\nextra_args = [\"-e\", \"none\"]\n"), @"gemini -p  -o stream-json --skip-trust --approval-mode plan -m m -e none");
}

#[test]
fn of_the_persons_settings_the_login_method_alone_counts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.json");
    assert_eq!(login_method(folder.path()), None);
    fs::write(&file, "// mine\n{\"security\": {\"auth\": {\"selectedType\" : \"oauth-personal\"}}, \"hooks\": {}}")
        .unwrap();
    assert_eq!(login_method(folder.path()).as_deref(), Some("oauth-personal"));
    let executor = runner_config::parse("executor.kind = \"gemini\"", Path::new("c.toml")).unwrap().executor.work;
    let settings = session_settings(&executor, &serde_json::Map::new(), login_method(folder.path()));
    assert_eq!(settings["security"]["auth"]["selectedType"], "oauth-personal");
    assert_eq!((&settings["hooksConfig"]["enabled"], settings.get("hooks")), (&json!(false), None));
    fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(login_method(folder.path()), None, "a pipe is not waited for");
}

#[test]
fn login_is_a_link_to_the_persons_file() {
    let person = tempfile::tempdir().unwrap();
    fs::create_dir(person.path().join(".gemini")).unwrap();
    let login = person.path().join(".gemini/oauth_creds.json");
    fs::write(&login, "{}").unwrap();
    let config = runner_config::parse("[executor]\nkind = \"gemini\"\n", Path::new("config.toml")).unwrap();
    let env = [("HOME".into(), person.path().into())];
    let repo = Path::new("/repo");
    let launch = GeminiBackend.plan_launch(&LaunchRequest {
        form: AnswerForm::Answer,
        executor: &config.executor.work,
        folder: repo,
        git_folder: repo,
        env: &env,
        record: repo,
        home: Some(Path::new("/own")),
        servers: &serde_json::Map::new(),
        output: repo,
    });
    assert_eq!(launch.links, [("/own/.gemini/oauth_creds.json".into(), login)]);
}

#[test]
fn login_is_a_key_or_a_file_of_the_program() {
    let home = tempfile::tempdir().unwrap();
    let executor = runner_config::parse("executor.kind = \"gemini\"", Path::new("c.toml")).unwrap().executor.work;
    let has_login = |name: &str, value: &str| {
        let env = [("HOME".into(), home.path().into()), (name.into(), value.into())];
        GeminiBackend.has_login(&executor, &env)
    };
    assert_eq!(has_login("GEMINI_API_KEY", ""), None);
    assert_eq!(has_login("GEMINI_API_KEY", "dummy"), Some(true));
    fs::create_dir(home.path().join(".gemini")).unwrap();
    fs::write(home.path().join(".gemini/settings.json"), "{}").unwrap();
    assert_eq!(has_login("LANG", "C"), None, "settings are no login");
    fs::write(home.path().join(".gemini/oauth_creds.json"), "{}").unwrap();
    assert_eq!(has_login("LANG", "C"), Some(true));
    assert_eq!(has_login("GEMINI_CLI_HOME", "/absent"), None);
}
