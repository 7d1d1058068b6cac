//! Kind `command`: any program; the prompt on its standard input, the answer in `$RUNNER_OUTPUT`.

use std::ffi::OsString;

use protocol::event::Activity;

use super::backend::{Backend, Heard, Launch, Order, Reader, Rest};
use crate::process::Farewell;

/// The backend.
pub(super) struct Command;

impl Backend for Command {
    fn launch(&self, order: &Order<'_>) -> Launch {
        let words = order.executor.command.iter().chain(&order.executor.extra_args);
        Launch {
            argv: words.map(OsString::from).collect(),
            env: vec![
                ("RUNNER_SANDBOX".into(), order.executor.sandbox.as_str().into()),
                ("RUNNER_NETWORK".into(), order.executor.network.to_string().into()),
            ],
            files: Vec::new(),
            is_structured: false,
            farewell: Farewell::Terminate,
        }
    }

    fn reader(&self, _order: &Order<'_>) -> Box<dyn Reader> {
        Box::new(Silent)
    }
}

/// Hears nothing: all that such a program says stands in its file.
struct Silent;

impl Reader for Silent {
    fn line(&mut self, _line: &[u8]) -> Option<Activity> {
        None
    }

    fn has_answered(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>, _rest: &Rest<'_>) -> Heard {
        Heard::default()
    }
}
