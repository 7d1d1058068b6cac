//! Row 78: an agent names programs wherever git would run them. The runner runs none of them, with either engine; a
//! control shows that git itself does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use runner_testkit::invariants::list_verdicts;
use runner_testkit::{Home, PATIENCE, Repo};

use crate::checks::{assert_explains, assert_survived};

/// Names the program `$canary` in every hook and every setting that runs one; `$file` is the configuration.
const PLANT: &str = r#"
plant() {
    set_() { git config --file "$file" "$@"; }
    for kind in clean smudge process; do set_ filter.evil.$kind "$canary"; done
    set_ filter.evil.required false
    set_ diff.evil.textconv "$canary"; set_ diff.evil.command "$canary"; set_ diff.external "$canary"
    set_ merge.evil.driver "$canary"
    for key in gpg.program gpg.ssh.program gpg.x509.program core.fsmonitor core.sshCommand core.pager core.editor \
        core.askPass core.alternateRefsCommand core.gitProxy sequence.editor credential.helper uploadpack.packObjectsHook \
        interactive.diffFilter pager.status; do set_ $key "$canary"; done
    set_ core.hooksPath "$kit/hooks"
    for name in status add commit read-tree update-ref checkout write-tree; do set_ alias.$name "!$canary"; done
    set_ commit.gpgSign true
    set_ user.name Evil
}
hooks() {
    mkdir -p "$1"
    for hook in applypatch-msg pre-commit prepare-commit-msg commit-msg post-commit post-checkout post-index-change \
        reference-transaction pre-auto-gc post-rewrite fsmonitor-watchman post-merge pre-push; do
        cp "$canary" "$1/$hook"
    done
}
canary="$kit/files/canary"; chmod +x "$canary"
hooks .git/hooks; hooks "$kit/hooks"
"#;

/// The file for the settings.
const PLACES: [&str; 4] = [
    "file=.git/config; plant",
    "git config extensions.worktreeConfig true; file=.git/config.worktree; plant",
    "file=\"$kit/included\"; plant; git config include.path \"$kit/included\"",
    "file=\"$HOME/.gitconfig\"; plant",
];
/// The file for the attributes that name the filters.
const RULES: [&str; 3] = [
    "echo '* filter=evil diff=evil merge=evil' > .gitattributes",
    "mkdir -p .git/info; echo '* filter=evil diff=evil merge=evil' > .git/info/attributes",
    "mkdir -p \"$HOME/config/git\"; echo '* filter=evil diff=evil merge=evil' > \"$HOME/config/git/attributes\"",
];

fn install_canary(home: &Home, repo: &Repo) {
    let text = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", home.path().join("CANARY").display());
    repo.script().file("canary", &text);
    fs::set_permissions(repo.script().folder().join("files/canary"), fs::Permissions::from_mode(0o755))
        .expect("a file");
}

fn canary_output(home: &Home) -> String {
    fs::read_to_string(home.path().join("CANARY")).unwrap_or_default()
}

/// Runs two iterations, the first of which plants everything and does `deed`, and reads the run from outside while the
/// planted session is active.
fn assert_canary_silent(engine: &dyn Fn(&Repo), place: &str, rules: &str, deed: &str) {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&repo.config().top("max_iterations = 2"));
    engine(&repo);
    install_canary(&home, &repo);
    let users = fs::read(home.path().join(".gitconfig")).expect("the home has a configuration");
    let gate = repo.script().gate("planted");
    let plant =
        format!("{PLANT}\n{place}\n{rules}\necho mine > mine.txt\n{deed}\ngate planted\nanswer retry 'Once more.'");
    repo.script().step(1, &plant).step(2, "echo more > more.txt\nanswer done 'Done.'");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--id", "x", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    for look in
        [&["status"][..], &["tree"], &["validate"], &["log"], &["start", "--yes", "--id", "other", "--queue-only"]]
    {
        home.ctl_in(&repo, look);
    }
    assert_eq!(canary_output(&home), "", "looked at while the session is at work: {place}");
    gate.open();
    home.run(&repo, &["--id", "x"]);
    assert_eq!(canary_output(&home), "", "{place} {rules} {deed}");
    assert_eq!(list_verdicts(&repo).len(), 2, "{place} {rules} {deed}");
    // The runner does not restore files outside the repository.
    fs::write(home.path().join(".gitconfig"), users).expect("the home's configuration can be written");
    let _ = fs::remove_dir_all(home.path().join("config/git"));
    repo.git(&["checkout", "-q", "--", "."]);
    assert_survived(&home, &repo, &["mine\n", "more\n"]);
    assert_eq!(canary_output(&home), "", "nothing is left that git itself would run: {place} {rules} {deed}");
    assert_eq!(repo.git(&["log", "--format=%an", "-1"]), "Kit", "no one else commits");
}

fn use_library(_: &Repo) {}

/// A sparse checkout is handled by the git program.
fn use_git_program(repo: &Repo) {
    repo.git(&["sparse-checkout", "init", "--no-cone"]);
    repo.git(&["sparse-checkout", "set", "--no-cone", "/*"]);
}

#[test]
fn row_78_control_git_itself_runs_what_was_planted() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    install_canary(&home, &repo);
    let kit = repo.script().folder().display().to_string();
    let script = format!("kit='{kit}'\n{PLANT}\n{}\n{}\ngit add -A", PLACES[0], RULES[1]);
    repo.write("mine.txt", "mine\n");
    let _ = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(repo.path())
        .env_clear()
        .envs(home.env().iter().cloned())
        .status();
    // A process started by git itself may end a moment after git.
    home.wait_all_gone(PATIENCE);
    assert!(canary_output(&home).contains("canary"), "the canary does not sing for git");
}

#[test]
fn row_78_settings_of_a_session_are_not_obeyed() {
    assert_canary_silent(&use_library, PLACES[0], RULES[0], "");
}

#[test]
fn row_78_users_configuration_of_a_session_is_obeyed_only_when_confirmed() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&repo.config().top("max_iterations = 1"));
    install_canary(&home, &repo);
    repo.script().step(1, &format!("{PLANT}\n{}\n{}\nanswer retry 'Once more.'", PLACES[3], RULES[0]));
    let _daemon = home.daemon();
    home.run(&repo, &["--id", "x", "-m", "Do it"]);
    let refused = home.ctl_in(&repo, &["resume", "--more", "1"]);
    assert_explains(&refused, &["your own git configuration was changed", "--yes"]);
    assert_eq!(canary_output(&home), "");
    fs::write(home.path().join(".gitconfig"), "[user]\n\tname = Kit\n\temail = kit@localhost\n").expect("a file");
    home.ctl_in(&repo, &["resume", "--more", "1", "--wait"]);
    assert_eq!(list_verdicts(&repo).len(), 2, "what a person has put right needs no word");
    assert_eq!(canary_output(&home), "");
}

#[test]
fn row_78_no_command_obeys_a_users_configuration_of_a_session() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&repo.config().top("max_iterations = 1"));
    install_canary(&home, &repo);
    repo.script()
        .step(1, &format!("{PLANT}\n{}\n{}\necho mine > mine.txt\nanswer retry 'Once more.'", PLACES[3], RULES[0]));
    let _daemon = home.daemon();
    home.run(&repo, &["--id", "x", "-m", "Do it"]);
    let expected = ["your own git configuration was changed", "--yes"];
    for lays_out in [
        &["resume", "--more", "1"][..],
        &["start", "--id", "other", "-m", "More"],
        &["start", "--isolated", "--id", "apart", "-m", "More"],
        &["step"],
        &["fork", "--from", "1", "--id", "again"],
        &["land", "x", "--onto", "main"],
    ] {
        let refused = home.ctl_in(&repo, lays_out);
        assert_explains(&refused, &expected);
        assert_eq!(canary_output(&home), "", "{lays_out:?}");
    }
    for looks in [
        &["status"][..],
        &["tree"],
        &["select"],
        &["validate"],
        &["log"],
        &["log", "1", "--diff"],
        &["explain"],
        &["verify"],
        &["bisect", "--", "true"],
        &["verify", "--rerun-guards", "--yes"],
        &["questions"],
        &["queue"],
        &["repos"],
        &["doctor"],
        &["config", "show"],
        &["land", "x", "--onto", "main", "--dry-run"],
        &["deliver", "x", "--dry-run"],
        &["export", "x", "exported"],
        &["note", "Mind the gap."],
        &["config", "set", "stall_after", "9"],
        &["add", "root", "--title", "More", "--goal", "More of it"],
        &["gc"],
        &["retry", "root"],
        &["path"],
    ] {
        home.ctl_in(&repo, looks);
        assert_eq!(canary_output(&home), "", "{looks:?}");
    }
}

#[test]
fn row_78_filters_that_a_person_configured_keep_working() {
    for engine in [&use_library as &dyn Fn(&Repo), &use_git_program] {
        let home = Home::new();
        let repo = home.repo("one");
        repo.git(&["config", "filter.loud.clean", "tr a-z A-Z"]);
        repo.git(&["config", "filter.loud.smudge", "cat"]);
        repo.write(".gitattributes", "*.loud filter=loud\n");
        repo.commit_config(&repo.config().top("max_iterations = 1"));
        engine(&repo);
        repo.script().step(1, "echo quiet > a.loud\ngit config filter.loud.clean 'tr a-z b-za'\nanswer done 'Done.'");
        let _daemon = home.daemon();
        home.run(&repo, &["-m", "Do it"]);
        assert_eq!(repo.show("HEAD", "a.loud"), "QUIET");
        assert_survived(&home, &repo, &["QUIET\n"]);
    }
}

mod slow {
    use super::*;

    #[test]
    fn row_78_settings_of_a_session_are_not_obeyed_by_the_library() {
        for place in &PLACES[1..] {
            assert_canary_silent(&use_library, place, RULES[0], "");
        }
    }

    #[test]
    fn row_78_settings_of_a_session_are_not_obeyed_by_the_program() {
        for place in PLACES {
            assert_canary_silent(&use_git_program, place, RULES[0], "");
        }
    }

    #[test]
    fn row_78_attributes_of_a_session_lead_to_no_program() {
        for rules in &RULES[1..] {
            assert_canary_silent(&use_library, PLACES[0], rules, "");
            assert_canary_silent(&use_git_program, PLACES[0], rules, "");
        }
    }

    #[test]
    fn row_78_rescue_and_restoration_run_nothing() {
        let deed = "git() { command git -c core.hooksPath=/dev/null -c core.fsmonitor=false \"$@\"; }
            tree=$(command git rev-parse HEAD~1); echo $tree > .git/refs/heads/runner/x";
        assert_canary_silent(&use_library, PLACES[0], RULES[0], deed);
        assert_canary_silent(&use_git_program, PLACES[0], RULES[1], deed);
    }
}
