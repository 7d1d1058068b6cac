//! HTML escaping.

/// Escapes text for an HTML page.
pub(crate) fn escape_html(text: &str) -> String {
    protocol::sanitize::sanitize(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
