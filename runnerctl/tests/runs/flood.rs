//! Calls from inside an iteration, more than the daemon can handle: a person is answered nevertheless.

use protocol::words::RunStatus;

use crate::play::{RunPlay, sample};

/// Requests that read the history or files, and cheap ones.
const READS: [&str; 8] = [
    "verify.run",
    "tree.get",
    "tree.explain",
    "question.list",
    "iteration.list",
    "iteration.log",
    "memory.get",
    "run.status",
];
/// Number of connections of the flood: no more from inside are served at the same time.
const CONNECTIONS: usize = 32;

/// Runs a session that floods the daemon with reads, while a person reads the status and pauses the run.
fn flood(replies: u32) {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 2"));
    let gate = play.script().gate("session");
    let params = format!(r#""params":[{{"path":"{}"}}]"#, play.repo.path().display());
    let calls: Vec<String> = READS.iter().map(|method| format!(r#"'"method":"{method}",{params}'"#)).collect();
    play.script().step(
        1,
        &format!(
            "misbehave floods-with-calls '{}' {CONNECTIONS} {replies} \"$kit/gates/session.in\" {} &\n\
             read -r _ < \"$kit/gates/session.out\"\nanswer done 'Flooded.'",
            play.home.socket().display(),
            calls.join(" "),
        ),
    );
    play.start_run();
    gate.wait_reached();
    play.home.ctl_in(&play.repo, &["status"]).exits(0);
    play.home.ctl_in(&play.repo, &["pause"]).exits(0);
    assert!(play.script().is_any_alive(), "the flood went on");
    gate.open();
    play.client().wait_for(play.repo.path(), RunStatus::Paused);
}

mod slow {
    use super::flood;

    #[test]
    fn a_person_is_heard_while_a_session_floods_the_daemon_with_reads() {
        flood(2_000);
    }

    #[test]
    fn a_person_is_heard_while_a_session_reads_no_reply_to_its_flood() {
        flood(0);
    }
}
