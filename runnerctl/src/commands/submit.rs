//! `submit`: publishes the start of runs, and submits each as a job to a batch system.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use protocol::client::daemon_program;
use protocol::error::{ErrorKind, ExitStatus};
use protocol::startup::MARK_VARIABLE;
use serde::Serialize;

use super::start;
use crate::confirm::require_confirmation;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::settings::Settings;
use crate::submit::batch_system::{BatchSystem, JobSpec, job_name};
use crate::submit::run_start::RunStart;
use crate::text::paint::{HEADING, HINT, paint};
use crate::text::sanitize::{sanitize, sanitize_lines};

const EXAMPLES: &str = "Examples:
  runnerctl submit --to slurm --run tidy-1 --goal tidy.md
  runnerctl submit --to slurm --run tidy-1 -- --partition=long --time=8:00:00
  runnerctl submit --to kubernetes --run a --run b -m 'Tidy the tests.'
  runnerctl submit --to slurm --run tidy-1 --print    only show the script";

/// The confirmation question, asked once for all runs.
const QUESTION: &str =
    "The job runs the commands in the repository's configuration, and no one is asked there.\nSubmit it?";

/// Run as jobs of a batch system, published to a git remote
///
/// Pushes the start of each run to the remote, unless the remote already has it. Then it passes a script that drives
/// the run to the batch system's own program: sbatch, kubectl, or the program in `[engine.command] submit`, with the
/// arguments after `--`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SubmitArgs {
    /// Repository whose remote has the runs, a bare repository, or the URL of a remote
    #[arg(value_name = "PATH", default_value = ".")]
    place: String,
    /// The batch system
    #[arg(long = "to", value_name = "ENGINE", value_enum)]
    engine: BatchSystem,
    /// Id of a run; may be repeated, for one job each
    #[arg(long = "run", value_name = "ID", required = true)]
    runs: Vec<String>,
    /// Goal of runs that the remote does not have yet, from a Markdown file (`-`: stdin)
    #[arg(long, value_name = "FILE", conflicts_with = "message")]
    goal: Option<PathBuf>,
    /// Goal of runs that the remote does not have yet, as text
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Remote of the repository at PATH
    #[arg(long, value_name = "NAME", default_value = "origin")]
    remote: String,
    /// Only show the script for the batch system; publishes nothing
    #[arg(long)]
    print: bool,
    /// Submit without asking
    #[arg(short, long)]
    yes: bool,
    /// More arguments for the batch system's program
    #[arg(last = true, value_name = "ARG")]
    options: Vec<OsString>,
}

/// Result for one run.
#[derive(Debug, Serialize)]
struct SubmitReport<'a> {
    run: &'a str,
    remote: &'a str,
    engine: &'static str,
    /// Name of the job.
    name: &'a str,
    /// The batch system's job id; null if its program prints none, or was not run.
    job: Option<&'a str>,
    /// The script for the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<&'a str>,
}

impl SubmitReport<'_> {
    fn render(&self, engine: BatchSystem) -> String {
        let job = self.job.map(|job| format!(" {}", sanitize(job))).unwrap_or_default();
        let head = format!("{} {} is job{job} of {}\n", paint(HEADING, "run"), sanitize(self.run), self.engine);
        match engine.status_command(self.job, self.name) {
            Some(look) => head + &format!("Look at it: {}\n", paint(HINT, &sanitize(&look))),
            None => head,
        }
    }
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: SubmitArgs) -> Result<ExitStatus, Failure> {
    refuse_inside_iteration()?;
    let settings = Settings::load()?;
    let settings = settings.batch_system(args.engine);
    let goal = start::load_goal(invocation, args.goal.as_deref(), args.message.as_deref())?;
    let folder = invocation.resolve_local(None)?;
    let runnerd = daemon_program();
    let local_path = invocation.resolve_local(Some(args.place.as_ref()))?;
    let place = if local_path.is_dir() { local_path.display().to_string() } else { args.place.clone() };
    if !args.print {
        require_confirmation(invocation.ui, args.yes, QUESTION)?;
    }
    for run in &args.runs {
        let goal = goal.as_deref();
        let run_start = RunStart { runnerd: &runnerd, repository: &place, remote: &args.remote, run, goal };
        let remote = run_start.remote_address(&folder).await?;
        let spec = JobSpec { run, remote: &remote, runnerd: &runnerd.display().to_string() };
        let name = job_name(&spec);
        let script = args.engine.render_script(&settings, &spec)?;
        let engine = args.engine.name();
        let script = script.as_str();
        let report = SubmitReport { run, remote: &remote, engine, name: &name, job: None, script: None };
        if args.print {
            let report = SubmitReport { script: Some(script), ..report };
            invocation.ui.print_answer("submit", &report, |_| sanitize_lines(script))?;
            continue;
        }
        invocation.ui.print_note(&format!("Publishing the beginning of run {run}\n"));
        run_start.publish(&folder).await?;
        let job = args.engine.submit_job(&settings, &args.options, &name, script, &folder).await?;
        let report = SubmitReport { job: Some(job.as_str()).filter(|job| !job.is_empty()), ..report };
        invocation.ui.print_answer("submit", &report, |_| report.render(args.engine))?;
    }
    Ok(ExitStatus::Success)
}

/// Refuses inside an iteration: a run that an agent submits would be unattended, with the keys of the logged-in user.
fn refuse_inside_iteration() -> Result<(), Failure> {
    if std::env::var_os(MARK_VARIABLE).is_none() {
        return Ok(());
    }
    let kind = ErrorKind::InsideIteration;
    Err(Failure::new(kind.into(), kind.as_str(), "no job is submitted from inside an iteration"))
}
