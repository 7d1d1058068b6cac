//! Evidence for classifying the end of a session, as reported by the program.

use jiff::Timestamp;
use runner_core::feedback::clip_output;
use runner_core::redact::Secrets;

/// Maximum number of signals that a record shows.
const MAX_SHOWN: usize = 16;
/// Size limit in bytes of one of them.
const MAX_SHOWN_BYTES: usize = 2_000;

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

    /// Returns the first text for people.
    pub(super) fn first_message(&self) -> Option<&str> {
        let find_signal = |field: &str| self.signals.iter().find(|signal| signal.field == field);
        find_signal("message").or_else(|| find_signal("stderr")).map(|signal| signal.value.trim())
    }
}
