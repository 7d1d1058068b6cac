//! What can be wrong with a configuration, and where.
//!
//! A message names the file, line and column if the fault is in a file, and only the key if it is in a value that was
//! just given.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use protocol::settings_file::SettingsFileError;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file exists but cannot be read.
    #[error("reading the configuration {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Others could have written it.
    #[error("the configuration is not obeyed: {0}")]
    Untrusted(SettingsFileError),
    /// The text was read but is invalid.
    #[error("{place}{problem}")]
    Invalid {
        /// Where the fault is.
        place: FaultPosition,
        /// What the fault is.
        problem: Box<ConfigProblem>,
    },
}

impl ConfigError {
    pub(super) fn invalid(place: FaultPosition, problem: ConfigProblem) -> Self {
        let problem = Box::new(problem);
        Self::Invalid { place, problem }
    }

    /// Reports a fault in a value that is in no file yet.
    pub(super) fn without_position(problem: ConfigProblem) -> Self {
        Self::invalid(FaultPosition::default(), problem)
    }

    /// Returns the dotted key that the faulty one requires.
    pub fn missing_key(&self) -> Option<&str> {
        let Self::Invalid { problem, .. } = self else { return None };
        if let ConfigProblem::Requires { needed, .. } = &**problem { Some(needed) } else { None }
    }
}

/// The position of a fault: displayed as `file:line:column: `, or as nothing if it is in no file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPosition {
    /// The file as the caller names it.
    pub file: Option<PathBuf>,
    /// Line and column, both counted from 1, the column in characters.
    pub position: Option<(usize, usize)>,
}

impl FaultPosition {
    /// Finds the position of byte `offset` of `text`.
    pub(super) fn locate(file: &Path, text: &str, offset: Option<usize>) -> Self {
        let position = offset.map(|offset| {
            let before = &text[..text.floor_char_boundary(offset)];
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            let line = before.matches('\n').count() + 1;
            (line, before[line_start..].chars().count() + 1)
        });
        Self { file: Some(file.to_owned()), position }
    }
}

impl fmt::Display for FaultPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(file) = &self.file else {
            return Ok(());
        };
        write!(f, "{}:", file.display())?;
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column}:")?;
        }
        f.write_str(" ")
    }
}

/// One fault of a configuration text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigProblem {
    /// The text is not TOML.
    #[error("invalid TOML: {0}")]
    Syntax(String),
    /// The bytes are not UTF-8.
    #[error("invalid UTF-8")]
    NotUtf8,
    /// The text is longer than any sensible configuration.
    #[error("the file has {size} bytes; a configuration may have {limit}")]
    TooLarge {
        /// Bytes found.
        size: usize,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// No such key exists.
    #[error("unknown key `{key}` {}{}", section_name(section), suggestion(nearest.as_deref()))]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The table that contains it; empty for the top level.
        section: String,
        /// The known key that was probably meant.
        nearest: Option<String>,
    },
    /// A section was given a plain value.
    #[error("`{0}` is a section and cannot be given a value")]
    NotASection(String),
    /// The value has the wrong type or is out of range.
    #[error("`{key}` must be {expected}, not {found}{}", suggestion(nearest.as_deref()))]
    Invalid {
        /// The dotted key.
        key: String,
        /// What is allowed.
        expected: String,
        /// What was found.
        found: String,
        /// The allowed word that was probably meant.
        nearest: Option<String>,
    },
    /// A required key of a section is missing.
    #[error("`{0}` is missing")]
    Missing(String),
    /// A setting requires another one.
    #[error("`{key}` names \"{value}\", which needs `{needed}`")]
    Requires {
        /// The dotted key that has the requirement.
        key: String,
        /// Its value.
        value: &'static str,
        /// The dotted key that must also be set.
        needed: String,
    },
    /// The agent has no way to do what a key asks for.
    #[error("`{key}` is not for the kind \"{kind}\", which has no such setting")]
    NotForKind {
        /// The dotted key.
        key: String,
        /// The kind of agent.
        kind: &'static str,
    },
    /// A wrapper decides which home the program sees.
    #[error("`{key}` has no effect with `wrapper`, which decides which home the program has")]
    NotWithWrapper {
        /// The dotted key.
        key: String,
    },
    /// The values pass their checks but do not fit the types: the table of keys is out of step.
    #[error("unusable configuration: {0}")]
    TypeMismatch(String),
}

impl ConfigProblem {
    /// Returns the dotted key at fault, if the fault concerns a single key.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Invalid { key, .. }
            | Self::Requires { key, .. }
            | Self::NotForKind { key, .. }
            | Self::NotWithWrapper { key } => Some(key),
            Self::NotASection(key) | Self::Missing(key) => Some(key),
            Self::Syntax(_)
            | Self::NotUtf8
            | Self::TooLarge { .. }
            | Self::UnknownKey { .. }
            | Self::TypeMismatch(_) => None,
        }
    }
}

fn section_name(section: &str) -> String {
    match section {
        "" => "at the top level".to_owned(),
        named => format!("in [{named}]"),
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |word| format!("; did you mean `{word}`?"))
}
