//! Shows the daemon's log: from the journal if the service runs under systemd, otherwise from its file.

use std::process::Stdio;

use protocol::client::ConnectError;
use protocol::error::ExitStatus;
use protocol::paths::Paths;
use protocol::service::SERVICE_UNIT;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::sanitize::sanitize;
use crate::ui::Ui;

#[derive(Serialize)]
struct LogLine<'a> {
    line: &'a str,
}

/// Prints the last lines, then follows the log if requested.
pub(super) async fn print_log(
    invocation: &Invocation<'_>,
    has_journal: bool,
    lines: u32,
    follow: bool,
) -> Result<ExitStatus, Failure> {
    let lines = lines.to_string();
    let mut command = if has_journal {
        let mut journal = Command::new("journalctl");
        journal.args(["--user", "--no-pager", "--output=short-iso", "--unit", SERVICE_UNIT, "--lines", &lines]);
        journal.args(follow.then_some("--follow"));
        journal
    } else {
        let file = Paths::find(invocation.socket.as_deref()).map_err(ConnectError::from)?.log_file();
        if !file.exists() {
            let message = format!("there is no log at {}", file.display());
            return Err(Failure::new(ExitStatus::Error, "io", message).hint("runnerctl daemon status"));
        }
        let mut tail = Command::new("tail");
        tail.args(["-n", &lines]).args(follow.then_some("-F")).arg(file);
        tail
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Failure::io("running the program that reads the log", &error))?;
    let output = child.stdout.take().expect("BUG: standard output is a pipe");
    let mut lines_read = BufReader::new(output).split(b'\n');
    while let Some(line) = lines_read.next_segment().await.map_err(|error| Failure::io("reading the log", &error))? {
        let line = String::from_utf8_lossy(&line);
        if invocation.ui.json {
            Ui::print_object("log-line", &LogLine { line: &line })?;
        } else {
            invocation.ui.print_text(&(sanitize(&line) + "\n"))?;
        }
    }
    let status = child.wait().await.map_err(|error| Failure::io("reading the log", &error))?;
    Ok(if status.success() { ExitStatus::Success } else { ExitStatus::Error })
}
