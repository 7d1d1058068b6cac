//! What `runnerctl stdio` says before it copies bytes: a line that tells that it is there, and the environment it is in.
//!
//! A login shell may have printed something before. The line is read by another version of the same program, which takes
//! from it what it knows.

use std::collections::BTreeMap;
use std::env;
use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _};

const MARK: &str = "runnerctl-stdio ";
/// Most of what is read, the line included.
const LIMIT: usize = 1 << 20;

/// What is said.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StdioGreeting {
    /// The version of the program that says it.
    pub version: String,
    /// Variables of the login that it runs in, for programs of a run that is started from elsewhere.
    pub environment: BTreeMap<String, String>,
}

impl StdioGreeting {
    /// Describes this process; a variable that is not UTF-8 is left out.
    pub fn of_this_process(version: &str) -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { version: version.to_owned(), environment: env::vars_os().filter_map(text).collect() }
    }

    /// Returns the line.
    pub fn line(&self) -> String {
        let said = serde_json::to_string(self).expect("BUG: a greeting is not JSON");
        format!("{MARK}{said}\n")
    }

    /// Reads lines until one is a greeting; none if the stream ends before.
    ///
    /// What stands behind it in the same piece is dropped: a daemon says nothing before it is asked.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let (mut said, mut begin) = (Vec::new(), 0);
        while said.len() < LIMIT && from.read_buf(&mut said).await? > 0 {
            while let Some(length) = said[begin..].iter().position(|byte| *byte == b'\n') {
                if let Some(found) = greeting(&said[begin..begin + length]) {
                    return Ok(Some(found));
                }
                begin += length + 1;
            }
        }
        Ok(None)
    }
}

fn greeting(line: &[u8]) -> Option<StdioGreeting> {
    serde_json::from_slice(line.strip_prefix(MARK.as_bytes())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &str) -> Option<StdioGreeting> {
        StdioGreeting::read(&mut bytes.as_bytes()).await.unwrap()
    }

    #[tokio::test]
    async fn a_greeting_is_found_behind_what_a_shell_has_printed() {
        let greeting = StdioGreeting { version: "1".into(), environment: [("HOME".into(), "/h\n".into())].into() };
        let found = read(&format!("Welcome!\n\n{}", greeting.line())).await.unwrap();
        assert_eq!((found.version.as_str(), found.environment["HOME"].as_str()), ("1", "/h\n"));
    }

    #[tokio::test]
    async fn other_lines_alone_are_no_greeting() {
        assert!(read("runnerctl-stdio\nrunnerctl-stdio {\nrunnerctl-stdio {}").await.is_none());
        assert!(read(&"x".repeat(LIMIT + 7)).await.is_none());
        assert!(read("runnerctl-stdio {}\n").await.is_some());
    }
}
