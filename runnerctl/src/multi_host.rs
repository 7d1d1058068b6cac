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
use crate::text::paint::{BAD, HEAD, paint};
use crate::text::sanitize::safe;
use crate::text::screen::Screen;
use crate::ui::Ui;

/// Time limit for a machine to answer.
const WITHIN: Duration = Duration::from_secs(10);

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
pub(crate) async fn ask<T: Serialize>(
    invocation: &Invocation<'_>,
    name: &str,
    question: impl AsyncFn(&Invocation<'_>) -> Result<T, Failure>,
    text: impl Fn(&T, &Screen) -> String,
) -> Result<ExitStatus, Failure> {
    let (ui, mut all) = (invocation.ui, Vec::new());
    let asked = invocation.hosts.iter().map(|host| one(invocation.at(host), host, &question));
    let mut asked: FuturesUnordered<_> = asked.collect();
    while let Some(one) = asked.next().await {
        if !ui.json {
            ui.text(&one.text(&text, &ui.screen()))?;
        }
        all.push(one);
    }
    if ui.json {
        all.sort_by_key(|one| invocation.hosts.iter().position(|host| *host == one.host));
        Ui::object(name, &HostList { hosts: all.iter().map(HostAnswer::told).collect() })?;
    }
    let is_any_there = all.iter().any(|one| one.answer.is_ok());
    Ok(if is_any_there { ExitStatus::Fine } else { ExitStatus::NoDaemon })
}

async fn one<T>(
    inside: Invocation<'_>,
    host: &Host,
    question: impl AsyncFn(&Invocation<'_>) -> Result<T, Failure>,
) -> HostAnswer<T> {
    let hangs = |_| {
        let message = format!("no answer within {} seconds", WITHIN.as_secs());
        Err(Failure::new(ExitStatus::NoDaemon, "no_daemon", message))
    };
    let answer = timeout(WITHIN, question(&inside)).await.unwrap_or_else(hangs);
    HostAnswer { host: host.clone(), answer: answer.map_err(|failure| failure.told_at(host)) }
}

impl<T> HostAnswer<T> {
    fn told(&self) -> HostEntry<'_, T> {
        let (answer, error) = (self.answer.as_ref().ok(), self.answer.as_ref().err().map(error));
        HostEntry { host: self.host.to_string(), answer, error }
    }

    fn text(&self, text: impl Fn(&T, &Screen) -> String, screen: &Screen) -> String {
        let head = paint(HEAD, &safe(&self.host.to_string()));
        match &self.answer {
            Ok(answer) => format!("{head}\n{}", text(answer, &screen.about(&self.host))),
            Err(Failure::Report(report)) => {
                let causes = report.causes.iter().map(String::as_str);
                let why: Vec<&str> = [report.message.as_str()].into_iter().chain(causes).collect();
                format!("{head}  {}\n", paint(BAD, &safe(&why.join(": "))))
            }
            Err(Failure::BrokenPipe) => format!("{head}\n"),
        }
    }
}

/// Returns a failure as `--json` prints it, without the surrounding object.
fn error(failure: &Failure) -> Value {
    match failure {
        Failure::Report(report) => {
            let told: Value = serde_json::from_str(&report.to_json()).unwrap_or_default();
            told["error"].clone()
        }
        Failure::BrokenPipe => Value::Null,
    }
}
