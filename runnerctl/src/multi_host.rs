//! Sends the same question to several machines concurrently: one that does not answer does not hold up the others.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use protocol::error::ExitStatus;
use protocol::host::Host;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::paint::{BAD, HEADING, paint};
use crate::text::sanitize::sanitize;
use crate::text::screen::Screen;
use crate::ui::Ui;

/// Time limit for a machine to answer.
const HOST_TIMEOUT: Duration = Duration::from_secs(10);

/// Result of asking one machine.
pub(crate) struct HostAnswer<T> {
    host: Host,
    answer: Result<T, Failure>,
}

/// A result as printed: exactly one of answer and error is present.
#[derive(Serialize)]
struct HostEntry<'a, T> {
    host: String,
    #[serde(flatten)]
    answer: Option<&'a T>,
    error: Option<Value>,
}

#[derive(Serialize)]
struct HostList<'a, T> {
    hosts: Vec<HostEntry<'a, T>>,
}

/// Asks each of the invocation's machines, and prints each answer under the machine's name as soon as it arrives; as
/// JSON all together, in order. Fails if none has answered.
pub(crate) async fn ask_hosts<T: Serialize>(
    invocation: &Invocation<'_>,
    name: &str,
    query: impl AsyncFn(&Invocation<'_>) -> Result<T, Failure>,
    render: impl Fn(&T, &Screen) -> String,
) -> Result<ExitStatus, Failure> {
    let ui = invocation.ui;
    let mut all = Vec::new();
    let pending = invocation.hosts.iter().map(|host| ask_host(invocation.for_host(host), host, &query));
    let mut pending: FuturesUnordered<_> = pending.collect();
    while let Some(answer) = pending.next().await {
        if !ui.json {
            ui.print_text(&answer.render(&render, &ui.screen()))?;
        }
        all.push(answer);
    }
    if ui.json {
        all.sort_by_key(|one| invocation.hosts.iter().position(|host| *host == one.host));
        Ui::print_object(name, &HostList { hosts: all.iter().map(HostAnswer::to_entry).collect() })?;
    }
    let has_answer = all.iter().any(|one| one.answer.is_ok());
    Ok(if has_answer { ExitStatus::Success } else { ExitStatus::NoDaemon })
}

async fn ask_host<T>(
    invocation: Invocation<'_>,
    host: &Host,
    query: impl AsyncFn(&Invocation<'_>) -> Result<T, Failure>,
) -> HostAnswer<T> {
    let timed_out = |_| {
        let message = format!("no answer within {} seconds", HOST_TIMEOUT.as_secs());
        Err(Failure::new(ExitStatus::NoDaemon, "no_daemon", message))
    };
    let answer = timeout(HOST_TIMEOUT, query(&invocation)).await.unwrap_or_else(timed_out);
    HostAnswer { host: host.clone(), answer: answer.map_err(|failure| failure.with_host(host)) }
}

impl<T> HostAnswer<T> {
    fn to_entry(&self) -> HostEntry<'_, T> {
        let answer = self.answer.as_ref().ok();
        let error = self.answer.as_ref().err().map(error_value);
        HostEntry { host: self.host.to_string(), answer, error }
    }

    fn render(&self, render_answer: impl Fn(&T, &Screen) -> String, screen: &Screen) -> String {
        let head = paint(HEADING, &sanitize(&self.host.to_string()));
        match &self.answer {
            Ok(answer) => format!("{head}\n{}", render_answer(answer, &screen.for_host(&self.host))),
            Err(Failure::Report(report)) => {
                let causes = report.causes.iter().map(String::as_str);
                let why: Vec<&str> = [report.message.as_str()].into_iter().chain(causes).collect();
                format!("{head}  {}\n", paint(BAD, &sanitize(&why.join(": "))))
            }
            Err(Failure::BrokenPipe) => format!("{head}\n"),
        }
    }
}

/// Returns a failure as `--json` prints it, without the surrounding object.
fn error_value(failure: &Failure) -> Value {
    match failure {
        Failure::Report(report) => {
            let object: Value = serde_json::from_str(&report.to_json()).unwrap_or_default();
            object["error"].clone()
        }
        Failure::BrokenPipe => Value::Null,
    }
}
