//! An agent changes what the guard does: it is detected, reported, and reverted, as `[guard] on_change` says.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use protocol::words::RunStatus;
use runner_testkit::{ReceiptCommit, run_unprivileged};

use crate::audits::parse_report;
use crate::play::{ExpectedRow, RunPlay, SeenIteration, sample};

/// The guard of these runs: green if the work was done.
const STRICT: &str = "test -e done.txt\n";
const RED: ExpectedRow = ExpectedRow { verdict: "RedGuard", status: "done", guard: "fail", attempts: "1/3" };
const PASSED: ExpectedRow = ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" };

/// A run whose guard is the script `ci.sh`, with this reaction to an agent's changes.
pub(crate) fn guarded_play(on_change: &str) -> RunPlay {
    let play = unguarded_play(on_change);
    play.repo.write("ci.sh", STRICT).commit("Check the work");
    play
}

/// The same, before the script exists.
fn unguarded_play(on_change: &str) -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| {
        let config = config.top("max_iterations = 1").guard("definition = [\"/ci.sh\", \"/checks/**\"]");
        config.guard(&format!("on_change = {on_change:?}"))
    });
    play.script().guard_always("sh ./ci.sh && echo green");
    play
}

fn announced_changes(seen: &SeenIteration) -> &str {
    seen.receipt.trailer("Runner-Guard-Changed").unwrap_or_default()
}

/// Returns what a person is shown about a changed definition.
fn shown_changes(play: &RunPlay) -> Vec<String> {
    play.client().run(play.repo.path()).guard_changed
}

#[test]
fn the_definition_at_the_base_is_accepted_and_kept_in_the_run_state() {
    let play = guarded_play("both");
    play.script().step(1, "touch done.txt; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&PASSED);
    let accepted = &play.repo.run_state("HEAD").guard_definition;
    let blob = play.repo.git(&["rev-parse", "HEAD:ci.sh"]);
    assert_eq!(accepted.iter().collect::<Vec<_>>(), [(&"ci.sh".to_owned(), &blob)]);
    assert_eq!((announced_changes(&seen), shown_changes(&play)), ("", vec![]));
    assert!(!play.has_record("0001/guard-accepted.log"), "an unchanged definition is run once");
}

#[test]
fn a_weakened_guard_is_caught_by_the_accepted_one() {
    let play = guarded_play("both");
    play.script().step(1, "echo true > ci.sh; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&RED);
    assert_eq!(announced_changes(&seen), "ci.sh");
    assert_eq!(play.repo.read("ci.sh"), "true\n", "the session's work is kept");
    assert_eq!(play.record(1, "guard.log"), "green\n");
    assert!(play.has_record("0001/guard-accepted.log"));
    let ctl = |args: &[&str]| play.home.ctl_in(&play.repo, args).exits(0).stdout.clone();
    let summary = ctl(&["log", "1"]);
    assert!(summary.contains("ran twice: green as the session left it (--guard), and not green (exit 1)"), "{summary}");
    assert_eq!(ctl(&["log", "1", "--guard"]), "green\n");
    assert_eq!(ctl(&["log", "1", "--guard-accepted"]), play.record(1, "guard-accepted.log"));
    let feedback = play.repo.feedback("HEAD");
    let failure = feedback.nodes["b"].failures.last().expect("it failed");
    assert!(failure.text.starts_with("[red with the accepted definition"), "{}", failure.text);
    assert_eq!(shown_changes(&play), ["ci.sh"]);
    let status = play.home.ctl_in(&play.repo, &["status"]);
    assert!(status.stdout.contains("definition changed: ci.sh; runnerctl guard accept"), "{}", status.stdout);
}

#[test]
fn the_next_session_is_told_of_a_changed_definition() {
    let play = guarded_play("both");
    play.script().step(1, "echo true > ci.sh; answer retry 'Not yet.'").step(2, "answer retry 'Nor now.'");
    let seen = play.run_first(4);
    assert_eq!(announced_changes(&seen), "ci.sh", "also where no guard ran");
    assert!(!play.script().prompt(1).contains("What the checks run has changed"));
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
    let prompt = play.script().prompt(2);
    assert!(prompt.contains("What the checks run has changed") && prompt.contains("ci.sh (changed)"), "{prompt}");
    assert_eq!(announced_changes(&play.iteration_at(2)), "ci.sh", "until someone accepts it");
}

#[test]
fn a_change_that_is_green_with_both_definitions_passes() {
    let play = guarded_play("both");
    play.script().step(1, "touch done.txt; echo 'echo more' >> ci.sh; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&PASSED);
    assert_eq!(announced_changes(&seen), "ci.sh");
    assert!(seen.meta.guard_with_accepted);
    assert_eq!(
        (play.record(1, "guard.log"), play.record(1, "guard-accepted.log")),
        ("more\ngreen\n".into(), "green\n".into())
    );
    assert_eq!(play.repo.show("HEAD", "ci.sh"), format!("{STRICT}echo more").trim_end());
    assert!(!play.has_record("0001/swapped"), "everything is back in its place");
}

#[test]
fn a_change_that_is_red_by_itself_is_not_run_again() {
    let play = guarded_play("both");
    play.script().step(1, "touch done.txt; echo false > ci.sh; answer done 'Done.'");
    play.run_first(4).assert_row(&RED);
    let failure = play.repo.feedback("HEAD").nodes["b"].failures.last().cloned().expect("it failed");
    assert!(failure.text.starts_with("[red with a definition of the guard that no person"), "{}", failure.text);
    assert!(!play.has_record("0001/guard-accepted.log"));
}

#[test]
fn a_definition_that_was_removed_is_a_changed_one() {
    let play = guarded_play("both");
    play.script().guard_always("test ! -e ci.sh || sh ./ci.sh");
    play.script().step(1, "rm ci.sh; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&RED);
    assert_eq!(announced_changes(&seen), "ci.sh");
    assert!(!play.repo.path().join("ci.sh").exists(), "it is as the session has left it");
}

#[test]
fn links_folders_and_modes_in_the_place_of_a_definition_are_seen_and_come_back() {
    let play = guarded_play("both");
    play.repo.write("checks/one.sh", STRICT).write("checks/deep/two.sh", STRICT).commit("More checks");
    play.script().guard_always("sh checks/one.sh");
    play.script().guard_step(2, "test ! -L ci.sh && test ! -L checks && ls -R checks; sh checks/one.sh");
    let step = "ln -sf /bin/true ci.sh; rm -r checks; mkdir elsewhere; echo true > elsewhere/one.sh; \
                ln -s elsewhere checks; answer done 'Done.'";
    play.script().step(1, step);
    let seen = play.run_first(4);
    seen.assert_row(&RED);
    assert_eq!(announced_changes(&seen), "checks/deep/two.sh, checks/one.sh, ci.sh");
    let link = |path: &str| std::fs::read_link(play.repo.path().join(path)).expect("a link").display().to_string();
    assert_eq!((link("ci.sh"), link("checks")), ("/bin/true".to_owned(), "elsewhere".to_owned()));
    assert_eq!(play.repo.read("elsewhere/one.sh"), "true\n");
    assert_eq!(play.record(1, "guard-accepted.log"), "checks:\ndeep\none.sh\n\nchecks/deep:\ntwo.sh\n");
}

#[test]
fn a_new_file_beside_accepted_ones_is_taken_away_for_the_accepted_run() {
    let play = guarded_play("both");
    play.script().guard_always("test -e checks/loose || sh ./ci.sh");
    play.script().step(1, "mkdir checks; echo > checks/loose; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&RED);
    assert_eq!(announced_changes(&seen), "checks/loose");
    assert_eq!(play.repo.show("HEAD", "checks/loose"), "");
}

#[test]
fn a_file_that_git_ignores_is_part_of_the_definition() {
    let play = guarded_play("both");
    play.script().guard_always("test -e checks/loose || sh ./ci.sh");
    play.script().step(1, "echo /checks > .gitignore; mkdir checks; echo > checks/loose; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&RED);
    assert_eq!(announced_changes(&seen), "checks/loose");
    assert!(play.repo.path().join("checks/loose").exists());
}

/// A run whose guard runs every `conftest.py` in a folder; one of them is in a folder that git ignores.
fn with_ignored(steps: u32) -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| {
        config.top(&format!("max_iterations = {steps}")).guard("definition = [\"conftest.py\", \"ci.sh\"]")
    });
    let script = "for x in */conftest.py; do [ ! -e \"$x\" ] || . \"./$x\"; done\ntest -e done.txt\n";
    play.repo.write("ci.sh", script).write(".gitignore", "/venv/\n").commit("Check the work");
    play.repo.write("venv/conftest.py", "echo local\n");
    play.script().guard_always("sh ./ci.sh && echo green");
    play
}

#[test]
fn an_ignored_file_that_stood_there_before_the_session_is_accepted() {
    let play = with_ignored(1);
    play.script().step(1, "touch done.txt; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&PASSED);
    assert_eq!(announced_changes(&seen), "");
    assert_eq!(play.record(1, "guard.log"), "local\ngreen\n");
    assert!(!play.has_record("0001/guard-accepted.log"), "an unchanged definition is run once");
}

#[test]
fn an_ignored_file_that_a_session_adds_in_a_new_folder_departs_in_later_iterations_too() {
    let play = with_ignored(2);
    let hidden = "mkdir zz; echo '*' > zz/.gitignore; echo 'exit 0' > zz/conftest.py; git init -q zz";
    play.script().step(1, &format!("{hidden}; answer done 'Done.'")).step(2, "answer done 'Done.'");
    play.run().exits(4);
    for iter in [1, 2] {
        let seen = play.iteration_at(iter);
        assert_eq!(
            (announced_changes(&seen), seen.receipt.verdict()),
            ("zz/conftest.py", "RedGuard"),
            "iteration {iter}"
        );
        assert_eq!(play.record(iter, "guard.log"), "local\ngreen\n", "it ends the script before its last line");
    }
}

#[test]
fn an_ignored_file_that_a_session_changes_is_as_before_for_the_accepted_run_and_comes_back() {
    let play = with_ignored(1);
    play.script().guard_always("sh ./ci.sh && grep -q local venv/conftest.py && echo green");
    play.script().step(1, "touch done.txt; echo 'echo local and more' > venv/conftest.py; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&PASSED);
    assert_eq!(announced_changes(&seen), "venv/conftest.py");
    let logs = ["guard.log", "guard-accepted.log"].map(|log| play.record(1, log));
    assert_eq!(logs, ["local and more\ngreen\n", "local\ngreen\n"]);
    assert_eq!(play.repo.read("venv/conftest.py"), "echo local and more\n", "the session's work is kept");
}

#[test]
fn an_ignored_file_that_is_too_large_to_be_put_back_makes_the_guard_red_where_a_session_changes_it() {
    let play = with_ignored(1);
    play.repo.write("venv/conftest.py", &format!("#{}\n", "x".repeat(300 * 1024)));
    play.script().step(1, "touch done.txt; echo 'exit 0' > venv/conftest.py; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&RED);
    assert_eq!(announced_changes(&seen), "venv/conftest.py");
    let log = play.record(1, "guard-accepted.log");
    assert!(log.starts_with("The guard was not run: venv/conftest.py, which git ignores"), "{log}");
    assert_eq!(play.repo.read("venv/conftest.py"), "exit 0\n", "the session's work is kept");
}

#[test]
fn a_definition_that_the_base_has_not_is_only_reported() {
    for on_change in ["both", "revert"] {
        let play = unguarded_play(on_change);
        play.script().step(1, "echo true > ci.sh; answer done 'Done.'");
        let seen = play.run_first(4);
        seen.assert_row(&PASSED);
        assert_eq!((announced_changes(&seen), shown_changes(&play)), ("ci.sh", vec!["ci.sh".to_owned()]));
        assert!(!seen.meta.guard_with_accepted);
    }
}

#[test]
fn a_change_is_reported_and_no_more_where_that_is_configured() {
    let play = guarded_play("report");
    play.script().step(1, "echo true > ci.sh; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&PASSED);
    assert_eq!((announced_changes(&seen), shown_changes(&play)), ("ci.sh", vec!["ci.sh".to_owned()]));
}

#[test]
fn a_change_is_put_back_before_the_guard_where_that_is_configured() {
    let play = guarded_play("revert");
    play.script().step(1, "echo true > ci.sh; mkdir checks; echo > checks/new; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&RED);
    assert_eq!(announced_changes(&seen), "checks/new, ci.sh");
    assert_eq!(seen.receipt.trailer("Runner-Reverted"), Some("checks/new, ci.sh"));
    assert_eq!(play.repo.show("HEAD", "ci.sh"), STRICT.trim_end());
    assert!(!play.repo.path().join("checks/new").exists());
    assert_eq!(play.record(1, "reverted/definition__ci.sh"), "true\n", "nothing is lost");
    assert_eq!(shown_changes(&play), [""; 0], "what is committed is what was accepted");
    assert_eq!(play.repo.run_state("HEAD").reverted, ["checks/new", "ci.sh"]);
}

#[test]
fn a_change_is_put_back_in_folders_that_the_session_has_closed() {
    run_unprivileged(|| {
        let play = guarded_play("revert");
        play.repo.write("checks/old", "old\n").commit("Checks");
        play.script().step(
            1,
            "echo new > checks/old; mkdir checks/more; echo > checks/more/new; chmod 555 checks/more checks; answer done 'Done.'",
        );
        let seen = play.run_first(4);
        assert_eq!(announced_changes(&seen), "checks/more/new, checks/old");
        assert_eq!(seen.receipt.trailer("Runner-Reverted"), Some("checks/more/new, checks/old"));
        assert_eq!(play.repo.read("checks/old"), "old\n");
        assert!(!play.repo.path().join("checks/more/new").exists());
        assert_eq!(play.record(1, "reverted/definition__checks__old"), "new\n", "nothing is lost");
        // What could be written to before the session can be again.
        let mode_of =
            |path| fs::metadata(play.repo.path().join(path)).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode_of("checks"), mode_of("checks/more")), (0o755, 0o555));
        for folder in ["checks", "checks/more"] {
            let open = fs::Permissions::from_mode(0o755);
            fs::set_permissions(play.repo.path().join(folder), open).expect("it is there");
        }
    });
}

#[test]
fn a_new_file_of_the_definition_is_found_in_a_folder_that_the_session_has_closed() {
    run_unprivileged(|| {
        let play = guarded_play("revert");
        play.script()
            .step(1, "mkdir -p checks/more; echo > checks/more/new; chmod 300 checks/more; answer done 'Done.'");
        assert_eq!(announced_changes(&play.run_first(4)), "checks/more/new");
        assert!(!play.repo.path().join("checks/more/new").exists());
    });
}

#[test]
fn what_an_earlier_session_has_changed_is_put_back_in_a_commit_that_says_so() {
    let play = guarded_play("revert");
    play.script().step(1, "touch done.txt; echo true > ci.sh; answer retry 'Not yet.'").step(2, "answer done 'Done.'");
    play.run_first(4);
    assert_eq!(play.repo.show("HEAD", "ci.sh"), "true");
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
    let seen = play.iteration_at(2);
    seen.assert_row(&ExpectedRow { attempts: "1/3", ..PASSED });
    let trailers = ["Runner-Mode", "Runner-Reverted", "Runner-Guard-Wrote"].map(|name| seen.receipt.trailer(name));
    assert_eq!(trailers, [Some("execute"), Some("ci.sh"), None]);
    assert_eq!(play.repo.show("HEAD", "ci.sh"), STRICT.trim_end());
}

#[test]
fn a_persons_own_commit_of_the_file_accepts_it() {
    let play = guarded_play("both");
    play.script().step(1, "echo true > ci.sh; answer retry 'Not yet.'");
    play.script().step(2, "answer retry 'Not yet.'").step(3, "answer done 'Done.'");
    play.run_first(4);
    play.repo.write("ci.sh", "echo mine\n").commit("Looser checks");
    // The runner's commit that grants an iteration follows the person's.
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
    assert_eq!(announced_changes(&play.iteration_at(2)), "");
    let blob = play.repo.git(&["rev-parse", "HEAD:ci.sh"]);
    assert_eq!(play.repo.run_state("HEAD").guard_definition["ci.sh"], blob);
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
    play.iteration_at(3).assert_row(&ExpectedRow { attempts: "2/3", ..PASSED });
    assert_eq!(play.record(3, "guard.log"), "mine\ngreen\n");
}

#[test]
fn what_a_session_left_comes_back_where_the_daemon_is_killed_between_the_two_runs() {
    let mut play = guarded_play("both");
    play.home.limit_containment("walk");
    play.kill_and_restart();
    let gate = play.script().gate("accepted");
    play.script().guard_step(2, "gate accepted; sh ./ci.sh");
    play.script().step(1, "touch done.txt; echo 'echo mine' >> ci.sh; chmod +x ci.sh; answer done 'Done.'");
    play.start_run();
    gate.wait_reached();
    assert_eq!(play.repo.read("ci.sh"), STRICT, "the accepted one stands there");
    play.kill_and_restart();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let seen = play.iteration_at(1);
    seen.assert_row(&PASSED);
    assert_eq!(play.repo.show("HEAD", "ci.sh"), format!("{STRICT}echo mine"));
    assert_eq!(play.repo.git(&["ls-tree", "HEAD", "ci.sh"]).get(..6), Some("100755"));
    assert_eq!(announced_changes(&seen), "ci.sh");
    let runs = std::fs::read_to_string(play.script().folder().join("guarded")).expect("is counted");
    assert_eq!(runs.trim(), "3", "the run that was over is not repeated");
}

/// A run whose daemon was killed while the accepted definition was in place of the session's.
fn killed_between_runs() -> RunPlay {
    let mut play = guarded_play("both");
    play.home.limit_containment("walk");
    play.kill_and_restart();
    let gate = play.script().gate("accepted");
    play.script().guard_step(2, "gate accepted; sh ./ci.sh");
    play.script().step(1, "touch done.txt; echo 'echo mine' >> ci.sh; answer done 'Done.'");
    play.start_run();
    gate.wait_reached();
    play.kill();
    play
}

/// Damages a note between two daemon processes, and restores it: `damage` gets the note and another valid one.
fn assert_holds_and_continues(name: &str, damage: fn(&str, &str) -> String) {
    let mut play = killed_between_runs();
    let live = play.home.registered_dir().join("live");
    let text = |name: &str| std::fs::read_to_string(live.join(name)).expect("the note is kept");
    let right = text(name);
    let wrong = damage(&right, &text("play-0001-tree.json"));
    assert_ne!(wrong, right);
    std::fs::write(live.join(name), &wrong).expect("it can be damaged");
    play.restart();
    play.client().wait_for(play.repo.path(), RunStatus::Held);
    let status = play.home.ctl_in(&play.repo, &["status"]).stdout.clone();
    assert!(status.contains(name) && status.contains("runnerctl resume"), "{status}");
    assert_eq!(text(name), wrong, "it is not overwritten");
    std::fs::write(live.join(name), &right).expect("it can be restored");
    play.home.ctl_in(&play.repo, &["resume"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    play.iteration_at(1).assert_row(&PASSED);
    assert_eq!(play.repo.show("HEAD", "ci.sh"), format!("{STRICT}echo mine"), "nothing is lost");
}

const TRUNCATED: fn(&str, &str) -> String = |right, _| right[..right.len() / 2].to_owned();
const EMPTIED: fn(&str, &str) -> String = |_, _| String::new();
const GARBLED: fn(&str, &str) -> String = |right, _| right.replacen(':', ";", 1);
const OF_ANOTHER: fn(&str, &str) -> String = |_, another| another.to_owned();

#[test]
fn a_damaged_list_of_what_was_moved_holds_the_run_until_the_right_one_is_back() {
    for damage in [TRUNCATED, EMPTIED, GARBLED, OF_ANOTHER] {
        assert_holds_and_continues("play-swap.json", damage);
    }
}

#[test]
fn a_damaged_note_of_the_definition_holds_the_run_until_the_right_one_is_back() {
    assert_holds_and_continues("play-0001-definition.json", EMPTIED);
    assert_holds_and_continues("play-0001-definition.json", OF_ANOTHER);
}

#[test]
fn a_damaged_note_of_what_stood_before_the_guard_holds_the_run_until_the_right_one_is_back() {
    assert_holds_and_continues("play-0001-before-guard.json", TRUNCATED);
}

#[test]
fn a_damaged_note_of_gits_folder_holds_the_run_until_the_right_one_is_back() {
    assert_holds_and_continues("play-0001-git.json", GARBLED);
}

#[test]
fn a_guard_that_removes_what_the_record_holds_loses_nothing_of_the_sessions() {
    let play = guarded_play("both");
    play.script().guard_step(2, "rm -rf .runner/iterations/play/0001/swapped; sh ./ci.sh");
    play.script().step(1, "touch done.txt; echo 'echo mine' >> ci.sh; answer done 'Done.'");
    play.run_first(4).assert_row(&PASSED);
    assert_eq!(play.repo.show("HEAD", "ci.sh"), format!("{STRICT}echo mine"));
    let live = play.home.registered_dir().join("live");
    assert!(!live.join("play-swapped").exists(), "everything is back in its place");
}

#[test]
fn accepting_by_command_is_a_commit_of_a_persons_and_ends_the_notice() {
    let play = guarded_play("both");
    play.script().step(1, "echo true > ci.sh; mkdir checks; echo > checks/a; answer retry 'Not yet.'");
    play.script().step(2, "answer done 'Done.'");
    play.run_first(4);
    let accept = |args: &[&str]| play.home.ctl_in(&play.repo, &[&["guard", "accept"], args].concat());
    assert!(accept(&["README.md"]).exits(1).stderr.contains("no committed file of the guard's definition"));
    let reply = accept(&["checks/a", "--json"]).exits(0).json();
    assert_eq!((&reply["command"], &reply["commit"]), (&"guard accept".into(), &play.repo.head().into()));
    assert_eq!(shown_changes(&play), ["ci.sh"]);
    accept(&[]).exits(0);
    assert_eq!(shown_changes(&play), [""; 0]);
    let human = ReceiptCommit::read(&play.repo, "HEAD");
    assert_eq!((human.trailer("Runner-Human"), human.body.as_str()), (Some("guard accept"), "ci.sh"));
    assert_eq!(play.repo.git(&["diff", "--name-only", "HEAD~1", "HEAD"]), ".runner/state/run_state.json");
    assert_eq!(play.repo.run_state("HEAD").guard_definition["ci.sh"], play.repo.git(&["rev-parse", "HEAD:ci.sh"]));
    assert!(accept(&[]).exits(6).stderr.contains("is as it was accepted"));
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
    let seen = play.iteration_at(2);
    seen.assert_row(&ExpectedRow { attempts: "1/3", ..PASSED });
    assert_eq!(announced_changes(&seen), "");
    assert!(!play.script().prompt(2).contains("What the checks run has changed"));
}

#[test]
fn what_is_accepted_under_a_session_is_what_was_seen_when_it_was_asked() {
    let play = guarded_play("both");
    let gate = play.script().gate("session");
    play.script().step(1, "echo 'echo seen' > ci.sh; answer retry 'Not yet.'");
    play.script().step(2, "gate session; echo 'echo unseen' > ci.sh; answer retry 'Not yet.'");
    play.run_first(4);
    let seen = play.repo.git(&["rev-parse", "HEAD:ci.sh"]);
    play.home.ctl_in(&play.repo, &["resume", "--more", "1"]).exits(0);
    gate.wait_reached();
    let reply = play.home.ctl_in(&play.repo, &["guard", "accept", "--json"]).exits(0).json();
    assert_eq!(reply["pending"], true);
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    // Replied to after the consequences of the iteration.
    play.client().list(play.repo.path()).expect("the runs");
    assert_eq!(play.repo.run_state("HEAD").guard_definition["ci.sh"], seen);
    assert_eq!(shown_changes(&play), ["ci.sh"], "no one has seen the session's version");
}

#[test]
fn a_red_baseline_is_shown_and_told_to_the_sessions() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    let text = play.repo.read(".runner/state/config.toml").replace("baseline = false", "baseline = true");
    play.repo.write(".runner/state/config.toml", &text).commit("With a baseline");
    let gate = play.script().gate("base");
    play.script().guard_step(1, "gate base; echo 'broken before'; exit 1");
    play.script().step(1, "answer retry 'Not yet.'");
    play.start_run();
    gate.wait_reached();
    let phase = play.client().run(play.repo.path()).phase.expect("it is seen");
    assert!(phase.baseline);
    let status = play.home.ctl_in(&play.repo, &["status"]);
    assert!(status.stdout.contains("the guard on the base, before the first session"), "{}", status.stdout);
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let status = play.home.ctl_in(&play.repo, &["status"]);
    assert!(status.stdout.contains("the guard failed before the first session"), "{}", status.stdout);
    assert!(play.script().prompt(1).contains("broken before"));
    let events = play.repo.read(".runner/iterations/play/events.jsonl");
    assert!(events.contains("the guard fails on the base commit"), "{events}");
}

#[test]
fn what_a_guard_makes_of_the_accepted_files_is_kept_apart_from_the_sessions() {
    let play = guarded_play("both");
    play.script().guard_step(2, "echo formatted > ci.sh");
    play.script().step(1, "touch done.txt; echo 'echo mine' >> ci.sh; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&PASSED);
    assert_eq!(play.repo.show("HEAD", "ci.sh"), format!("{STRICT}echo mine"));
    assert_eq!(play.record(1, "reverted/swapped__ci.sh"), "formatted\n");
    assert_eq!(seen.receipt.trailer("Runner-Guard-Wrote"), None);
}

#[test]
fn a_pause_in_the_second_run_puts_the_sessions_files_back() {
    let play = guarded_play("both");
    let gate = play.script().gate("accepted");
    play.script().guard_step(2, "gate accepted");
    play.script().step(1, "echo true > ci.sh; answer done 'Done.'");
    play.start_run();
    gate.wait_reached();
    play.home.ctl_in(&play.repo, &["pause", "--now"]).exits(0);
    // If there are two reasons to stop, the limit takes precedence.
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let seen = play.iteration_at(1);
    seen.assert_row(&ExpectedRow { verdict: "Interrupted", status: "interrupted", guard: "skipped", attempts: "0/3" });
    assert_eq!((play.repo.show("HEAD", "ci.sh").as_str(), announced_changes(&seen)), ("true", "ci.sh"));
}

#[test]
fn a_definition_that_is_widened_to_files_of_the_base_is_no_finding() {
    let play = guarded_play("both");
    play.repo.write("later/one.sh", STRICT).write("later/two.sh", STRICT).commit("More checks");
    play.script().always("echo $n > \"file$n\"; answer retry 'Not yet.'");
    play.script().step(3, "echo true > later/one.sh; answer retry 'Not yet.'");
    play.run_first(4);
    let config = ".runner/state/config.toml";
    let widened = play.repo.read(config).replace("\"/checks/**\"", "\"/checks/**\", \"/later/**\"");
    play.repo.write(config, &widened).commit("Guard more");
    // After the third attempt the node is stuck.
    for (iter, code, expected) in [(2, 4, ""), (3, 3, "later/one.sh")] {
        play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(code);
        assert_eq!(announced_changes(&play.iteration_at(iter)), expected, "iteration {iter}");
    }
    let found = parse_report(&play.home.ctl_in(&play.repo, &["verify", "--json"]));
    assert_eq!((found.findings, found.counts.iterations), (Vec::new(), 3));
}

#[test]
fn a_long_list_of_changed_files_is_whole_in_the_receipt() {
    let play = guarded_play("report");
    play.script().step(1, "mkdir checks; for n in $(seq 10 40); do echo > checks/$n; done; answer retry 'Not yet.'");
    let seen = play.run_first(4);
    assert_eq!(announced_changes(&seen).split(", ").count(), 31, "{}", announced_changes(&seen));
    assert_eq!(parse_report(&play.home.ctl_in(&play.repo, &["verify", "--json"])).findings, []);
}

#[test]
fn a_definition_that_is_renamed_thinned_and_narrowed_in_a_run_is_no_finding() {
    for on_change in ["both", "report", "revert"] {
        let play = guarded_play(on_change);
        for name in ["one", "two", "three"] {
            play.repo.write(&format!("checks/{name}.sh"), STRICT);
        }
        play.repo.commit("More checks");
        play.script().step(1, "git mv checks/one.sh checks/uno.sh; answer retry 'Not yet.'");
        play.script().step(2, "rm checks/two.sh; mv checks/uno.sh later.sh; touch done.txt; answer done 'Done.'");
        play.script().step(3, "echo true > checks/three.sh; rm ci.sh; answer retry 'Not yet.'");
        play.run_first(4);
        play.repo.git(&["mv", "checks/three.sh", "checks/tres.sh"]);
        play.repo.commit("Another name");
        let resume = ["resume", "--more", "1", "--wait"];
        play.home.ctl_in(&play.repo, &resume).exits(4);
        let config = ".runner/state/config.toml";
        let narrowed = play.repo.read(config).replace(", \"/checks/**\"", "");
        play.repo.write(config, &narrowed).git(&["rm", "-q", "checks/tres.sh"]);
        play.repo.commit("Guard less");
        play.home.ctl_in(&play.repo, &resume).exits(4);
        let found = parse_report(&play.home.ctl_in(&play.repo, &["verify", "--json"]));
        assert_eq!((found.findings, found.counts.iterations), (Vec::new(), 3), "{on_change}");
    }
}

#[test]
fn a_guard_that_writes_or_commits_on_the_base_and_in_iterations_is_no_finding() {
    let commits = "date +%N >> guarded; git add guarded; git commit -q -m 'Of the guard'";
    for guard in [commits, "date +%N >> guarded", &format!("{commits}; date +%N >> guarded; git rm -q ci.sh")] {
        let play = guarded_play("both");
        let config = ".runner/state/config.toml";
        let text = play.repo.read(config).replace("baseline = false", "baseline = true");
        play.repo.write(config, &text).commit("With a baseline");
        play.script().guard_always(guard).always("echo $n > one; answer done 'Done.'");
        play.run_first(4);
        play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(4);
        let found = parse_report(&play.home.ctl_in(&play.repo, &["verify", "--json"]));
        assert_eq!((found.findings, found.counts.iterations), (Vec::new(), 2), "{guard}");
    }
}

/// A run whose guard is a script of the repository, and whose configuration names no file.
fn derived_play(script: &str) -> RunPlay {
    let play =
        RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1").guard_command(&["sh", "check.sh"]));
    play.repo.write("check.sh", script).write("ci/lib.sh", STRICT).commit("Check the work");
    play
}

#[test]
fn the_script_of_the_command_and_what_it_calls_are_watched_though_nothing_names_them() {
    for (step, named) in [("echo exit 0 > check.sh", "check.sh"), ("echo true > ci/lib.sh", "ci/lib.sh")] {
        let play = derived_play(". ci/lib.sh\n");
        play.script().step(1, &format!("{step}; answer done 'Done.'"));
        let seen = play.run_first(4);
        seen.assert_row(&RED);
        assert_eq!(announced_changes(&seen), named);
        let found = parse_report(&play.home.ctl_in(&play.repo, &["verify", "--json"]));
        assert_eq!(found.findings, [], "{step}");
        let kept = &play.repo.run_state("HEAD").guard_definition;
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["check.sh", "ci/lib.sh"]);
    }
}

#[test]
fn what_a_guard_calls_and_nobody_has_written_yet_is_work() {
    let play = derived_play("sh work.sh\n");
    play.script().step(1, "echo true > work.sh; answer done 'Done.'");
    let seen = play.run_first(4);
    seen.assert_row(&PASSED);
    assert_eq!(announced_changes(&seen), "");
}

#[test]
fn an_ignored_file_that_a_guard_calls_counts_as_it_was_though_a_session_removes_it_first() {
    let play =
        RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 3").guard_command(&["sh", "check.sh"]));
    play.repo
        .write("check.sh", ". ./local.sh\ntest -e done.txt\n")
        .write(".gitignore", "/local.sh\n")
        .commit("Check the work");
    play.repo.write("local.sh", "echo local\n");
    play.script().step(1, "rm local.sh; answer done 'Done.'").step(2, "echo 'exit 0' > local.sh; answer done 'Done.'");
    play.script().step(3, "echo 'echo local' > local.sh; echo > done.txt; answer done 'Done.'");
    play.run().exits(4);
    for (iter, named, verdict) in [(1, "local.sh", "RedGuard"), (2, "local.sh", "RedGuard"), (3, "", "Accepted")] {
        let seen = play.iteration_at(iter);
        assert_eq!((announced_changes(&seen), seen.receipt.verdict()), (named, verdict), "iteration {iter}");
    }
    let found = parse_report(&play.home.ctl_in(&play.repo, &["verify", "--json"]));
    assert_eq!(found.findings, []);
}
