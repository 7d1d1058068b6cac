//! Publishing an isolated run is interrupted between any two steps: the daemon dies, the machine goes down, or a person
//! works in the repository from which the run was started. Rows 99 to 104 and 115 to 117.
//!
//! A wrapper around git stops at the git programs of a publication. If an iteration creates many objects, there are
//! three: objects are sent, then checked, then kept by a reference without a program, and checked again before the
//! branch is moved. If references are not stored in files, a program moves them, and few objects are sent and checked
//! without one. Each iteration of a run is stopped at a different one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::view::{RunView, StopReason};
use protocol::words::RunStatus;
use runner_testkit::invariants::{print_figure, splitting_repo};
use runner_testkit::{Client, Daemon, FaultyDaemon, Home, PATIENCE, Repo, SessionGate, SystemFault};

use crate::checks::assert_no_leftovers;
use crate::disk::course::sampled;

const RUN: &str = "apart";
const BRANCH: &str = "runner/apart";
/// The run's sessions: one that splits the goal, and one for each part.
const SESSIONS: usize = 8;
/// Before each git program of a publication of many objects, by number, or after the last one.
const STOPS: [&str; 4] = ["before 1", "before 2", "before 3", "after 3"];
/// The same for few objects, if a program moves references.
const STOPS_OF_FEW: [&str; 3] = ["before 1", "before 2", "after 2"];
/// The same for a run's first publication: git checks the objects of a new branch.
const STOPS_OF_FIRST: [&str; 5] = ["before 1", "before 2", "before 3", "before 4", "after 4"];
/// Commands of a session that create many objects.
const MANY: &str = "mkdir -p many; for i in $(seq 120); do echo \"$n $i\" > many/$i; done; ";
/// Calls that flush, rename or remove.
const CALLS: &str = "fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat";
const GIT: &str = r#"#!/bin/sh
PATH=${PATH#BIN:}
case " $* " in
*" pack-objects "*" --delta-base-offset "* | *" rev-list "*" --missing=print "* | *" -m runner: publish "*) ;;
*) exec git "$@" ;;
esac
step=$(($(cat KIT/step) + 1))
echo "$step" > KIT/step
stop() {
    test "$1" = "$(cat KIT/stop)" || return 0
    echo > KIT/gates/git.in
    read -r _ < KIT/gates/git.out
}
stop "before $step"
git "$@"
code=$?
stop "after $step"
exit $code
"#;

/// An isolated run whose sessions stop at a gate, and whose publications stop at a second one if the test asks for it.
struct PublishScene {
    daemon: Option<Daemon>,
    work: SessionGate,
    git: SessionGate,
    repo: Repo,
    home: Home,
}

impl PublishScene {
    /// A run that is published as far as possible, and whose next sessions create many objects; the first one does not.
    fn new() -> Self {
        let scene = Self::about_to_begin(MANY).start_run();
        scene.work.open();
        scene.work.wait_reached();
        scene.assert_published();
        scene
    }

    /// A run with few objects, in a repository whose references are not in files.
    fn with_tables() -> Self {
        let scene = Self::about_to_begin("");
        // Git does not migrate the previous values of references.
        fs::remove_dir_all(scene.repo.path().join(".git/logs")).expect("a folder can be removed");
        scene.repo.git(&["refs", "migrate", "--ref-format=reftable"]);
        scene
    }

    /// The same at its first session.
    fn start_run(self) -> Self {
        self.start_paused();
        self.work.wait_reached();
        self.assert_published();
        self
    }

    fn about_to_begin(more: &str) -> Self {
        let home = Home::new();
        let repo = home.scripted_repo("one");
        let [work, git] = ["work", "git"].map(|name| repo.script().gate(name));
        repo.script().step(1, "gate work; decompose 'Split.' one two three four five six seven");
        let always = format!("gate work; {more}echo \"$n\" >> work.txt; answer done 'A part is done.'");
        repo.script().always(&always);
        let kit = repo.script().folder().display().to_string();
        home.install("git", &GIT.replace("KIT", &kit).replace("BIN", &home.path().join("bin").display().to_string()));
        let scene = Self { daemon: Some(home.daemon()), work, git, repo, home };
        scene.stop_at("");
        scene
    }

    fn start_paused(&self) {
        let args = ["start", "--isolated", "--yes", "--id", RUN, "-m", "Do it"];
        self.home.ctl_in(&self.repo, &args).exits(0);
    }

    /// Makes the next publication stop.
    fn stop_at(&self, stop: &str) {
        let kit = self.repo.script().folder();
        fs::write(kit.join("step"), "0\n").expect("a file can be written");
        fs::write(kit.join("stop"), stop).expect("a file can be written");
    }

    /// Completes the session, and its publication up to the stop.
    fn commit_until(&self, stop: &str) {
        self.stop_at(stop);
        self.work.open();
        self.git.wait_reached();
        self.stop_at("");
        print_figure(stop);
    }

    fn workspace(&self) -> PathBuf {
        let stdout = self.home.ctl_in(&self.repo, &["path", RUN]).exits(0).stdout.clone();
        PathBuf::from(stdout.trim_end())
    }

    fn wait_for_state(&self, state: RunStatus) -> RunView {
        self.home.client().wait_for(&self.workspace(), state)
    }

    /// Kills the daemon, and lets the programs that it started run to their end.
    fn kill(&mut self) {
        self.daemon.take().expect("a daemon runs").kill();
        self.git.open();
        self.home.wait_all_gone(PATIENCE);
    }

    /// Kills the daemon and its git program at the same time.
    fn stop_daemon(&mut self) {
        self.daemon.take().expect("a daemon runs").kill();
        for pid in self.home.processes() {
            // One that has exited meanwhile is gone, too.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        self.home.wait_all_gone(PATIENCE);
    }

    fn restart(&mut self) {
        self.daemon = Some(self.home.daemon());
    }

    /// Types the commands that a held run suggests, except the last, which is for the client.
    fn follow(&self) -> StopReason {
        let why = self.wait_for_state(RunStatus::Held).summary.reason.expect("it says why it is held");
        let command = why.command.clone().expect("it says what to type");
        let (typed, resume) = command.rsplit_once(" && ").expect("commands");
        assert_eq!(resume, format!("runnerctl resume {} --run {RUN}", self.repo.path().display()));
        let mut shell = Command::new("sh");
        shell.args(["-ec", typed]).current_dir("/").env_clear().envs(self.home.env().iter().cloned());
        let done = shell.output().expect("a shell can be started");
        assert!(done.status.success(), "{typed}: {}", String::from_utf8_lossy(&done.stderr));
        self.home.ctl_in(&self.repo, &["resume", "--run", RUN]).exits(0);
        why
    }

    /// Asserts that the source has everything from the workspace, under the branch and the keep references, and that
    /// the person's files are untouched.
    #[track_caller]
    fn assert_published(&self) {
        let tip = in_folder(&self.home, &self.workspace(), &["rev-parse", BRANCH]);
        assert_eq!(self.repo.git(&["rev-parse", BRANCH, "refs/runner/at/apart"]), format!("{tip}\n{tip}"));
        self.assert_untouched();
    }

    #[track_caller]
    fn assert_untouched(&self) {
        assert!(!self.repo.path().join("work.txt").exists());
        self.repo.assert_sound();
    }

    /// Completes all sessions, and asserts that nothing of any of them is lost.
    fn finish(self) {
        let ended = self.repo.script().log().iter().filter(|line| line.starts_with("end ")).count();
        for _ in ended..SESSIONS {
            self.work.open();
        }
        self.wait_for_state(RunStatus::Completed);
        self.assert_published();
        let work = self.repo.git(&["show", &format!("{BRANCH}:work.txt")]);
        assert_eq!(work, "2\n3\n4\n5\n6\n7\n8", "each session has left its work, once");
        self.home.assert_no_survivors();
    }
}

/// A person's action in the repository from which the run was started.
#[derive(Debug, Clone, Copy)]
enum PersonAction {
    Commits,
    Switches,
    Collects,
    PacksReferences,
    Deletes,
}

impl PersonAction {
    fn perform(self, repo: &Repo) {
        match self {
            Self::Commits => {
                repo.git(&["switch", "-q", BRANCH]);
                repo.git(&["commit", "-q", "--allow-empty", "-m", "Mine"]);
            }
            Self::Switches => {
                repo.git(&["switch", "-q", BRANCH]);
            }
            Self::Collects => {
                repo.git(&["reflog", "expire", "--expire=now", "--all"]);
                repo.git(&["gc", "--quiet", "--prune=now"]);
            }
            Self::PacksReferences => {
                repo.git(&["pack-refs", "--all"]);
            }
            Self::Deletes => {
                repo.git(&["branch", "-q", "-D", BRANCH]);
            }
        }
    }

    /// Follows the suggestions, if there are any, and waits for the next session. The person's changes must still be
    /// there.
    fn assert_continues(self, scene: &PublishScene) {
        match self {
            Self::Commits => {
                let mine = scene.repo.git(&["rev-parse", BRANCH]);
                let why = scene.follow();
                assert_eq!(why.message, format!("{BRANCH} has {}, which the run did not make", &mine[..12]));
                scene.work.wait_reached();
                assert_eq!(scene.repo.git(&["rev-parse", "apart-by-hand"]), mine);
                assert_eq!(scene.repo.git(&["symbolic-ref", "--short", "HEAD"]), "apart-by-hand");
                scene.repo.git(&["switch", "-q", "main"]);
                scene.repo.git(&["branch", "-q", "-D", "apart-by-hand"]);
                scene.assert_published();
            }
            Self::Switches => {
                scene.work.wait_reached();
                assert_eq!(scene.repo.git(&["status", "--porcelain"]), "", "his files are those of the branch");
                assert_eq!(scene.repo.git(&["symbolic-ref", "--short", "HEAD"]), BRANCH);
                scene.repo.git(&["switch", "-q", "main"]);
                scene.assert_untouched();
            }
            Self::Deletes => {
                let why = scene.follow();
                assert_eq!(why.message, format!("{BRANCH} is gone from {}", scene.repo.path().display()));
                scene.work.wait_reached();
                scene.assert_published();
            }
            Self::Collects | Self::PacksReferences => {
                scene.work.wait_reached();
                scene.assert_published();
            }
        }
    }
}

/// Has a person act between any two steps, while the daemon runs or is dead.
fn at_each_stop(person: PersonAction, is_down: bool) {
    let mut scene = PublishScene::new();
    for stop in STOPS {
        scene.commit_until(stop);
        if is_down {
            scene.stop_daemon();
        }
        person.perform(&scene.repo);
        if is_down {
            scene.restart();
        } else {
            scene.git.open();
        }
        person.assert_continues(&scene);
    }
    scene.finish();
}

/// Kills the daemon between any two steps, or the whole machine.
fn assert_survives_each_stop(mut scene: PublishScene, stops: &[&str], dies: impl Fn(&mut PublishScene)) {
    for stop in stops {
        scene.commit_until(stop);
        dies(&mut scene);
        scene.restart();
        scene.work.wait_reached();
        scene.assert_published();
    }
    scene.finish();
}

#[test]
fn row_99_daemon_that_dies_between_two_steps_of_publishing_leaves_what_the_next_life_ends() {
    assert_survives_each_stop(PublishScene::new(), &STOPS, PublishScene::kill);
}

#[test]
fn row_99_daemon_that_dies_between_two_steps_of_publishing_a_little_leaves_what_the_next_life_ends() {
    assert_survives_each_stop(PublishScene::with_tables().start_run(), &STOPS_OF_FEW, PublishScene::kill);
}

#[test]
fn row_99_daemon_that_dies_before_the_branch_is_there_publishes_it_in_the_next_life() {
    for stop in STOPS_OF_FIRST {
        let mut scene = PublishScene::with_tables();
        scene.stop_at(stop);
        scene.start_paused();
        scene.git.wait_reached();
        scene.stop_at("");
        scene.kill();
        scene.restart();
        scene.work.wait_reached();
        scene.assert_published();
        scene.home.ctl_in(&scene.repo, &["cancel"]).exits(0);
    }
}

#[test]
fn row_100_person_who_commits_on_the_branch_between_two_steps_is_asked_and_loses_nothing() {
    at_each_stop(PersonAction::Commits, false);
}

#[test]
fn row_101_person_who_switches_to_the_branch_between_two_steps_has_its_files() {
    at_each_stop(PersonAction::Switches, false);
}

#[test]
fn row_102_person_who_collects_garbage_between_two_steps_takes_nothing_away() {
    at_each_stop(PersonAction::Collects, false);
}

#[test]
fn row_103_person_who_packs_references_between_two_steps_is_in_nobodys_way() {
    at_each_stop(PersonAction::PacksReferences, false);
}

#[test]
fn row_104_person_who_deletes_the_branch_between_two_steps_is_asked_and_gets_all_of_it_back() {
    at_each_stop(PersonAction::Deletes, false);
}

#[test]
fn row_116_machine_that_goes_down_between_two_steps_of_publishing_leaves_what_the_next_life_ends() {
    assert_survives_each_stop(PublishScene::new(), &STOPS, PublishScene::stop_daemon);
}

#[test]
fn row_116_machine_that_goes_down_between_two_steps_of_publishing_a_little_leaves_what_the_next_life_ends() {
    assert_survives_each_stop(PublishScene::with_tables().start_run(), &STOPS_OF_FEW, PublishScene::stop_daemon);
}

#[test]
fn row_117_person_who_commits_while_nothing_runs_is_asked_and_loses_nothing() {
    at_each_stop(PersonAction::Commits, true);
}

#[test]
fn row_117_person_who_switches_while_nothing_runs_has_the_files_of_the_branch() {
    at_each_stop(PersonAction::Switches, true);
}

#[test]
fn row_117_person_who_collects_garbage_while_nothing_runs_takes_nothing_away() {
    at_each_stop(PersonAction::Collects, true);
}

#[test]
fn row_117_person_who_deletes_the_branch_while_nothing_runs_is_asked_and_gets_all_of_it_back() {
    at_each_stop(PersonAction::Deletes, true);
}

/// Kills the daemon at a call while an isolated run is driven; returns whether it died. The next one completes the run
/// with the result of an undisturbed one.
fn drive_and_kill(at: u32) -> bool {
    let home = Home::new();
    let repo = splitting_repo(&home, "one");
    let dying = FaultyDaemon::start(&home, &SystemFault::kill_at(CALLS, at));
    let args = ["start", "--isolated", "--yes", "--id", RUN, "-m", "Do it"];
    home.ctl_in(&repo, &args);
    let place = home.ctl_in(&repo, &["path", RUN]);
    if let Some(client) = Client::try_connect(&home.socket()).filter(|_| place.code == 0) {
        client.wait_while_alive(Path::new(place.stdout.trim_end()), |run| run.summary.state != RunStatus::Running);
    }
    let is_dead = Client::try_connect(&home.socket()).is_none();
    dying.stop();
    print_figure(&format!("call {at}: {}", if is_dead { "died" } else { "lived" }));
    let daemon = home.daemon();
    if home.ctl_in(&repo, &["path", RUN]).code != 0 {
        home.ctl_in(&repo, &args).exits(0);
    }
    let place = PathBuf::from(home.ctl_in(&repo, &["path", RUN]).exits(0).stdout.trim_end());
    home.client().wait_for(&place, RunStatus::Completed);
    let tip = in_folder(&home, &place, &["rev-parse", BRANCH]);
    assert_eq!(repo.git(&["rev-parse", BRANCH, "refs/runner/at/apart"]), format!("{tip}\n{tip}"), "died at {at}");
    let log = repo.git(&["show", &format!("{BRANCH}:log.txt")]);
    for session in repo.script().log().iter().filter_map(|line| line.strip_prefix("end ")) {
        assert_eq!(log.lines().filter(|line| *line == format!("session {session}")).count(), 1, "died at {at}: {log}");
    }
    // A write in progress at this moment is not a leftover.
    daemon.stop();
    assert_no_leftovers(&home, &repo, &format!("died at {at}"));
    home.assert_no_survivors();
    repo.assert_sound();
    is_dead
}

#[test]
fn row_115_daemon_that_dies_at_a_call_while_an_isolated_run_is_driven_loses_nothing() {
    let every = sampled(11, 88);
    let died = (every.from..every.from + every.limit).step_by(every.step).filter(|at| drive_and_kill(*at)).count();
    assert!(died > 0, "no call was hit");
}

fn in_folder(home: &Home, folder: &Path, args: &[&str]) -> String {
    let git = Command::new("git").env_clear().envs(home.env().iter().cloned()).current_dir(folder).args(args).output();
    let git = git.expect("git can be started");
    assert!(git.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&git.stderr));
    String::from_utf8_lossy(&git.stdout).trim_end().to_owned()
}
