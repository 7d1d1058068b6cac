//! One driver after another: each ends, or is killed, and the next continues from the published branch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use runner_testkit::Config;

use crate::kit::{DriverProcess, TestRemote, WRITES};

#[test]
fn a_run_is_driven_to_its_end_and_a_second_driver_of_it_has_nothing_to_do() {
    let remote = TestRemote::new();
    remote.repo.script().always(WRITES);
    remote.start(("7", 0)).assert_exits(0);
    let subjects = remote.subjects();
    assert_eq!(subjects.first().map(String::as_str), Some("start run x"));
    assert_eq!(subjects.last().map(String::as_str), Some("release run x"));
    assert_eq!(remote.git(&["show", "runner/x:work.txt"]), "work");
    assert!(remote.git(&["log", "-1", "--format=%b", "runner/x"]).contains("Runner-Driver: slurm/7.0@"));
    let tip = remote.git(&["rev-parse", "runner/x"]);
    remote.start(("8", 0)).assert_exits(0);
    assert_eq!(remote.git(&["rev-parse", "runner/x"]), tip, "it is not even claimed");
    remote.assert_swept();
    remote.assert_sound();
}

#[test]
fn a_session_that_writes_the_users_gitconfig_redirects_no_push() {
    let remote = TestRemote::new();
    let other = remote.home.path().join("other.git").display().to_string();
    remote.repo.git(&["clone", "--quiet", "--bare", ".", &other]);
    let set = |key: &str| format!("git config --global url.{other}.{key} {}", remote.url());
    let deed = format!("{}; {}; answer retry 'Not yet.'", set("insteadOf"), set("pushInsteadOf"));
    remote.repo.script().step(1, &deed).always(WRITES);
    remote.start(("7", 0)).assert_exits(0);
    assert_eq!(remote.git(&["show", "runner/x:work.txt"]), "work");
    assert_eq!(remote.repo.git(&["--git-dir", &other, "for-each-ref", "refs/heads/runner/"]), "");
}

#[test]
fn what_is_cut_off_a_remote_is_missed_by_who_has_kept_its_tips() {
    let remote = TestRemote::new();
    remote.repo.script().always(WRITES);
    let log = remote.home.path().join("tips").display().to_string();
    let refused = remote.start_with(("7", 0), &["-m", "Do it.", "--tip-log", &log]).assert_exits(1);
    assert!(refused.contains(&format!("opening the tip log {log}")), "{refused}");
    fs::write(&log, "").expect("it can be written");
    remote.start_with(("7", 0), &["-m", "Do it.", "--tip-log", &log]).assert_exits(0);
    let tips = fs::read_to_string(&log).expect("it is there");
    let tip = remote.git(&["rev-parse", "runner/x"]);
    assert!(tips.starts_with("x ") && tips.ends_with(&format!("x {tip}\n")) && tips.lines().count() > 1, "{tips}");
    let url = remote.url();
    let verify = || remote.home.ctl(&["verify", "--remote", &url, "--run", "x", "--tip-log", &log]);
    verify().exits(0);
    assert_eq!(fs::read_to_string(&log).expect("it is there"), tips, "it has that one");
    remote.git(&["update-ref", "refs/heads/runner/x", "runner/x~1"]);
    remote.assert_sound();
    let cut = verify();
    assert!(
        cut.exits(10).stdout.contains(&format!("expected commit {tip}, which was its last once")),
        "{}",
        cut.stdout
    );
}

#[test]
fn records_outlive_the_job_where_they_are_wanted() {
    let remote = TestRemote::new();
    remote.repo.script().step(1, "echo one >&2; answer retry 'Not yet.'").always(WRITES);
    let folder = remote.home.path().join("records");
    let kept = folder.display().to_string();
    remote.start_with(("7", 2), &["-m", "Do it.", "--records", &kept]).assert_exits(0);
    let of_job = folder.join("x/7.2");
    for (file, words) in [("0001/executor.log", "one"), ("0002/meta.json", "Accepted"), ("0002/prompt.md", "Do it.")] {
        let text = fs::read_to_string(of_job.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(words), "{file}: {text}");
    }
    remote.assert_swept();
    fs::write(remote.home.path().join("file"), "").expect("it can be written");
    let refused = format!("{}/file/below", remote.home.path().display());
    let output = remote.start_with(("8", 0), &["--records", &refused]).assert_exits(0);
    assert!(output.contains("run x is completed"), "nothing is made for nothing: {output}");
}

#[test]
fn a_bare_repository_is_the_remote_itself_wherever_it_was_cloned_from() {
    let remote = TestRemote::new();
    remote.repo.script().always(WRITES);
    let mut command = remote.home.command("runnerd");
    command.arg("drive").arg(&remote.bare).args(["--run", "x", "-m", "Do it.", "--yes"]);
    let output = DriverProcess::spawn(command).assert_exits(0);
    assert!(output.contains(&format!("driving run x at {} as host/", remote.bare.display())), "{output}");
    assert_eq!(remote.subjects().last().map(String::as_str), Some("release run x"));
    assert_eq!(remote.repo.git(&["branch", "--list", "runner/*"]), "");
}

#[test]
fn start_only_publishes_a_run_that_any_driver_continues() {
    let remote = TestRemote::new();
    remote.repo.script().always(WRITES);
    let begin = ["-m", "Do it.", "--start-only"];
    let output = remote.start_with(("7", 0), &begin).assert_exits(0);
    assert!(output.lines().any(|line| line == remote.url()), "the address is printed: {output}");
    assert_eq!(remote.subjects(), ["start run x", "release run x"]);
    let output = remote.start_with(("7", 0), &begin).assert_exits(0);
    assert!(output.contains("run x already exists") && output.lines().any(|line| line == remote.url()), "{output}");
    assert_eq!(remote.subjects().len(), 2, "nothing is begun twice");
    remote.start_with(("8", 0), &[]).assert_exits(0);
    assert_eq!(remote.git(&["show", "runner/x:work.txt"]), "work");
    let output = remote.start_with(("9", 0), &begin).assert_exits(6);
    assert!(output.contains("run x is completed at") && output.contains("--run"), "{output}");
    remote.assert_swept();
    remote.assert_sound();
}

#[test]
fn a_run_is_begun_where_the_programs_of_its_project_are_not() {
    let remote = TestRemote::new();
    let missing = Config::new(&[&remote.repo.script().agent_program()], &["no-such-guard"]);
    remote.repo.commit_config(&missing).git(&["push", "--quiet", &remote.url(), "main"]);
    remote.start_with(("7", 0), &["-m", "Do it.", "--start-only"]).assert_exits(0);
    assert_eq!(remote.subjects(), ["start run x", "release run x"]);
    let output = remote.start_with(("8", 0), &[]).assert_exits(6);
    assert!(output.contains("no-such-guard"), "{output}");
}

#[test]
fn a_remote_by_a_relative_path_is_the_same_one_in_every_folder_of_the_work_tree() {
    let remote = TestRemote::new();
    let below = remote.repo.path().strip_prefix(remote.home.path()).expect("it is in the home").components().count();
    remote.repo.git(&["remote", "add", "origin", &("../".repeat(below) + "remote.git")]);
    let folder = remote.repo.path().join("deep/down");
    fs::create_dir_all(&folder).expect("a folder can be made");
    let bare = remote.bare.canonicalize().expect("it is there");
    for place in [remote.repo.path(), folder.as_path()] {
        let mut command = remote.home.command("runnerd");
        command.current_dir(place).args(["drive", ".", "--run", "x", "--start-only", "--dry-run"]);
        assert_eq!(DriverProcess::spawn(command).assert_exits(0), format!("{}\n", bare.display()));
    }
    assert_eq!(remote.git(&["branch", "--list", "runner/*"]), "");
}

#[test]
fn a_run_is_not_begun_for_a_job_that_would_have_to_be_told_a_password() {
    let remote = TestRemote::new();
    let mut command = remote.home.command("runnerd");
    command.args(["drive", "https://me:secret@localhost/x.git", "--run", "x", "-m", "Do it.", "--start-only"]);
    let output = DriverProcess::spawn(command).assert_exits(6);
    assert!(output.contains("holds a password") && !output.contains("secret"), "{output}");
}

#[test]
fn a_terminated_driver_commits_and_releases_and_another_one_continues() {
    let remote = TestRemote::new();
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, "echo half > half.txt; gate work").always(WRITES);
    let driver = remote.start(("7", 0));
    gate.wait_reached();
    driver.signal(Signal::SIGTERM);
    driver.assert_exits(75);
    let subjects = remote.subjects();
    assert_eq!(subjects.last().map(String::as_str), Some("release run x"));
    assert!(subjects.iter().any(|subject| subject.contains("status=interrupted")), "{subjects:?}");
    assert_eq!(remote.git(&["show", "runner/x:half.txt"]), "half");
    remote.start_with(("8", 0), &[]).assert_exits(0);
    assert!(remote.subjects().contains(&"claim run x".to_owned()), "{:?}", remote.subjects());
    remote.assert_swept();
    remote.assert_sound();
}

#[test]
fn after_a_kill_the_next_attempt_continues_from_the_published_commit() {
    let remote = TestRemote::new();
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, "echo lost > lost.txt; gate work").always(WRITES);
    let driver = remote.start(("7", 0));
    gate.wait_reached();
    driver.signal(Signal::SIGKILL);
    driver.assert_exits(-1);
    assert_eq!(remote.subjects().first().map(String::as_str), Some("start run x"));
    remote.start(("7", 1)).assert_exits(0);
    assert_eq!(remote.git(&["show", "runner/x:work.txt"]), "work");
    remote.assert_swept();
    remote.assert_sound();
}

#[test]
fn what_a_killed_driver_has_left_in_a_kept_work_tree_is_put_aside() {
    let remote = TestRemote::new();
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, "echo lost > lost.txt; gate work").always(WRITES);
    let work = remote.home.path().join("kept");
    let options = ["-m", "Do it.", "--work", work.to_str().expect("a path is text")];
    let driver = remote.start_with(("7", 0), &options);
    gate.wait_reached();
    driver.signal(Signal::SIGKILL);
    driver.assert_exits(-1);
    remote.start_with(("7", 1), &options).assert_exits(0);
    let folder = format!("--git-dir={}/.git", work.display());
    let left = remote.repo.git(&[&folder, "for-each-ref", "--format=%(refname)", "refs/runner/left/x"]);
    assert_eq!(remote.repo.git(&[&folder, "show", &format!("{left}:lost.txt")]), "lost");
    assert!(!remote.git(&["ls-tree", "--name-only", "runner/x"]).contains("lost.txt"));
    remote.assert_sound();
}

/// A remote that counts the bytes it sends, with a file that does not compress. A run of it was interrupted in a work
/// tree that is kept, and a person has committed to its branch since then.
struct CountingRemote {
    remote: TestRemote,
    sizes: PathBuf,
    work: PathBuf,
}

impl CountingRemote {
    fn new() -> Self {
        let remote = TestRemote::new();
        let numbers = (0_u64..200_000).map(|n| format!("{:x}\n", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        remote.repo.write("large.txt", &numbers.collect::<String>()).commit("Add a large file");
        remote.repo.git(&["push", "--quiet", &remote.url(), "HEAD:main"]);
        let sizes = remote.home.path().join("sizes");
        let count = format!("\"$@\" > \"$0.pack\" || exit\nwc -c < \"$0.pack\" >> '{}'\n", sizes.display());
        remote.home.install("counted", &format!("#!/bin/sh\n{count}exec cat \"$0.pack\"\n"));
        let settings = remote.home.path().join(".gitconfig");
        let users = fs::read_to_string(&settings).expect("the home has a configuration");
        let program = remote.home.path().join("bin/counted");
        let hook = format!("{users}[uploadpack]\n\tpackObjectsHook = {}\n", program.display());
        fs::write(&settings, hook).expect("it can be written");
        let counted = Self { work: remote.home.path().join("kept"), remote, sizes };
        let gate = counted.remote.repo.script().gate("work");
        counted.remote.repo.script().step(1, "gate work").always(WRITES);
        let driver = counted.start(0);
        gate.wait_reached();
        driver.signal(Signal::SIGTERM);
        driver.assert_exits(75);
        counted.remote.commit_as_person(|old| format!("{old}More.\n"), "README.md");
        fs::remove_file(&counted.sizes).expect("something was sent");
        counted
    }

    fn start(&self, attempt: u32) -> DriverProcess {
        let work = self.work.to_str().expect("a path is text");
        self.remote.start_with(("7", attempt), &["-m", "Do it.", "--work", work])
    }

    /// Returns the number of bytes sent.
    fn bytes_sent(&self) -> u64 {
        let sizes = fs::read_to_string(&self.sizes).expect("something was sent");
        sizes.lines().map(|line| line.trim().parse::<u64>().expect("a number")).sum()
    }
}

#[test]
fn what_a_kept_work_tree_has_is_not_sent_again() {
    let counted = CountingRemote::new();
    counted.start(1).assert_exits(0);
    assert!(counted.bytes_sent() < 100_000, "{} bytes were sent", counted.bytes_sent());
    counted.remote.assert_sound();
}

#[test]
fn what_a_kept_work_tree_has_lost_is_sent_again() {
    let counted = CountingRemote::new();
    let id = counted.remote.git(&["rev-parse", "main:large.txt"]);
    let object = counted.work.join(".git/objects").join(&id[..2]).join(&id[2..]);
    fs::remove_file(&object).expect("it is there by itself");
    counted.start(1).assert_exits(0);
    assert!(object.is_file() && counted.bytes_sent() > 1_000_000, "{} bytes were sent", counted.bytes_sent());
    counted.remote.assert_sound();
}

#[test]
fn neither_a_branch_nor_a_goal_is_refused() {
    let remote = TestRemote::new();
    let output = remote.start_with(("7", 0), &[]).assert_exits(6);
    assert!(output.contains("has no run x, and no goal for a new one was given"), "{output}");
    assert_eq!(remote.git(&["for-each-ref", "refs/heads/runner"]), "");
    remote.assert_swept();
}

#[test]
fn what_a_driver_has_committed_and_not_published_is_put_aside_in_a_kept_work_tree() {
    let remote = TestRemote::new();
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, "gate work").always(WRITES);
    let work = remote.home.path().join("kept");
    let options = ["-m", "Do it.", "--work", work.to_str().expect("a path is text")];
    let hook = remote.hook("pre-receive", "exit 1");
    let driver = remote.start_with(("7", 0), &options);
    gate.wait_reached();
    driver.signal(Signal::SIGKILL);
    driver.assert_exits(-1);
    fs::remove_file(hook).expect("it is there");
    let output = remote.start_with(("7", 1), &options).assert_exits(0);
    assert!(output.contains("has committed and not published"), "{output}");
    assert!(remote.git(&["log", "--format=%b", "runner/x"]).contains("Runner-Driver: slurm/7.1@"));
    remote.assert_sound();
}

#[test]
fn settings_that_a_session_has_left_in_a_kept_work_tree_run_nothing() {
    let remote = TestRemote::new();
    let gate = remote.repo.script().gate("work");
    let mark = remote.home.path().join("mark").display().to_string();
    let plants = format!(
        "git config filter.x.smudge 'echo >> {mark}; cat'; git config filter.x.clean 'echo >> {mark}; cat'\n\
         mkdir -p .git/info; echo '* filter=x' > .git/info/attributes; echo more >> README.md; gate work"
    );
    remote.repo.script().step(1, &plants).always(WRITES);
    let work = remote.home.path().join("kept");
    let options = ["-m", "Do it.", "--work", work.to_str().expect("a path is text")];
    let driver = remote.start_with(("7", 0), &options);
    gate.wait_reached();
    driver.signal(Signal::SIGKILL);
    driver.assert_exits(-1);
    remote.start_with(("7", 1), &options).assert_exits(0);
    assert!(!remote.home.path().join("mark").exists(), "what the session has set was run");
    remote.assert_sound();
}

#[test]
fn where_commits_are_signed_claims_and_releases_are_too() {
    let remote = TestRemote::new();
    remote.home.install("signer", "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho 'a signature'\n");
    let signer = remote.home.path().join("bin/signer");
    remote.repo.git(&["config", "--global", "gpg.program", signer.to_str().expect("a path is text")]);
    let config = remote.repo.read(".runner/state/config.toml") + "\n[git]\nsign = true\n";
    remote.repo.write(".runner/state/config.toml", &config).commit("Sign");
    remote.repo.git(&["push", "-q", remote.bare.to_str().expect("a path is text"), "HEAD:main"]);
    let gate = remote.repo.script().gate("work");
    remote.repo.script().step(1, "gate work").always(WRITES);
    let driver = remote.start(("7", 0));
    gate.wait_reached();
    driver.signal(Signal::SIGTERM);
    driver.assert_exits(75);
    remote.start_with(("8", 0), &[]).assert_exits(0);
    let subjects = remote.subjects();
    assert!(subjects.contains(&"claim run x".to_owned()), "{subjects:?}");
    for commit in remote.git(&["rev-list", "--first-parent", "main..runner/x"]).lines() {
        let raw = remote.git(&["cat-file", "-p", commit]);
        assert!(raw.contains("\ngpgsig a signature\n"), "{raw}");
    }
}

#[test]
fn a_folder_that_no_driver_has_made_is_left_alone() {
    let remote = TestRemote::new();
    let theirs = remote.repo.path().to_str().expect("a path is text");
    remote.repo.write("unsaved.txt", "mine");
    let output = remote.start_with(("7", 0), &["-m", "Do it.", "--work", theirs]).assert_exits(6);
    assert!(output.contains("no driver has made it"), "{output}");
    assert_eq!(remote.repo.git(&["status", "--porcelain"]), "?? unsaved.txt");
}

#[test]
fn keys_that_the_engine_injects_are_given_to_sessions_and_written_nowhere() {
    let remote = TestRemote::new();
    let config = remote.repo.read(".runner/state/config.toml") + "\n[env]\nagent = [\"ACME_*\"]\n";
    remote.repo.write(".runner/state/config.toml", &config).commit("Name the keys");
    remote.repo.git(&["push", "--quiet", &remote.url(), "main"]);
    let gate = remote.repo.script().gate("work");
    remote.repo.script().always(&format!("test \"$ACME_KEY\" = sesame-4711 || exit 3; gate work; {WRITES}"));
    let mut command = remote.command(("7", 0), &["-m", "Do it."]);
    command.env("ACME_KEY", "sesame-4711");
    let driver = DriverProcess::spawn(command);
    gate.wait_reached();
    let found = Command::new("grep").args(["-rlF", "sesame-4711"]).arg(remote.home.path().join("tmp")).output();
    let found = found.expect("grep runs");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    gate.open();
    driver.assert_exits(0);
    remote.assert_sound();
}

#[test]
fn a_remote_that_is_away_or_takes_nothing_gives_the_job_back_until_it_does() {
    let remote = TestRemote::new();
    remote.repo.script().always(WRITES);
    let gone = remote.home.path().join("away.git");
    fs::rename(&remote.bare, &gone).expect("it can be moved");
    let in_vain = ["-m", "Do it.", "--max-wait", "0s"];
    let output = remote.start_with(("7", 0), &in_vain).assert_exits(75);
    assert!(output.contains("does not answer, or refuses"), "{output}");
    assert!(output.lines().any(|line| line.starts_with("not before ")), "{output}");
    fs::rename(&gone, &remote.bare).expect("it can be moved");
    let hook = remote.hook("pre-receive", "echo full >&2; exit 1");
    let output = remote.start_with(("7", 1), &in_vain).assert_exits(75);
    assert!(output.contains("does not take what is committed"), "{output}");
    assert!(output.lines().any(|line| line.starts_with("not before ")), "{output}");
    fs::remove_file(hook).expect("it is there");
    remote.start(("7", 2)).assert_exits(0);
    remote.assert_sound();
}

#[test]
fn a_push_that_the_remote_refuses_now_and_then_and_one_that_it_loses_are_made_again() {
    let remote = TestRemote::new();
    remote.repo.script().step(1, "decompose 'Two parts.' One Two").always(WRITES);
    let count = "n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n; ";
    remote.hook("pre-receive", &format!("{count} [ $((n % 3)) -ne 0 ]"));
    // The remote accepts the last commit of a session and drops it: the branch points to the commit before.
    remote.hook(
        "post-receive",
        "read old new name; [ -e lost ] || git log -1 --format=%s $new | grep -v guard=pass || \
         { touch lost; git update-ref $name $old; }",
    );
    remote.start(("7", 0)).assert_exits(0);
    assert!(remote.bare.join("lost").exists());
    assert_eq!(remote.git(&["show", "runner/x:work.txt"]), "work");
    remote.assert_sound();
}

#[test]
fn a_pipe_is_no_goal_and_no_tip_log() {
    let remote = TestRemote::new();
    let pipe = remote.home.path().join("pipe");
    mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe can be made");
    let pipe = pipe.to_str().expect("a path is text");
    for (options, doing) in
        [(vec!["--goal", pipe], "reading"), (vec!["-m", "Do it.", "--tip-log", pipe], "opening the tip log")]
    {
        let output = remote.start_with(("7", 0), &options).assert_exits(1);
        assert!(output.contains(&format!("{doing} {pipe}: it is a pipe")), "{output}");
    }
    // A pipe of a shell has a writer.
    let runnerd = remote.home.command("runnerd");
    let program = runnerd.get_program().to_str().expect("a path is text");
    let start = "exec \"$0\" drive \"$1\" --run x --yes --start-only --goal <(echo Do it.)";
    remote.home.run_program(Path::new("/bin/bash"), &["-c", start, program, &remote.url()]).exits(0);
}
