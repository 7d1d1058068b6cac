//! The cost of publishing a commit of an isolated run into the repository it was started from, against `git push`.
//!
//! Processor time is measured, git programs included: most of the rest is waiting for the disk.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use protocol::path::WirePath;
use runner_config::Patterns;
use runner_git::Repository;
use runner_testkit::{Home, Repo};
use runnerd::publish::publish_run;
use runnerd::repo::seal::SealKey;
use runnerd::repo::sealed::StateDir;
use runnerd::store::{RepoStore, SourceRepo};
use runnerd::workspace::{self, WorkspaceOptions, WorkspaceOwner};
use tokio_util::sync::CancellationToken;

use crate::fixture::{self, DiskKind};
use crate::report::{Report, print_progress};
use crate::samples::Samples;

const BUDGET: Duration = Duration::from_millis(15);
const BUDGET_FILES: u32 = 10_000;
const BRANCH: &str = "runner/bench";

/// What is published, and where to.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PublishArgs {
    /// Tracked files of the repositories.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 10_000, 100_000])]
    files: Vec<u32>,
    /// Commits that are published.
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Only on one kind of disk.
    #[arg(long)]
    place: Option<DiskKind>,
}

impl Default for PublishArgs {
    fn default() -> Self {
        Self { files: vec![10, 10_000, 100_000], rounds: 20, place: None }
    }
}

/// Measures every size on every kind of disk.
pub(crate) fn measure(args: &PublishArgs, report: &mut Report) {
    for place in
        [DiskKind::Memory, DiskKind::Disk].into_iter().filter(|place| args.place.is_none_or(|only| only == *place))
    {
        for files in &args.files {
            print_progress(&format!("publish: {files} files, {}", place.name()));
            let setup = PublishSetup::new(place, *files);
            let times = setup.run_rounds(args.rounds);
            report_times(&times, *files, place, report);
        }
    }
}

/// Times measured at one size.
#[derive(Debug, Default)]
struct PublishTimes {
    processor: Samples,
    wall: Samples,
    push_processor: Samples,
    push_wall: Samples,
}

/// A repository, a workspace of it, and an identical repository to push to.
struct PublishSetup {
    repo: Repo,
    workspace: Repository,
    pushed_to: PathBuf,
    store: RepoStore,
    source: SourceRepo,
    home: Home,
}

impl PublishSetup {
    fn new(place: DiskKind, files: u32) -> Self {
        let mut home = Home::new_in(&place.folder());
        // These commits are not made by a run.
        home.expect_forgery();
        let repo = fixture::create_repository(&home, "source", files);
        let discovered = Repository::discover(repo.path()).expect("the repository is found");
        let pinned = discovered.pin_config(&home.path().join("captured")).expect("its configuration can be captured");
        let base = pinned.head().expect("it has a HEAD").commit().expect("it has a commit");
        let key = SealKey::random().expect("a key can be made");
        let copy = Patterns::default();
        let workspace_path = home.path().join("workspace");
        let order = WorkspaceOptions { source: &pinned, target_dir: &workspace_path, base, copy: &copy };
        workspace::create_workspace(&order, &WorkspaceOwner::from_key(&key), &|_| (), &CancellationToken::new())
            .expect("a workspace can be made");
        let found = Repository::discover(&workspace_path).expect("the workspace is found");
        let workspace = found.pin_config(&home.path().join("captured-too")).expect("its configuration can be captured");
        let state_dir = StateDir::new(home.path().join("private"), key);
        let store = RepoStore::new(&state_dir, "0123456789ab");
        store.create().expect("a folder for notes can be made");
        let source = SourceRepo {
            common_dir: WirePath(repo.path().join(".git")),
            path: WirePath(repo.path().to_owned()),
            run: "bench".to_owned(),
            nonce: "1".to_owned(),
        };
        let pushed_to = home.path().join("pushed-to.git");
        let setup = Self { repo, workspace, pushed_to, store, source, home };
        setup.run_git(&[
            "clone",
            "--quiet",
            "--bare",
            &workspace_path.display().to_string(),
            &setup.pushed_to.display().to_string(),
        ]);
        setup.run_git(&["switch", "--quiet", "-c", BRANCH]);
        setup
    }

    /// Runs git in the workspace.
    fn run_git(&self, args: &[&str]) {
        let mut git = Command::new("git");
        git.env_clear().envs(self.home.env().iter().cloned()).current_dir(self.workspace.work_dir());
        let output = git.args(args).output().expect("git can be started");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Publishes commits one at a time and pushes each; the first round does not count.
    fn run_rounds(&self, rounds: u32) -> PublishTimes {
        self.run_round(&mut PublishTimes::default(), 0);
        let mut times = PublishTimes::default();
        for round in 1..=rounds {
            self.run_round(&mut times, round);
        }
        times
    }

    fn run_round(&self, times: &mut PublishTimes, round: u32) {
        for number in 0..fixture::CHANGED_FILES {
            let file = self.workspace.work_dir().join(format!("changed{number}"));
            fs::write(file, format!("{number} in round {round}\n")).expect("a file can be written");
        }
        self.run_git(&["add", "-A"]);
        self.run_git(&["commit", "--quiet", "-m", "A part is done"]);
        let before = processor_time();
        let published = times.wall.time(|| publish_run(&self.store, &self.workspace, &self.source));
        times.processor.add(processor_time().saturating_sub(before));
        let published = published.expect("it can be published").view.expect("there is a commit");
        assert_eq!(published.tip, Some(self.repo.git(&["rev-parse", BRANCH])));
        assert_eq!((published.behind, published.why), (Some(0), None));
        let to = self.pushed_to.display().to_string();
        let before = processor_time();
        times.push_wall.time(|| self.run_git(&["push", "--quiet", &to, BRANCH]));
        times.push_processor.add(processor_time().saturating_sub(before));
    }
}

/// Returns the processor time of this program and of the children it has waited for.
pub(crate) fn processor_time() -> Duration {
    let usage = |who| {
        let used: Usage = getrusage(who).expect("a process knows what it has used");
        let micros = |time: nix::sys::time::TimeVal| {
            Duration::from_secs(time.tv_sec().unsigned_abs()) + Duration::from_micros(time.tv_usec().unsigned_abs())
        };
        micros(used.user_time()) + micros(used.system_time())
    };
    usage(UsageWho::RUSAGE_SELF) + usage(UsageWho::RUSAGE_CHILDREN)
}

fn report_times(times: &PublishTimes, files: u32, place: DiskKind, report: &mut Report) {
    let mut group = report.group(format!("publish, {files} files, {}", place.name()));
    if files == BUDGET_FILES {
        group.add_bounded("processor time of a commit", &times.processor, 50, BUDGET);
    } else {
        group.add_times("processor time of a commit", &times.processor);
    }
    group.add_times("time of a commit", &times.wall);
    group.add_times("processor time of git push", &times.push_processor);
    group.add_times("time of git push", &times.push_wall);
    group.add_ratio("processor time against git push", &times.processor, &times.push_processor, None);
}
