//! Refused deliveries, for which nothing is pushed.

use std::fs;

use serde_json::json;

use crate::fake::output_text;
use crate::stage::{DeliveryStage, describe_reply, land_reply, open_pr_json};

#[test]
fn a_branch_that_leaves_no_room_at_the_remote_refuses_before_anything_is_landed() {
    for existing in ["deliver", "deliver/port/fix"] {
        let stage = DeliveryStage::new();
        stage.run_git_in("remote.git", &["branch", existing, "main"]);
        stage.run_git_in("remote.git", &["pack-refs", "--all"]);
        assert!(
            output_text(&stage.deliver(&["--dry-run", "--base", "main"])).contains("exit 0"),
            "nobody was asked yet"
        );
        let refused = output_text(&stage.deliver(&[]));
        let message =
            format!("the branch `{existing}` at origin is in the way of `deliver/port`: git cannot hold both");
        assert!(refused.contains(&message) && refused.contains("exit 6"), "{refused}");
        stage.run_git(&["fetch", "-q", "origin"]);
        let refused = output_text(&stage.deliver(&["--dry-run", "--base", "main"]));
        assert!(refused.contains(&message) && refused.contains("git fetch --prune origin"), "{refused}");
        assert_eq!(stage.daemon.requests_of("land.run").len(), 1, "the first preview alone");
        stage.run_git_in("remote.git", &["branch", "-m", existing, "aside"]);
        stage.run_git(&["fetch", "-q", "--prune", "origin"]);
        assert!(output_text(&stage.deliver(&[])).contains("exit 0"));
    }
}

#[test]
fn nothing_is_pushed_where_it_could_not_be_offered() {
    let stage = DeliveryStage::new();
    stage.write_reply("no-login", "");
    insta::assert_snapshot!(output_text(&stage.deliver(&[])), @r"
    --- stderr
    error: gh has no login for github.com; nothing was pushed

    hint: gh auth login --hostname github.com
    --- exit 6
    ");
    fs::remove_file(stage.path("forge/no-login")).expect("there is a login");
    let closed = open_pr_json("").replace("OPEN", "CLOSED");
    stage.write_reply("list", &closed);
    insta::assert_snapshot!(output_text(&stage.deliver(&[])), @r"
    --- stderr
    error: someone has closed pull request 5: https://github.com/o/r/pull/5; nothing was pushed

    hint: gh pr reopen 5 --repo github.com/o/r
      runnerctl deliver port
    --- exit 6
    ");
    insta::assert_snapshot!(output_text(&stage.deliver(&["--base", "no-such"])), @r"
    --- stderr
    error: origin has no branch no-such

    hint: runnerctl deliver port --base BRANCH
    --- exit 6
    ");
    assert_eq!(stage.remote_tip(), "");
    assert!(stage.daemon.requests_of("land.run").is_empty());
}

#[test]
fn while_a_session_could_write_gits_configuration_nothing_is_pushed() {
    let mut described = describe_reply();
    described["at_work"] = json!("other");
    let stage = DeliveryStage::with_replies(described, land_reply("landed"));
    insta::assert_snapshot!(output_text(&stage.deliver(&[])), @r"
    --- stderr
    error: run other is at work in this repository, and what its session writes could direct git elsewhere: nothing was pushed

    hint: runnerctl pause other
    --- exit 6
    ");
    insta::assert_snapshot!(output_text(&stage.deliver(&["--feedback"])), @r"
    --- stderr
    error: run other is at work in this repository, and what its session writes could direct git elsewhere: nothing was pushed

    hint: runnerctl pause other
    --- exit 6
    ");
    assert_eq!((stage.remote_tip(), stage.requests_made()), (String::new(), String::new()));
}

#[test]
fn a_run_that_was_taken_is_not_pushed_again() {
    let stage = DeliveryStage::with_replies(describe_reply(), land_reply("already_landed"));
    stage.write_reply("list", &open_pr_json("").replace("OPEN", "MERGED"));
    let output = output_text(&stage.deliver(&[]));
    assert!(output.contains("the pull request was taken before: https://github.com/o/r/pull/5"), "{output}");
    assert_eq!(stage.remote_tip(), "");
}

#[test]
fn what_does_not_fit_is_refused_in_the_words_of_landing() {
    let mut landed = land_reply("left_out");
    landed["runs"][0]["refusal"] =
        json!({"message": "task root.2 conflicts in a.txt", "hint": "runnerctl land port --resolve"});
    let stage = DeliveryStage::with_replies(describe_reply(), landed);
    insta::assert_snapshot!(output_text(&stage.deliver(&[])), @r"
    --- stderr
    error: task root.2 conflicts in a.txt

    hint: runnerctl land port --resolve
    --- exit 6
    ");
    assert_eq!(stage.remote_tip(), "");
}
