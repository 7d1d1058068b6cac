//! Parses what forges report about a request into feedback items.
//!
//! By default only comments of people with write access to the repository count: on a public one anyone can write a
//! comment, and a session would read it.

pub(super) mod github;
pub(super) mod gitlab;

use protocol::error::ExitStatus;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Parses the JSON output of a program.
pub(super) fn parse_json<T: DeserializeOwned>(text: &str, program: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| unreadable_failure(program, &error))
}

/// Parses a list from concatenated pages.
pub(super) fn parse_pages<T: DeserializeOwned>(text: &str, program: &str) -> Result<Vec<T>, Failure> {
    let mut items = Vec::new();
    for page in serde_json::Deserializer::from_str(text).into_iter::<Vec<T>>() {
        items.extend(page.map_err(|error| unreadable_failure(program, &error))?);
    }
    Ok(items)
}

fn unreadable_failure(program: &str, error: &serde_json::Error) -> Failure {
    let message = format!("`{program}` has answered in a form that is not known here");
    Failure::new(ExitStatus::Error, "forge", message)
        .caused_by(error.to_string())
        .hint(format!("{} --version", program_name(program)))
}

fn program_name(program: &str) -> &str {
    program.split(' ').next().unwrap_or(program)
}
