//! What a rendering depends on besides its view: width, characters and the time.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The reader's side of a rendering.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// Columns; none where the reader is no terminal.
    pub(crate) width: Option<usize>,
    /// Whether characters beyond ASCII can be shown.
    pub(crate) unicode: bool,
    /// The time that ages are counted to.
    pub(crate) now: Timestamp,
    /// Whether times of day are those of the reader's zone; else they are UTC.
    pub(crate) is_local: bool,
}

impl Screen {
    /// Looks at the terminal and the locale.
    pub(crate) fn of_stdout() -> Self {
        Self {
            width: terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0)),
            unicode: is_utf8(|name| std::env::var(name).ok()),
            now: Timestamp::now(),
            is_local: true,
        }
    }

    /// Returns a time as the reader's clock shows it.
    pub(crate) fn clock(self, time: Timestamp) -> Zoned {
        time.to_zoned(if self.is_local { TimeZone::system() } else { TimeZone::UTC })
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
        let now = "2026-01-01T12:00:00Z".parse().expect("a time");
        Self { width: Some(100), unicode: true, now, is_local: false }
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
