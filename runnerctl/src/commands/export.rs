//! `export`: copies records for others to use, with one request per record so that progress can be shown.

mod html;
mod otlp;
mod prometheus;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use protocol::api::IterationApiClient as _;
use protocol::client::Connection;
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::reply::ExportReply;
use protocol::request::{AtRun, ExportParams};
use serde::Serialize;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record_selector::{RecordSelector, RecordTarget};
use crate::run_target::RunTarget;
use crate::text::measure::format_bytes;
use crate::text::sanitize::sanitize;

const EXAMPLES: &str = "Examples:
  runnerctl export 7 ~/for-the-issue    the record of iteration 7
  runnerctl export port/7.w1 ~/wait     a wait of the run `port`
  runnerctl export port ~/port          every record of the run
  runnerctl export --run port ~/port    the same
  runnerctl export html port run.html   the run as one page, for a browser
  runnerctl export otlp http://127.0.0.1:4318 --watch
  runnerctl export prometheus /var/lib/node-exporter/runner.prom --watch";

/// Copy the records of iterations to a directory, to share them
///
/// Known secrets are redacted in the texts that the runner recorded. Read the output of agents before you share it.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    allow_missing_positional = true
)]
pub(crate) struct ExportArgs {
    #[command(subcommand)]
    format: Option<ExportFormat>,
    #[command(flatten)]
    records: Option<RecordsArgs>,
}

/// A form other than directories of records.
#[derive(Debug, Subcommand)]
enum ExportFormat {
    /// Write a run to one file that a browser opens without a server
    ///
    /// The file shows the same as the page of `runnerctl ui` at this moment: goal, task tree, prompts, logs, diffs,
    /// settings and paths. Read it before you send it. Its limit is 20 MB; the command lists the texts that it
    /// shortened.
    Html(html::HtmlArgs),
    /// Send iterations as traces to an OpenTelemetry collector (OTLP over HTTP)
    ///
    /// Each iteration is a trace with a span per phase: names, times, verdicts, tokens and cost. The only texts by
    /// agents are titles of tasks. Additional headers come from `OTEL_EXPORTER_OTLP_HEADERS`.
    Otlp(otlp::OtlpArgs),
    /// Write metrics of all repositories for the textfile collector of Prometheus' node exporter
    Prometheus(prometheus::PrometheusArgs),
}

/// What is copied as it is.
#[derive(Debug, Args)]
struct RecordsArgs {
    /// An iteration (`7`, `7.w2`, `RUN/7`), a run, or any path in its repository
    #[arg(value_name = "ITER|RUN|PATH", required_unless_present = "run")]
    what: Option<RecordTarget>,
    /// The directory to write to, new or empty
    #[arg(value_name = "DIR")]
    to: PathBuf,
    /// Run id or a unique prefix
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

/// Totals of what was copied.
#[derive(Debug, Default, Serialize)]
struct ExportSummary {
    run: String,
    to: String,
    records: u64,
    files: u64,
    bytes: u64,
    #[serde(rename = "skipped")]
    skipped: Vec<WirePath>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ExportArgs) -> Result<ExitStatus, Failure> {
    match (args.format, args.records) {
        (Some(ExportFormat::Html(args)), _) => html::run(invocation, args).await,
        (Some(ExportFormat::Otlp(args)), _) => otlp::run(invocation, args).await,
        (Some(ExportFormat::Prometheus(args)), _) => prometheus::run(invocation, args).await,
        (None, Some(args)) => export_records(invocation, args).await,
        (None, None) => Err(Failure::usage("nothing to export is named").hint("runnerctl export --help")),
    }
}

async fn export_records(invocation: &Invocation<'_>, args: RecordsArgs) -> Result<ExitStatus, Failure> {
    let to = invocation.daemon_path(Some(&args.to))?.0;
    let connection = invocation.connect().await?;
    let (target, record) = args.what.map_or_else(Default::default, RecordTarget::into_parts);
    let target = RunTarget { run: args.run.or(target.run), ..target };
    let record = record.map(|record| record_dir_name(&record));
    let at = target.resolve_one(invocation, connection.client()).await?;
    let is_single_record = record.is_some();
    let export = RecordExport { invocation, connection, at, total: ExportSummary::default() };
    let summary = export.copy_all(record, &to).await?;
    invocation.ui.print_answer("export", &summary, |_| render(&summary, is_single_record))?;
    Ok(ExitStatus::Success)
}

struct RecordExport<'a> {
    invocation: &'a Invocation<'a>,
    connection: Connection,
    at: AtRun,
    total: ExportSummary,
}

impl RecordExport<'_> {
    /// Copies one record; without one, the run's own files followed by each of its records.
    async fn copy_all(mut self, record: Option<String>, to: &std::path::Path) -> Result<ExportSummary, Failure> {
        self.total.records = u64::from(record.is_some());
        let first = self.copy_record(record, to.to_owned()).await?;
        (self.total.run, self.total.to) = (first.run.clone(), first.to.to_string());
        self.at.run = Some(first.run);
        let ui = self.invocation.ui;
        let all = first.records.len();
        for (index, record) in first.records.into_iter().enumerate() {
            if ui.can_draw_progress() {
                ui.print_note(&format!("\r\x1b[K{record}: {index} of {all} records are copied"));
            }
            let to = to.join(&record);
            self.copy_record(Some(record), to).await?;
            self.total.records += 1;
        }
        if ui.can_draw_progress() {
            ui.print_note("\r\x1b[K");
        }
        Ok(self.total)
    }

    async fn copy_record(&mut self, record: Option<String>, to: PathBuf) -> Result<ExportReply, Failure> {
        let params = ExportParams { at: self.at.clone(), record, to: WirePath(to) };
        let mut reply = self.connection.client().export(params).await?;
        self.total.files += reply.files;
        self.total.bytes += reply.bytes;
        self.total.skipped.append(&mut reply.left_out);
        Ok(reply)
    }
}

/// Returns the folder name of a record.
fn record_dir_name(record: &RecordSelector) -> String {
    let wait = record.wait.map(|wait| format!(".w{wait}")).unwrap_or_default();
    format!("{:04}{wait}", record.iter)
}

fn render(summary: &ExportSummary, is_single_record: bool) -> String {
    let ExportSummary { run, to, records, files, bytes, skipped: left_out } = summary;
    let what = match (is_single_record, records) {
        (true, _) => format!("a record of run {}", sanitize(run)),
        (false, 1) => format!("the record of run {}", sanitize(run)),
        (false, _) => format!("{records} records of run {}", sanitize(run)),
    };
    let files = if *files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    let mut text = format!("{what} in {}: {files}, {}\n", sanitize(to), format_bytes(*bytes));
    for path in left_out {
        let _ = writeln!(text, "skipped, not a regular file: {}", sanitize(&path.to_string()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_copied_and_what_was_not_is_told() {
        let exported = ExportSummary {
            run: "port".into(),
            to: "/tmp/port".into(),
            records: 3,
            files: 27,
            bytes: 183_204,
            skipped: vec![WirePath("/p/.runner/iterations/port/0002/executor.log".into())],
        };
        insta::assert_snapshot!(render(&exported, false), @r"
        3 records of run port in /tmp/port: 27 files, 183 kB
        skipped, not a regular file: /p/.runner/iterations/port/0002/executor.log
        ");
    }

    #[test]
    fn a_record_is_named_as_its_folder_is() {
        let named = |text: &str| record_dir_name(&text.parse().expect("a record"));
        assert_eq!((named("7"), named("port/12345.w2")), ("0007".into(), "12345.w2".into()));
    }
}
