//! A run exported as a file: its contents, and that it contains nothing of other runs. `web/e2e` tests what a browser
//! shows.

use std::fs;
use std::path::Path;
use std::process::Output;

use runner_ui::wire::{ErrorReply, ExportedFile, RunFile};
use serde_json::Value;

use crate::kit::{RUN, UiStage};

/// Exports the run of a stage to a file.
fn export_run(stage: &UiStage, run: &str, to: &Path, more: &[&str]) -> Output {
    let mut command = stage.home.command("runner-ui");
    command.args(["--json", "--run", run]).arg("--export").arg(to).args(more).arg("--").arg(stage.repo.path());
    command.output().expect("it can be started")
}

/// Returns the contents of a file.
fn read_run_file(file: &Path) -> RunFile {
    let html = fs::read_to_string(file).expect("a file");
    let (_, rest) = html.split_once("id=\"run-file\">").expect("what it shows");
    serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("JSON")
}

/// Whether this build has a page; a build without one prints that instead of writing a file.
fn has_page() -> bool {
    runner_ui::embedded_files().any(|(name, _)| Path::new(&name).extension().is_some_and(|ending| ending == "js"))
}

#[test]
fn a_file_holds_its_run_and_nothing_of_another() {
    let mut stage = UiStage::with_played_run();
    stage.ui = None;
    stage.home.run(&stage.repo, &["--id", "other", "-m", "Another goal"]);
    let file = stage.home.path().join("run.html");
    let output = export_run(&stage, RUN, &file, &[]);
    if !has_page() {
        let refused: ErrorReply = serde_json::from_slice(&output.stdout).expect("why");
        assert!(refused.error.message.contains("no page"), "{refused:?}");
        return;
    }
    let made: ExportedFile = serde_json::from_slice(&output.stdout).expect("what was written");
    assert_eq!((made.run.as_str(), made.iterations, made.cuts.len()), (RUN, 1, 0));
    assert_eq!(made.bytes, fs::metadata(&file).expect("a file").len());
    let held = read_run_file(&file);
    assert_eq!(held.run, RUN);
    assert_eq!(held.texts["iterations/1/guard.log"], "all tests pass\n");
    assert!(held.texts.keys().all(|name| name.starts_with("iterations/1/")), "{:?}", held.texts.keys());
    let summary = &held.replies["run-state"]["run"]["summary"];
    assert_eq!((&summary["id"], &summary["state"]), (&Value::from(RUN), &Value::from("completed")));
    assert!(held.replies.contains_key("tree") && held.replies.contains_key("config"));
    let text = serde_json::to_string(&held).expect("it is JSON");
    assert!(!text.contains("Another goal"), "{text}");
    let again = export_run(&stage, RUN, &file, &[]);
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stdout).contains("--force"), "{again:?}");
    assert!(export_run(&stage, RUN, &file, &["--force"]).status.success());
}
