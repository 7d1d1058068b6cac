//! Formats an error with its causes in one line, for logs, views and reasons.

use std::error::Error;

/// Returns the error and its causes, outermost first, joined by `: `.
pub fn display_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
