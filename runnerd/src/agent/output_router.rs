//! Hears a session: lines go to whoever understands them, steps of work to whoever watches.

use std::path::PathBuf;

use protocol::event::Activity;
use runner_core::answer::Form;
use tokio::sync::mpsc;

use super::answer_file;
use super::backend::{Heard, Reader, Rest};
use super::stream::{Lines, Tail};
use crate::process::{Follower, Stream};

/// Bytes of standard error that are looked at for the cause of an end.
const MAX_ERRORS: usize = 16 << 10;

/// What follows a session.
pub(super) struct OutputRouter {
    reader: Box<dyn Reader>,
    lines: Lines,
    errors: Tail,
    /// The file for the answer and its form, where nothing that is printed says that the session has given it.
    output: Option<(PathBuf, Form)>,
    activity: Option<mpsc::Sender<Activity>>,
}

impl OutputRouter {
    pub(super) fn new(
        reader: Box<dyn Reader>,
        output: Option<(PathBuf, Form)>,
        activity: Option<mpsc::Sender<Activity>>,
    ) -> Self {
        Self { reader, lines: Lines::default(), errors: Tail::new(MAX_ERRORS), output, activity }
    }

    /// Returns what was heard, once nothing more comes.
    pub(super) fn finish(mut self) -> Heard {
        let Self { reader, lines, .. } = &mut self;
        lines.finish(|line| drop(reader.line(line)));
        self.reader.finish(&Rest { errors: self.errors.bytes() })
    }
}

impl Follower for OutputRouter {
    fn hear(&mut self, stream: Stream, bytes: &[u8]) {
        let Self { reader, lines, errors, activity, .. } = self;
        match stream {
            Stream::Error => errors.push(bytes),
            Stream::Output => lines.push(bytes, |line| {
                if let (Some(step), Some(activity)) = (reader.line(line), activity.as_ref()) {
                    // For eyes only: whoever does not keep up misses a step.
                    let _ = activity.try_send(step);
                }
            }),
        }
    }

    fn has_answered(&mut self) -> bool {
        let is_given = |(file, form): &(PathBuf, Form)| answer_file::is_given(file, *form);
        self.reader.has_answered() || self.output.as_ref().is_some_and(is_given)
    }
}

#[cfg(test)]
mod tests {
    use super::super::backend::Heard;
    use super::*;

    struct AtWork;

    impl Reader for AtWork {
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

    #[test]
    fn file_is_the_last_step_only_where_nothing_is_printed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("output.json");
        std::fs::write(&file, r#"{"status":"done","summary":"x"}"#).unwrap();
        let has_answered = |output| OutputRouter::new(Box::new(AtWork), output, None).has_answered();
        assert!(has_answered(Some((file.clone(), Form::Answer))));
        assert!(!has_answered(Some((file, Form::Review))), "that is no review");
        assert!(!has_answered(None), "the session goes on to its last message");
    }
}
