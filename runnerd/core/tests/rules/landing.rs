//! Landing: how a run's commits are grouped, the messages of the landed commits, and the order in which runs land.

use protocol::words::{GuardOutcome, IterationStatus, Mode, Role, VerdictName};
use runner_core::audit::CommitOwner;
use runner_core::landing::merge_queue::{QueuedRun, merge_order};
use runner_core::landing::{
    ChainCommit, LandPlan, LandQuery, LandedMessage, LandedTrailer, LandingRefusal, MessageText, MissingCommits,
    NO_NODE, check_git_version, find_missing_commits, landing_values, parse_git_version, parse_landed,
};
use runner_core::message::{AttemptCount, NameList, Receipt, RunnerCommit, RunnerVersion, VerdictLine};
use runner_core::text::digest::Digest;

const BASE: (&str, &str) = ("base", "files of base");

fn iteration_commit(run: &str, node: &str, verdict: VerdictName) -> RunnerCommit {
    RunnerCommit::Iteration(Box::new(Receipt {
        run: run.to_owned(),
        iter: 1,
        node: node.to_owned(),
        status: IterationStatus::Done,
        guard: GuardOutcome::Pass,
        headline: String::new(),
        summary: String::new(),
        version: RunnerVersion { version: "0.1.0".to_owned(), prompt_format: 1, templates: "0".repeat(12) },
        from: "0".repeat(40),
        verdict: VerdictLine::new(verdict, None),
        role: Role::Worker,
        mode: Mode::Execute,
        attempts: AttemptCount { charged: 1, allowed: 3 },
        agent: None,
        prompt: None,
        output: None,
        guard_run: None,
        guard_tests: None,
        guard_flaky: None,
        review: None,
        signature: None,
        notes: NameList::default(),
        usage: None,
        reverted: NameList::default(),
        guard_changed: NameList::default(),
        guard_wrote: NameList::default(),
        held_back: NameList::default(),
        hidden: NameList::default(),
        dirty_submodules: NameList::default(),
        tree_from: Digest::compute(b"tree"),
        raw: None,
    }))
}

/// A commit with this id; the number distinguishes its files.
fn commit<'a>(id: &'a str, files: u32, whose: CommitOwner<'a>) -> ChainCommit<'a> {
    ChainCommit { id, code: format!("files {files}"), author: "Agent <a@x>".to_owned(), owner: whose }
}

fn by<'a>(author: &str, commit: ChainCommit<'a>) -> ChainCommit<'a> {
    ChainCommit { author: author.to_owned(), ..commit }
}

fn ask(commits: &[ChainCommit<'_>], landed: &[LandedTrailer]) -> Result<MissingCommits, LandingRefusal> {
    find_missing_commits(&LandQuery { run: "a", commits, before: Some(BASE), landed })
}

fn landing(commits: &[ChainCommit<'_>]) -> LandPlan {
    match ask(commits, &[]) {
        Ok(MissingCommits::Missing(landing)) => landing,
        other => panic!("{other:?}"),
    }
}

fn cuts(landing: &LandPlan) -> Vec<(&str, Option<&str>)> {
    landing.groups.iter().map(|cut| (cut.commit.as_str(), cut.node.as_deref())).collect()
}

#[test]
fn each_leaf_that_passed_is_a_cut_and_everything_before_it_folds_into_it() {
    let red = iteration_commit("a", "x", VerdictName::RedGuard);
    let one = iteration_commit("a", "x", VerdictName::Accepted);
    let two = iteration_commit("a", "y", VerdictName::Accepted);
    let commits = [
        commit("agent", 1, CommitOwner::Agent),
        commit("red", 2, CommitOwner::Runner(&red)),
        commit("one", 3, CommitOwner::Runner(&one)),
        commit("two", 4, CommitOwner::Runner(&two)),
    ];
    let landing = landing(&commits);
    assert_eq!(cuts(&landing), [("one", Some("x")), ("two", Some("y"))]);
    assert_eq!((landing.base.as_str(), landing.not_landed, landing.last_change), ("base", 0, 1));
}

#[test]
fn work_after_the_last_pass_does_not_land_and_is_counted() {
    let one = iteration_commit("a", "x", VerdictName::Accepted);
    let red = iteration_commit("a", "y", VerdictName::RedGuard);
    let commits = [
        commit("one", 1, CommitOwner::Runner(&one)),
        commit("red", 2, CommitOwner::Runner(&red)),
        commit("person", 3, CommitOwner::Person),
        commit("same", 3, CommitOwner::Person),
    ];
    let landing = landing(&commits);
    assert_eq!((cuts(&landing), landing.not_landed), (vec![("one", Some("x"))], 2));
}

#[test]
fn a_persons_commit_stays_its_own_only_where_nothing_is_outstanding() {
    let one = iteration_commit("a", "x", VerdictName::Accepted);
    let retry = iteration_commit("a", "y", VerdictName::Retry);
    let two = iteration_commit("a", "y", VerdictName::Accepted);
    let commits = [
        commit("one", 1, CommitOwner::Runner(&one)),
        by("Ann <ann@x>", commit("own", 2, CommitOwner::Person)),
        commit("retry", 3, CommitOwner::Runner(&retry)),
        by("Bob <bob@x>", commit("amid", 4, CommitOwner::Person)),
        commit("two", 5, CommitOwner::Runner(&two)),
    ];
    let landing = landing(&commits);
    assert_eq!(cuts(&landing), [("one", Some("x")), ("own", None), ("two", Some("y"))]);
    assert_eq!(landing.groups[2].co_authors, ["Bob <bob@x>"], "who was folded is named");
}

#[test]
fn landing_continues_after_the_newest_landed_commit() {
    let one = iteration_commit("a", "x", VerdictName::Accepted);
    let two = iteration_commit("a", "y", VerdictName::Accepted);
    let commits = [commit("one", 1, CommitOwner::Runner(&one)), commit("two", 2, CommitOwner::Runner(&two))];
    let trailer = |commit: &str| LandedTrailer { run: "a".into(), commit: commit.into(), node: "x".into() };
    match ask(&commits, &[trailer("one"), trailer("another")]) {
        Ok(MissingCommits::Missing(landing)) => {
            assert_eq!((landing.base.as_str(), cuts(&landing)), ("one", vec![("two", Some("y"))]));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ask(&commits, &[trailer("two")]), Ok(MissingCommits::AlreadyLanded));
    assert_eq!(ask(&[], &[]), Ok(MissingCommits::AlreadyLanded), "the branch has all of it");
}

#[test]
fn a_run_without_a_pass_and_one_based_on_an_unlanded_run_are_refused() {
    let red = iteration_commit("a", "x", VerdictName::RedGuard);
    let other = iteration_commit("b", "x", VerdictName::Accepted);
    let one = iteration_commit("a", "x", VerdictName::Accepted);
    let refused = ask(&[commit("red", 1, CommitOwner::Runner(&red))], &[]).unwrap_err();
    assert_eq!(refused.to_string(), "no task of run a has passed yet: there is nothing to land");
    let commits = [commit("other", 1, CommitOwner::Runner(&other)), commit("one", 2, CommitOwner::Runner(&one))];
    let refused = ask(&commits, &[]).unwrap_err();
    assert_eq!(refused.to_string(), "run a begins on run b, which the branch does not have");
    assert_eq!(refused.hint("main").as_deref(), Some("runnerctl land b a --onto main"));
    assert_eq!(refused.hint("deliver/a").as_deref(), Some("runnerctl deliver b"), "a delivery begins at the remote");
    let landed = LandedTrailer { run: "b".into(), commit: "other".into(), node: "x".into() };
    assert!(matches!(ask(&commits, &[landed]), Ok(MissingCommits::Missing(landing)) if landing.base == "other"));
}

#[test]
fn what_to_type_is_quoted_for_a_shell_and_stands_on_lines_of_its_own() {
    let conflict = |fits_as_squash| LandingRefusal::Conflict {
        run: "a".into(),
        node: Some("x".into()),
        paths: vec!["src/a b.rs".into(), "z".into()],
        fits_as_squash,
    };
    assert_eq!(conflict(true).to_string(), "task x of run a conflicts in src/a b.rs, z");
    let hint = conflict(true).hint("it's main");
    let quoted = r"'it'\''s main'";
    let expected = format!("runnerctl land a --as squash --onto {quoted}\nrunnerctl land a --resolve --onto {quoted}");
    assert_eq!(hint, Some(expected));
    assert_eq!(conflict(false).hint("main").as_deref(), Some("runnerctl land a --resolve --onto main"));
}

fn of(run: &str, node: &str) -> LandedTrailer {
    LandedTrailer {
        run: run.to_owned(),
        commit: "4b825dc642cb6eb9a060e54bf8d69288fbee4904".to_owned(),
        node: node.to_owned(),
    }
}

#[test]
fn a_landed_commit_says_what_it_brings_and_is_known_again_by_it() {
    let landed_of = [of("a", "root.1")];
    let message = LandedMessage {
        subject: MessageText::Agent("Move the accounts"),
        body: &[MessageText::Agent("Accounts are in Postgres."), MessageText::Agent("Moved.\n\nRunner-Landed: b@x y")],
        co_authors: &["Bob <bob@x>".to_owned()],
        git: "2.47.3",
        landed: &landed_of,
        accepted: &[],
    };
    insta::assert_snapshot!(message.compose(), @r"
    Move the accounts

    Accounts are in Postgres.

    Moved.

    > Runner-Landed: b@x y

    Co-authored-by: Bob <bob@x>
    Runner-Merged: git/2.47.3
    Runner-Landed: a@4b825dc642cb6eb9a060e54bf8d69288fbee4904 root.1
    ");
    assert_eq!(parse_landed(&message.compose()), landed_of);
    assert_eq!(parse_git_version(&message.compose()), Some("2.47.3".to_owned()));
    assert_eq!(parse_landed("Subject\n\nRunner-Landed: a@short node"), []);
}

#[test]
fn a_landing_is_read_in_every_spelling_that_git_reads() {
    let message = format!("Subject\n\nSigned-off-by: Ann <ann@x>\nRunner-Landed: {}\n", of("a", "x"));
    let landed = "Runner-Landed: ";
    let folded = "Runner-Landed:\n  ";
    for spelled in [
        message.replace("Runner-Landed", "runner-landed"),
        message.replace("Runner-Landed:", "Runner-Landed \t:"),
        message.replace('\n', "\r\n"),
        message.replace(landed, "Runner-Landed:"),
        message.replace(landed, folded),
        message.replace("\n\n", "\n \t\n"),
        format!("{message}---\nx\n"),
        format!("{message}# a comment\n\nConflicts:\n\tx\n"),
        format!("{message}\0hidden\n"),
    ] {
        assert_eq!(parse_landed(&spelled), [of("a", "x")], "{spelled:?}");
    }
    let malformed = "Subject\n\nrunner-landed: nothing\n";
    assert_eq!(landing_values(malformed), ["nothing"], "it is a claim, though of nothing");
    assert_eq!(landing_values("runner-landed: a title is no trailer"), [""; 0]);
    let twice = format!("Subject\n\nRunner-Landed: {}\n---\n\nRunner-Landed: {}\n", of("a", "x"), of("b", "y"));
    assert_eq!(
        parse_landed(&twice),
        [of("b", "y"), of("a", "x")],
        "git log reads one, git interpret-trailers the other"
    );
}

#[test]
fn what_an_agent_says_orders_nothing_and_what_the_goal_says_may() {
    let landed_of = [of("a", "root.1")];
    let message = LandedMessage {
        subject: MessageText::Agent("fixup! Begin [skip ci] (fixes #1)"),
        body: &[
            MessageText::Person("Closes #12, as @ann asked. [skip ci]"),
            MessageText::Agent(
                "Closes #13 for @bob.\n\nCo-authored-by: Mallory <m@x>\nskip-checks: true\n/merge\n# a comment",
            ),
        ],
        co_authors: &[],
        git: "2.47.3",
        landed: &landed_of,
        accepted: &[],
    };
    insta::assert_snapshot!(message.compose(), @r"
    > fixup! Begin (skip ci) (fixes # 1)

    Closes #12, as @ann asked. [skip ci]

    Closes # 13 for @ bob.

    > Co-authored-by: Mallory <m@x>
    > skip-checks: true
    > /merge
    > # a comment

    Runner-Merged: git/2.47.3
    Runner-Landed: a@4b825dc642cb6eb9a060e54bf8d69288fbee4904 root.1
    ");
}

#[test]
fn an_author_that_only_a_session_names_is_no_co_author() {
    let one = iteration_commit("a", "x", VerdictName::Accepted);
    let commits = [
        by("Linus <linus@x>", commit("forged", 1, CommitOwner::Agent)),
        by("Bob <bob@x>", commit("amid", 2, CommitOwner::Person)),
        commit("one", 3, CommitOwner::Runner(&one)),
    ];
    assert_eq!(landing(&commits).groups[0].co_authors, ["Bob <bob@x>"]);
}

#[test]
fn a_persons_message_is_kept_and_cannot_claim_what_is_the_runners() {
    let landed_of = [of("a", NO_NODE)];
    let message = LandedMessage {
        subject: MessageText::Person(""),
        body: &[],
        co_authors: &[],
        git: "2.47.3",
        landed: &landed_of,
        accepted: &[],
    };
    let own = "Fix a typo\n\nIn the docs.\n\nSigned-off-by: Ann <ann@x>\nRunner-Landed: b@0 x\n";
    insta::assert_snapshot!(message.append_to(own), @r"
    Fix a typo

    In the docs.

    Signed-off-by: Ann <ann@x>
    > Runner-Landed: b@0 x

    Runner-Merged: git/2.47.3
    Runner-Landed: a@4b825dc642cb6eb9a060e54bf8d69288fbee4904 -
    ");
    assert_eq!(parse_landed(&message.append_to(own)), landed_of);
    let cut = message.append_to("Fix\n\n# ------------------------ >8 ------------------------\nRest.\n");
    assert_eq!(parse_landed(&cut), landed_of, "{cut}");
    let signed = message.append_to("Fix\n\nSigned-off-by: Ann <ann@x>\n");
    assert!(signed.starts_with("Fix\n\nSigned-off-by: Ann <ann@x>\nRunner-Merged: "), "{signed}");
}

#[test]
fn a_git_that_cannot_merge_trees_is_refused_with_its_version() {
    for version in ["2.37.7", "2.30.2.windows.1", "1.9.1", "2.37"] {
        let refused = check_git_version(version).unwrap_err();
        assert!(refused.to_string().contains(&format!("git {version} cannot merge")), "{refused}");
        assert!(refused.to_string().contains("install git 2.38 or later"), "{refused}");
        assert_eq!(refused.hint("main").as_deref(), Some("runnerctl doctor"));
    }
    for version in ["2.38.0", "2.39.5 (Apple Git-154)", "3.0", "2.100.1", "unheard of", ""] {
        assert_eq!(check_git_version(version), Ok(()), "{version}");
    }
}

#[test]
fn a_run_that_begins_on_another_one_lands_behind_it() {
    let car = |run: &str, on: &[&str]| QueuedRun {
        run: run.to_owned(),
        base_runs: on.iter().map(|on| (*on).to_owned()).collect(),
    };
    let order = |cars: &[QueuedRun]| merge_order(cars).into_iter().map(|at| cars[at].run.clone()).collect::<Vec<_>>();
    assert_eq!(order(&[car("c", &["b"]), car("x", &[]), car("b", &["a"]), car("a", &[])]), ["x", "a", "b", "c"]);
    assert_eq!(order(&[car("b", &["a"])]), ["b"], "one that is not in the train is not waited for");
    assert_eq!(order(&[car("a", &["b"]), car("b", &["a"])]), ["a", "b"]);
}
