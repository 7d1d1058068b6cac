//! The daemon's private folder as seen by programs that know its path and want to read or change it.
//!
//! Root could remove the protection: if the tests run as root, an ordinary user takes its place.

use std::{
    env, fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use nix::unistd::{Gid, Uid, chown, geteuid};
use protocol::words::Containment;
use runner_process::{ProbeOptions, ProgramEnd, SpawnError, probe_host, run_program};
use runner_testkit::invariants::print_figure;
use tokio_util::sync::CancellationToken;

use crate::kit::{RunningProgram, TestFolder, launcher};

/// An ordinary user, for tests run as root.
const USER: u32 = 65534;
/// The folder of the test, for that user.
const FOLDER: &str = "HIDDEN_TEST_FOLDER";
/// The content of the key.
const SECRET: &str = "fourteen-grey-herons";

/// All attempts; `@` is replaced by the folder of the test. The program starts in `@/work`.
const ATTEMPTS: &[&str] = &[
    "ls -A @/state/private",
    "cat @/state/private/key",
    "cat ../state/private/key",
    "cat ./../../*/state/private/key",
    "ln -s @/state/private/key link; cat link",
    "cat /proc/self/root@/state/private/key",
    "cat /proc/1/root@/state/private/key",
    "cat /proc/1/cwd/../state/private/key",
    "cat /proc/self/cwd/../state/private/key",
    "echo forged > @/state/private/key",
    "echo forged > @/state/private/planted",
    "rm -rf @/state/private/* @/state/private",
    "mv @/state/private @/state/moved; cat @/state/moved/key",
    "mv @/state @/moved; cat @/moved/private/key",
    "umount @/state/private; umount -l @/state/private; cat @/state/private/key",
    "unshare -Urm umount @/state/private",
    "unshare -Urm umount -l @/state/private",
    "unshare -Urm sh -c 'umount -l @/state; cat @/state/private/key'",
    "unshare -Urm sh -c 'mkdir m; mount --bind @/state m; cat m/private/key'",
    "unshare -Urm sh -c 'mkdir m; mount --rbind @ m; umount -l m/state/private; cat m/state/private/key'",
    "unshare -Urm sh -c 'mount -t tmpfs none @/state/private; umount @/state/private; cat @/state/private/key'",
    "unshare -Urm sh -c 'mount --move @/state/private m; cat @/state/private/key'",
    "unshare -Urm sh -c 'mount -o remount,rw @/state/private; echo forged > @/state/private/key'",
    "unshare -Urm mv @/state/private @/state/moved",
    "unshare -Urm mv @/state @/moved",
];

fn script(bench: &TestFolder) -> String {
    let folder = bench.folder().to_str().unwrap();
    let tries: Vec<String> = ATTEMPTS.iter().map(|attempt| format!("({attempt}) 2>&1")).collect();
    format!("{}\necho DONE", tries.join("\n")).replace('@', folder)
}

fn private(bench: &TestFolder) -> PathBuf {
    bench.path("state/private")
}

/// A state folder with a key, and a folder to work in beside it.
fn furnish(bench: &TestFolder) {
    for folder in ["state/private/live", "work"] {
        fs::create_dir_all(bench.path(folder)).unwrap();
    }
    fs::write(private(bench).join("key"), SECRET).unwrap();
}

/// Runs a program that makes every attempt at a level; returns its output, or `None` if the level is not available.
async fn tried_at(level: Containment, bench: &TestFolder) -> Option<String> {
    let launcher = launcher().with_hidden_folder(private(bench).canonicalize().unwrap());
    let owner = bench.folder().to_str().unwrap();
    let offer = probe_host(&launcher, ProbeOptions { strongest: level, owner, folder: bench.folder() }).await;
    if offer.level() != level {
        return None;
    }
    let spec = runner_process::ProgramSpec { cwd: bench.path("work"), ..bench.sh(&script(bench)) };
    let report = RunningProgram::start_with(launcher.with_capabilities(offer), spec).report().await;
    assert_eq!((report.end, report.containment), (ProgramEnd::Exited(0), level));
    let printed = bench.log();
    assert!(printed.ends_with("DONE\n"), "{printed}");
    Some(printed)
}

fn assert_untouched(bench: &TestFolder) {
    assert_eq!(fs::read_to_string(private(bench).join("key")).unwrap(), SECRET);
    let mut names: Vec<_> = fs::read_dir(private(bench)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["key", "live"]);
}

#[test]
fn program_of_an_ordinary_user_in_a_namespace_neither_sees_nor_changes_the_private_folder() {
    let bench = TestFolder::new();
    furnish(&bench);
    let status = stand_in_for(&bench).status().unwrap();
    assert!(status.success(), "{status}");
    assert_untouched(&bench);
}

/// Starts this test's own binary again as an ordinary user, who then owns the folder.
fn stand_in_for(bench: &TestFolder) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "hidden::stand_in", "--ignored", "--nocapture"]).env(FOLDER, bench.folder());
    if geteuid().is_root() {
        give_to_user(bench.folder());
        command.uid(USER).gid(USER);
    }
    command
}

fn give_to_user(path: &Path) {
    chown(path, Some(Uid::from_raw(USER)), Some(Gid::from_raw(USER))).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give_to_user(&entry.unwrap().path());
        }
    }
}

#[tokio::test]
#[ignore = "stands in for an ordinary user when another test starts it"]
async fn stand_in() {
    let bench = TestFolder::shared(env::var_os(FOLDER).unwrap().into());
    match tried_at(Containment::Pidns, &bench).await {
        Some(printed) => assert!(!printed.contains(SECRET), "{printed}"),
        None => print_figure("pidns is not offered to ordinary users here"),
    }
}

/// Without this test, the others could pass without an attempt having been made.
#[tokio::test]
async fn program_without_a_namespace_reads_the_private_folder() {
    let bench = TestFolder::new();
    furnish(&bench);
    let printed = tried_at(Containment::Walk, &bench).await.unwrap();
    assert!(printed.contains(SECRET), "{printed}");
}

#[tokio::test]
async fn folder_in_the_place_of_the_one_that_was_named_is_not_taken_for_it() {
    let bench = TestFolder::new();
    furnish(&bench);
    let launcher = launcher().with_hidden_folder(private(&bench));
    launcher.check_hidden_folder().unwrap();
    fs::rename(private(&bench), bench.path("moved")).unwrap();
    fs::create_dir(private(&bench)).unwrap();
    let refused = run_program(&launcher, bench.sh("true"), &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(refused, SpawnError::HiddenFolderMoved { .. }), "{refused}");
    fs::remove_dir(private(&bench)).unwrap();
    fs::rename(bench.path("moved"), private(&bench)).unwrap();
    launcher.check_hidden_folder().unwrap();
}

#[tokio::test]
async fn level_at_which_the_folder_cannot_be_hidden_is_not_offered() {
    let bench = TestFolder::new();
    let launcher = launcher().with_hidden_folder(bench.path("gone"));
    let owner = bench.folder().to_str().unwrap();
    let offer =
        probe_host(&launcher, ProbeOptions { strongest: Containment::Pidns, owner, folder: bench.folder() }).await;
    assert!(offer.level() < Containment::Pidns);
    let missing = offer.unused_levels().iter().find(|missing| missing.level == Containment::Pidns).unwrap();
    assert!(missing.why.contains("private directory"), "{}", missing.why);
}

#[tokio::test]
async fn program_is_not_started_while_the_folder_is_gone() {
    let bench = TestFolder::new();
    furnish(&bench);
    let launcher = launcher().with_hidden_folder(private(&bench));
    fs::remove_dir_all(private(&bench)).unwrap();
    let started = bench.path("started");
    let spec = bench.sh(&format!("touch {}", started.display()));
    let refused = run_program(&launcher, spec, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(refused, SpawnError::HiddenFolderMoved { .. }), "{refused}");
    assert!(!started.exists());
}
