//! The time to create the workspace of an isolated run, against `git worktree add` and a plain copy of the packs.
//!
//! If the disk shares blocks between files, a git worktree is the lower bound; otherwise the packs must be copied as
//! well. Both are measured in alternation with it, from the same repository.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runner_config::Patterns;
use runner_git::Repository;
use runner_testkit::{Home, Repo};
use runnerd::repo::seal::SealKey;
use runnerd::workspace::{self, WorkspaceOptions, WorkspaceOwner};
use tokio_util::sync::CancellationToken;

use crate::fixture::{self, DiskKind};
use crate::report::{Report, print_progress};
use crate::samples::Samples;

/// Budgets for a packed repository: against a git worktree if blocks are shared, otherwise against that plus a copy of
/// the packs. Loose objects are packed along the way, which neither of the two does.
const SHARED_RATIO: f64 = 1.5;
const COPIED_RATIO: f64 = 1.2;

/// From what workspaces are made.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WorkspaceArgs {
    /// Tracked files of the repositories.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 10_000])]
    files: Vec<u32>,
    /// Additional mebibytes in the history, which do not compress.
    #[arg(long, default_value_t = 200)]
    history_mib: u32,
    /// Objects that lie about unpacked.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1_000])]
    loose: Vec<u32>,
    /// Turns of each.
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Only on one kind of disk.
    #[arg(long)]
    place: Option<DiskKind>,
}

impl Default for WorkspaceArgs {
    fn default() -> Self {
        Self { files: vec![10, 10_000], history_mib: 200, loose: vec![0, 1_000], rounds: 7, place: None }
    }
}

/// Measures every size on every kind of disk.
pub(crate) fn measure(args: &WorkspaceArgs, report: &mut Report) {
    for place in
        [DiskKind::Memory, DiskKind::Disk].into_iter().filter(|place| args.place.is_none_or(|only| only == *place))
    {
        for (files, loose) in args.files.iter().flat_map(|files| args.loose.iter().map(move |loose| (*files, *loose))) {
            let what = format!("workspace, {files} files, {loose} loose objects");
            print_progress(&format!("{what}, {}", place.name()));
            let setup = WorkspaceSetup::new(place, files, loose, args.history_mib);
            let name = format!("{what}, {} MiB of packs, {}", setup.packs_mib(), place.name());
            let budgets = WorkspaceBudgets { apply: loose == 0, shares_blocks: setup.shares_blocks() };
            report_times(&setup.run_rounds(args.rounds), budgets, name, report);
        }
    }
}

/// The budget that applies to each case.
#[derive(Debug, Clone, Copy)]
struct WorkspaceBudgets {
    apply: bool,
    shares_blocks: bool,
}

/// Times measured at one size.
#[derive(Debug, Default)]
struct WorkspaceTimes {
    workspace: Samples,
    flushed: Samples,
    work_tree: Samples,
    work_tree_and_copy: Samples,
    copy: Samples,
}

/// A repository, and the folder in which its workspaces are created.
struct WorkspaceSetup {
    home: Home,
    repo: Repo,
    folder: PathBuf,
}

impl WorkspaceSetup {
    fn new(place: DiskKind, files: u32, loose: u32, history_mib: u32) -> Self {
        let home = Home::new_in(&place.folder());
        let repo = fixture::create_repository(&home, "source", files);
        add_history(&home, &repo, history_mib);
        if loose > 0 {
            add_loose(&repo, loose);
        }
        let folder = home.path().join("workspaces");
        fs::create_dir(&folder).expect("a folder can be made");
        Self { home, repo, folder }
    }

    fn packs_dir(&self) -> PathBuf {
        self.repo.path().join(".git/objects/pack")
    }

    fn packs_mib(&self) -> u64 {
        let files = fs::read_dir(self.packs_dir()).expect("packs can be listed").flatten();
        files.filter_map(|file| file.metadata().ok()).map(|found| found.len()).sum::<u64>() >> 20
    }

    fn shares_blocks(&self) -> bool {
        let from = self.repo.path().join("README.md");
        let to = self.folder.join("shared");
        let mut copy = Command::new("cp");
        let shared = copy.arg("--reflink=always").args([&from, &to]).stderr(Stdio::null()).status();
        shared.is_ok_and(|status| status.success())
    }

    /// Measures each, alternating, after one warm-up turn that does not count.
    fn run_rounds(&self, rounds: u32) -> WorkspaceTimes {
        self.run_round(&mut WorkspaceTimes::default());
        let mut times = WorkspaceTimes::default();
        for _ in 0..rounds {
            self.run_round(&mut times);
        }
        times
    }

    fn run_round(&self, times: &mut WorkspaceTimes) {
        let mut work_tree = Samples::default();
        let mut copy = Samples::default();
        let tree = self.folder.join("tree");
        let path = tree.display().to_string();
        sync_disks();
        work_tree.time(|| self.repo.git(&["worktree", "add", "--quiet", "--detach", &path, "HEAD"]));
        self.repo.git(&["worktree", "remove", "--force", &path]);
        sync_disks();
        copy.time(|| run_command(Command::new("cp").arg("-r").args([&self.packs_dir(), &self.folder.join("packs")])));
        fs::remove_dir_all(self.folder.join("packs")).expect("a folder can be removed");
        times.work_tree_and_copy.add(work_tree.median() + copy.median());
        times.work_tree.add(work_tree.median());
        times.copy.add(copy.median());
        self.create_workspace(times);
    }

    /// Creates a workspace; the time until its files exist is recorded separately from the time until they are on disk.
    fn create_workspace(&self, times: &mut WorkspaceTimes) {
        let pinned_dir = self.home.path().join("captured");
        let discovered = Repository::discover(self.repo.path()).expect("the repository is found");
        let source = discovered.pin_config(&pinned_dir).expect("its configuration can be captured");
        let base = source.head().expect("it has a HEAD").commit().expect("it has a commit");
        let copy = Patterns::default();
        let workspace_path = self.folder.join("workspace");
        let order = WorkspaceOptions { source: &source, target_dir: &workspace_path, base, copy: &copy };
        let owner = WorkspaceOwner::from_key(&SealKey::random().expect("a key can be made"));
        sync_disks();
        let began = std::time::Instant::now();
        let laid_out = std::cell::Cell::new(std::time::Duration::ZERO);
        let progress = |step| {
            if step == workspace::WorkspaceProgress::Flushing {
                laid_out.set(began.elapsed());
            }
        };
        workspace::create_workspace(&order, &owner, &progress, &CancellationToken::new())
            .expect("a workspace can be made");
        times.flushed.add(began.elapsed());
        times.workspace.add(laid_out.get());
        workspace::remove_workspace(&workspace_path).expect("a workspace can be removed");
    }
}

/// Flushes earlier writes to disk, so that no measurement waits for them.
fn sync_disks() {
    nix::unistd::sync();
}

fn run_command(command: &mut Command) {
    assert!(command.status().expect("a program can be started").success(), "{command:?} fails");
}

/// Adds a packed file of random bytes to the history that HEAD no longer contains.
fn add_history(home: &Home, repo: &Repo, mib: u32) {
    let file = repo.path().join("huge.bin");
    let size = format!("{mib}M");
    run_command(
        Command::new("head").args(["-c", &size, "/dev/urandom"]).stdout(fs::File::create(&file).expect("a file")),
    );
    repo.git(&["-c", "core.bigFileThreshold=1m", "-c", "core.compression=0", "add", "huge.bin"]);
    repo.git(&["commit", "--quiet", "-m", "A huge file"]);
    repo.git(&["rm", "--quiet", "huge.bin"]);
    repo.git(&["commit", "--quiet", "-m", "No huge file"]);
    let mut pack = Command::new("git");
    pack.env_clear().envs(home.env().iter().cloned()).current_dir(repo.path());
    run_command(pack.args(["-c", "core.compression=0", "repack", "-q", "-a", "-d"]));
}

/// Adds objects that are in no pack.
fn add_loose(repo: &Repo, count: u32) {
    let folder = repo.path().join("loose");
    fs::create_dir(&folder).expect("a folder can be made");
    for number in 0..count {
        let file = fs::File::create(folder.join(number.to_string()));
        let written = file.and_then(|mut file| writeln!(file, "object {number}"));
        written.expect("a file can be written");
    }
    repo.git(&["-c", "gc.auto=0", "add", "loose"]);
    repo.git(&["rm", "-r", "-q", "--cached", "loose"]);
    fs::remove_dir_all(Path::new(&folder)).expect("a folder can be removed");
}

fn report_times(times: &WorkspaceTimes, budgets: WorkspaceBudgets, name: String, report: &mut Report) {
    let mut group = report.group(name);
    group.add_times("workspace, laid out", &times.workspace);
    group.add_times("workspace, on the disk", &times.flushed);
    group.add_times("git worktree add", &times.work_tree);
    group.add_times("the packs copied", &times.copy);
    let limit = (budgets.apply && budgets.shares_blocks).then_some(SHARED_RATIO);
    group.add_ratio("laid out, against git worktree add", &times.workspace, &times.work_tree, limit);
    let limit = (budgets.apply && !budgets.shares_blocks).then_some(COPIED_RATIO);
    let floor = &times.work_tree_and_copy;
    group.add_ratio("laid out, against that and the packs copied", &times.workspace, floor, limit);
}
