//! Text as HTML has it.

/// Returns text that a page shows as it is.
pub(crate) fn escape(text: &str) -> String {
    protocol::sanitize::safe(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
