//! What is done next to publish a run: every pair of what may be seen, walked to its end.

use runner_core::publish::{Hold, Seen, Standing, Step, Told, Use, Whole, next, skipped};

const STANDINGS: [Standing; 4] = [Standing::Missing, Standing::Behind, Standing::Same, Standing::Foreign];
const WHOLES: [Whole; 4] = [Whole::Unknown, Whole::Yes, Whole::Lacking, Whole::LackingAll];

/// Everything that may be seen.
fn all() -> Vec<Seen> {
    let mut all = Vec::new();
    for (at, branch) in STANDINGS.iter().flat_map(|at| STANDINGS.map(|branch| (*at, branch))) {
        for (whole, bits) in WHOLES.iter().flat_map(|whole| (0..32).map(move |bits| (*whole, bits))) {
            let is = |bit: u8| bits & (1 << bit) != 0;
            let (has_extras, was_published, is_in_the_way, is_in_use, is_sent) = (is(0), is(1), is(2), is(3), is(4));
            all.push(Seen { at, branch, has_extras, is_sent, whole, was_published, is_in_the_way, is_in_use });
        }
    }
    all
}

/// What is seen after a step that has found the source `has_all` or not.
fn after(seen: Seen, step: Step, has_all: bool) -> Option<Seen> {
    match step {
        Step::Send => Some(Seen { is_sent: true, whole: Whole::Unknown, ..seen }),
        Step::Keep => Some(Seen { at: Standing::Same, has_extras: true, whole: Whole::Unknown, ..seen }),
        Step::SendAll => Some(Seen { whole: if has_all { Whole::Yes } else { Whole::LackingAll }, ..seen }),
        Step::Check => Some(Seen { whole: if has_all { Whole::Yes } else { Whole::Lacking }, ..seen }),
        Step::Move => Some(Seen { branch: Standing::Same, ..seen }),
        Step::NotBegun | Step::UpToDate | Step::Skip | Step::Hold(_) => None,
    }
}

#[test]
fn whatever_is_seen_comes_to_an_end_in_a_few_steps() {
    for (first, has_all) in all().into_iter().flat_map(|seen| [(seen, false), (seen, true)]) {
        let (mut seen, mut steps) = (first, 0);
        while let Some(later) = after(seen, next(Some(&seen)), has_all) {
            (seen, steps) = (later, steps + 1);
            assert!(steps <= 7, "{first:?} goes on at {seen:?}");
        }
    }
}

#[test]
fn the_branch_is_moved_last_and_only_where_all_is_there_and_nobody_uses_it() {
    for seen in all().into_iter().filter(|seen| next(Some(seen)) == Step::Move) {
        assert_eq!((seen.at, seen.has_extras, seen.whole), (Standing::Same, true, Whole::Yes), "{seen:?}");
        assert!(!seen.is_in_use, "{seen:?}");
        assert!(matches!(seen.branch, Standing::Missing | Standing::Behind), "{seen:?}");
        assert!(seen.branch != Standing::Missing || !seen.was_published && !seen.is_in_the_way, "{seen:?}");
    }
}

#[test]
fn nothing_is_kept_by_a_reference_that_is_not_all_there() {
    for seen in all().into_iter().filter(|seen| next(Some(seen)) == Step::Keep) {
        assert_eq!((seen.whole, seen.is_sent), (Whole::Yes, true), "{seen:?}");
    }
}

#[test]
fn what_the_run_did_not_make_is_never_written_over_and_nothing_is_sent_beside_it() {
    for seen in all().into_iter().filter(|seen| [seen.at, seen.branch].contains(&Standing::Foreign)) {
        assert!(matches!(next(Some(&seen)), Step::Hold(Hold::ForeignBranch | Hold::ForeignKeeper)), "{seen:?}");
    }
}

#[test]
fn up_to_date_is_a_branch_at_the_tip_with_all_that_it_needs() {
    for seen in all().into_iter().filter(|seen| next(Some(seen)) == Step::UpToDate) {
        assert_eq!((seen.branch, seen.at), (Standing::Same, Standing::Same), "{seen:?}");
        assert_eq!((seen.has_extras, seen.whole), (true, Whole::Yes), "{seen:?}");
    }
    assert_eq!(next(None), Step::NotBegun);
}

#[test]
fn every_hold_says_why_in_a_sentence_and_what_can_be_typed() {
    let told = Told {
        run: "port",
        source: "/home/my code",
        workspace: "/state/w",
        found: "0123456789abcdef0123456789abcdef01234567",
        kept: Some("fedcba9876543210fedcba9876543210fedcba98"),
    };
    let holds = [Hold::ForeignBranch, Hold::ForeignKeeper, Hold::BranchGone, Hold::InTheWay, Hold::Incomplete];
    let said: Vec<_> = holds.iter().map(|hold| hold.reason(&told)).map(|why| (why.message, why.command)).collect();
    let expected = [
        (
            "runner/port has 0123456789ab, which the run did not make",
            "git -C '/home/my code' branch -m runner/port port-by-hand && git -C '/home/my code' branch runner/port \
             fedcba9876543210fedcba9876543210fedcba98 && runnerctl resume '/home/my code' --run port",
        ),
        (
            "refs/runner/at/port has 0123456789ab, which the run did not make",
            "git -C '/home/my code' branch port-by-hand refs/runner/at/port && git -C '/home/my code' update-ref -d \
             refs/runner/at/port 0123456789abcdef0123456789abcdef01234567 && runnerctl resume '/home/my code' --run port",
        ),
        (
            "runner/port is gone from /home/my code",
            "git -C '/home/my code' branch runner/port fedcba9876543210fedcba9876543210fedcba98 && runnerctl resume \
             '/home/my code' --run port",
        ),
        (
            "branch 0123456789abcdef0123456789abcdef01234567 of /home/my code leaves no room for runner/port",
            "git -C '/home/my code' branch -m 0123456789abcdef0123456789abcdef01234567 \
             0123456789abcdef0123456789abcdef01234567-old && runnerctl resume '/home/my code' --run port",
        ),
        ("runner/port cannot be published: 0123456789ab is missing in /state/w", "git -C /state/w fsck"),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(message, command)| ((*message).to_owned(), Some((*command).to_owned()))).collect();
    assert_eq!(said, expected);
}

#[test]
fn a_branch_that_nothing_is_kept_of_comes_back_from_the_workspace() {
    let told = Told { run: "port", source: "/s", workspace: "/w", found: "", kept: None };
    let why = Hold::BranchGone.reason(&told);
    let expected = "git -C /s fetch /w runner/port:runner/port && runnerctl resume /s --run port";
    assert_eq!(why.command.as_deref(), Some(expected));
}

#[test]
fn a_branch_in_use_names_the_work_tree_and_how_to_leave_it() {
    let said = [Use::InWorkTree, Use::InLostWorkTree, Use::GitAtWork].map(|how| {
        let why = skipped("port", how, ["/s", "/home/my code"]);
        (why.message, why.command.unwrap_or_default())
    });
    let expected = [
        ("runner/port is in use in /home/my code", "git -C '/home/my code' switch --detach"),
        ("runner/port is in use in /home/my code, which is not there", "git -C /s worktree list"),
        ("git is at work in /home/my code", "git -C '/home/my code' status"),
    ];
    assert_eq!(said, expected.map(|(message, command)| (message.to_owned(), command.to_owned())));
}
