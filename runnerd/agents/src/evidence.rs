//! Evidence for classifying the end of a session, as reported by the program.

use jiff::Timestamp;
use runner_core::feedback::clip_output;
use runner_core::text::redact::Secrets;

/// Maximum number of signals that a record shows.
const MAX_SHOWN: usize = 16;
/// Size limit in bytes of one of them.
const MAX_SHOWN_BYTES: usize = 2_000;

/// Beginnings of lines that programs print whatever comes of a session.
const NOTICES: [&str; 9] = [
    "(Use `node ",
    "(node:",
    "Loaded cached credentials",
    "Ripgrep is not available",
    "Warning:",
    "YOLO mode is enabled",
    "[claude-code:",
    "[ede_diagnostic]",
    "warning:",
];

/// Everything that a session reported about its end, machine-readable signals first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EndEvidence {
    /// Signals, the most telling first.
    pub(super) signals: Vec<EndSignal>,
    /// When a limit ends, if the program gives a point in time.
    pub(super) resets_at: Option<Timestamp>,
}

/// One reported value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndSignal {
    /// The field that contains it, by the backend's own name; `message` and `stderr` are text for people.
    pub(super) field: &'static str,
    /// Its value.
    pub(super) value: String,
}

impl EndEvidence {
    /// Adds a signal, unless its value is empty.
    pub(super) fn add(&mut self, field: &'static str, value: impl Into<String>) {
        let value = value.into();
        if !value.trim().is_empty() {
            self.signals.push(EndSignal { field, value });
        }
    }

    /// Returns the evidence with secrets redacted.
    pub(super) fn redact_signals(mut self, secrets: &Secrets) -> Self {
        for signal in &mut self.signals {
            signal.value = secrets.redact(&signal.value).into_owned();
        }
        self
    }

    /// Returns the signals as shown in a record.
    pub(super) fn record_lines(&self) -> Vec<String> {
        let shown = self.signals.iter().take(MAX_SHOWN);
        shown.map(|signal| format!("{}: {}", signal.field, clip_output(signal.value.trim(), MAX_SHOWN_BYTES))).collect()
    }

    /// Returns the values of a field.
    pub(super) fn field_values(&self, field: &str) -> impl Iterator<Item = &str> {
        self.signals.iter().filter(move |signal| signal.field == field).map(|signal| signal.value.as_str())
    }

    /// Returns the first text for people, without lines that say nothing of the end.
    pub(super) fn first_message(&self) -> Option<String> {
        let texts = self.field_values("message").chain(self.field_values("stderr"));
        texts.map(remove_notices).find(|text| !text.is_empty())
    }
}

fn remove_notices(text: &str) -> String {
    let is_notice = |line: &&str| NOTICES.iter().any(|notice| line.trim_start().starts_with(notice));
    let lines: Vec<&str> = text.lines().filter(|line| !is_notice(line)).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message_of(signals: &[(&'static str, &str)]) -> Option<String> {
        let mut evidence = EndEvidence::default();
        for (field, value) in signals {
            evidence.add(field, *value);
        }
        evidence.first_message()
    }

    #[test]
    fn what_a_program_prints_whatever_happens_is_no_cause() {
        let notices = "Warning: 256-color support not detected. Using a terminal with at least 256-color support.\n\
                       YOLO mode is enabled. All tool calls will be automatically approved.\n";
        assert_eq!(message_of(&[("stderr", notices)]), None);
        let failed = format!("{notices}Error: the disk is full\n    at write\n");
        assert_eq!(message_of(&[("stderr", &failed)]).as_deref(), Some("Error: the disk is full\n    at write"));
        let diagnostic = "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use";
        assert_eq!(
            message_of(&[("message", diagnostic), ("stderr", "no more memory")]).as_deref(),
            Some("no more memory")
        );
        let model = "[claude-code:unrecognized_model] {\"model\":\"m\"}";
        assert_eq!(message_of(&[("message", "It is over."), ("stderr", model)]).as_deref(), Some("It is over."));
    }
}
