//! A run that was waited for, delivered when it is completed.

use serde_json::json;

use crate::fake::{EventScript, run, status, text};
use crate::stage::{DeliveryStage, described, landed};

#[test]
fn a_completed_run_that_was_waited_for_is_delivered_where_the_configuration_asks() {
    for asked in [true, false] {
        let mut described = described();
        described["on_complete"] = json!(asked);
        let stage = DeliveryStage::with(described, landed("landed"));
        let chapter = EventScript { events: Vec::new(), status: status("port", "completed"), dies: false };
        let daemon =
            stage.daemon.answers("run.start", json!({"run": run("port", "queued"), "ahead": 0, "resumed": false}));
        let daemon = daemon
            .answers("run.status", status("port", "running"))
            .answers("config.get", json!({"value": asked, "variables": []}));
        let stage = DeliveryStage { daemon: daemon.tells(vec![chapter]), ..stage };
        let repo = stage.path("repo").display().to_string();
        let mut client = stage.daemon.client(&["-C", &repo, "start", "--wait", "-m", "goal"]);
        let output = stage.dressed(&mut client).output().expect("runs");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert_eq!(
            text(&output).contains("opened pull request: https://github.com/o/r/pull/5"),
            asked,
            "{}",
            text(&output)
        );
        assert_eq!(stage.at_remote() == stage.tip(), asked);
    }
}
