//! A text written by a person, with its file: errors in it give file, line, column and a suggestion.

use std::fmt::Display;
use std::ops::Range;
use std::path::{Component, Path};

use super::position::{find_nearest, format_position, word_offset};
use crate::error::EvalError;

/// A text and its file, for reporting errors in a part of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceText<'a> {
    pub(crate) text: &'a str,
    pub(crate) file: &'a Path,
}

impl SourceText<'_> {
    /// Returns the error for a range of the text.
    pub(crate) fn error_at(&self, span: Range<usize>, why: impl Display) -> EvalError {
        let position = format_position(self.text, span.start);
        EvalError::usage(format!("{}:{position}: {why}", self.file.display()))
    }

    /// Converts a TOML parse error; for an unknown key it adds a suggestion.
    pub(crate) fn toml_error(&self, error: &toml::de::Error) -> EvalError {
        let message = error.message().trim().replace('\n', ", ");
        let span = error.span().unwrap_or(0..0);
        let mut words = message.split('`').skip(1).step_by(2);
        let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
        let Some(unknown) = words.next().filter(|_| is_unknown) else {
            return self.error_at(span, message);
        };
        let suggestion =
            find_nearest(unknown, words).map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
        let start = word_offset(self.text, unknown, span.start);
        self.error_at(start..start, format!("{message}{suggestion}"))
    }

    /// Checks that a path stays inside the repository and outside the folders of git and the runner.
    pub(crate) fn check_path(&self, path: &str, span: Range<usize>) -> Result<(), EvalError> {
        let mut parts = Path::new(path).components();
        let is_inside = !path.is_empty() && parts.clone().all(|part| matches!(part, Component::Normal(_)));
        let first = parts.next().map(|part| part.as_os_str().to_ascii_lowercase()).unwrap_or_default();
        if is_inside && first != ".git" && first != ".runner" {
            return Ok(());
        }
        let why = "is to be relative, without `..`, and not in `.git` or `.runner`";
        Err(self.error_at(span, format!("the path `{path}` {why}")))
    }
}
