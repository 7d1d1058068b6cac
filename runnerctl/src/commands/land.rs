//! `land`: lands the results of runs on a branch.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use protocol::api::{LandApiClient, RunApiClient};
use protocol::client::{Connection, caller_env};
use protocol::error::{ErrorData, ErrorKind, ExitStatus};
use protocol::landing::{CandidatesParams, LandForm, LandOutcome, LandParams, LandReply, ResolveParams};
use protocol::path::WirePath;
use protocol::request::{AtPath, AtRun};

use super::start::render_start;
use crate::confirm::with_confirmation;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::{RunTarget, choose_run, to_run_name};
use crate::text::landing;
use crate::text::sanitize::sanitize;
use crate::wait::wait_for_run;

const EXAMPLES: &str = "Examples:
  runnerctl land port-to-postgres --preview    show the commits
  runnerctl land port-to-postgres              one commit per task
  runnerctl land port-to-postgres --onto main --as squash
  runnerctl land parser lexer docs             a train: skips a failing run
  runnerctl land port-to-postgres --resolve    let an agent resolve conflicts

Exit codes:
  0  all named runs are on the branch
  6  refused, or one of several runs was left out";

/// Merge results into a branch after one more guard run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own on the command line")]
pub(crate) struct LandArgs {
    /// Run ids or unique prefixes, or a path: the one run there that can land [default: the one here]
    #[arg(value_name = "RUN|PATH")]
    targets: Vec<PathBuf>,
    /// Run id or a unique prefix; may be repeated
    #[arg(long, value_name = "ID")]
    run: Vec<String>,
    /// The branch to land on [default: the branch that the run started from]
    #[arg(long, value_name = "BRANCH")]
    onto: Option<String>,
    /// The commits of the result
    #[arg(long = "as", value_name = "FORM", value_enum, default_value_t = LandFormArg::Leaves)]
    form: LandFormArg,
    /// Include `.runner/`
    #[arg(long)]
    with_runner: bool,
    /// Land even though part of the run's branch could not be checked, as in a shallow clone
    #[arg(long)]
    unproven: bool,
    /// Land this file as a run of --resolve left it, regardless of the merge; may be repeated
    #[arg(long, value_name = "FILE")]
    accept: Vec<String>,
    /// Show the commits; run no guard and move no branch
    #[arg(long, visible_alias = "dry-run")]
    preview: bool,
    /// Queue a run that merges the result and resolves its conflicts
    #[arg(long, conflicts_with_all = ["preview", "form", "with_runner", "unproven", "accept"])]
    resolve: bool,
    /// With --resolve: show progress until that run ends, pauses or is held
    #[arg(long, requires = "resolve")]
    wait: bool,
    /// Run the guard without asking
    #[arg(short, long)]
    yes: bool,
    /// Any path in the repository [default: current directory]
    #[arg(long, value_name = "PATH")]
    repo: Option<PathBuf>,
}

/// The form of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LandFormArg {
    /// One commit for each passed task
    Leaves,
    /// One commit for the whole run
    Squash,
    /// A merge commit, which keeps the run's history
    Merge,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: LandArgs) -> Result<ExitStatus, Failure> {
    if args.resolve {
        return start_resolution(invocation, args).await;
    }
    let connection = invocation.connect().await?;
    let (path, runs) =
        resolve_runs(invocation, &connection, args.onto.as_ref(), args.targets, args.run, args.repo).await?;
    let params = LandParams {
        env: caller_env::collect(&connection, &path).await,
        path,
        runs,
        onto: args.onto,
        from: None,
        form: to_land_form(args.form),
        with_runner: args.with_runner,
        unproven: args.unproven,
        accepted: args.accept,
        preview: args.preview,
        confirmed: false,
    };
    let request = async |confirmed| connection.client().land(LandParams { confirmed, ..params.clone() }).await;
    let reply = with_confirmation(invocation.ui, args.yes, request).await?;
    invocation.ui.print_answer("land", &reply, |_| landing::render_landing(&reply))?;
    if let Some(note) = landing::describe_checkout(&reply) {
        invocation.ui.print_note(&(sanitize(&note) + "\n"));
    }
    if let Some(branch) = reply.settings.as_ref().filter(|_| !reply.preview) {
        invocation.ui.print_note(&landing::render_settings_hint(branch, &reply));
    }
    Ok(exit_status(&reply))
}

async fn start_resolution(invocation: &Invocation<'_>, args: LandArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let (path, runs) =
        resolve_runs(invocation, &connection, args.onto.as_ref(), args.targets, args.run, args.repo).await?;
    let [run] = &runs[..] else {
        return Err(Failure::usage("one run at a time can be resolved").hint("runnerctl land RUN --resolve"));
    };
    let params = ResolveParams {
        env: caller_env::collect(&connection, &path).await,
        path: path.clone(),
        run: run.clone(),
        onto: args.onto,
        confirmed: false,
    };
    let request = async |confirmed| connection.client().resolve(ResolveParams { confirmed, ..params.clone() }).await;
    let reply = with_confirmation(invocation.ui, args.yes, request).await?;
    invocation.ui.print_answer("start", &reply, |screen| render_start(&reply, screen))?;
    if args.wait {
        return Ok(wait_for_run(invocation, path, reply.run.id).await?.0);
    }
    invocation.ui.print_note(&landing::render_resolve_hint(&reply.run.id));
    Ok(ExitStatus::Success)
}

/// Returns a path in the repository, and the ids of the runs that are meant.
async fn resolve_runs(
    invocation: &Invocation<'_>,
    connection: &Connection,
    onto: Option<&String>,
    targets: Vec<PathBuf>,
    mut runs: Vec<String>,
    repo: Option<PathBuf>,
) -> Result<(WirePath, Vec<String>), Failure> {
    let client = connection.client();
    if targets.is_empty() && runs.is_empty() {
        let path = invocation.daemon_path(repo.as_deref())?;
        let run = choose_candidate(invocation, client, &path, onto).await?;
        return Ok((path, vec![run]));
    }
    for run in &mut runs {
        if let Some(id) = to_run_name(Path::new(run)) {
            *run = id.to_owned();
        }
    }
    if let Some(repo) = repo {
        let id = |word: PathBuf| to_run_name(&word).map_or_else(|| word.to_string_lossy().into_owned(), str::to_owned);
        runs.extend(targets.into_iter().map(id));
        return Ok((invocation.daemon_path(Some(&repo))?, runs));
    }
    let is_single = targets.len() + runs.len() < 2;
    let mut path = invocation.daemon_path(None)?;
    for word in targets {
        match RunTarget::from_word(word).resolve(invocation, client).await? {
            AtRun { run: Some(run), .. } => runs.push(run),
            at if is_single => {
                path = at.path;
                runs.push(choose_candidate(invocation, client, &path, onto).await?);
            }
            AtRun { path, .. } => {
                return Err(Failure::usage(format!(
                    "{path} is a path, and several runs of one repository are named by their ids"
                )));
            }
        }
    }
    Ok((path, runs))
}

/// Returns the one run of a repository that has something to land; of several, the user chooses one on a terminal.
async fn choose_candidate<C: LandApiClient + RunApiClient + Sync>(
    invocation: &Invocation<'_>,
    client: &C,
    path: &WirePath,
    onto: Option<&String>,
) -> Result<String, Failure> {
    let mut known = client.candidates(CandidatesParams { path: path.clone(), onto: onto.cloned() }).await?;
    if known.is_empty() {
        known = client.list(AtPath { path: path.clone() }).await?;
        if known.len() > 1 {
            let message = "no run here has anything left to land";
            return Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl queue --ended").into());
        }
    }
    known.reverse();
    if let [only] = &known[..] {
        return Ok(only.id.clone());
    }
    if invocation.ui.can_ask() && !known.is_empty() {
        return choose_run(known);
    }
    let message = "several runs here can land, and none is named";
    let refused = ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl status");
    Err(refused.choice(None, known.iter().map(|run| run.id.as_str())).into())
}

/// Converts the option to the form the protocol uses.
pub(crate) fn to_land_form(form: LandFormArg) -> LandForm {
    match form {
        LandFormArg::Leaves => LandForm::Leaves,
        LandFormArg::Squash => LandForm::Squash,
        LandFormArg::Merge => LandForm::Merge,
    }
}

fn exit_status(reply: &LandReply) -> ExitStatus {
    let is_left_out = reply.runs.iter().any(|run| run.outcome == LandOutcome::LeftOut);
    if is_left_out { ExitStatus::Refused } else { ExitStatus::Success }
}
