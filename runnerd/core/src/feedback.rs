//! Bounded text for `feedback.json`.

/// Cuts `text` to at most `limit` bytes on a character boundary.
pub fn clip(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    text[..text.floor_char_boundary(limit)].to_owned()
}
