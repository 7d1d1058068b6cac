//! The command line of `runnerd drive`. Nothing is checked here.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;

const EXAMPLES: &str = "Examples:
  runnerd drive --run tidy-1 --goal tidy.md --yes       in a clone: a new run, published to origin
  runnerd drive ssh://git@host/p.git --run tidy-1       continues a run where it stopped
  runnerd drive --run tidy-1 --work /scratch/p          keeps the checkout for the next attempt

Exit codes:
  0   completed
  3   stuck
  4   limit or timed out
  6   refused, or the run needs your attention
  9   failed or cancelled
  11  another driver continues the run
  75  run the job again: nothing is lost";

/// Drive one run as a job of a batch system, published to a git remote
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own on the command line")]
pub struct DriveOptions {
    /// Repository whose remote has the run, a bare repository, or the URL of a remote
    #[arg(value_name = "PATH|URL", default_value = ".")]
    pub place: String,
    /// Id of the run
    #[arg(long, value_name = "ID")]
    pub run: String,
    /// Goal of a new run, from a Markdown file
    #[arg(long, value_name = "FILE", conflicts_with = "message")]
    pub goal: Option<PathBuf>,
    /// Goal of a new run, as text
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Remote of the repository at PATH
    #[arg(long, value_name = "NAME", default_value = "origin")]
    pub remote: String,
    /// Directory for the checkout, kept for the next driver [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Bare repository to read objects from instead of the network; it is never changed
    #[arg(long, value_name = "BARE")]
    pub cache: Option<PathBuf>,
    /// Maximum wait for a service or the remote before the job ends, to be started again
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = span)]
    pub max_wait: Duration,
    /// Take over from another driver that may still be running; make sure that it is not
    #[arg(long)]
    pub take_over: bool,
    /// Publish the start of a new run, print the URL of the remote, and exit; another driver continues the run
    #[arg(long, conflicts_with_all = ["take_over", "work"])]
    pub start_only: bool,
    /// Only print the URL of the remote, without publishing
    #[arg(long, requires = "start_only")]
    pub dry_run: bool,
    /// Directory for copies of the iterations' records: DIR/RUN/JOB.ATTEMPT [default: not kept after the job]
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,
    /// Existing file that lists each published commit, for `runnerctl verify --tip-log`
    #[arg(long, value_name = "FILE")]
    pub tip_log: Option<PathBuf>,
    /// Exit code that makes the batch system run the job again
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
