//! Hooks: called once per event, with the event on standard input, and without affecting the run.

use std::fs;
use std::path::PathBuf;

use protocol::hook::{HookEvent, HookName};
use protocol::words::RunStatus;
use runner_testkit::{Home, Repo, SessionGate};

use crate::play::{RUN, sample};

/// A repository whose hook stores its input, arrives at a gate, and then runs a test's script.
struct HookFixture {
    home: Home,
    repo: Repo,
    gate: SessionGate,
}

impl HookFixture {
    fn with_hook(hook: HookName, then: &str) -> Self {
        let home = Home::new();
        home.limit_containment("walk");
        let repo = home.repo("one");
        let gate = repo.script().gate("hook");
        let folder = repo.script().folder().display().to_string();
        let arrive = format!("arrive() {{ printf x > {folder}/gates/hook.in; }}");
        let script = format!("{arrive}; cat >> {folder}/told.jsonl; arrive; {then}");
        fs::write(home.path().join("hook.sh"), script).expect("a hook can be written");
        let argv = format!("[\"sh\", \"{}\"]", home.path().join("hook.sh").display());
        repo.write(".runner/GOAL.md", "# Reach the goal\n");
        let config = repo.config().top("max_iterations = 1").section(&format!("[hooks]\n{hook} = {argv}"));
        repo.commit_config(&config);
        repo.commit_tree(&sample());
        Self { home, repo, gate }
    }

    fn hook_events(&self) -> Vec<HookEvent> {
        let path = self.repo.script().folder().join("told.jsonl");
        let text = fs::read_to_string(path).expect("it received an event");
        text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
    }

    fn run(&self, exit: i32) {
        self.home.run(&self.repo, &["--id", RUN]).exits(exit);
    }

    fn events(&self) -> String {
        self.repo.read(&format!(".runner/iterations/{RUN}/events.jsonl"))
    }
}

#[test]
fn a_stop_is_told_with_its_reason_and_its_command() {
    let called = HookFixture::with_hook(HookName::OnStop, "exit 0");
    called.repo.script().step(1, "answer retry 'Not yet.'");
    let _daemon = called.home.daemon();
    called.run(4);
    called.gate.wait_reached();
    let [event] = &called.hook_events()[..] else { panic!("one event") };
    assert_eq!((event.hook, event.state, event.run.as_str()), (HookName::OnStop, RunStatus::Limit, RUN));
    assert_eq!((&event.schema[..], &event.branch[..]), ("runner/hook.v1", "runner/play"));
    assert_eq!(event.path.as_path(), called.repo.path());
    assert!(event.reason.as_ref().is_some_and(|reason| reason.message.contains("used up")));
    assert_eq!(called.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_question_is_told_when_it_is_committed() {
    let called = HookFixture::with_hook(HookName::OnQuestion, "exit 0");
    called.repo.script().step(1, "echo '- Which database?' >> .runner/state/questions.md; answer retry 'Not yet.'");
    let _daemon = called.home.daemon();
    called.run(4);
    called.gate.wait_reached();
    let [event] = &called.hook_events()[..] else { panic!("one event") };
    assert_eq!(event.questions[0].text, "Which database?");
    assert!(called.events().contains("Which database?"));
}

#[test]
fn a_hook_that_fails_is_told_and_harms_nothing() {
    let called = HookFixture::with_hook(HookName::OnStop, "echo 'no bus'; exit 7");
    called.repo.script().always("answer retry 'Not yet.'");
    let _daemon = called.home.daemon();
    called.run(4);
    called.gate.wait_reached();
    // The second stop is reported after the first hook has ended; the second hook may have ended, too.
    called.home.ctl_in(&called.repo, &["resume", "--more", "1", "--wait"]).exits(4);
    called.gate.wait_reached();
    assert!(called.events().contains("on_stop of run play: it ended with exit code 7"), "{}", called.events());
    assert_eq!(called.hook_events().len(), 2);
    let folder = fs::read_dir(called.home.private().join("repos")).expect("a folder").flatten().next().expect("one");
    let logs: Vec<PathBuf> =
        fs::read_dir(folder.path().join("hooks")).expect("logs").flatten().map(|file| file.path()).collect();
    let has_words = |log: &PathBuf| fs::read_to_string(log).is_ok_and(|text| text.contains("no bus"));
    assert!(logs.iter().any(has_words), "{logs:?}");
}

#[test]
fn a_hook_that_was_begun_is_not_run_again_after_kill() {
    let called = HookFixture::with_hook(HookName::OnStop, "sleep 600");
    called.repo.script().step(1, "answer retry 'Not yet.'");
    let daemon = called.home.daemon();
    called.run(4);
    called.gate.wait_reached();
    daemon.kill();
    let _next = called.home.daemon();
    // Replied to after the worker has recovered what was left.
    called.home.client().list(called.repo.path()).expect("the runs");
    assert_eq!(called.hook_events().len(), 1);
    assert!(called.events().contains("it is not run again"), "{}", called.events());
}

#[test]
fn a_hook_ends_before_the_daemon_that_has_run_it() {
    // Each of its new processes is also asked to end, except those started after the second trap.
    let then = r#"trap 'trap "" TERM; sleep 1; : > "$HOME/ended"; exit 0' TERM; arrive; sleep 600 & wait"#;
    let called = HookFixture::with_hook(HookName::OnStop, then);
    called.repo.script().step(1, "answer retry 'Not yet.'");
    let daemon = called.home.daemon();
    called.run(4);
    called.gate.wait_reached();
    // Now the trap is set.
    called.gate.wait_reached();
    daemon.stop();
    assert!(called.home.path().join("ended").exists(), "the daemon did not wait for it");
    assert!(called.home.processes().is_empty(), "alive after the daemon");
}

#[test]
fn a_hook_whose_program_is_not_there_is_refused_before_anything_begins() {
    let called = HookFixture::with_hook(HookName::OnStop, "exit 0");
    let config =
        called.repo.read(".runner/state/config.toml").replace("on_stop = [", "on_stop = [\"no-such-program\", ");
    called.repo.write(".runner/state/config.toml", &config);
    let _daemon = called.home.daemon();
    let refused = called.home.ctl_in(&called.repo, &["start", "--yes"]);
    assert_ne!(refused.code, 0);
    let (before, _) = config.split_once("on_stop = ").expect("the key is set");
    let line = before.lines().count() + 1;
    let column = "on_stop = ".len() + 1;
    let place =
        format!(".runner/state/config.toml:{line}:{column}: hooks.on_stop: cannot find the program `no-such-program`");
    assert!(refused.stderr.contains(&place), "{}", refused.stderr);
}
