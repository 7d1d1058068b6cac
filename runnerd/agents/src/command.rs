//! Kind `command`: any program, with the prompt on its standard input and the answer in `$RUNNER_OUTPUT`.

use std::ffi::OsString;

use protocol::event::Activity;
use runner_process::StopPolicy;

use super::backend::{AgentBackend, LaunchPlan, LaunchRequest, OutputReader, SessionOutput, SessionRest};

/// Backend for agents of kind `command`.
pub(super) struct CommandBackend;

impl AgentBackend for CommandBackend {
    fn plan_launch(&self, order: &LaunchRequest<'_>) -> LaunchPlan {
        let words = order.executor.command.iter().chain(&order.executor.extra_args);
        LaunchPlan {
            argv: words.map(OsString::from).collect(),
            env: vec![
                ("RUNNER_SANDBOX".into(), order.executor.sandbox.as_str().into()),
                ("RUNNER_NETWORK".into(), order.executor.network.to_string().into()),
            ],
            files: Vec::new(),
            links: Vec::new(),
            is_structured: false,
            stop_policy: StopPolicy::Terminate,
        }
    }

    fn output_reader(&self, _order: &LaunchRequest<'_>) -> Box<dyn OutputReader> {
        Box::new(SilentReader)
    }
}

/// Number of last lines of standard error that count as the cause of an end.
const CAUSE_LINES: usize = 3;

/// Ignores the standard output, which may be the model's words: the answer is in its file, and why a session failed is
/// at the end of its standard error.
struct SilentReader;

impl OutputReader for SilentReader {
    fn read_line(&mut self, _line: &[u8]) -> Option<Activity> {
        None
    }

    fn has_answered(&self) -> bool {
        false
    }

    fn finish_output(self: Box<Self>, rest: &SessionRest<'_>) -> SessionOutput {
        let mut output = SessionOutput::default();
        output.evidence.add("message", last_lines(&String::from_utf8_lossy(rest.errors)));
        output
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(CAUSE_LINES)..].join("\n")
}
