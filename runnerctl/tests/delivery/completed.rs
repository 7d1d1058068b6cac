//! A run that is waited for, and delivered when it is completed.

use serde_json::json;

use crate::fake::{EventScript, output_text, run_json, status_json};
use crate::stage::{DeliveryStage, describe_reply, land_reply};

#[test]
fn a_completed_run_that_was_waited_for_is_delivered_where_the_configuration_asks() {
    for asked in [true, false] {
        let mut described = describe_reply();
        described["on_complete"] = json!(asked);
        let stage = DeliveryStage::with_replies(described, land_reply("landed"));
        let chapter = EventScript { events: Vec::new(), status: status_json("port", "completed"), dies: false };
        let daemon = stage
            .daemon
            .with_reply("run.start", json!({"run": run_json("port", "queued"), "ahead": 0, "resumed": false}));
        let daemon = daemon
            .with_reply("run.status", status_json("port", "running"))
            .with_reply("config.get", json!({"value": asked, "variables": []}));
        let stage = DeliveryStage { daemon: daemon.with_events(vec![chapter]), ..stage };
        let repo = stage.path("repo").display().to_string();
        let mut client = stage.daemon.client(&["-C", &repo, "start", "--wait", "-m", "goal"]);
        let output = stage.with_environment(&mut client).output().expect("runs");
        assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
        assert_eq!(
            output_text(&output).contains("opened pull request: https://github.com/o/r/pull/5"),
            asked,
            "{}",
            output_text(&output)
        );
        assert_eq!(stage.remote_tip() == stage.local_tip(), asked);
    }
}
