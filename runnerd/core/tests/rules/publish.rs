//! The next step of publishing a run: every pair of observations, followed to its end.

use runner_core::publish::{
    BranchUse, HoldContext, ObjectCompleteness, PublishHold, PublishInput, PublishStep, RefRelation, StartBase,
    WorkspaceLoss, WorkspaceRemains, WorkspaceSource, choose_source, next_step, skip_reason,
};

const STANDINGS: [RefRelation; 4] =
    [RefRelation::Missing, RefRelation::Behind, RefRelation::Same, RefRelation::Foreign];
const WHOLES: [ObjectCompleteness; 4] =
    [ObjectCompleteness::Unknown, ObjectCompleteness::Yes, ObjectCompleteness::Lacking, ObjectCompleteness::LackingAll];

/// All possible observations.
fn all() -> Vec<PublishInput> {
    let mut all = Vec::new();
    for (at, branch) in STANDINGS.iter().flat_map(|at| STANDINGS.map(|branch| (*at, branch))) {
        for (whole, bits) in WHOLES.iter().flat_map(|whole| (0..64).map(move |bits| (*whole, bits))) {
            let is = |bit: u8| bits & (1 << bit) != 0;
            all.push(PublishInput {
                keep_ref: at,
                branch,
                has_extras: is(0),
                is_sent: is(4),
                objects: whole,
                was_published: is(1),
                is_in_the_way: is(2),
                is_in_use: is(3),
                is_reserved_for_another: is(5),
            });
        }
    }
    all
}

/// The observations after a step; `has_all` says whether the source has all objects.
fn after(seen: PublishInput, step: PublishStep, has_all: bool) -> Option<PublishInput> {
    match step {
        PublishStep::Send => Some(PublishInput { is_sent: true, objects: ObjectCompleteness::Unknown, ..seen }),
        PublishStep::KeepRefs => Some(PublishInput {
            keep_ref: RefRelation::Same,
            has_extras: true,
            objects: ObjectCompleteness::Unknown,
            ..seen
        }),
        PublishStep::SendAll => Some(PublishInput {
            objects: if has_all { ObjectCompleteness::Yes } else { ObjectCompleteness::LackingAll },
            ..seen
        }),
        PublishStep::CheckObjects => Some(PublishInput {
            objects: if has_all { ObjectCompleteness::Yes } else { ObjectCompleteness::Lacking },
            ..seen
        }),
        PublishStep::MoveBranch => Some(PublishInput { branch: RefRelation::Same, ..seen }),
        PublishStep::NotBegun | PublishStep::UpToDate | PublishStep::Skip | PublishStep::Hold(_) => None,
    }
}

#[test]
fn publishing_ends_after_a_few_steps_from_every_state() {
    for (first, has_all) in all().into_iter().flat_map(|seen| [(seen, false), (seen, true)]) {
        let mut seen = first;
        let mut steps = 0;
        while let Some(later) = after(seen, next_step(Some(&seen)), has_all) {
            (seen, steps) = (later, steps + 1);
            assert!(steps <= 7, "{first:?} continues at {seen:?}");
        }
    }
}

#[test]
fn the_branch_is_moved_last_and_only_where_all_is_there_and_nobody_uses_it() {
    for seen in all().into_iter().filter(|seen| next_step(Some(seen)) == PublishStep::MoveBranch) {
        assert_eq!(
            (seen.keep_ref, seen.has_extras, seen.objects),
            (RefRelation::Same, true, ObjectCompleteness::Yes),
            "{seen:?}"
        );
        assert!(!seen.is_in_use, "{seen:?}");
        assert!(matches!(seen.branch, RefRelation::Missing | RefRelation::Behind), "{seen:?}");
        assert!(seen.branch != RefRelation::Missing || !seen.was_published && !seen.is_in_the_way, "{seen:?}");
    }
}

#[test]
fn nothing_is_kept_by_a_reference_that_is_not_all_there() {
    for seen in all().into_iter().filter(|seen| next_step(Some(seen)) == PublishStep::KeepRefs) {
        assert_eq!((seen.objects, seen.is_sent), (ObjectCompleteness::Yes, true), "{seen:?}");
    }
}

#[test]
fn sent_objects_are_checked_unless_each_was_seen_on_a_complete_branch() {
    for seen in all() {
        for (is_each_seen, is_upon_branch) in [(false, false), (false, true), (true, false)] {
            assert_eq!(seen.objects_after_send(is_each_seen, is_upon_branch), ObjectCompleteness::Unknown, "{seen:?}");
        }
        match seen.branch {
            RefRelation::Behind => assert_eq!(seen.objects_after_send(true, true), ObjectCompleteness::Yes, "{seen:?}"),
            _ => assert_eq!(
                seen.objects_after_send(true, true),
                ObjectCompleteness::Unknown,
                "nothing is known of it: {seen:?}"
            ),
        }
    }
}

#[test]
fn what_the_run_did_not_make_is_never_written_over_and_nothing_is_sent_beside_it() {
    for seen in all().into_iter().filter(|seen| [seen.keep_ref, seen.branch].contains(&RefRelation::Foreign)) {
        assert!(
            matches!(
                next_step(Some(&seen)),
                PublishStep::Hold(PublishHold::ForeignBranch | PublishHold::ForeignKeepRef)
            ),
            "{seen:?}"
        );
    }
}

#[test]
fn nothing_is_done_under_an_id_that_another_run_has() {
    for seen in all().into_iter().filter(|seen| seen.is_reserved_for_another) {
        assert!(matches!(next_step(Some(&seen)), PublishStep::Hold(_)), "{seen:?}");
    }
}

#[test]
fn up_to_date_is_a_branch_at_the_tip_with_all_that_it_needs() {
    for seen in all().into_iter().filter(|seen| next_step(Some(seen)) == PublishStep::UpToDate) {
        assert_eq!((seen.branch, seen.keep_ref), (RefRelation::Same, RefRelation::Same), "{seen:?}");
        assert_eq!((seen.has_extras, seen.objects), (true, ObjectCompleteness::Yes), "{seen:?}");
    }
    assert_eq!(next_step(None), PublishStep::NotBegun);
}

#[test]
fn every_hold_says_why_in_a_sentence_and_what_can_be_typed() {
    let context = HoldContext {
        run: "port",
        source: "/home/my code",
        workspace: "/state/w",
        found: "0123456789abcdef0123456789abcdef01234567",
        kept: Some("fedcba9876543210fedcba9876543210fedcba98"),
    };
    let holds = [
        PublishHold::ForeignBranch,
        PublishHold::ForeignKeepRef,
        PublishHold::BranchGone,
        PublishHold::InTheWay,
        PublishHold::ReservedForAnother,
        PublishHold::Incomplete,
    ];
    let reasons: Vec<_> =
        holds.iter().map(|hold| hold.stop_reason(&context)).map(|why| (why.message, why.command)).collect();
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
        (
            "port is reserved for another run in /home/my code, and would be mixed up with it",
            "git -C '/home/my code' update-ref -d refs/runner/reserved/port 0123456789abcdef0123456789abcdef01234567 && \
             runnerctl resume '/home/my code' --run port",
        ),
        ("runner/port cannot be published: 0123456789ab is missing in /state/w", "git -C /state/w fsck"),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(message, command)| ((*message).to_owned(), Some((*command).to_owned()))).collect();
    assert_eq!(reasons, expected);
}

#[test]
fn a_branch_that_nothing_is_kept_of_comes_back_from_the_workspace() {
    let context = HoldContext { run: "port", source: "/s", workspace: "/w", found: "", kept: None };
    let why = PublishHold::BranchGone.stop_reason(&context);
    let expected = "git -C /s fetch /w runner/port:runner/port && runnerctl resume /s --run port";
    assert_eq!(why.command.as_deref(), Some(expected));
}

#[test]
fn a_branch_in_use_names_the_work_tree_and_how_to_leave_it() {
    let reasons = [BranchUse::InWorkTree, BranchUse::InLostWorkTree, BranchUse::GitAtWork].map(|how| {
        let why = skip_reason("port", how, ["/s", "/home/my code"]);
        (why.message, why.command.unwrap_or_default())
    });
    let expected = [
        ("runner/port is in use in /home/my code", "git -C '/home/my code' switch --detach"),
        (
            "runner/port is in use in /home/my code, which is not there",
            "git -C /s worktree unlock '/home/my code' && git -C /s worktree prune",
        ),
        ("git is at work in /home/my code", "git -C '/home/my code' status"),
    ];
    assert_eq!(reasons, expected.map(|(message, command)| (message.to_owned(), command.to_owned())));
}

#[test]
fn a_missing_workspace_is_created_again_from_the_remaining_commits_and_lost_ones_are_reported() {
    let rows = [
        (Some("tip"), true, None, WorkspaceSource::Published("tip")),
        (Some("tip"), false, Some(StartBase::At("base")), WorkspaceSource::Published("tip")),
        (None, false, Some(StartBase::At("base")), WorkspaceSource::Base("base")),
        (None, false, Some(StartBase::Gone), WorkspaceSource::Unrecoverable(WorkspaceLoss::Base)),
        (None, false, None, WorkspaceSource::Unrecoverable(WorkspaceLoss::Commits)),
        (None, true, Some(StartBase::At("base")), WorkspaceSource::Unrecoverable(WorkspaceLoss::Branch)),
        (None, true, None, WorkspaceSource::Unrecoverable(WorkspaceLoss::Branch)),
    ];
    for (kept, was_published, beginning, expected) in rows {
        let left = WorkspaceRemains { last_commit: kept, was_published, start_base: beginning };
        assert_eq!(choose_source(left), expected, "{left:?}");
    }
}

#[test]
fn what_is_lost_with_a_workspace_is_said_with_what_can_be_typed() {
    let render = |lost: WorkspaceLoss, last| {
        let why = lost.stop_reason("port", ["/my code", "/w/port"], last);
        format!("{}\n{}", why.message, why.command.unwrap_or_default())
    };
    let cancel = "runnerctl cancel '/my code' --run port";
    let back = "git -C '/my code' branch runner/port fedc && runnerctl resume '/my code' --run port";
    let gone = "the workspace /w/port is gone";
    assert_eq!(
        render(WorkspaceLoss::Branch, Some("fedc")),
        format!("{gone}, and so is runner/port in /my code\n{back}; or: {cancel}")
    );
    let branch = format!("{gone}, and so is runner/port in /my code with its commits\n{cancel}");
    assert_eq!(render(WorkspaceLoss::Branch, None), branch);
    let commits = format!("{gone}, and what run port had committed in it was not published yet\n{cancel}");
    assert_eq!(render(WorkspaceLoss::Commits, None), commits);
    let base = format!("{gone}, and so is the commit in /my code that run port was to begin from\n{cancel}");
    assert_eq!(render(WorkspaceLoss::Base, None), base);
}
