//! Lists of changed files, which must name every file, in order.

use super::{BranchForge, Rule, violation};
use crate::guard_definition::guarded_play;

const WEAK: &str = "Runner-Guard-Changed: checks/weak.sh";

#[test]
fn a_list_of_changed_files_counts_none_and_passes_over_none() {
    let play = guarded_play("report");
    play.script().step(1, "mkdir checks; echo true > checks/weak.sh; answer retry 'Not yet.'");
    play.run_first(4);
    let forge = BranchForge::from_play(play);
    assert!(forge.tip().message.contains(WEAK), "{}", forge.tip().message);
    assert_eq!(forge.audit(&forge.pieces).findings, []);
    let names: Vec<String> = (0..20).map(|number| format!("checks/{number:02}")).collect();
    for (name, list) in [
        ("a name that is counted", format!("{}, and 1 more", names.join(", "))),
        ("a name that was passed over", names.join(", ")),
        ("names out of order", "checks/weak.sh, checks/a".to_owned()),
    ] {
        let says = |piece: &mut super::BranchCommit| {
            piece.message = piece.message.replace(WEAK, &format!("Runner-Guard-Changed: {list}"));
        };
        forge.assert_finds(
            name,
            &forge.with_change(forge.pieces.len() - 1, says),
            violation(Rule::Receipt, "Runner-Guard-Changed"),
        );
    }
}

#[test]
fn a_file_that_a_guard_is_said_to_have_written_is_in_the_commit() {
    let play = guarded_play("report");
    play.script().step(1, "echo new > new.txt; answer done 'Done.'").guard_always("echo report > report.txt; exit 1");
    play.run_first(4);
    let forge = BranchForge::from_play(play);
    let wrote = "Runner-Guard-Wrote: report.txt";
    assert!(forge.tip().message.contains(wrote), "{}", forge.tip().message);
    assert_eq!(forge.audit(&forge.pieces).findings, []);
    let claims = |piece: &mut super::BranchCommit| {
        piece.message = piece.message.replace(wrote, "Runner-Guard-Wrote: other.txt, report.txt");
    };
    let forged = forge.with_change(forge.pieces.len() - 1, claims);
    forge.assert_finds("a file that is not there", &forged, violation(Rule::Receipt, "Runner-Guard-Wrote"));
}
