//! Routes a session's output: lines to their reader, steps of work to viewers.

use std::path::PathBuf;

use protocol::event::Activity;
use runner_core::files::answer::AnswerForm;
use runner_process::{OutputFollower, OutputStream};
use tokio::sync::mpsc;

use super::answer_file;
use super::backend::{OutputReader, SessionOutput, SessionRest};
use super::line_splitter::{LineSplitter, StreamTail};

/// Bytes of standard error that are searched for the cause of an end.
const MAX_ERRORS: usize = 16 << 10;

/// Follows the output of a session.
pub(super) struct OutputRouter {
    reader: Box<dyn OutputReader>,
    lines: LineSplitter,
    error_lines: LineSplitter,
    errors: StreamTail,
    /// The file for the answer and its form, if the output does not show that the session has answered.
    output: Option<(PathBuf, AnswerForm)>,
    activity: Option<mpsc::Sender<Activity>>,
}

impl OutputRouter {
    pub(super) fn new(
        reader: Box<dyn OutputReader>,
        output: Option<(PathBuf, AnswerForm)>,
        activity: Option<mpsc::Sender<Activity>>,
    ) -> Self {
        let lines = LineSplitter::default();
        let error_lines = LineSplitter::default();
        Self { reader, lines, error_lines, errors: StreamTail::new(MAX_ERRORS), output, activity }
    }

    /// Returns the result, once there is no more output.
    pub(super) fn finish(mut self) -> SessionOutput {
        let Self { reader, lines, .. } = &mut self;
        lines.finish(|line| drop(reader.read_line(line)));
        self.reader.finish_output(&SessionRest { errors: self.errors.bytes() })
    }
}

impl OutputFollower for OutputRouter {
    fn on_output(&mut self, stream: OutputStream, bytes: &[u8]) {
        let Self { reader, lines, error_lines, errors, activity, .. } = self;
        match stream {
            OutputStream::Error => {
                errors.push(bytes);
                error_lines.push(bytes, |line| reader.read_error_line(line));
            }
            OutputStream::Output => lines.push(bytes, |line| {
                if let (Some(step), Some(activity)) = (reader.read_line(line), activity.as_ref()) {
                    // For display only: a slow viewer misses a step.
                    let _ = activity.try_send(step);
                }
            }),
        }
    }

    fn has_answered(&mut self) -> bool {
        let is_given = |(file, form): &(PathBuf, AnswerForm)| answer_file::holds_answer(file, *form);
        self.reader.has_answered() || self.output.as_ref().is_some_and(is_given)
    }
}

#[cfg(test)]
mod tests {
    use super::super::backend::SessionOutput;
    use super::*;

    struct WorkingReader;

    impl OutputReader for WorkingReader {
        fn read_line(&mut self, _line: &[u8]) -> Option<Activity> {
            None
        }

        fn has_answered(&self) -> bool {
            false
        }

        fn finish_output(self: Box<Self>, _rest: &SessionRest<'_>) -> SessionOutput {
            SessionOutput::default()
        }
    }

    #[test]
    fn file_is_the_last_step_only_where_nothing_is_printed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("output.json");
        std::fs::write(&file, r#"{"status":"done","summary":"x"}"#).unwrap();
        let has_answered = |output| OutputRouter::new(Box::new(WorkingReader), output, None).has_answered();
        assert!(has_answered(Some((file.clone(), AnswerForm::Answer))));
        assert!(!has_answered(Some((file, AnswerForm::Review))), "that is not a review");
        assert!(!has_answered(None), "the session continues to its last message");
    }
}
