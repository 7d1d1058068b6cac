//! Someone replaces an object that the runner's decisions depend on: the replacement is not used, and is reported.

use std::fs;
use std::path::PathBuf;

use protocol::view::RunView;
use protocol::words::RunStatus;

use crate::audits::{parse_report, play_two};
use crate::play::{RunPlay, sample};

/// A shell function that replaces the object of `$1` with that of `$2`.
const SWAP: &str = "swap() {\n\
    place=.git/objects/$(git rev-parse \"$1\" | sed 's|^..|&/|')\n\
    other=.git/objects/$(git rev-parse \"$2\" | sed 's|^..|&/|')\n\
    cp -f \"$other\" \"$place\"\n\
    }\n";

/// A loose object that was replaced.
struct ReplacedObject {
    id: String,
    place: PathBuf,
    bytes: Vec<u8>,
}

impl ReplacedObject {
    fn new(play: &RunPlay, instead_of: &str, other: &str) -> Self {
        let place = |id: &str| play.repo.path().join(format!(".git/objects/{}/{}", &id[..2], &id[2..]));
        let id = play.repo.git(&["rev-parse", instead_of]);
        let other = place(&play.repo.git(&["rev-parse", other]));
        let replaced = Self { place: place(&id), bytes: fs::read(place(&id)).expect("it is loose"), id };
        fs::remove_file(&replaced.place).expect("the object goes");
        fs::copy(other, &replaced.place).expect("another comes");
        replaced
    }

    fn restore(self) {
        fs::remove_file(&self.place).expect("the other goes");
        fs::write(&self.place, &self.bytes).expect("the object comes back");
    }
}

#[test]
fn an_accepted_definition_that_was_replaced_holds_the_run_and_is_named() {
    let play = RunPlay::with_tree(&sample(), |config| {
        let config = config.top("max_iterations = 1").guard("definition = [\"/ci.sh\"]");
        config.guard("on_change = \"both\"")
    });
    play.repo.write("ci.sh", "test -e done\n").write("weak", "true\n").commit("Check the work");
    play.script().guard_always("sh ./ci.sh");
    let accepted = play.repo.git(&["rev-parse", "HEAD:ci.sh"]);
    play.script().step(1, &format!("{SWAP}swap HEAD:ci.sh HEAD:weak; cp weak ci.sh\nanswer done 'Done.'"));
    play.start_run();
    let run = play.client().wait_for(play.repo.path(), RunStatus::Held);
    let reason = format!("{:?}", run.summary.reason);
    assert!(
        reason.contains(&format!("object {accepted} in ")) && reason.contains("is not what its name says"),
        "{reason}"
    );
    play.repo.git(&["cat-file", "-e", &accepted]);
    assert!(play.repo.receipts().iter().all(|receipt| !receipt.subject.contains("iter 0001")), "nothing is committed");
}

#[test]
fn an_object_of_a_branch_that_was_replaced_is_a_violation_and_is_named() {
    let mut play = play_two();
    play.home.expect_forgery();
    for (instead_of, other) in [
        ("HEAD^{tree}", "HEAD^^{tree}"),
        ("HEAD:.runner/state/tree.json", "HEAD^:.runner/state/tree.json"),
        ("HEAD:.runner/state/run_state.json", "HEAD^:.runner/state/run_state.json"),
    ] {
        let replaced = ReplacedObject::new(&play, instead_of, other);
        let found = parse_report(play.home.ctl_in(&play.repo, &["verify", "--json"]).exits(10)).findings;
        let message = format!("object {} is not what its name says", replaced.id);
        assert!(found.iter().any(|finding| finding.found.contains(&message)), "{instead_of}: {found:#?}");
        replaced.restore();
    }
    ReplacedObject::new(&play, "HEAD", "HEAD^");
    let output = play.home.ctl_in(&play.repo, &["verify"]);
    assert!(output.code != 0 && output.stderr.contains("is not what its name says"), "{}", output.stderr);
}

#[test]
fn a_state_that_was_replaced_is_not_gone_on_from() {
    let mut play = RunPlay::new();
    play.script().always("answer retry 'Not yet.'");
    play.run().exits(4);
    let replaced = ReplacedObject::new(&play, "HEAD:.runner/state/tree.json", "HEAD^:.runner/state/tree.json");
    play.stop_and_restart();
    play.home.ctl_in(&play.repo, &["resume", "--more", "1"]);
    let message = format!("object {} in ", replaced.id);
    let is_reported =
        |run: &RunView| run.summary.reason.as_ref().is_some_and(|reason| reason.message.contains(&message));
    play.client().wait_until(play.repo.path(), is_reported);
    replaced.restore();
    play.home.ctl_in(&play.repo, &["resume"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    assert_eq!(play.script().session_count(), 2);
}
