//! Versions of agent programs: parsed from their output, and compared.

use std::fmt;

/// Length limit of a version in bytes.
const MAX_BYTES: usize = 40;

/// The version that a program reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentVersion {
    /// Major, minor, patch.
    numbers: [u32; 3],
    text: String,
}

impl AgentVersion {
    /// Finds the first word of the form `1.2.3`, or `1.2.3-anything`.
    pub(super) fn find(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(Self::parse_word)
    }

    fn parse_word(word: &str) -> Option<Self> {
        let text = word.strip_prefix('v').unwrap_or(word);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-+_".contains(&byte);
        if text.len() > MAX_BYTES || !text.bytes().all(is_plain) {
            return None;
        }
        let release = text.split(['-', '+']).next().unwrap_or_default();
        let mut parts = release.split('.').map(|part| part.parse().ok());
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then(|| Self { numbers, text: text.to_owned() })
    }

    /// Whether it is newer than a release.
    pub(super) fn is_newer(&self, release: [u32; 3]) -> bool {
        self.numbers > release
    }

    /// Whether it is not older than a release; a pre-release counts as its release.
    pub(super) fn is_at_least(&self, oldest: [u32; 3]) -> bool {
        self.numbers >= oldest
    }
}

impl fmt::Display for AgentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_found_in_what_programs_say() {
        let found = |text: &str| AgentVersion::find(text).map(|version| version.to_string());
        assert_eq!(found("codex-cli 0.169.0\n").as_deref(), Some("0.169.0"));
        assert_eq!(found("2.1.330 (Claude Code)").as_deref(), Some("2.1.330"));
        assert_eq!(found("v1.18.33-beta.2").as_deref(), Some("1.18.33-beta.2"));
        for text in ["", "codex", "1.2", "1.2.3.4", "1.2.x", "1.2.3\u{1b}[0m", "99999999999.0.0"] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn versions_are_compared_by_number() {
        let version = AgentVersion::find("0.169.0").unwrap();
        assert!(version.is_at_least([0, 169, 0]) && version.is_at_least([0, 99, 5]));
        assert!(!version.is_at_least([0, 169, 1]) && !version.is_at_least([1, 0, 0]));
    }
}
