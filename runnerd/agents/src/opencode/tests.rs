//! A recorded session and how it is parsed; and the arguments passed to the program.

use std::path::Path;

use protocol::answer::SessionUsage;

use super::super::backend::{SessionOutput, SessionRest};
use super::*;

const SUCCESS: &str = include_str!("../samples/opencode/success.stdout");

fn play_text(stdout: &str, output: &Path) -> (Vec<String>, bool, SessionOutput) {
    let mut reader = Box::new(OpencodeReader::new(output.to_owned(), runner_core::files::answer::AnswerForm::Answer));
    let steps = stdout.lines().filter_map(|line| reader.read_line(line.as_bytes()));
    let steps = steps.map(|step| format!("{:?}: {}", step.what, step.text.trim())).collect();
    let has_answered = reader.has_answered();
    (steps, has_answered, reader.finish_output(&SessionRest { errors: b"" }))
}

#[test]
fn session_is_followed_to_its_last_message() {
    let (steps, has_answered, output) = play_text(SUCCESS, Path::new("/absent"));
    assert!(has_answered);
    insta::assert_snapshot!(steps.join("\n"), @r#"
    ToolResult: completed: bash echo hi > work; echo seen
    Message: {"children":null,"status":"done","summary":"All done."}
    "#);
    assert_eq!(output.answer.as_deref(), Some(&br#"{"children":null,"status":"done","summary":"All done."}"#[..]));
    assert!(output.session_id.unwrap().starts_with("ses_"));
    assert_eq!(output.evidence.signals, []);
    let SessionUsage { input_tokens, cached_tokens, output_tokens, cost_micro_usd } = output.usage;
    assert_eq!((input_tokens, cached_tokens, output_tokens), (Some(1_600), Some(400), Some(100)));
    assert_eq!(cost_micro_usd, Some(6_420));
}

#[test]
fn file_comes_before_the_last_message() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("output.json");
    std::fs::write(&file, r#"{"status":"retry","summary":"In the file."}"#).unwrap();
    assert_eq!(play_text(SUCCESS, &file).2.answer, None);
}

#[test]
fn last_text_is_the_answer_however_it_is_wrapped() {
    let plain = r#"{"children":null,"status":"done","summary":"All done."}"#;
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    for text in [format!("```json\n{plain}\n```"), format!("That is it:\n{plain}"), format!("{plain}\n{plain}")] {
        let stdout = SUCCESS.replace(&quoted(plain), &quoted(&text));
        assert_ne!(stdout, SUCCESS);
        let answer = play_text(&stdout, Path::new("/absent")).2.answer.expect("it has answered");
        assert_eq!(String::from_utf8(answer).as_deref(), Ok(plain), "{text}");
    }
}

#[test]
fn why_the_last_step_ended_explains_a_session_without_an_answer() {
    for (reason, shown) in [("length", Some("length")), ("content-filter", Some("content-filter")), ("stop", None)] {
        let stdout = SUCCESS.replace(r#""reason":"stop""#, &format!(r#""reason":"{reason}""#));
        let (_, has_answered, output) = play_text(&stdout, Path::new("/absent"));
        let signals: Vec<_> = output.evidence.signals.iter().map(|signal| (signal.field, &*signal.value)).collect();
        assert_eq!(signals.first(), shown.map(|reason| ("finish_reason", reason)).as_ref(), "{reason}");
        assert_eq!(has_answered, shown.is_none(), "{reason}");
    }
}

#[test]
fn session_that_is_cut_off_has_no_answer_and_its_usage() {
    let end = SUCCESS.rfind("{\"type\":\"step_finish\"").unwrap();
    let (_, has_answered, output) = play_text(&SUCCESS[..end], Path::new("/absent"));
    assert!(!has_answered && output.answer.is_none());
    assert_eq!(output.usage.output_tokens, Some(50));
}

#[test]
fn failure_is_told_by_its_name_and_status() {
    let line = r#"{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"statusCode":429,"message":"Too many."}}}"#;
    let (steps, has_answered, output) = play_text(line, Path::new("/absent"));
    assert_eq!((steps, has_answered), (vec!["Notice: Too many.".to_owned()], false));
    let signals: Vec<_> = output.evidence.signals.iter().map(|signal| (signal.field, signal.value.as_str())).collect();
    assert_eq!(signals, [("error_name", "APIError"), ("http_status", "429"), ("message", "Too many.")]);
    assert_eq!(output.usage, SessionUsage::default());
}

#[test]
fn service_that_is_out_ends_a_session_after_three_replies_in_a_row() {
    const REPLY: &[u8] = br#"ERROR 2026-11-28T04:36:32 +5ms service=llm error.error="AI_APICallError: You exceeded your current quota." stream error"#;
    let mut reader = Box::new(OpencodeReader::new("/absent".into(), AnswerForm::Answer));
    let step = br#"{"type":"step_start","sessionID":"ses_1","part":{"type":"step-start"}}"#;
    for lines in [&[REPLY, REPLY][..], &[b"ERROR service=file something else", REPLY, REPLY]] {
        let _ = reader.read_line(step);
        for line in lines {
            reader.read_error_line(line);
        }
        assert!(!reader.has_answered(), "it may still work");
    }
    reader.read_error_line(REPLY);
    assert!(reader.has_answered());
    let evidence = reader.finish_output(&SessionRest { errors: b"" }).evidence;
    let signals: Vec<_> = evidence.signals.iter().map(|signal| (signal.field, signal.value.as_str())).collect();
    assert_eq!(signals, [("message", "You exceeded your current quota.")]);
}

#[test]
fn tools_are_allowed_by_the_sandbox_that_is_asked_for() {
    let of = |text: &str| {
        let text = format!("[executor]\nkind = \"opencode\"\n{text}\n");
        let config = runner_config::parse(&text, Path::new("config.toml")).unwrap();
        session_settings(&config.executor.work, &serde_json::Map::new())["permission"].clone()
    };
    assert_eq!((&of("")["bash"], &of("")["webfetch"]), (&json!("allow"), &json!("allow")));
    let reading = of("sandbox = \"read-only\"\nnetwork = false");
    assert!(reading.as_object().unwrap().values().all(|rule| rule == "deny"), "{reading}");
}

#[test]
fn network_that_it_cannot_keep_out_is_refused() {
    let check = |section: &str| {
        let text = format!("[executor]\nkind = \"opencode\"\n{section}");
        let config = runner_config::parse(&text, Path::new("config.toml")).unwrap();
        OpencodeBackend.preflight(&config.executor.work, &[])
    };
    assert_eq!(check(""), Ok(()));
    assert!(check("network = false\n").is_err_and(|error| error.fix.contains("network = true")));
    assert_eq!(check("network = false\nsandbox = \"read-only\"\n"), Ok(()), "without a shell it has no commands");
}

#[test]
fn its_settings_are_the_sessions_and_those_of_other_programs_are_found() {
    let person = tempfile::tempdir().unwrap();
    for name in ["git", "opencode"] {
        std::fs::create_dir(person.path().join(name)).unwrap();
    }
    let config = runner_config::parse("[executor]\nkind = \"opencode\"\n", Path::new("config.toml")).unwrap();
    let env = [("XDG_CONFIG_HOME".into(), person.path().into())];
    let repo = Path::new("/repo");
    let order = LaunchRequest {
        form: AnswerForm::Answer,
        executor: &config.executor.work,
        folder: repo,
        git_folder: repo,
        env: &env,
        record: repo,
        home: Some(Path::new("/home-of-the-session")),
        servers: &serde_json::Map::new(),
        output: repo,
    };
    let launch = OpencodeBackend.plan_launch(&order);
    let value = |name: &str| launch.env.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_os_str());
    assert_eq!(value("XDG_CONFIG_HOME"), Some("/home-of-the-session/config".as_ref()));
    assert_eq!(value("OPENCODE_DISABLE_PROJECT_CONFIG"), Some("1".as_ref()));
    assert_eq!(launch.links, [("/home-of-the-session/config/git".into(), person.path().join("git"))]);
    let wrapped = OpencodeBackend.plan_launch(&LaunchRequest { home: None, ..order });
    assert!(wrapped.links.is_empty() && wrapped.files.is_empty(), "a wrapper has its own environment");
    let words: Vec<_> = wrapped.argv.iter().map(|word| word.to_string_lossy()).collect();
    insta::assert_snapshot!(words.join(" "), @"opencode run --format json --title runnerd --print-logs --log-level ERROR --dir /repo");
}

#[test]
fn login_is_a_key_or_a_file_with_a_login() {
    let home = tempfile::tempdir().unwrap();
    let executor = runner_config::parse("executor.kind = \"opencode\"", Path::new("c.toml")).unwrap().executor.work;
    let has_login = |name: &str, value: &str| {
        let env = [("HOME".into(), home.path().into()), (name.into(), value.into())];
        OpencodeBackend.has_login(&executor, &env)
    };
    assert_eq!(has_login("OPENAI_API_KEY", ""), None);
    assert_eq!(has_login("OPENAI_API_KEY", "dummy"), Some(true));
    let folder = home.path().join(".local/share/opencode");
    std::fs::create_dir_all(&folder).unwrap();
    for (text, known) in [("{}", None), ("{", None), (r#"{"openai":{"type":"api"}}"#, Some(true))] {
        std::fs::write(folder.join("auth.json"), text).unwrap();
        assert_eq!(has_login("LANG", "C"), known, "{text}");
    }
    assert_eq!(has_login("XDG_DATA_HOME", "/absent"), None);
}
