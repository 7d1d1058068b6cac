//! The command line of `runnerd drive`. Nothing is checked here.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;

const EXAMPLES: &str = "Examples:
  runnerd drive --run tidy-1 --goal tidy.md --yes       in a clone: a new run, published to origin
  runnerd drive ssh://git@host/p.git --run tidy-1       goes on with a run, wherever it was left
  runnerd drive --run tidy-1 --work /scratch/p          keeps the work tree for the next attempt

Exit codes:
  0   completed
  3   stuck
  4   limit or timed out
  6   refused, or the run needs your attention
  9   failed or cancelled
  11  another driver goes on with the run
  75  run me again: nothing is lost";

/// Drive one run as a job of a batch engine, published to a git remote
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own on the command line")]
pub struct DriveOptions {
    /// Work tree whose remote has the run, a bare repository, or the address of a remote
    #[arg(value_name = "PATH|URL", default_value = ".")]
    pub place: String,
    /// Id of the run
    #[arg(long, value_name = "ID")]
    pub run: String,
    /// Goal of a run that the remote does not have yet, from a Markdown file
    #[arg(long, value_name = "FILE", conflicts_with = "message")]
    pub goal: Option<PathBuf>,
    /// Goal of a run that the remote does not have yet, as text
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Remote of the work tree at PATH
    #[arg(long, value_name = "NAME", default_value = "origin")]
    pub remote: String,
    /// Folder of the work tree, kept for the next driver [default: a private one that is removed]
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Bare repository that objects are taken from instead of the network; it is never written to
    #[arg(long, value_name = "BARE")]
    pub cache: Option<PathBuf>,
    /// Longest wait for a service or the remote before the job is given back
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = span)]
    pub max_wait: Duration,
    /// Go on although another driver may be at work: you know that it is not
    #[arg(long)]
    pub take_over: bool,
    /// Publish the beginning of a new run and end: another driver goes on with it. Prints the address of the remote
    #[arg(long, conflicts_with_all = ["take_over", "work"])]
    pub start_only: bool,
    /// Only print the address of the remote that the beginning would be published to
    #[arg(long, requires = "start_only")]
    pub dry_run: bool,
    /// Folder that the records of iterations are copied to: DIR/RUN/JOB.ATTEMPT [default: they end with the job]
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,
    /// File that each published commit is added to, for `runnerctl verify --tip-log`; it is there already
    #[arg(long, value_name = "FILE")]
    pub tip_log: Option<PathBuf>,
    /// Exit code that has the engine run the job again
    #[arg(long, value_name = "CODE", default_value_t = 75)]
    pub again_code: u8,
    /// Confirm the commands in the repository's configuration
    #[arg(short, long)]
    pub yes: bool,
}

fn span(text: &str) -> Result<Duration, String> {
    let span: SignedDuration =
        text.parse().map_err(|_| "expected a span of time such as `10m` or `1h 30m`".to_owned())?;
    Duration::try_from(span).map_err(|_| "expected a span of time that is not negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        assert_eq!(span("10m"), Ok(Duration::from_mins(10)));
        assert_eq!(span("1h 30m"), Ok(Duration::from_mins(90)));
        assert!(span("-1m").is_err() && span("soon").is_err());
    }
}
