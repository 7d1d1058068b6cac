//! `demo`: a complete run with a scripted agent, in a scratch repository.
//!
//! The run is real: the same daemon, the same requests, the same commits. Only the agent is a script.

pub(crate) mod agent;
mod scratch;
mod script;
mod show;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use protocol::api::{RunApiClient as _, VerifyApiClient as _};
use protocol::client::caller_env;
use protocol::error::ExitStatus;
use protocol::request::{AtRun, InitParams, StartParams, VerifyParams};
use protocol::verify::AuditReport;
use protocol::view::RunView;
use protocol::words::RunStatus;
use serde::Serialize;

use self::scratch::{ScratchRepo, is_installed};
use crate::commands::run_exit_status;
use crate::failure::Failure;
use crate::interrupts::InterruptSignals;
use crate::invocation::Invocation;
use crate::temp_daemon::TempDaemon;
use crate::text::audit;
use crate::text::paint::{HEADING, HINT, paint};
use crate::text::run::{render_headline, render_stop_reason};
use crate::text::sanitize::sanitize;
use crate::text::titles;
use crate::ui::Ui;

/// A run that takes longer does not follow the script.
const TIME_LIMIT: Duration = Duration::from_mins(3);

const EXAMPLES: &str = "Examples:
  runnerctl demo                     in a temporary directory, which is kept
  runnerctl demo --dir roman-demo    in this directory, new or empty
  runnerctl demo --clean             remove the repository at the end";

/// Show a complete run with a scripted agent; no account needed
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Create the scratch repository in DIR, which is new or empty
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Remove the scratch repository at the end
    #[arg(long)]
    clean: bool,
    /// Use the regular daemon instead of a temporary one
    #[arg(long)]
    shared: bool,
}

#[derive(Serialize)]
struct DemoReport<'a> {
    path: String,
    run: &'a RunView,
    audit: &'a AuditReport,
}

/// A finished run, and the audit of its branch.
struct DemoResult {
    run: RunView,
    audit: AuditReport,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: DemoArgs) -> Result<ExitStatus, Failure> {
    let mut interrupts = InterruptSignals::listen()?;
    let folder = args.dir.as_deref().map(|folder| invocation.resolve_local(Some(folder))).transpose()?;
    let scratch = ScratchRepo::create(folder)?;
    let daemon = match start_temp_daemon(&args).await {
        Ok(own) => own,
        Err(failure) => {
            scratch.remove()?;
            return Err(failure);
        }
    };
    let demo_invocation =
        daemon.as_ref().map_or_else(|| invocation.clone(), |own| invocation.with_daemon(own.socket().to_owned()));
    let played = tokio::select! {
        played = play_and_verify(&demo_invocation, &scratch) => played,
        () = interrupts.recv() => Err(Failure::new(ExitStatus::Interrupted, "interrupted", "the demo was interrupted")),
        () = tokio::time::sleep(TIME_LIMIT) => Err(Failure::new(ExitStatus::Error, "timeout", "the demo took too long")),
    };
    let stopped = match daemon {
        Some(own) => own.stop(&demo_invocation).await,
        None if played.is_err() => cancel_run(&demo_invocation, &scratch).await,
        None => Ok(()),
    };
    let code = print_result(invocation.ui, &scratch, played)?;
    stopped?;
    if args.clean {
        scratch.remove()?;
        return Ok(code);
    }
    invocation.ui.print_note(&render_tour(scratch.folder()));
    Ok(code)
}

/// Says what can be inspected in the folder, and that it is kept.
fn render_tour(folder: &Path) -> String {
    let folder = sanitize(&folder.display().to_string());
    let stops = [
        ("runnerctl log 3 --guard", "the agent said that it was done; the guard disagreed"),
        ("runnerctl log 4 --prompt", "the prompt of the next session"),
        ("runnerctl tree", "how the goal was split"),
        ("git log --stat", "one commit per session"),
        ("runnerctl verify", "the report above, from the commits alone"),
    ];
    let stops = stops.iter().fold(String::new(), |mut text, (command, what)| {
        let _ = writeln!(text, "  {command:<24}  {what}");
        text
    });
    let enter = format!("cd '{folder}'");
    let remove = format!("rm -r '{folder}'");
    format!(
        "\nLook around: {}\n{stops}The directory is kept; to remove it: {}\n",
        paint(HINT, &enter),
        paint(HINT, &remove)
    )
}

async fn start_temp_daemon(args: &DemoArgs) -> Result<Option<TempDaemon>, Failure> {
    if args.shared { Ok(None) } else { TempDaemon::start().await.map(Some) }
}

/// Performs the whole run and audits the resulting branch.
async fn play_and_verify(invocation: &Invocation<'_>, scratch: &ScratchRepo) -> Result<DemoResult, Failure> {
    let run = play_run(invocation, scratch).await?;
    let path = invocation.daemon_path(Some(scratch.folder()))?;
    let params = VerifyParams { path, run: Some(run.summary.id.clone()), since: None, signers: None, reviewers: None };
    let audit = invocation.connect().await?.client().verify(params).await?;
    Ok(DemoResult { run, audit })
}

/// Performs the whole run and returns its final status.
async fn play_run(invocation: &Invocation<'_>, scratch: &ScratchRepo) -> Result<RunView, Failure> {
    let ui = invocation.ui;
    let guard = choose_guard(ui);
    print_unless_terse(ui, &render_introduction(scratch, guard))?;
    let connection = invocation.connect().await?;
    let path = invocation.daemon_path(Some(scratch.folder()))?;
    connection.client().init(InitParams { path: path.clone(), force: false, defaults: None }).await?;
    let program = std::env::current_exe().map_err(|error| Failure::io("finding this program", &error))?;
    scratch.write_config(&program, guard)?;
    let params = StartParams {
        env: caller_env::collect(&connection, &path).await,
        path: path.clone(),
        goal: Some(script::GOAL.to_owned()),
        goal_file: None,
        id: None,
        base: None,
        onto: None,
        keep_tree: false,
        queue_only: false,
        isolated: Some(false),
        default_config: false,
        defaults: None,
        confirmed: true,
    };
    let reply = connection.client().start(params).await?;
    show::follow_run(invocation, AtRun { path, run: Some(reply.run.id) }).await
}

/// Chooses the guard: `just ci`, or the script it calls if just is not installed.
fn choose_guard(ui: &Ui) -> &'static [&'static str] {
    if is_installed("just", std::env::var_os("PATH").as_deref()) {
        return &["just", "ci"];
    }
    ui.print_note("just is not installed: the guard runs the same checks with sh ci.sh\n");
    &["sh", "ci.sh"]
}

fn render_introduction(scratch: &ScratchRepo, guard: &[&str]) -> String {
    let folder = sanitize(&scratch.folder().display().to_string());
    let guard = guard.join(" ");
    format!(
        "{}\nA scripted agent writes a converter for Roman numerals in {folder}\nThe guard is `{guard}`. \
         Every iteration is a fresh session, and ends in one commit.\n",
        paint(HEADING, "A complete run, from goal to finished branch"),
    )
}

/// Prints the result of the demo and returns its exit code.
fn print_result(ui: &Ui, scratch: &ScratchRepo, played: Result<DemoResult, Failure>) -> Result<ExitStatus, Failure> {
    let folder = scratch.folder().display().to_string();
    let DemoResult { run, audit } =
        played.inspect_err(|_| ui.print_note(&format!("The scratch repository is {}\n", sanitize(&folder))))?;
    let code = if audit::is_sound(&audit) {
        run_exit_status(run.summary.state).unwrap_or(ExitStatus::Error)
    } else {
        ExitStatus::Violation
    };
    if ui.json {
        Ui::print_object("demo", &DemoReport { path: folder, run: &run, audit: &audit })?;
        return Ok(code);
    }
    let mut text = format!(
        "\n{}{}",
        render_headline(&run.summary, &ui.screen()),
        render_stop_reason(titles::titled_reason(&run).as_ref(), &run.summary.path, &ui.screen())
    );
    if run.summary.state == RunStatus::Completed {
        let log = scratch.run_git(&["log", "--oneline", "--no-decorate"])?;
        let _ = write!(text, "\n$ git log --oneline\n{log}\n$ sh bin/roman 1994\n{}\n", scratch.run_roman("1994")?);
        let _ = write!(text, "\n$ runnerctl verify\n{}", audit::render_report(&audit, &ui.screen()));
    }
    ui.print_text(&text)?;
    Ok(code)
}

fn print_unless_terse(ui: &Ui, text: &str) -> Result<(), Failure> {
    if ui.is_terse() { Ok(()) } else { ui.print_text(text) }
}

/// Cancels the run in a shared daemon, which outlives the demo.
async fn cancel_run(invocation: &Invocation<'_>, scratch: &ScratchRepo) -> Result<(), Failure> {
    let path = invocation.daemon_path(Some(scratch.folder()))?;
    // A run that was never started or has ended needs no cancelling.
    let _ = invocation.connect().await?.client().cancel(AtRun { path, run: None }).await;
    Ok(())
}
