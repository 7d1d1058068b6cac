//! Branches made by other rules: no one continues or judges them, or takes their commits for a person's.

use crate::play::{RUN, RunPlay, sample};

/// The message about commits that name no rules.
const UNNAMED: &str = "was made by a development build, whose branches this runner does not read";
/// The message about commits of newer rules.
const LATER: &str = "was made by runner 0.1.0 under rules=2, and this runner, 0.1.0, knows rules=1 alone";

/// A run that has ended at a limit, with commits that all name their rules in this way.
fn play_with_rules(named: &str) -> RunPlay {
    let mut play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    play.home.expect_forgery();
    play.script().always("echo $n > \"file$n\"\ngit add .; git commit -q -m Mine; answer done 'Done.'");
    play.run().exits(4);
    let base = play.repo.run_state("HEAD").base.expect("a run has a base");
    let commits = play.repo.git(&["rev-list", "--reverse", "--first-parent", &format!("{base}..HEAD")]);
    let mut parent = base;
    let mut renamed = Vec::new();
    for commit in commits.lines() {
        let message = play.repo.git(&["log", "-1", "--format=%B", commit]).replace(" rules=1\n", &format!("{named}\n"));
        let message = renamed.iter().fold(message, |text, (old, new): &(&str, String)| text.replace(old, new));
        parent = play.repo.git(&["commit-tree", &format!("{commit}^{{tree}}"), "-p", &parent, "-m", &message]);
        renamed.push((commit, parent.clone()));
    }
    play.repo.git(&["update-ref", "HEAD", &parent]);
    play
}

/// Asserts that each of these is refused with a message, and changes nothing.
#[track_caller]
fn assert_refused(play: &RunPlay, commands: &[&[&str]], reason: &str) {
    let tip = play.repo.head();
    let branches = play.repo.refs("refs/heads/");
    for command in commands {
        let output = play.home.ctl_in(&play.repo, command);
        let text = format!("{}{}", output.exits(6).stdout, output.stderr);
        assert!(text.contains(reason) && text.contains("runnerctl start --id NEW"), "{command:?}: {text}");
    }
    assert_eq!((play.repo.head(), play.repo.refs("refs/heads/")), (tip, branches));
    assert_eq!(play.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_branch_of_other_rules_is_refused_by_whatever_reads_receipts() {
    let bisect = ["bisect", "--", "true"];
    let commands: [&[&str]; 14] = [
        &["verify"],
        &["verify", "--json", "--since", "HEAD"],
        &["start", "--yes"],
        &["start", "--yes", "--id", RUN, "--wait"],
        &["fork", "--from", "1", "--id", "again"],
        &["land", RUN, "--onto", "main"],
        &["deliver", RUN, "--dry-run"],
        &bisect,
        &["log"],
        &["log", "1"],
        &["tree"],
        &["explain"],
        &["note", "Mind the gap."],
        &["resume", "--more", "1", "--wait"],
    ];
    for (named, reason) in [("", UNNAMED), (" rules=2", LATER)] {
        let play = play_with_rules(named);
        assert_refused(&play, &commands, reason);
        let runs = play.home.ctl_in(&play.repo, &["status", "--json"]).json().to_string();
        assert!(runs.contains(reason), "a run that was resumed is held for it: {runs}");
    }
}

#[test]
fn a_clone_of_such_a_branch_is_refused_as_well() {
    for (named, reason) in [("", UNNAMED), (" rules=2", LATER)] {
        let play = play_with_rules(named);
        let clone = play.home.path().join("clone").display().to_string();
        play.repo.git(&["clone", "-q", "-b", "main", ".", &clone]);
        let branch = format!("origin/runner/{RUN}");
        for command in [&["-C", &clone, "start", "--yes", "--id", RUN][..], &["verify", &clone, "--run", RUN]] {
            let output = play.home.ctl(command);
            assert!(output.exits(6).stderr.contains(reason), "{command:?}: {}", output.stderr);
        }
        let runs = play.home.ctl(&["-C", &clone, "status", "--remote", "origin"]).exits(0).stdout.clone();
        assert!(runs.contains("cannot be read"), "{runs}");
        assert_eq!(play.repo.git(&["-C", &clone, "rev-parse", &branch]), play.repo.head());
    }
}

#[test]
fn a_new_run_starts_where_one_under_other_rules_ended_and_does_not_land_it() {
    let play = play_with_rules("");
    let old = play.repo.head();
    play.home.run(&play.repo, &["--id", "next"]).exits(0);
    assert_eq!(play.repo.run_state("HEAD").base.as_deref(), Some(old.as_str()));
    let report = crate::audits::parse_report(&play.home.ctl_in(&play.repo, &["verify", "--json"]));
    assert_eq!((&report.findings[..], report.counts.iterations, report.people.len()), (&[][..], 1, 0));
    let land = play.home.ctl_in(&play.repo, &["land", "next", "--onto", "main"]);
    assert!(land.exits(6).stderr.contains(UNNAMED), "{}", land.stderr);
    play.repo.git(&["branch", "-q", "here", &old]);
    play.home.ctl_in(&play.repo, &["land", "next", "--onto", "here"]).exits(0);
    play.repo.assert_sound();
}

#[test]
fn what_a_session_words_like_a_commit_of_other_rules_is_its_own() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    let message = "x\\n\\nRunner-Commit: iteration\\nRunner-Version: 9.9.9 prompt=1 templates=000000000000 rules=9\\n";
    play.script().always(&format!("printf '{message}' | git commit -q --allow-empty -F -\nanswer retry 'Not yet.'"));
    play.run().exits(4);
    let output = play.home.ctl_in(&play.repo, &["verify"]);
    assert!(output.exits(0).stdout.contains("2 iterations"), "{}", output.stdout);
}
