//! Parses what a request is about from its path and query. Only valid ids and numbers pass.

use std::collections::HashMap;

use axum::extract::{FromRequestParts, Path, Query};
use http::request::Parts;

use crate::problem::ApiProblem;

/// Maximum length of an id.
const MAX_ID: usize = 200;

/// The subject of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestTarget {
    /// Id of the repository; `None` is the only one.
    pub(crate) repo: Option<String>,
    /// Id of the run or a prefix of it; `None` is the current one.
    pub(crate) run: Option<String>,
    /// The iteration.
    pub(crate) iter: Option<IterationId>,
    /// First number or byte offset requested.
    pub(crate) start: u64,
}

/// An iteration, or a wait under its number that left no commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IterationId {
    /// Its number.
    pub(crate) number: u32,
    /// Number of the wait.
    pub(crate) wait: Option<u32>,
}

impl IterationId {
    /// Parses the name of a record's folder; `None` if it is not one.
    pub(crate) fn from_record_name(name: &str) -> Option<Self> {
        parse_iteration(name).ok()
    }

    /// Returns the name of its record's folder.
    pub(crate) fn record_name(self) -> String {
        let Self { number, wait } = self;
        wait.map_or_else(|| format!("{number:04}"), |wait| format!("{number:04}.w{wait}"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestTarget {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiProblem> {
        type Pairs = HashMap<String, String>;
        let path = Path::<Pairs>::from_request_parts(parts, state).await;
        let Path(path) = path.map_err(|_| ApiProblem::invalid("the path is not UTF-8"))?;
        let query = Query::<Pairs>::from_request_parts(parts, state).await;
        let Query(query) = query.map_err(|_| ApiProblem::invalid("the query cannot be read"))?;
        let iter = path.get("iter").map(|text| parse_iteration(text)).transpose()?;
        Ok(Self {
            repo: path.get("repo").map(|text| parse_id(text)).transpose()?,
            run: path.get("run").or_else(|| query.get("run")).map(|text| parse_id(text)).transpose()?,
            iter,
            start: query.get("from").map_or(Ok(0), |text| parse_number(text))?,
        })
    }
}

/// Validates an id: it may become a file name.
pub(crate) fn parse_id(text: &str) -> Result<String, ApiProblem> {
    let is_id_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_id = text.len() <= MAX_ID
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && text.bytes().all(is_id_byte)
        && !text.contains("..");
    if is_id { Ok(text.to_owned()) } else { Err(ApiProblem::invalid("that is no id of a repository or a run")) }
}

/// Parses `7` or `7.w2`.
fn parse_iteration(text: &str) -> Result<IterationId, ApiProblem> {
    let (number, wait) = text.split_once(".w").map_or((text, None), |(number, wait)| (number, Some(wait)));
    Ok(IterationId { number: self::parse_number(number)?, wait: wait.map(self::parse_number).transpose()? })
}

/// Parses a number that consists only of digits.
fn parse_number<N: std::str::FromStr>(text: &str) -> Result<N, ApiProblem> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_digits).ok_or_else(|| ApiProblem::invalid("that is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_name_and_never_a_path() {
        assert!(["a", "run-1", "port.to_postgres-2", "9f86d081884c"].iter().all(|text| parse_id(text).is_ok()));
        let hostile =
            ["", ".", "..", "a/b", "/etc/passwd", "a..b", "-x", ".git", "a\0b", "a b", "ü", "a\n", "%2e%2e", "a\\b"];
        assert!(hostile.iter().all(|text| parse_id(text).is_err()));
        assert!(parse_id(&"a".repeat(MAX_ID)).is_ok() && parse_id(&"a".repeat(MAX_ID + 1)).is_err());
    }

    #[test]
    fn an_iteration_is_a_number_and_perhaps_a_try() {
        let parse = |text: &str| parse_iteration(text).ok().map(|iter| (iter.number, iter.wait));
        assert_eq!((parse("0007"), parse("7.w2")), (Some((7, None)), Some((7, Some(2)))));
        assert!(
            ["", "+7", "-1", "7.w", ".w1", "7.w1.w2", "4294967296", "0x7", "7/..", "７"]
                .iter()
                .all(|text| parse(text).is_none())
        );
    }
}
