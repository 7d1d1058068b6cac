//! A text that a person wrote, and its file: what is refused in it is told with file, line, column and what was meant.

use std::fmt::Display;
use std::ops::Range;
use std::path::{Component, Path};

use super::position::{line_column, nearest, of_word};
use crate::fault::Fault;

/// A text and its file, for those who refuse a part of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    pub(crate) file: &'a Path,
}

impl Source<'_> {
    /// Refuses what stands in a range.
    pub(crate) fn refuse(&self, at: Range<usize>, why: impl Display) -> Fault {
        let place = line_column(self.text, at.start);
        Fault::usage(format!("{}:{place}: {why}", self.file.display()))
    }

    /// Tells what the parser tells; of an unknown key also the one that was meant.
    pub(crate) fn refuse_toml(&self, error: &toml::de::Error) -> Fault {
        let message = error.message().trim().replace('\n', ", ");
        let at = error.span().unwrap_or(0..0);
        let mut words = message.split('`').skip(1).step_by(2);
        let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
        let Some(written) = words.next().filter(|_| is_unknown) else {
            return self.refuse(at, message);
        };
        let meant = nearest(written, words).map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
        let start = of_word(self.text, written, at.start);
        self.refuse(start..start, format!("{message}{meant}"))
    }

    /// A path stays inside of the repository, and outside of what belongs to git and to the runner.
    pub(crate) fn check_path(&self, path: &str, at: Range<usize>) -> Result<(), Fault> {
        let mut parts = Path::new(path).components();
        let is_inside = !path.is_empty() && parts.clone().all(|part| matches!(part, Component::Normal(_)));
        let first = parts.next().map(|part| part.as_os_str().to_ascii_lowercase()).unwrap_or_default();
        if is_inside && first != ".git" && first != ".runner" {
            return Ok(());
        }
        let why = "is to be relative, without `..`, and not in `.git` or `.runner`";
        Err(self.refuse(at, format!("the path `{path}` {why}")))
    }
}
