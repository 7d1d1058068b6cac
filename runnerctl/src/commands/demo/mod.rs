//! `demo`: a complete run with a scripted agent, in a scratch repository.
//!
//! The run is a real one: the same daemon, the same requests, the same commits. Only the agent is a script.

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

use self::scratch::{Scratch, is_installed};
use crate::commands::outcome;
use crate::failure::Failure;
use crate::interrupts::Interrupts;
use crate::invocation::Invocation;
use crate::own_daemon::OwnDaemon;
use crate::text::audit;
use crate::text::paint::{HEAD, HINT, paint};
use crate::text::run::{headline, stop_reason};
use crate::text::safe::safe;
use crate::text::titles;
use crate::ui::Ui;

/// A run that takes longer does not do what the script says.
const LONGEST: Duration = Duration::from_mins(3);

const EXAMPLES: &str = "Examples:
  runnerctl demo                     in a temporary folder, which is kept
  runnerctl demo --dir roman-demo    in a folder of your own, new or empty
  runnerctl demo --clean             and remove it at the end";

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
struct Ended<'a> {
    path: String,
    run: &'a RunView,
    audit: &'a AuditReport,
}

/// A run that has come to its end, and what an audit says of its branch.
struct Played {
    run: RunView,
    audit: AuditReport,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: DemoArgs) -> Result<ExitStatus, Failure> {
    let mut stop = Interrupts::listen()?;
    let folder = args.dir.as_deref().map(|folder| invocation.resolve(Some(folder))).transpose()?;
    let scratch = Scratch::make(folder)?;
    let own = match own_daemon(&args).await {
        Ok(own) => own,
        Err(failure) => {
            scratch.remove()?;
            return Err(failure);
        }
    };
    let inside = own.as_ref().map_or_else(|| invocation.clone(), |own| invocation.with_daemon(own.socket().to_owned()));
    let played = tokio::select! {
        played = play_and_verify(&inside, &scratch) => played,
        () = stop.next() => Err(Failure::new(ExitStatus::Interrupted, "interrupted", "the demo was interrupted")),
        () = tokio::time::sleep(LONGEST) => Err(Failure::new(ExitStatus::Error, "timeout", "the demo took too long")),
    };
    let stopped = match own {
        Some(own) => own.stop(&inside).await,
        None if played.is_err() => cancel(&inside, &scratch).await,
        None => Ok(()),
    };
    let code = close(invocation.ui, &scratch, played)?;
    stopped?;
    if args.clean {
        scratch.remove()?;
        return Ok(code);
    }
    invocation.ui.note(&tour(scratch.folder()));
    Ok(code)
}

/// Says what can be looked at in the folder, and that it stays.
fn tour(folder: &Path) -> String {
    let folder = safe(&folder.display().to_string());
    let stops = [
        ("runnerctl log 3 --guard", "the agent said that it was done; the guard disagreed"),
        ("runnerctl log 4 --prompt", "what the next session was told"),
        ("runnerctl tree", "how the goal was split"),
        ("git log --stat", "one commit per session"),
        ("runnerctl verify", "the report above, from the commits alone"),
    ];
    let stops = stops.iter().fold(String::new(), |mut text, (command, what)| {
        let _ = writeln!(text, "  {command:<24}  {what}");
        text
    });
    let (enter, remove) = (format!("cd '{folder}'"), format!("rm -r '{folder}'"));
    format!(
        "\nLook around: {}\n{stops}The folder is kept; to remove it: {}\n",
        paint(HINT, &enter),
        paint(HINT, &remove)
    )
}

async fn own_daemon(args: &DemoArgs) -> Result<Option<OwnDaemon>, Failure> {
    if args.shared { Ok(None) } else { OwnDaemon::start().await.map(Some) }
}

/// Plays the whole run, and has the branch audited that it has made.
async fn play_and_verify(invocation: &Invocation<'_>, scratch: &Scratch) -> Result<Played, Failure> {
    let run = play(invocation, scratch).await?;
    let path = invocation.place(Some(scratch.folder()))?;
    let params = VerifyParams { path, run: Some(run.summary.id.clone()), since: None, signers: None, reviewers: None };
    let audit = invocation.connect().await?.client().verify(params).await?;
    Ok(Played { run, audit })
}

/// Plays the whole run and returns its last state.
async fn play(invocation: &Invocation<'_>, scratch: &Scratch) -> Result<RunView, Failure> {
    let ui = invocation.ui;
    let guard = guard(ui);
    say(ui, &introduction(scratch, guard))?;
    let connection = invocation.connect().await?;
    let path = invocation.place(Some(scratch.folder()))?;
    connection.client().init(InitParams { path: path.clone(), force: false }).await?;
    let own = std::env::current_exe().map_err(|error| Failure::io("finding this program", &error))?;
    scratch.configure(&own, guard)?;
    let params = StartParams {
        env: caller_env::collect(&connection, &path).await,
        path: path.clone(),
        goal: Some(script::GOAL.to_owned()),
        id: None,
        base: None,
        keep_tree: false,
        queue_only: false,
        isolated: Some(false),
        confirmed: true,
    };
    let reply = connection.client().start(params).await?;
    show::show(invocation, AtRun { path, run: Some(reply.run.id) }).await
}

/// Chooses the guard: `just ci`, or where that is missing the script that it calls.
fn guard(ui: &Ui) -> &'static [&'static str] {
    if is_installed("just", std::env::var_os("PATH").as_deref()) {
        return &["just", "ci"];
    }
    ui.note("just is not installed: the guard runs the same checks with sh ci.sh\n");
    &["sh", "ci.sh"]
}

fn introduction(scratch: &Scratch, guard: &[&str]) -> String {
    let folder = safe(&scratch.folder().display().to_string());
    let guard = guard.join(" ");
    format!(
        "{}\nA scripted agent writes a converter for Roman numerals in {folder}\nThe guard is `{guard}`. \
         Every iteration is a fresh session, and ends in one commit.\n",
        paint(HEAD, "A complete run, from goal to finished branch"),
    )
}

/// Says how the demo ended, and returns its exit code.
fn close(ui: &Ui, scratch: &Scratch, played: Result<Played, Failure>) -> Result<ExitStatus, Failure> {
    let folder = scratch.folder().display().to_string();
    let Played { run, audit } =
        played.inspect_err(|_| ui.note(&format!("The scratch repository is {}\n", safe(&folder))))?;
    let code = if audit::is_sound(&audit) {
        outcome(run.summary.state).unwrap_or(ExitStatus::Error)
    } else {
        ExitStatus::Violation
    };
    if ui.json {
        Ui::object("demo", &Ended { path: folder, run: &run, audit: &audit })?;
        return Ok(code);
    }
    let mut text = format!(
        "\n{}{}",
        headline(&run.summary),
        stop_reason(titles::reason(&run).as_ref(), &run.summary.path, &ui.screen())
    );
    if run.summary.state == RunStatus::Completed {
        let log = scratch.git(&["log", "--oneline", "--no-decorate"])?;
        let _ = write!(text, "\n$ git log --oneline\n{log}\n$ sh bin/roman 1994\n{}\n", scratch.roman("1994")?);
        let _ = write!(text, "\n$ runnerctl verify\n{}", audit::report(&audit, &ui.screen()));
    }
    ui.text(&text)?;
    Ok(code)
}

fn say(ui: &Ui, text: &str) -> Result<(), Failure> {
    if ui.is_terse() { Ok(()) } else { ui.text(text) }
}

/// Takes the run out of a daemon that goes on without the demo.
async fn cancel(invocation: &Invocation<'_>, scratch: &Scratch) -> Result<(), Failure> {
    let path = invocation.place(Some(scratch.folder()))?;
    // A run that was never started, or is over, needs no cancelling.
    let _ = invocation.connect().await?.client().cancel(AtRun { path, run: None }).await;
    Ok(())
}
