//! The `help` topics that are tables: run states and environment variables.
//!
//! Which state follows from what is decided by the daemon; so are the sentence and command of a concrete state.

use std::fmt::Write as _;

use protocol::words::RunStatus;
use serde::Serialize;

/// A state, its meaning, and what to do.
#[derive(Debug, Serialize)]
pub(crate) struct StateHelp {
    #[serde(rename = "state")]
    name: &'static str,
    meaning: &'static str,
    next: &'static str,
}

/// A variable and its purpose.
#[derive(Debug, Serialize)]
pub(crate) struct VariableHelp {
    name: &'static str,
    meaning: &'static str,
}

/// The states, in the form that `--json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct StatesReport {
    states: Vec<StateHelp>,
}

/// The variables, in the form that `--json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct EnvironmentReport {
    environment: Vec<VariableHelp>,
}

const VARIABLES: &[(&str, &str)] = &[
    ("RUNNERD_SOCKET", "the daemon's socket, as with --socket"),
    ("RUNNER_HOST", "the machine whose daemon is used, as with --host"),
    ("RUNNERD_STATE", "the daemon's state directory"),
    ("RUNNERD_LOG", "what the daemon logs, as in RUST_LOG"),
    ("RUNNER_PLAIN", "1: one fact per line, as with --plain"),
    ("XDG_RUNTIME_DIR", "its subdirectory runnerd/ has the socket"),
    ("XDG_STATE_HOME", "its subdirectory runnerd/ has the state, else ~/.local/state/runnerd/"),
    ("XDG_CONFIG_HOME", "its subdirectory runnerd/ has the daemon's settings, else ~/.config/runnerd/"),
    ("VISUAL, EDITOR", "the editor of `edit` and `config edit`, else vi"),
    ("PAGER, LESS", "the pager of `log`, else less; PAGER=cat turns it off"),
    ("NO_COLOR", "any value: no colours"),
    ("TERM", "dumb: one fact per line, as with --plain"),
    ("LC_ALL, LC_CTYPE, LANG", "the first that is set: without UTF-8, ASCII only"),
];

/// Returns a state's meaning and what to do, in at most 42 and 27 columns.
fn explain_state(state: RunStatus) -> (&'static str, &'static str) {
    match state {
        RunStatus::Queued => ("waiting for its turn", "nothing; runnerctl queue"),
        RunStatus::Running => ("at work", "nothing; runnerctl watch"),
        RunStatus::Paused => ("paused until you resume it", "runnerctl resume"),
        RunStatus::Waiting => ("continues automatically", "nothing; runnerctl status"),
        RunStatus::Held => ("needs your attention", "as runnerctl status says"),
        RunStatus::Completed => ("the goal is reached", "merge the branch"),
        RunStatus::Stuck => ("out of attempts, or no progress", "retry or edit; resume"),
        RunStatus::Limit => ("iterations, cost, tokens or time used up", "runnerctl resume --more N"),
        RunStatus::TimedOut => ("an iteration ran out of time", "runnerctl resume"),
        RunStatus::Failed => ("agent or guard cannot run, or fails often", "runnerctl log; resume"),
        RunStatus::Cancelled => ("cancelled by you", "runnerctl start --id ID"),
    }
}

/// What lists call a run that waits for a review.
const REVIEW: StateHelp =
    StateHelp { name: "review", meaning: "a finished task awaits your review", next: "approve, or reject REASON" };

/// Returns the states, in the words of lists.
pub(crate) fn list_states() -> StatesReport {
    let mut states = Vec::new();
    for state in RunStatus::ALL {
        let (meaning, next) = explain_state(*state);
        states.push(StateHelp { name: state.as_str(), meaning, next });
        states.extend((*state == RunStatus::Waiting).then_some(REVIEW));
    }
    StatesReport { states }
}

/// Returns the states as a table.
pub(crate) fn render_states() -> String {
    list_states().states.iter().fold(String::new(), |mut text, StateHelp { name, meaning, next }| {
        let _ = writeln!(text, "{name:<9}  {meaning:<42}  {next}");
        text
    })
}

/// Returns the variables.
pub(crate) fn list_variables() -> EnvironmentReport {
    let variable = |&(name, meaning): &(&'static str, &'static str)| VariableHelp { name, meaning };
    EnvironmentReport { environment: VARIABLES.iter().map(variable).collect() }
}

/// Returns the variables, each followed by a line with its meaning.
pub(crate) fn render_variables() -> String {
    VARIABLES.iter().fold(String::new(), |mut text, (name, meaning)| {
        let _ = writeln!(text, "{name}\n    {meaning}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_explained() {
        insta::assert_snapshot!(render_states(), @r"
        queued     waiting for its turn                        nothing; runnerctl queue
        running    at work                                     nothing; runnerctl watch
        paused     paused until you resume it                  runnerctl resume
        waiting    continues automatically                     nothing; runnerctl status
        review     a finished task awaits your review          approve, or reject REASON
        held       needs your attention                        as runnerctl status says
        completed  the goal is reached                         merge the branch
        stuck      out of attempts, or no progress             retry or edit; resume
        limit      iterations, cost, tokens or time used up    runnerctl resume --more N
        timed_out  an iteration ran out of time                runnerctl resume
        failed     agent or guard cannot run, or fails often   runnerctl log; resume
        cancelled  cancelled by you                            runnerctl start --id ID
        ");
    }

    #[test]
    fn topics_fit_a_terminal() {
        for line in render_states().lines().chain(render_variables().lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
