//! A run is in its branch: it continues with the same prompt in every clone, no matter who continues it (P14).

use std::fs;

use runner_testkit::{Daemon, Home, Script};

use crate::play::{RUN, RunPlay, node, sample};

/// Another machine, as far as a test can provide it: another home, user, zone and locale, and a daemon without state.
struct OtherProject {
    home: Home,
    script: Script,
}

impl OtherProject {
    fn new() -> Self {
        let home = Home::new().export("TZ", "Pacific/Kiritimati").export("LC_ALL", "tr_TR.UTF-8");
        fs::write(home.path().join(".gitconfig"), "[user]\n\tname = Ela\n\temail = ela@elsewhere\n")
            .expect("git's configuration can be written");
        // The programs of the agent and the guard have the same names as at home.
        let script = home.repo("one").script().clone();
        script.always("answer retry 'Elsewhere.'");
        Self { home, script }
    }

    /// Clones the run's branch, continues it for one session, and returns its prompt.
    fn next_prompt(&self, play: &RunPlay, session: u32) -> String {
        let copy = self.home.path().join(format!("copy-{session}")).display().to_string();
        play.repo.git(&["clone", "-q", "--no-local", "--branch", "main", ".", &copy]);
        self.home.ctl(&["start", "--yes", "--queue-only", "--id", RUN, &copy]).exits(0);
        self.home.ctl(&["step", &copy]).exits(0);
        self.script.prompt(session)
    }
}

/// Runs here, and repeats each session after the first elsewhere, too; between them a person may make changes.
struct PromptTour {
    play: RunPlay,
    elsewhere: OtherProject,
    _daemon: Daemon,
}

impl PromptTour {
    /// Runs the first session.
    fn new(script: impl FnOnce(&Script)) -> Self {
        let mut tree = sample();
        node(&mut tree, "b").max_attempts = 9;
        let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 20"));
        script(play.script());
        let elsewhere = OtherProject::new();
        let daemon = elsewhere.home.daemon();
        play.home.ctl_in(&play.repo, &["start", "--yes", "--queue-only", "--id", RUN]).exits(0);
        play.home.ctl_in(&play.repo, &["step"]).exits(0);
        Self { play, elsewhere, _daemon: daemon }
    }

    /// Runs the next session, elsewhere and here; its prompts must be equal, and contain this text.
    #[track_caller]
    fn assert_next_prompt(&self, session: u32, shown: &str) {
        let remote_prompt = self.elsewhere.next_prompt(&self.play, session - 1);
        self.play.home.ctl_in(&self.play.repo, &["step"]).exits(0);
        let local_prompt = self.play.script().prompt(session);
        assert!(local_prompt.contains(shown), "prompt {session} does not show `{shown}`:\n{local_prompt}");
        assert_eq!(local_prompt, remote_prompt, "prompt {session}");
    }
}

#[test]
fn a_clone_continues_with_the_same_prompt_after_red_guards_crashes_notes_and_invalid_trees() {
    let tour = PromptTour::new(|script| {
        script.step(1, "echo 1 > work\nanswer retry 'Half of it.'");
        script.step(2, "echo 2 > work\nanswer done 'It should work.'").guard_step(1, "echo 'FAIL: two'\nexit 1");
        script.step(3, "echo 3 > work\nexit 3");
        script.step(4, "echo '{' > \"$tree\"\nanswer retry 'Oops.'").step(5, "answer retry 'Repaired.'");
    });
    tour.assert_next_prompt(2, "Half of it.");
    tour.assert_next_prompt(3, "FAIL: two");
    tour.play.home.ctl_in(&tour.play.repo, &["note", "Use sqlx"]).exits(0);
    tour.assert_next_prompt(4, "Use sqlx");
    tour.assert_next_prompt(5, "the task tree must be valid");
}

#[test]
fn a_clone_continues_with_the_same_prompt_after_an_answer_a_held_back_file_and_a_split() {
    let tour = PromptTour::new(|script| {
        script.step(1, "echo '- Which port?' >> .runner/state/questions.md\nanswer retry 'I must ask.'");
        script.step(2, "echo 'KEY=1' > .env\nanswer retry 'A file that stays here.'");
        script.step(3, "decompose 'Two parts.' one two").step(4, "answer retry 'Not yet.'");
    });
    let questions = tour.play.home.ctl_in(&tour.play.repo, &["questions", "--json"]).exits(0).json();
    let id = questions["questions"][0]["id"].as_str().expect("a question is open").to_owned();
    tour.play.home.ctl_in(&tour.play.repo, &["answer", &id, "5432"]).exits(0);
    tour.assert_next_prompt(2, "5432");
    tour.assert_next_prompt(3, ".env");
    tour.assert_next_prompt(4, "Do one.");
}
