//! Commands for the daemon of another machine, over an `ssh` without a network: it runs its command in the environment
//! of another home. A real connection is tested in `hosts/sshd.rs`.

mod sshd;

use std::fs;
use std::process::Command;

use runner_testkit::invariants::print_figure;
use runner_testkit::{Daemon, Home, ProgramOutput, Repo, Tty, binary};
use serde_json::Value;

const HOST: &str = "ssh://gpu";
const RUN: &str = "far-1";
const SIZE: (u16, u16) = (100, 30);

/// Two machines: a person's, on which no daemon runs, and the one with the repository.
struct TwoMachines {
    here: Home,
    _daemon: Daemon,
    repo: Repo,
    there: Home,
}

impl TwoMachines {
    fn new() -> Self {
        let local = Home::new();
        let remote = Home::new();
        remote.install("runnerctl", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", binary("runnerctl").display()));
        let repo = remote.scripted_repo("one");
        let ask = "echo '- Which port?' >> .runner/state/questions.md\nprintf %s \"$HOME\" > home.txt\n";
        repo.script().step(1, &format!("{ask}answer retry 'Not yet.'"));
        let machines = Self { _daemon: remote.daemon(), here: local, repo, there: remote };
        machines.write_fake_ssh(&format!(
            "cd '{}' && exec env -i {} sh -c \"$*\"",
            machines.there.path().display(),
            machines.login()
        ));
        machines
    }

    /// The variables of a login there, for a shell.
    fn login(&self) -> String {
        let pairs = self.there.env().iter().map(|(name, value)| format!("{name}='{value}'"));
        pairs.collect::<Vec<_>>().join(" ")
    }

    /// Replaces `ssh` with this script, whose arguments are the words of the command to run.
    fn write_fake_ssh(&self, does: &str) {
        let calls = self.here.path().join("calls");
        let text = format!(
            "#!/bin/sh\necho \"$*\" >> '{}'\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\n{does}\n",
            calls.display()
        );
        self.here.install("ssh", &text);
    }

    /// Returns the calls of ssh since the previous call of this function.
    fn ssh_calls(&self) -> Vec<String> {
        let calls = self.here.path().join("calls");
        let text = fs::read_to_string(&calls).unwrap_or_default();
        fs::write(&calls, "").expect("a file of the test can be written");
        text.lines().map(str::to_owned).collect()
    }

    fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let repo = self.repo.path().to_str().expect("a path");
        [&["--host", HOST, "-C", repo], args].concat()
    }

    fn run_on_host(&self, args: &[&str]) -> ProgramOutput {
        self.here.ctl(&self.args(args))
    }

    fn tty(&self, args: &[&str]) -> Tty {
        let mut command: Command = self.here.command("runnerctl");
        command.arg("--no-spawn").args(self.args(args)).env("TERM", "xterm-256color");
        Tty::start(&command, SIZE)
    }
}

#[test]
fn a_run_on_another_machine_is_started_steered_and_followed_by_one_ssh_for_each_command() {
    let machines = TwoMachines::new();
    let started = machines.run_on_host(&["start", "--yes", "-m", "Do it.", "--id", RUN, "--queue-only"]);
    started.exits(0);
    assert_eq!(machines.ssh_calls(), ["-T -- gpu runnerctl stdio --json --no-spawn"]);
    assert!(started.stderr.contains(&format!("runnerctl --host {HOST} status")), "{}", started.stderr);

    let mut follows = machines.tty(&["log", "-f"]);
    follows.wait_for_text("No iteration yet; waiting for the first.");
    machines.run_on_host(&["step"]).exits(0);
    assert_eq!(follows.wait_exit(), 0);

    let questions = machines.run_on_host(&["questions", "--json"]);
    questions.exits(0);
    let id = questions.json()["questions"][0]["id"].as_str().expect("a question").to_owned();
    machines.run_on_host(&["answer", &id, "8080"]).exits(0);
    machines.run_on_host(&["note", "Hurry."]).exits(0);
    machines.ssh_calls();
    for (args, expected) in
        [(&["status"][..], "runnerctl --host ssh://gpu -C "), (&["log"], "0001"), (&["tree"], "root")]
    {
        let output = machines.run_on_host(args);
        output.exits(0);
        assert!(output.stdout.contains(expected), "{args:?}: {}", output.stdout);
        assert_eq!(machines.ssh_calls().len(), 1, "{args:?}");
    }
    let home = machines.there.path().display().to_string();
    assert_eq!(
        machines.repo.git(&["show", &format!("runner/{RUN}:home.txt")]),
        home,
        "the environment is that machine's"
    );
}

#[test]
fn without_a_path_there_all_repositories_are_shown_or_one_has_to_be_named() {
    let machines = TwoMachines::new();
    machines.run_on_host(&["start", "--yes", "-m", "Do it.", "--id", RUN, "--queue-only"]).exits(0);
    let all = machines.here.ctl(&["--host", HOST, "status"]);
    all.exits(0);
    assert!(all.stdout.contains(machines.repo.path().to_str().expect("a path")), "{}", all.stdout);
    for (args, reason) in [(["log", "1"], "nothing says which repository"), (["tree", "src"], "`src` is not absolute")]
    {
        let refused = machines.here.ctl(&[&["--host", HOST], &args[..]].concat());
        refused.exits(2);
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
    let named = machines.here.ctl_with(&machines.repo, &["status", "--all"], &[("RUNNER_HOST", HOST)]);
    assert_eq!(named.stdout, all.stdout, "the variable does what the option does");
}

#[test]
fn a_daemon_is_started_on_the_other_machine_and_stopped_there() {
    let machines = TwoMachines::new();
    machines.run_on_host(&["start", "--yes", "-m", "Do it.", "--id", RUN, "--queue-only"]).exits(0);
    machines.run_on_host(&["daemon", "stop"]).exits(0);
    let gone = machines.run_on_host(&["status"]);
    gone.exits(5);
    assert!(gone.stderr.contains("on ssh://gpu: no daemon listens on"), "{}", gone.stderr);
    let mut status = machines.here.command("runnerctl");
    let started = status.args(machines.args(&["status"])).output().expect("it can be started");
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    machines.run_on_host(&["daemon", "stop"]).exits(0);
}

#[test]
fn what_is_in_the_way_of_another_machine_is_told_once_and_with_what_to_do() {
    let machines = TwoMachines::new();
    let check_error = |does: &str, code: i32| {
        machines.write_fake_ssh(does);
        let output = machines.here.ctl(&["--host", HOST, "--json", "status"]);
        output.exits(code);
        let reply: Value = serde_json::from_str(&output.stderr).expect("an error is one object");
        let text = |key: &str| reply["error"][key].as_str().unwrap_or_default().to_owned();
        (text("message"), text("hint"))
    };
    let (message, hint) = check_error("echo 'gpu: Permission denied (publickey).' >&2; exit 255", 5);
    assert_eq!(message, "ssh did not get to ssh://gpu: gpu: Permission denied (publickey).");
    assert!(hint.ends_with("ssh -t gpu 'runnerctl daemon status'"), "{hint}");
    let (message, hint) = check_error("no-such-program", 5);
    assert!(message.starts_with("there is no runnerctl in the PATH of a login to ssh://gpu: "), "{message}");
    assert!(hint.contains("ssh -t gpu 'echo $PATH'"), "{hint}");
    assert!(!hint.contains("--host"), "it is no command: {hint}");
    let (message, _) = check_error("echo 'Last login: today'; kill -9 $$", 5);
    assert!(message.starts_with("the line to ssh://gpu ended before a daemon answered (signal: 9"), "{message}");
    let (message, _) = check_error("echo 'runnerctl-stdio {}'; exec echo nonsense", 5);
    assert!(message.starts_with("no daemon answers on ssh://gpu: "), "{message}");
}

#[test]
fn a_command_about_its_own_machine_is_not_asked_of_another() {
    let machines = TwoMachines::new();
    for (args, command) in [
        (&["doctor"][..], "ssh -t gpu 'runnerctl doctor'"),
        (&["daemon", "run"], "ssh -t gpu 'runnerctl daemon run'"),
        (&["deliver"], "ssh -t gpu 'runnerctl deliver'"),
        (&["service", "status"], "ssh -t gpu 'runnerctl service'"),
    ] {
        let refused = machines.here.ctl(&[&["--host", HOST], args].concat());
        refused.exits(2);
        assert!(refused.stderr.contains(command), "{}", refused.stderr);
    }
    for host in ["ssh://-oProxyCommand=touch", "gpu", "ssh://gpu/srv", "ssh://a;b"] {
        machines.here.ctl(&["status", &format!("--host={host}")]).exits(2);
        machines.here.ctl_with(&machines.repo, &["status"], &[("RUNNER_HOST", host)]).exits(2);
    }
    machines.here.ctl(&["--host", HOST, "--socket", "/s", "status"]).exits(2);
    machines.here.ctl_with(&machines.repo, &["help"], &[("RUNNER_HOST", HOST)]).exits(0);
    assert_eq!(machines.ssh_calls(), [""; 0], "nothing was started for any of them");
}

#[test]
fn a_session_of_a_run_steers_nothing_through_the_way_of_other_machines() {
    let machines = TwoMachines::new();
    machines.there.install("ssh", "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\nexec sh -c \"$*\"\n");
    let try_it = "runnerctl --host ssh://gpu -C \"$PWD\" pause";
    let script =
        format!("{try_it} > first.txt 2>&1\nenv -u RUNNERD_MARK {try_it} > second.txt 2>&1\nanswer retry 'Not yet.'");
    machines.repo.script().step(1, &script);
    machines.run_on_host(&["start", "--yes", "-m", "Do it.", "--id", RUN, "--queue-only"]).exits(0);
    machines.run_on_host(&["step"]).exits(0);
    let read_file = |file: &str| machines.repo.git(&["show", &format!("runner/{RUN}:{file}")]);
    assert!(
        read_file("first.txt").contains("ssh://gpu is not asked from inside an iteration"),
        "{}",
        read_file("first.txt")
    );
    assert!(read_file("second.txt").contains("inside an iteration"), "{}", read_file("second.txt"));
    assert!(!read_file("second.txt").contains("is not asked"), "{}", read_file("second.txt"));
}

#[test]
fn a_run_there_is_written_to_a_page_here() {
    let machines = TwoMachines::new();
    machines.run_on_host(&["start", "--yes", "-m", "Do it.", "--id", RUN, "--queue-only"]).exits(0);
    machines.run_on_host(&["step"]).exits(0);
    let page = machines.here.path().join("far.html");
    let to = page.display().to_string();
    let written = machines.run_on_host(&["export", "html", RUN, &to]);
    if written.stderr.contains("this build of runner-ui has no page") {
        print_figure("left out: the page is not built (scripts/ui.sh builds it)");
        return;
    }
    assert!(written.exits(0).stdout.contains("1 iteration"));
    assert!(fs::read_to_string(&page).expect("it is here").contains("Which port?"));
    let lost = machines.run_on_host(&["export", "html", "no-such-run", &to, "--force"]);
    lost.exits(1);
}

#[test]
fn a_key_that_is_made_there_is_named_to_git_there() {
    let machines = TwoMachines::new();
    let made = machines.run_on_host(&["daemon", "signing-key", "--make"]).exits(0).stderr.clone();
    for fact in
        ["ssh -t gpu 'git config --global runner.signingKey /", "runnerctl --host ssh://gpu config set git.sign"]
    {
        assert!(made.contains(fact), "{fact}: {made}");
    }
}
