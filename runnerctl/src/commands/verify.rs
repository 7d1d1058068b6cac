//! `verify`: proves from git alone that a branch follows the rules, or names what does not.

mod tip_log;

use std::mem;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use protocol::api::{LandApiClient as _, VerifyApiClient as _};
use protocol::client::{CallError, Connection, caller_env};
use protocol::error::ExitStatus;
use protocol::landing::{LandedParams, LandedState};
use protocol::request::{AtRun, RerunParams, VerifyParams};
use protocol::verify::{AuditFinding, AuditReport, RerunReport, Severity};

use self::tip_log::TipLog;
use crate::confirm::with_confirmation;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::progress::ProgressLine;
use crate::remote_status::{self, FetchDepth, RemoteArgs, RemoteQuery};
use crate::run_target::RunTarget;
use crate::text::sanitize::sanitize;
use crate::text::{audit, landing};
use crate::text_file;
use crate::ui::Ui;
use crate::wait::ProgressLines;

const EXAMPLES: &str = "Examples:
  runnerctl verify                        the branch that is checked out
  runnerctl verify port-to-postgres
  runnerctl verify --rerun-guards --since HEAD~20 --yes
  runnerctl verify ../clone.git --json    a bare clone
  runnerctl verify --rerun-guards --strict --yes
  runnerctl verify --strict --format sarif --since origin/main
  runnerctl verify --signers signers.txt  only these keys may have signed
  runnerctl verify --tip-log tips.txt     no commit was removed since
  runnerctl verify --landed main          landed runs, merged once more
  runnerctl verify --remote origin        runs that were pushed there

Exit codes:
  0   no violation (with --since, none since REV); there may be warnings
  6   not judged: a commit follows rules that this version does not know
  10  a violation, or part of the branch could not be checked";

/// Verify that every commit follows the rules
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own on the command line")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    target: RunTarget,
    /// Verify the runs that have landed on BRANCH, repeat their merges, and compare
    #[arg(long, value_name = "BRANCH", conflicts_with_all = ["run", "rerun_guards", "strict"])]
    landed: Option<String>,
    /// Run the guard of every passing commit again in a temporary checkout; a different result is a warning
    #[arg(long)]
    rerun_guards: bool,
    /// Treat different results and missing commits or files as violations
    #[arg(long)]
    strict: bool,
    /// Format of the report; `json` is the same as `--json`, `sarif` is for code scanners
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Text, conflicts_with = "landed")]
    format: ReportFormat,
    /// Accept missing commits or files, as in a shallow or partial clone; nothing is proven about them
    #[arg(long, conflicts_with = "strict")]
    allow_shallow: bool,
    /// Report and rerun guards only for commits that REV does not contain; the whole branch is still checked
    #[arg(long, value_name = "REV", conflicts_with = "landed")]
    since: Option<String>,
    /// Require that each commit of the runner is signed by a key in FILE, in git's allowed signers format (SSH)
    #[arg(long, value_name = "FILE", conflicts_with = "landed")]
    signers: Option<PathBuf>,
    /// Require that a person approved each task, and signed the approval with a key in FILE, in the same format
    #[arg(long, value_name = "FILE", conflicts_with = "landed")]
    reviewers: Option<PathBuf>,
    /// Require that the branch still contains each commit that FILE names for the run; if all is well, add the newest
    #[arg(long, value_name = "FILE", conflicts_with = "landed")]
    tip_log: Option<PathBuf>,
    /// Run the guards without asking
    #[arg(long, requires = "rerun_guards")]
    yes: bool,
    #[command(flatten)]
    from: RemoteArgs,
}

/// How a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// For a person.
    Text,
    /// One object.
    Json,
    /// SARIF 2.1.0.
    Sarif,
    /// For the page of a job.
    Markdown,
}

/// Maximum size of a file of keys, in kibibytes.
const KEYS_LIMIT_KIB: u64 = 64;

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, mut args: VerifyArgs) -> Result<ExitStatus, Failure> {
    let Some(remote) = args.from.remote.take() else { return verify_run(invocation, args).await };
    if args.landed.is_some() {
        return Err(Failure::usage("--landed is about a repository with both branches, and not about a remote's runs"));
    }
    let (path, run) = mem::take(&mut args.target).split(invocation)?;
    let query = RemoteQuery { remote: &remote, path: path.as_deref(), run: run.as_deref(), depth: FetchDepth::Whole };
    remote_status::with_remote(invocation, query, async |inside| {
        let target = RunTarget::from_id(remote_status::find_single_run(inside, run.clone()).await?);
        verify_run(inside, VerifyArgs { target, ..args }).await
    })
    .await
}

async fn verify_run(invocation: &Invocation<'_>, args: VerifyArgs) -> Result<ExitStatus, Failure> {
    if invocation.ui.json && !matches!(args.format, ReportFormat::Text | ReportFormat::Json) {
        return Err(Failure::usage("--json and --format name different forms").hint("runnerctl verify --format sarif"));
    }
    let signers =
        args.signers.as_deref().map(|path| text_file::read_text("signers", path, KEYS_LIMIT_KIB)).transpose()?;
    let reviewers =
        args.reviewers.as_deref().map(|path| text_file::read_text("reviewers", path, KEYS_LIMIT_KIB)).transpose()?;
    let tips = args.tip_log.as_deref().map(TipLog::read).transpose()?;
    let connection = invocation.connect().await?;
    let AtRun { path, run } = args.target.resolve(invocation, connection.client()).await?;
    if let Some(branch) = args.landed {
        let report = connection.client().verify_landed(LandedParams { path, branch }).await?;
        invocation.ui.print_answer("verify-landed", &report, |_| landing::render_landed_report(&report))?;
        let is_acceptable = |state| match state {
            LandedState::Same => true,
            LandedState::Unknown => args.allow_shallow,
            LandedState::Differs | LandedState::Unproven => false,
        };
        let is_acceptable = report.commits.iter().all(|check| is_acceptable(check.state));
        return Ok(if is_acceptable { ExitStatus::Success } else { ExitStatus::Violation });
    }
    let params = VerifyParams { path: path.clone(), run, since: args.since.clone(), signers, reviewers };
    let mut report = connection.client().verify(params).await?;
    if let Some(tips) = &tips {
        tips.add_lost_tips(&connection, path.clone(), &mut report).await?;
    }
    if args.rerun_guards && !report.passes.is_empty() {
        let env = caller_env::collect(&connection, &path).await;
        let passes = report.passes.clone();
        let since = args.since;
        let params = RerunParams { path, passes, since, confirmed: false, env };
        let request =
            async |confirmed| rerun_guards(invocation, &connection, RerunParams { confirmed, ..params.clone() }).await;
        let rerun = with_confirmation(invocation.ui, args.yes, request).await?;
        invocation.ui.print_note(&format!("guards run again: {}\n", rerun.guards));
        let severity = if args.strict { Severity::Violation } else { Severity::Warning };
        report.findings.extend(rerun.findings.into_iter().map(|finding| AuditFinding { severity, ..finding }));
    }
    // A branch without an iteration may be one from which a run was removed.
    let severity = if args.allow_shallow { Severity::Warning } else { Severity::Violation };
    let unverified = audit::unseen_findings(&report, severity);
    let is_verified = unverified.is_empty() || (args.allow_shallow && !report.unseen.is_empty());
    let status = if audit::is_sound(&report) && is_verified { ExitStatus::Success } else { ExitStatus::Violation };
    if args.strict || args.format == ReportFormat::Sarif {
        report.findings.extend(unverified);
    }
    print_report(invocation.ui, args.format, &report)?;
    if let Some(tips) = tips.filter(|_| status == ExitStatus::Success && audit::has_commits(&report)) {
        tips.append_tip(invocation.ui, &report)?;
    }
    Ok(status)
}

fn print_report(ui: &Ui, format: ReportFormat, report: &AuditReport) -> Result<(), Failure> {
    match format {
        ReportFormat::Text => ui.print_answer("verify", report, |screen| audit::render_report(report, screen)),
        ReportFormat::Json => Ui::print_object("verify", report),
        ReportFormat::Sarif => Ui::print_document(&audit::sarif::build_log(report)),
        ReportFormat::Markdown => Ui::print_verbatim(&audit::markdown::render_report(report)),
    }
}

/// Runs the guards one by one, so that progress can be shown; none before their commands are confirmed.
async fn rerun_guards(
    invocation: &Invocation<'_>,
    connection: &Connection,
    params: RerunParams,
) -> Result<RerunReport, CallError> {
    if !params.confirmed {
        return Ok(connection.client().rerun_guards(params).await?);
    }
    let lines = ProgressLines::new(invocation.ui);
    let started = Instant::now();
    let mut total = RerunReport { guards: 0, findings: Vec::new() };
    for (index, pass) in params.passes.iter().enumerate() {
        let node = sanitize(&pass.node);
        let text = format!("guard {} of {}: iteration {:04}, task {node}", index + 1, params.passes.len(), pass.iter);
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        lines.show(vec![ProgressLine::Transient { text, elapsed_ms }]);
        let one = RerunParams { passes: vec![pass.clone()], ..params.clone() };
        let report = connection.client().rerun_guards(one).await?;
        total.guards += report.guards;
        total.findings.extend(report.findings);
    }
    lines.finish();
    Ok(total)
}
