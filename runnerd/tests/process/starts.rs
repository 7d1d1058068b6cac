//! The environment that programs start with, and programs that cannot start.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use runner_process::{Launcher, Mark, ProgramEnd, ProgramSpec, SpawnError, run_program};
use tokio_util::sync::CancellationToken;

use crate::kit::{RunningProgram, TestFolder, launcher, run_to_end};

async fn refusal(spec: ProgramSpec<'static>) -> SpawnError {
    run_program(&launcher(), spec, &CancellationToken::new()).await.expect_err("nothing can be started")
}

/// An executable file.
fn script(bench: &TestFolder, text: &str) -> ProgramSpec<'static> {
    fs::write(bench.path("script"), text).unwrap();
    fs::set_permissions(bench.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    bench.spec(vec!["./script".into()])
}

#[tokio::test]
async fn environment_is_the_given_one_and_the_mark() {
    let bench = TestFolder::new();
    let mut spec = bench.spec(vec!["env".into()]);
    spec.env.push(("GREETING".into(), "hello".into()));
    run_to_end(spec).await;
    let log = bench.log();
    let mut names: Vec<&str> = log.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    assert_eq!(names, ["GREETING", "PATH", "RUNNERD_MARK"]);
}

#[tokio::test]
async fn program_has_three_descriptors_no_blocked_signal_and_no_way_to_more_privileges() {
    let bench = TestFolder::new();
    // The fourth belongs to the listing.
    run_to_end(bench.sh("ls /proc/self/fd | wc -l; grep -E 'SigBlk|NoNewPrivs' /proc/self/status")).await;
    let log = bench.log();
    assert_eq!(log.split_whitespace().collect::<Vec<_>>(), ["4", "SigBlk:", "0000000000000000", "NoNewPrivs:", "1"]);
}

#[tokio::test]
async fn process_and_descendants_bear_the_mark() {
    let bench = TestFolder::new();
    let mut running = RunningProgram::start(bench.agent("hides scrub"));
    let processes = running.lines.processes(2).await;
    let mark = bench.mark();
    assert!(processes.iter().all(|process| mark.is_on(process.pid) && Mark::is_any_on(process.pid)));
    running.stop.cancel();
    running.report().await;
}

#[tokio::test]
async fn program_that_is_not_there_is_named() {
    let bench = TestFolder::new();
    for name in ["no-such-program", "./no-such-program", "/no/such/program", ""] {
        let error = refusal(bench.spec(vec![name.into()])).await;
        assert!(matches!(&error, SpawnError::NotFound { program } if program == name), "{error:?}");
    }
}

#[tokio::test]
async fn folder_relative_to_the_work_tree_is_no_place_for_a_program() {
    let bench = TestFolder::new();
    script(&bench, "#!/bin/sh\n");
    let mut spec = bench.spec(vec!["script".into()]);
    spec.env = vec![("PATH".into(), "::.".into())];
    assert!(matches!(refusal(spec).await, SpawnError::NotFound { .. }));
}

#[tokio::test]
async fn what_cannot_be_executed_is_told_from_what_is_missing() {
    let bench = TestFolder::new();
    let mut folder = bench.spec(vec![bench.path("").into()]);
    folder.cwd = "/".into();
    fs::write(bench.path("text"), "").unwrap();
    let text = bench.spec(vec!["./text".into()]);
    let orphan = script(&bench, "#!/no/such/interpreter\n");
    for (spec, expected) in [(folder, "directory"), (text, "denied"), (orphan, "its interpreter does not exist")] {
        match refusal(spec).await {
            SpawnError::NotExecutable { why, .. } => assert!(why.contains(expected), "{why}"),
            error => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn missing_folder_is_told_from_a_missing_program() {
    let bench = TestFolder::new();
    let mut spec = bench.sh("true");
    spec.cwd = bench.path("nowhere");
    assert!(matches!(refusal(spec).await, SpawnError::Folder { path, .. } if path == bench.path("nowhere")));
}

#[tokio::test]
async fn log_that_cannot_be_made_is_named_before_anything_runs() {
    let bench = TestFolder::new();
    let mut spec = bench.sh("touch ran");
    spec.log.path = bench.path("nowhere/log");
    assert!(matches!(refusal(spec).await, SpawnError::Log { .. }));
    assert!(!bench.path("ran").exists());
}

#[tokio::test]
async fn lock_of_a_living_shim_is_respected_and_free_after_its_end() {
    let bench = TestFolder::new();
    let mut running = RunningProgram::start(bench.agent("obeys"));
    running.lines.processes(1).await;
    let mut second = bench.sh("true");
    second.log.path = bench.path("second");
    assert!(matches!(refusal(second).await, SpawnError::Locked { path } if path == bench.path("lock")));
    running.stop.cancel();
    running.report().await;
    assert_eq!(run_to_end(bench.sh("true")).await.end, ProgramEnd::Exited(0));
}

#[tokio::test]
async fn program_has_the_descriptors_that_its_launcher_gives_and_not_those_of_the_daemon() {
    let bench = TestFolder::new();
    let launcher = launcher().with_descriptor_limit(77);
    run_program(&launcher, bench.sh("ulimit -Sn"), &CancellationToken::new()).await.unwrap();
    assert_eq!(bench.log(), "77\n");
}

#[tokio::test]
async fn binary_that_is_no_shim_is_told_from_the_program() {
    let bench = TestFolder::new();
    let launcher = Launcher::new("/bin/true".into());
    let error =
        run_program(&launcher, bench.sh("true"), &CancellationToken::new()).await.expect_err("nothing can be started");
    assert!(matches!(error, SpawnError::Shim { .. }), "{error:?}");
}

/// The programs of a separate installation: the daemon's, and the small one next to it.
fn install_programs(bench: &TestFolder) -> [PathBuf; 2] {
    let built = [env!("CARGO_BIN_EXE_runnerd"), env!("CARGO_BIN_EXE_runnerd-shim")];
    built.map(|program| {
        let installed = bench.folder().join(Path::new(program).file_name().unwrap());
        fs::copy(program, &installed).unwrap();
        installed
    })
}

#[tokio::test]
async fn the_small_program_serves_as_it_was_when_it_was_found() {
    let bench = TestFolder::new();
    let [daemon, shim] = install_programs(&bench);
    let launcher = Launcher::from_daemon_dir(&daemon).await.unwrap();
    fs::write(&shim, "#!/bin/sh\necho somebody else's\n").unwrap();
    let ran = run_program(&launcher, bench.sh("echo ran"), &CancellationToken::new()).await.unwrap();
    assert_eq!((ran.end, bench.log().as_str()), (ProgramEnd::Exited(0), "ran\n"));
}

#[tokio::test]
async fn a_program_of_another_build_is_no_shim() {
    let bench = TestFolder::new();
    let [daemon, shim] = install_programs(&bench);
    fs::copy("/bin/echo", &shim).unwrap();
    let refused = Launcher::from_daemon_dir(&daemon).await.unwrap_err();
    assert_eq!(refused.to_string(), "it is of another build than the daemon");
    fs::remove_file(&shim).unwrap();
    assert_eq!(Launcher::from_daemon_dir(&daemon).await.unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[tokio::test]
async fn the_daemons_own_program_serves_where_there_is_no_other() {
    let bench = TestFolder::new();
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_runnerd").into());
    let ran = run_program(&launcher, bench.sh("echo ran"), &CancellationToken::new()).await.unwrap();
    assert_eq!((ran.end, bench.log().as_str()), (ProgramEnd::Exited(0), "ran\n"));
}
