//! What a rendering depends on besides its view: width, characters and the time.

use jiff::Timestamp;

/// The reader's side of a rendering.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// Columns; none where the reader is no terminal.
    pub(crate) width: Option<usize>,
    /// Whether characters beyond ASCII can be shown.
    pub(crate) unicode: bool,
    /// The time that ages are counted to.
    pub(crate) now: Timestamp,
}

impl Screen {
    /// Looks at the terminal and the locale.
    pub(crate) fn of_stdout() -> Self {
        Self {
            width: terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0)),
            unicode: is_utf8(|name| std::env::var(name).ok()),
            now: Timestamp::now(),
        }
    }

    /// Returns the character where it can be shown, else its replacement.
    pub(crate) fn pick(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }
}

/// Decides by the first locale variable that is set, in the order of POSIX.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variable(name).filter(|value| !value.is_empty())).is_some_and(
        |locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        },
    )
}

#[cfg(test)]
impl Screen {
    /// A wide terminal in a UTF-8 locale at a fixed time.
    pub(crate) fn fixed() -> Self {
        Self { width: Some(100), unicode: true, now: "2026-01-01T12:00:00Z".parse().expect("a time") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let locale = |name: &str| match name {
            "LC_ALL" => Some(String::new()),
            "LC_CTYPE" => Some("en_US.UTF-8".to_owned()),
            _ => Some("C".to_owned()),
        };
        assert!(is_utf8(locale));
        assert!(!is_utf8(|name| (name == "LANG").then(|| "C".to_owned())));
        assert!(!is_utf8(|_| None));
    }
}
