//! The service, tested with a client that is a bare connection.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ModelProtocol, ModelReply, ModelServer, ReplyScript, TokenUsage, parse_script};

/// Sends a request and returns all bytes received until the connection is closed or nothing more arrives.
fn send_request(model: &ModelServer, path: &str, body: &Value) -> String {
    let address = model.url().replace("http://", "");
    let mut stream = TcpStream::connect(&address).expect("the service listens");
    stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a limit can be set");
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nx-key: dummy\r\n");
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).expect("the service reads");
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8(bytes).expect("the service sends text")
}

fn responses(model: &ModelServer) -> String {
    let tools = json!([{"type": "function", "name": "exec_command"}]);
    send_request(
        model,
        "/v1/responses",
        &json!({"model": "m-1", "stream": true, "tools": tools, "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Do it."}]}]}),
    )
}

fn messages(model: &ModelServer, stream: bool) -> String {
    let tools = json!([{"name": "Bash"}, {"name": "StructuredOutput"}]);
    let turns = json!([{"role": "user", "content": "Do it."}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen"}]}]);
    send_request(
        model,
        "/v1/messages?beta=true",
        &json!({"model": "m-2", "stream": stream, "tools": tools, "messages": turns}),
    )
}

/// Returns the event types of a reply, in order.
fn types(reply: &str) -> Vec<&str> {
    reply.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
}

#[test]
fn replies_come_in_order_in_the_form_of_each_protocol() {
    let usage = TokenUsage { input: 70, cached: 30, output: 5 };
    let script = ReplyScript::new()
        .then(ModelReply::run("true").usage(usage))
        .times(2, ModelReply::answer(json!({"status": "done"})));
    let model = ModelServer::start(script);
    let first = responses(&model);
    let expected =
        ["response.created", "response.output_item.added", "response.output_item.done", "response.completed"];
    assert_eq!(types(&first), expected);
    assert!(first.contains(r#""name":"exec_command""#) && first.contains(r#""input_tokens":70"#), "{first}");
    let second = messages(&model, true);
    assert_eq!(types(&second).first(), Some(&"message_start"));
    assert!(second.contains(r#""name":"StructuredOutput""#) && second.ends_with("0\r\n\r\n"), "{second}");
    let third = messages(&model, false);
    assert!(third.contains(r#""stop_reason":"tool_use""#) && types(&third).is_empty(), "{third}");
}

#[test]
fn requests_are_recorded_as_they_came() {
    let model = ModelServer::start(ReplyScript::new().always(ModelReply::empty()));
    responses(&model);
    messages(&model, true);
    let requests = model.wait_for_requests(2);
    let [first, second] = requests.as_slice() else { panic!("{requests:#?}") };
    assert_eq!(
        (first.protocol, first.model(), first.header("x-key")),
        (ModelProtocol::Responses, "m-1", Some("dummy"))
    );
    assert_eq!((first.user_text().as_str(), first.is_first_turn()), ("Do it.", true));
    assert_eq!((second.path.as_str(), second.tool_results()), ("/v1/messages?beta=true", vec!["seen".to_owned()]));
    assert!(second.offers_tool("Bash") && !second.offers_tool("exec") && second.user_text().contains("Do it."));
}

#[test]
fn request_may_choose_its_reply_and_a_script_may_end() {
    let script = ReplyScript::new()
        .when(|request| request.model() == "m-2", ModelReply::overloaded())
        .then(ModelReply::text("Hello."));
    let model = ModelServer::start(script);
    assert!(messages(&model, true).starts_with("HTTP/1.1 529 "));
    assert!(responses(&model).contains("Hello."));
    assert!(responses(&model).contains("the script has no reply to this request"));
    model.set_script(ReplyScript::new().always(ModelReply::text("Again.")));
    assert!(responses(&model).contains("Again."));
}

#[test]
fn faults_are_seen_on_the_wire() {
    let model = ModelServer::start(ReplyScript::new());
    let receive = |reply: ModelReply| {
        model.set_script(ReplyScript::new().then(reply.header("x-note", "kept")));
        responses(&model)
    };
    let limit = receive(ModelReply::usage_limit(1_800_000_000));
    assert!(limit.starts_with("HTTP/1.1 429 ") && limit.contains("x-note: kept"), "{limit}");
    assert!(limit.contains("x-codex-primary-reset-at: 1800000000"), "{limit}");
    assert!(receive(ModelReply::rate_limit(Some(7))).contains("retry-after: 7"));
    assert!(receive(ModelReply::status(502, "<html>")).ends_with("<html>"));
    assert!(receive(ModelReply::raw("data: what\n\n")).contains("data: what"));
    assert_eq!(receive(ModelReply::hang_up()), "", "the connection was closed without a word");
    assert_eq!(receive(ModelReply::silence()), "", "nothing came");
    for cut in [ModelReply::text("Hello.").dropped(), ModelReply::text("Hello.").stalled()] {
        let cut = receive(cut);
        assert!(cut.contains("response.created") && !cut.contains("response.completed"), "{cut}");
        assert!(!cut.ends_with("0\r\n\r\n"), "the end of the stream did not come: {cut}");
    }
    let unfinished = receive(ModelReply::text("Hello.").unfinished());
    assert!(unfinished.contains("output_item.done") && !unfinished.contains("response.completed"), "{unfinished}");
}

#[test]
fn script_can_be_a_file() {
    let text =
        "[[reply]]\nrun = 'true'\nwhen = 'Do it.'\n[[reply]]\nfault = 'rate_limit'\nretry_after = 3\ntimes = 0\n";
    let model = ModelServer::start(parse_script(text).unwrap());
    assert!(responses(&model).contains("exec_command"));
    assert!(responses(&model).contains("retry-after: 3") && responses(&model).contains("retry-after: 3"));
    assert_eq!(
        parse_script("[[reply]]\nrun = 'a'\ntext = 'b'\n").unwrap_err().to_string().split(' ').nth(1),
        Some("1")
    );
    assert!(parse_script("[[reply]]\nfault = 'flood'\n").unwrap_err().to_string().contains("`flood` is not known"));
}
