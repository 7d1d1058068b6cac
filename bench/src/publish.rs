//! Processor time of publishing one commit of an isolated run, the git programs that it starts included.
//!
//! The one measurement that takes the daemon's code by itself: in a whole run it cannot be told from what is beside it.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use protocol::path::WirePath;
use runner_testkit::{Home, Repo};
use runnerd::git::Repository;
use runnerd::publish::publish;
use runnerd::repo::kept::Vault;
use runnerd::repo::seal::Key;
use runnerd::store::{Source, Store};

use crate::fixture::{self, CHANGED, Place};
use crate::report::{Report, progress};
use crate::samples::Samples;

/// Processor time that one commit may take.
const LIMIT: Duration = Duration::from_millis(15);
/// Files of the largest repository that the limit is for.
const LIMITED: u32 = 10_000;

/// What is published, and how often.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Files of the repository.
    #[arg(long, default_value_t = LIMITED)]
    files: u32,
    /// References that the source has beside.
    #[arg(long, default_value_t = 0)]
    refs: u32,
    /// Commits that are published.
    #[arg(long, default_value_t = 50)]
    rounds: u32,
    /// The kind of disk.
    #[arg(long, value_enum, default_value = "disk")]
    place: Place,
}

impl Default for Args {
    fn default() -> Self {
        Self { files: LIMITED, refs: 0, rounds: 50, place: Place::Disk }
    }
}

/// Publishes one commit after the other.
pub(crate) fn measure(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    progress(&format!("publish: {} files", args.files));
    let home = Home::under(&args.place.folder());
    let (source, workspace) = pair(&home, args);
    let store = Store::new(&Vault::new(home.path().join("private"), Key::random()?), "0123456789ab");
    store.create()?;
    let repository = Repository::discover(workspace.path())?.capture(&home.path().join("captured"))?;
    let of = Source {
        common_dir: WirePath(source.path().join(".git").canonicalize()?),
        path: WirePath(source.path().to_owned()),
        run: "bench".to_owned(),
        nonce: "1".to_owned(),
    };
    let (mut first, mut processor, mut wall) = (Duration::ZERO, Samples::default(), Samples::default());
    for round in 0..=args.rounds {
        change(&workspace, args.files, round);
        let (used, began) = (used()?, Instant::now());
        let done = publish(&store, &repository, &of)?;
        let (took, spent) = (began.elapsed(), self::used()?.saturating_sub(used));
        anyhow::ensure!(done.view.is_some_and(|view| view.behind == 0), "a commit was not published");
        if round == 0 {
            first = spent;
        } else {
            processor.add(spent);
            wall.add(took);
        }
    }
    let mut group =
        report.group(format!("publish, {} files, {} references, {}", args.files, args.refs, args.place.name()));
    match args.files {
        0..=LIMITED => group.add_bounded("processor time of a commit", &processor, (50, LIMIT)),
        _ => group.add_times("processor time of a commit", &processor),
    }
    group.add_times("time of a commit", &wall);
    group.add_times("processor time of the first one", &[first].into_iter().collect());
    Ok(())
}

/// Makes a source and a workspace that has its objects.
fn pair(home: &Home, args: &Args) -> (Repo, Repo) {
    let source = fixture::repository(home, "source", args.files);
    for number in 0..args.refs {
        source.write(&format!(".git/refs/tags/v{number}"), &format!("{}\n", source.git(&["rev-parse", "HEAD"])));
        if number % 1_000 == 999 {
            source.git(&["pack-refs", "--all"]);
        }
    }
    let workspace = home.repo("workspace");
    let from = source.path().display().to_string();
    workspace.git(&["fetch", "-q", &from, "main:base"]);
    workspace.git(&["switch", "-q", "-C", "runner/bench", "base"]);
    (source, workspace)
}

/// Commits what a session would leave.
fn change(workspace: &Repo, files: u32, round: u32) {
    for number in 0..CHANGED {
        workspace.write(&fixture::path(number * (files / CHANGED)), &format!("{number} as round {round} left it\n"));
    }
    workspace.commit(&format!("Round {round}"));
}

/// Returns the processor time of this program and of all that it has waited for.
fn used() -> anyhow::Result<Duration> {
    let mut used = Duration::ZERO;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who).context("asking for the processor time")?;
        used += duration(usage.user_time()) + duration(usage.system_time());
    }
    Ok(used)
}

fn duration(time: TimeVal) -> Duration {
    let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
