//! The page itself: prose written here, and generated tables and examples.

use std::fmt::Write as _;

use protocol::api::API_VERSION;
use protocol::error::{ERROR_CODE, ErrorData, ErrorKind, ExitStatus};
use serde::Serialize;
use serde_json::{Value, json};

use crate::examples::{self, Example};
use crate::source::{self, Method};

const HEAD: &str = r#"# The protocol of the control socket

<!-- Generated: `UPDATE_GENERATED=1 cargo test -p runner-protocol --test reference` rewrites this page. -->

`runnerctl` has no private interface: any program of the same user can do everything that it does, with the requests on this page.
They are JSON-RPC 2.0 over a Unix socket: over WebSocket for long-lived clients, or one HTTP POST per request.

## Connecting

The socket is the first of: `--socket PATH`, `RUNNERD_SOCKET`, `socket` in the daemon's configuration,
`$XDG_RUNTIME_DIR/runnerd/runnerd.sock`, `/run/user/<uid>/runnerd/runnerd.sock`, and, without a runtime directory, `run/runnerd.sock`
in the state directory. `runnerctl daemon status` prints it.

A request typed by hand; the host in the address is ignored:

```sh
curl --silent --unix-socket "$XDG_RUNTIME_DIR/runnerd/runnerd.sock" http://localhost/ \
  -H 'Content-Type: application/json' \
  -d '{"jsonrpc": "2.0", "id": 1, "method": "daemon.info", "params": []}'
```

The daemon answers only its own user: the socket has mode 0600, and the daemon compares the peer's user id. A process inside a running
iteration (an agent, a guard) may call only the methods that read; `contributing/attacks.md` describes how the daemon recognizes it, and the limits
of that check. `runnerctl` starts a daemon if none is running; other programs must start `runnerd` themselves.

The first request on a connection should be `daemon.handshake`. The daemon answers it for every client version; the client compares the
versions. `api_version` must be equal on both sides; it increases with every change that an older client or daemon would misread.

## Conventions

- A method takes no parameter or one object, sent as the only positional parameter: `"params": [{…}]`, else `"params": []`.
- Fields that the schema does not require may be omitted. The daemon ignores unknown fields; clients should too.
- Paths are strings; a path that is not UTF-8 is `{"hex": "2f746d70…"}`, its bytes in hexadecimal. A path in a request is absolute
  and may be any path inside the working tree.
- Times are RFC 3339 in UTC; durations are whole milliseconds in fields that end in `_ms`; money is whole millionths of a US dollar.
- A run is named by its id or by a unique prefix of the id.
- Limits: 1 MiB per request, 16 MiB per reply, 16 subscriptions per connection, and 1,024 connections, of which 64 are for processes
  inside iterations. There are fewer connections if the system allows the daemon fewer than 2,048 descriptors. No batches, and only
  HTTP/1.1. A client that reads nothing for 10 seconds while the daemon has something to send is disconnected.
- A connection can have 32 calls in progress; a call is in progress until its reply is written. Further requests wait in the socket.
- Processes inside iterations have lower limits: 4 calls and 2 subscriptions per connection, 256 KiB per request, and 8 calls in
  progress for all of them together. A call that waits for more than 10 seconds is refused (`busy`).
- `verify.run`, `iteration.list`, `iteration.get` and `tree.explain` run one at a time per repository; identical requests share
  one reply.
- A request that changes something is durable before the reply, and continues if its client disconnects. `run.step` is different in
  one respect: its step continues, but its result is not reported.

`schemas/` contains the types as JSON Schema: `rpc.v1.schema.json` has one definition for each type named below.
"#;

const EVENTS: &str = r"
`events.subscribe` returns the id of the subscription; each event is then a notification of the method `events.event`. It requires a
WebSocket, because HTTP has no notifications. `since` requests the events starting with that number; the daemon keeps the last 4096.
Numbers start again when the daemon starts. A subscriber that is too slow, or requests a number that has been dropped, gets `lagged`
and should read the state again with `run.status`. With `path` it gets the events of that repository and those of the daemon.

";

const EVENTS_END: &str = r"
`output` and `activity` are sent only to subscriptions with `output: true`. A subscriber that is too slow misses some of them; the log
has all of them. `iteration.log` can read an agent's output while the agent runs.
";

/// Returns the whole page.
pub(crate) fn text() -> String {
    let examples = examples::all();
    let mut page = HEAD.to_owned();
    let _ = write!(page, "\n## Methods\n\nAPI version {API_VERSION}. *reads*: allowed from inside an iteration.\n");
    page += &index();
    for section in source::sections() {
        let _ = write!(page, "\n## `{}`\n\n{}\n", section.namespace, section.doc);
        if section.namespace == "events" {
            page += EVENTS;
            page += &table(
                ["kind", "meaning"],
                source::event_kinds().iter().map(|(kind, doc)| [format!("`{kind}`"), doc.clone()]),
            );
            page += EVENTS_END;
        }
        for method in &section.methods {
            let example = examples.iter().find(|example| example.method == method.name).expect("every method has one");
            page += &describe_method(method, example);
        }
    }
    page + &errors() + &exit_codes()
}

fn index() -> String {
    let reading = source::reading();
    let rows = source::sections().into_iter().flat_map(|section| section.methods).map(|method| {
        let reads = if reading.contains(&method.name.as_str()) { "*reads*" } else { "" };
        let anchor = method.name.replace('.', "");
        [format!("[`{}`](#{anchor})", method.name), method.doc, reads.to_owned()]
    });
    format!("\n{}", table(["method", "does", ""], rows))
}

fn describe_method(method: &Method, example: &Example) -> String {
    let mut text = format!("\n### `{}`\n\n{}\n\n", method.name, method.doc);
    let params = if method.params.is_empty() { "nothing".to_owned() } else { format!("`{}`", method.params) };
    let verb = if method.is_subscription { "sends" } else { "answers with" };
    let _ = write!(text, "Takes {params}, {verb} `{}`.\n\n", method.reply);
    text += &block(&request(method, example));
    let reply = if method.is_subscription {
        let params = json!({"subscription": 1, "result": example.reply});
        json!({"jsonrpc": "2.0", "method": "events.event", "params": params})
    } else {
        json!({"jsonrpc": "2.0", "id": 1, "result": example.reply})
    };
    text + "\n" + &block(&reply)
}

fn request(method: &Method, example: &Example) -> Value {
    let params: Vec<&Value> = example.params.iter().collect();
    json!({"jsonrpc": "2.0", "id": 1, "method": method.name, "params": params})
}

fn errors() -> String {
    let data = ErrorData::new(
        ErrorKind::DirtyTree,
        "/home/me/proj has 2 paths that are not committed:\n  Cargo.toml\n  src/main.rs",
    )
    .hint("git add -- Cargo.toml src/main.rs && git commit, or git stash push -u -- Cargo.toml src/main.rs");
    let error = json!({"code": ERROR_CODE, "message": data.message, "data": data});
    let meanings = source::words(include_str!("../../src/error.rs"), "ErrorKind");
    assert_eq!(meanings.len(), ErrorKind::ALL.len(), "a kind without a meaning");
    let rows = ErrorKind::ALL.iter().zip(meanings).map(|(kind, (word, meaning))| {
        assert_eq!(kind.as_str(), word);
        [format!("`{word}`"), meaning, ExitStatus::from(*kind).code().to_string()]
    });
    let table = table(["kind", "when", "exit code"], rows);
    let example = block(&json!({"jsonrpc": "2.0", "id": 1, "error": error}));
    format!(
        "\n## Errors\n\nThe daemon's errors have the code {ERROR_CODE} and `data` of the type `ErrorData`: `kind` is for programs, \
         `message` for people.\n`hint` is the next step, if known, and `causes` are the underlying errors. Malformed requests and \
         unknown methods have the codes of\nJSON-RPC and no `data`. The exit code is the one of `runnerctl`.\n\n{example}\n{table}"
    )
}

fn exit_codes() -> String {
    let rows = ExitStatus::TABLE.iter().map(|(status, meaning)| [status.code().to_string(), (*meaning).to_owned()]);
    format!("\n## Exit codes of `runnerctl`\n\n{}\n", table(["code", "meaning"], rows))
}

fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    text
}

fn block(value: &impl Serialize) -> String {
    let json = serde_json::to_string_pretty(value).expect("serializes");
    format!("```json\n{json}\n```\n")
}
