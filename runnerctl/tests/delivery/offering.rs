//! Who opens a pull request, and what is only shown.

use std::fs;

use serde_json::{Value, json};

use crate::fake::output_text;
use crate::stage::{DeliveryStage, describe_reply, land_reply, own_part};

#[test]
fn without_a_program_it_is_told_what_to_open() {
    let stage = DeliveryStage::new();
    fs::remove_file(stage.path("bin/gh")).expect("gh is gone");
    let output = output_text(&stage.deliver(&[])).replace(&stage.local_tip()[..8], "<tip>");
    insta::assert_snapshot!(output, @r"
    run port is deliver/port at origin for main
      22222222 The schema
    pushed <tip>
    no request yet; open it by hand: https://github.com/o/r/compare/main...deliver/port?expand=1
    what to write there: runnerctl deliver port --dry-run
    note: gh is not on your PATH
    --- stderr
    --- exit 0
    ");
    assert_eq!(stage.remote_tip(), stage.local_tip());
}

#[test]
fn a_program_of_the_persons_reads_what_is_offered_and_says_where() {
    let mut described = describe_reply();
    described["command"] = json!(["own", "two words"]);
    let stage = DeliveryStage::with_replies(described, land_reply("landed"));
    stage.write_program(
        "own",
        "#!/bin/sh\necho \"$1\" > \"$FORGE/told\"; cat >> \"$FORGE/told\"; echo done; echo https://forge/5\n",
    );
    let output = output_text(&stage.deliver(&[]));
    assert!(output.contains("opened pull request: https://forge/5\n"), "{output}");
    let text = fs::read_to_string(stage.path("forge/told")).expect("the forge received it");
    let (argument, offered) = text.split_once('\n').expect("two lines");
    assert_eq!(argument, "two words");
    let offered: Value = serde_json::from_str(offered).expect("json");
    let expected = json!({"schema": "runner/delivery.v1", "head": "deliver/port", "base": "main", "title": "Port the store", "body": own_part("What was asked"), "draft": true});
    assert_eq!(offered, expected);
}

#[test]
fn a_look_contacts_nobody() {
    let stage = DeliveryStage::new();
    insta::assert_snapshot!(output_text(&stage.deliver(&["--dry-run", "--base", "main"])), @r"
    run port would be deliver/port at origin for main
      22222222 The schema

    Port the store

    <!-- runnerd: begin -->
    What was asked
    <!-- runnerd: end -->
    --- stderr
    --- exit 0
    ");
    assert_eq!((stage.remote_tip(), stage.requests_made()), (String::new(), String::new()));
    assert_eq!(stage.daemon.requests_of("land.run")[0]["preview"], json!(true));
}
