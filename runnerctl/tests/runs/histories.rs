//! `verify` on branches made unusual with git's own features: genuine ones stay valid, and no forgery is hidden.

use std::fs;

use protocol::verify::{AuditReport, AuditRule, Severity};

use crate::audits::{parse_report, play_two};
use crate::play::{RUN, RunPlay};

const BRANCH: &str = "refs/heads/runner/play";
const TREE: &str = ".runner/state/tree.json";

/// Audits the branch of the run in a repository.
#[track_caller]
fn audit(play: &RunPlay, folder: &str) -> AuditReport {
    parse_report(&play.home.ctl(&["verify", folder, "--run", RUN, "--json"]))
}

fn repo_path(play: &RunPlay) -> String {
    play.repo.path().display().to_string()
}

fn rules(report: &AuditReport) -> Vec<(Severity, AuditRule)> {
    report.findings.iter().map(|finding| (finding.severity, finding.rule)).collect()
}

/// Commits a tree on top of HEAD with a message of any bytes, and returns the commit.
fn commit(play: &RunPlay, tree: &str, message: &[u8]) -> String {
    let file = play.home.path().join("message");
    fs::write(&file, message).expect("a file in the home can be written");
    play.repo.git(&["commit-tree", tree, "-p", "HEAD", "-F", &file.display().to_string()])
}

#[test]
fn a_shallow_clone_of_any_depth_says_what_it_does_not_see() {
    let play = play_two();
    let url = format!("file://{}", repo_path(&play));
    let seen = |depth: usize| {
        let folder = play.home.path().join(format!("depth-{depth}")).display().to_string();
        let branch = format!("runner/{RUN}");
        play.repo.git(&["clone", "-q", "--depth", &depth.to_string(), "--branch", &branch, &url, &folder]);
        let report = audit(&play, &folder);
        assert_eq!(report.findings, [], "depth {depth}");
        (report.counts.iterations, report.unseen.len())
    };
    // The base is needed only if the start commit is here.
    assert_eq!([1, 2, 3, 4, 5].map(seen), [(0, 1), (1, 1), (2, 1), (2, 0), (2, 0)]);
}

#[test]
fn a_partial_clone_is_told_what_brings_the_rest() {
    let play = play_two();
    play.repo.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", repo_path(&play));
    let folder = play.home.path().join("partial.git").display().to_string();
    play.repo.git(&["clone", "-q", "--bare", "--filter=blob:none", &url, &folder]);
    let unseen = audit(&play, &folder);
    let hint = "git fetch --refetch --no-filter";
    assert!(unseen.unseen.iter().any(|reason| reason.contains(hint)), "{:#?}", unseen.unseen);
    assert_eq!((&unseen.findings[..], unseen.counts.iterations), (&[][..], 0), "nothing is wrong, and nothing proven");
    let output = play.home.ctl(&["verify", &folder, "--run", RUN, "--allow-shallow"]);
    assert!(output.exits(0).stdout.contains("nothing proven"), "{}", output.stdout);
    let mut words = hint.split(' ').skip(1).collect::<Vec<_>>();
    words.splice(0..0, ["-C", &folder]);
    play.repo.git(&words);
    assert_eq!(audit(&play, &folder).counts.iterations, 2);
}

#[test]
fn a_clone_that_borrows_its_objects_is_whole() {
    let play = play_two();
    let folder = play.home.path().join("shared").display().to_string();
    play.repo.git(&["clone", "-q", "--shared", "--branch", &format!("runner/{RUN}"), &repo_path(&play), &folder]);
    let report = audit(&play, &folder);
    assert_eq!((&report.findings[..], &report.unseen[..], report.counts.iterations), (&[][..], &[][..], 2));
}

/// A branch in which a person's commit has replaced the task tree with something else.
fn with_tree(play: &RunPlay, (mode, id): (&str, &str)) -> AuditReport {
    let git = |args: &[&str]| play.repo.git(args);
    let honest = git(&["rev-parse", "HEAD"]);
    git(&["read-tree", "HEAD"]);
    git(&["update-index", "--add", "--cacheinfo", &format!("{mode},{id},{TREE}")]);
    let tree = git(&["write-tree"]);
    git(&["read-tree", "HEAD"]);
    git(&["update-ref", BRANCH, &commit(play, &tree, b"By hand")]);
    let report = audit(play, &repo_path(play));
    git(&["update-ref", BRANCH, &honest]);
    report
}

#[test]
fn what_stands_in_the_place_of_the_task_tree_must_be_the_file() {
    let play = play_two();
    let text = play.repo.show("HEAD", TREE);
    let blob = |text: &str| {
        let file = play.home.path().join("blob");
        fs::write(&file, text).expect("a file in the home can be written");
        play.repo.git(&["hash-object", "-w", &file.display().to_string()])
    };
    let twice = text.replacen("\"passes\": false", "\"passes\": false, \"passes\": true", 1);
    assert_ne!(twice, text);
    let no_tree = [
        ("120000", blob("../../tree.json"), "it is no file"),
        ("160000", play.repo.git(&["rev-parse", "HEAD"]), "it is no file"),
        ("100644", blob(&format!("\u{feff}{text}")), "it is not JSON"),
        ("100644", blob(&twice), "stands twice"),
        ("100644", blob(""), "it is not JSON"),
    ];
    for (mode, id, found) in &no_tree {
        let report = with_tree(&play, (mode, id));
        let [finding] = &report.findings[..] else { panic!("{found}: {:#?}", report.findings) };
        assert_eq!((finding.rule, finding.at.as_str()), (AuditRule::Valid, TREE));
        assert!(finding.found.contains(found), "{}", finding.found);
    }
    // It is the same tree with another mode or line endings; the runner's next commit restores them.
    let crlf = text.replace('\n', "\r\n");
    for (mode, id, warnings) in [("100755", blob(&text), &[AuditRule::Person][..]), ("100644", blob(&crlf), &[])] {
        let report = with_tree(&play, (mode, &id));
        assert!(report.findings.iter().all(|finding| finding.severity == Severity::Warning), "{mode}");
        let rules: Vec<AuditRule> = report.findings.iter().map(|finding| finding.rule).collect();
        assert_eq!((&rules[..], report.people.len()), (warnings, 1), "{mode}");
    }
}

#[test]
fn a_message_that_git_reads_as_the_runners_is_not_a_persons() {
    let play = play_two();
    let tree = play.repo.git(&["rev-parse", "HEAD^{tree}"]);
    let honest = play.repo.head();
    let last = play.repo.git(&["log", "-1", "--format=%B"]);
    let claiming = [
        Vec::from(last.replace('\n', "\r\n")),
        [last.as_bytes(), b"\xff"].concat(),
        Vec::from(last.replace("Runner-Commit:", "runner-commit:")),
        Vec::from(last.replace("Runner-Commit:", "Runner-Commit :")),
        Vec::from(last.replace("Runner-Mode:", "Runner-Commit: start\nRunner-Mode:")),
        Vec::from(format!("{last}\n \n\n").replace("Runner-Mode: execute", "Runner-Mode: execute\n  and more")),
    ];
    for message in &claiming {
        play.repo.git(&["update-ref", BRANCH, &commit(&play, &tree, message)]);
        let report = audit(&play, &repo_path(&play));
        let shown = String::from_utf8_lossy(message);
        assert_eq!(rules(&report), [(Severity::Violation, AuditRule::Form)], "{shown}");
        play.repo.git(&["update-ref", BRANCH, &honest]);
    }
    let persons: [&[u8]; 6] = [
        b"",
        b"\xff\xfe",
        b"Gr\xfcn\n\nRunner-Commit is what I mean",
        b"On receipts\n\n    Runner-Commit: iteration\n",
        b"On receipts\n\nRunner-Commit: iteration\n\nis what they say",
        b"On receipts\r\n\r\nRunner-Committed: me\r\n",
    ];
    for message in persons {
        play.repo.git(&["update-ref", BRANCH, &commit(&play, &tree, message)]);
        let report = audit(&play, &repo_path(&play));
        let shown = String::from_utf8_lossy(message);
        assert_eq!((rules(&report), report.people.len()), (Vec::new(), 1), "{shown}");
        play.repo.git(&["update-ref", BRANCH, &honest]);
    }
}

#[test]
fn a_message_that_ends_for_git_before_its_end_is_no_receipt() {
    let mut play = play_two();
    let tree = play.repo.git(&["rev-parse", "HEAD^{tree}"]);
    let last = play.repo.git(&["log", "-1", "--format=%B"]);
    let whole = play.repo.git(&["cat-file", "commit", &commit(&play, &tree, last.as_bytes())]);
    let file = play.home.path().join("commit");
    fs::write(&file, format!("{whole}\n\0and more\n")).expect("a file in the home can be written");
    let written = ["hash-object", "-w", "--literally", "-t", "commit", &file.display().to_string()];
    play.repo.git(&["update-ref", BRANCH, &play.repo.git(&written)]);
    assert_eq!(rules(&audit(&play, &repo_path(&play))), [(Severity::Violation, AuditRule::Form)]);
    play.home.expect_forgery();
}

#[test]
fn what_git_is_told_to_show_in_the_place_of_a_commit_hides_nothing() {
    let play = play_two();
    let git = |args: &[&str]| play.repo.git(args);
    let honest = play.repo.head();
    let lie = commit(&play, &git(&["rev-parse", "HEAD~1^{tree}"]), b"A lie");
    git(&["replace", &honest, &lie]);
    assert_eq!(audit(&play, &repo_path(&play)).findings, [], "the branch is as it was");
    git(&["replace", "-d", &honest]);

    // A pass that no one accepted, with the genuine commit shown in its place.
    let text = play.repo.show("HEAD", TREE).replace("\"passes\": false", "\"passes\": true");
    play.repo.write(TREE, &text);
    git(&["commit", "-q", "--amend", "--no-edit", "-a"]);
    let forged = play.repo.head();
    for hides in [true, false] {
        if hides {
            git(&["replace", &forged, &honest]);
        }
        let report = audit(&play, &repo_path(&play));
        assert!(rules(&report).contains(&(Severity::Violation, AuditRule::Passes)), "{:#?}", report.findings);
    }
    git(&["replace", "-d", &forged]);

    // A history without the first iteration, according to `info/grafts`.
    git(&["update-ref", BRANCH, &honest]);
    let grafts = format!("{honest} {}\n", git(&["rev-parse", &format!("{honest}~2")]));
    play.repo.write(".git/info/grafts", &grafts);
    let report = audit(&play, &repo_path(&play));
    assert_eq!((report.findings, report.counts.iterations), (Vec::new(), 2));
}

#[test]
fn merges_of_people_are_listed_and_the_run_continues_from_them() {
    let mut play = play_two();
    for (name, from) in [("one", "HEAD"), ("two", "HEAD~1"), ("three", "HEAD~2")] {
        play.repo.git(&["checkout", "-q", "-b", name, from]);
        play.repo.write(name, "by hand\n");
        play.repo.commit(name);
        play.repo.git(&["checkout", "-q", &format!("runner/{RUN}")]);
    }
    play.repo.git(&["merge", "-q", "--no-ff", "-m", "Merge one", "one"]);
    play.repo.git(&["merge", "-q", "--no-ff", "-m", "Merge two and three", "two", "three"]);
    play.home.ctl_in(&play.repo, &["resume", "--more", "1", "--wait"]).exits(0);
    let report = audit(&play, &repo_path(&play));
    assert_eq!((&report.findings[..], report.counts.iterations), (&[][..], 3));
    let subjects: Vec<&str> = report.people.iter().map(|person| person.subject.as_str()).collect();
    assert_eq!(subjects, ["Merge one", "Merge two and three"]);

    // The runner never makes a merge with its own message.
    let message = play.repo.git(&["log", "-1", "--format=%B"]);
    let merge = play.repo.git(&["commit-tree", "HEAD^{tree}", "-p", "HEAD~1", "-p", "one", "-m", &message]);
    play.repo.git(&["update-ref", BRANCH, &merge]);
    assert_eq!(rules(&audit(&play, &repo_path(&play))), [(Severity::Violation, AuditRule::Chain)]);
    play.home.expect_forgery();
}
