//! The second run of a red guard, which is cut off. Row 120.

use protocol::words::RunStatus;

use crate::stage::FaultStage;

#[test]
fn row_120_second_run_of_a_guard_is_run_again_by_the_next_daemon_and_leads_to_the_same_end() {
    for (last, verdicts, attempts) in [("echo green", &["Accepted"][..], 0), ("exit 1", &["RedGuard", "Accepted"], 1)] {
        let mut stage = FaultStage::with_config(|config| config.guard("flakes = true"));
        let script = stage.script().clone();
        script.step(1, "echo mine > mine.txt; answer done 'It is done.'").always("answer done 'It is done now.'");
        script.guard_step(1, "exit 1").guard_step(2, "gate guarding").guard_step(3, last);
        let guarding = script.gate("guarding");
        stage.start_run();
        guarding.wait_reached();
        stage.restart(runner_testkit::Daemon::kill);
        stage.wait_for_state(RunStatus::Completed);
        assert_eq!(stage.repo.node("root").attempts, attempts);
        assert_eq!(script.session_count(), verdicts.len(), "no session is repeated");
        stage.assert_ended_as(verdicts, &["mine\n"]);
    }
}
