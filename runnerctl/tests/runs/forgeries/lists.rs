//! Lists of changed files under the first rules, which name twenty and count the rest.

use protocol::verify::{AuditRule as Rule, Severity};

use super::{Forge, Piece, of_first_rules, violation};
use crate::guard_definition::guarded;

const WEAK: &str = "Runner-Guard-Changed: checks/weak.sh";

/// The branch as a runner of the release before would have made it, but for what its last receipt says was changed.
fn old(forge: &Forge, list: &str) -> Vec<Piece> {
    let mut pieces = forge.pieces.clone();
    for piece in &mut pieces {
        piece.message = of_first_rules(&piece.message).replace(WEAK, &format!("Runner-Guard-Changed: {list}"));
    }
    pieces
}

#[test]
fn a_file_that_an_old_list_only_counts_is_named_by_the_audit() {
    let play = guarded("report");
    play.script().step(1, "mkdir checks; echo true > checks/weak.sh; answer retry 'Not yet.'");
    play.first(4);
    let forge = Forge::of(play);
    assert!(forge.tip().message.contains(WEAK), "{}", forge.tip().message);
    let honest = forge.audit(&old(&forge, "checks/weak.sh"));
    assert_eq!(honest.findings, []);
    let names = |from: u32| (from..from + 20).map(|number| format!("checks/{number:02}")).collect::<Vec<_>>();
    // An honest list looks the same where git ignores these twenty.
    let counted = forge.audit(&old(&forge, &format!("{}, and 1 more", names(0).join(", "))));
    let [found] = &counted.findings[..] else { panic!("one finding: {:#?}", counted.findings) };
    assert_eq!((found.severity, found.rule), (Severity::Warning, Rule::Receipt));
    assert!(found.expected.starts_with("checks/weak.sh, "), "{found:#?}");
    let after: Vec<String> = names(0).iter().map(|name| name.replace("checks/", "checks/x")).collect();
    let passed_over = old(&forge, &format!("{}, and 1 more", after.join(", ")));
    forge.finds("a name that was passed over", &passed_over, violation(Rule::Receipt, "Runner-Guard-Changed"));
    let unsorted: Vec<String> = after.iter().take(19).cloned().chain(["checks/a".to_owned()]).collect();
    let unsorted = old(&forge, &format!("{}, and 1 more", unsorted.join(", ")));
    forge.finds("names out of order", &unsorted, violation(Rule::Receipt, "Runner-Guard-Changed"));
}
