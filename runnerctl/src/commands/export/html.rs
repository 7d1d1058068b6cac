//! `export html`: has `runner-ui` write a run to one file, and prints a summary.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::client::CallError;
use protocol::error::{ErrorData, ErrorKind, ExitStatus};
use protocol::path::WirePath;
use serde::{Deserialize, Serialize};

use crate::commands::ui::{INSTALL_HINT, find_daemon, runner_ui_command};
use crate::failure::{Failure, is_refusal};
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::measure::format_bytes;
use crate::text::sanitize::sanitize;

/// Which run, and where to.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct HtmlArgs {
    /// Run id or a unique prefix, or any path in the repository
    #[arg(value_name = "RUN|PATH", required_unless_present = "run")]
    target: Option<PathBuf>,
    /// The file to write
    #[arg(value_name = "FILE")]
    to: PathBuf,
    /// Run id or a unique prefix; the other argument is then a path
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

/// What was written, as reported by `runner-ui`.
#[derive(Debug, Serialize, Deserialize)]
struct HtmlExport {
    run: String,
    #[serde(default)]
    to: String,
    bytes: u64,
    iterations: u64,
    shortened: Vec<ShortenedText>,
    without_texts: Vec<String>,
    cuts: Vec<String>,
}

/// A text of which the file contains only a part.
#[derive(Debug, Serialize, Deserialize)]
struct ShortenedText {
    iter: String,
    text: String,
    bytes: u64,
    kept: u64,
}

/// Why nothing was written, as reported by `runner-ui`.
#[derive(Debug, Deserialize)]
struct HtmlErrorReply {
    error: HtmlErrorBody,
}

#[derive(Debug, Deserialize)]
struct HtmlErrorBody {
    code: serde_json::Value,
    message: String,
    hint: Option<String>,
}

/// Runs the command.
pub(super) async fn run(invocation: &Invocation<'_>, args: HtmlArgs) -> Result<ExitStatus, Failure> {
    let to = invocation.resolve_local(Some(&args.to))?;
    let (path, run) = RunTarget { target: args.target, run: args.run }.split(invocation)?;
    let path = invocation.daemon_path(path.as_deref())?;
    let (socket, no_daemon) = find_daemon(invocation).await?;
    let run = match run {
        None if no_daemon.is_none() => choose_run(invocation, &path).await?,
        run => run,
    };
    let mut command = runner_ui_command(invocation, socket.as_deref());
    command.arg("--export").arg(&to);
    command.args(run.iter().flat_map(|run| ["--run", run]));
    command.args(args.force.then_some("--force")).arg("--").arg(path.0);
    command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
    let output =
        command.output().await.map_err(|error| Failure::io("starting runner-ui", &error).hint(INSTALL_HINT))?;
    if !output.status.success() {
        return Err(no_daemon.unwrap_or_else(|| parse_error_reply(&output.stdout)));
    }
    let export = serde_json::from_slice(&output.stdout);
    let export = export.map_err(|error| Failure::io("reading what runner-ui has said", &error.into()))?;
    let export = HtmlExport { to: to.display().to_string(), ..export };
    invocation.ui.print_answer("export-html", &export, |_| render(&export))?;
    Ok(ExitStatus::Success)
}

/// Returns the one run that is meant where none is named, or refuses to choose; `None` if the daemon knows no run there.
async fn choose_run(invocation: &Invocation<'_>, path: &WirePath) -> Result<Option<String>, Failure> {
    let connection = invocation.connect().await?;
    let target = RunTarget::from_word(path.as_path());
    let at = target.resolve_one(invocation, connection.client()).await?;
    match connection.client().locate(at).await.map_err(CallError::from) {
        Ok(run) => Ok(Some(run.id)),
        Err(error) if is_refusal(&error, ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Parses the reason why nothing was written.
fn parse_error_reply(output: &[u8]) -> Failure {
    let Ok(HtmlErrorReply { error: HtmlErrorBody { code, message, hint } }) = serde_json::from_slice(output) else {
        return Failure::new(ExitStatus::Error, "export", "runner-ui wrote nothing").hint("runnerctl doctor");
    };
    let kind = serde_json::from_value(code).unwrap_or(ErrorKind::Fault);
    let failure = Failure::from(ErrorData::new(kind, message));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn render(export: &HtmlExport) -> String {
    let HtmlExport { run, to, bytes, iterations, cuts, .. } = export;
    let count = if *iterations == 1 { "1 iteration".to_owned() } else { format!("{iterations} iterations") };
    let mut text = format!("run {} in {}: {count}, {}\n", sanitize(run), sanitize(to), format_bytes(*bytes));
    for cut in cuts {
        let _ = writeln!(text, "cut: {}", sanitize(cut));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_told_with_what_was_written() {
        let export = HtmlExport {
            run: "port".into(),
            to: "/tmp/port.html".into(),
            bytes: 19_912_204,
            iterations: 946,
            shortened: Vec::new(),
            without_texts: vec!["1".into()],
            cuts: vec!["the texts of iteration 1 are left out: a file holds 20 MB".into()],
        };
        insta::assert_snapshot!(render(&export), @r"
        run port in /tmp/port.html: 946 iterations, 19 MB
        cut: the texts of iteration 1 are left out: a file holds 20 MB
        ");
    }

    #[test]
    fn a_refusal_keeps_its_kind() {
        let body = br#"{"error":{"code":"invalid_request","message":"it is there already","hint":null}}"#;
        assert_eq!(parse_error_reply(body).status(), ExitStatus::from(ErrorKind::InvalidRequest));
        assert_eq!(parse_error_reply(b"").status(), ExitStatus::Error);
    }
}
