//! The greeting that `runnerctl stdio` prints before it copies bytes: a line that announces it, with its environment.
//!
//! A login shell may print something before it. Another version of the same program may read the line, and uses only
//! what it knows.

use std::collections::BTreeMap;
use std::env;
use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _};

const LINE_PREFIX: &str = "runnerctl-stdio ";
/// Maximum number of bytes read, including the line.
const MAX_BYTES: usize = 1 << 20;

/// The content of the greeting.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StdioGreeting {
    /// The variables of its login, for programs of a run that is started from another machine.
    pub environment: BTreeMap<String, String>,
}

impl StdioGreeting {
    /// Describes this process; variables that are not UTF-8 are left out.
    pub fn for_this_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { environment: env::vars_os().filter_map(text).collect() }
    }

    /// Returns the line.
    pub fn to_line(&self) -> String {
        let json = serde_json::to_string(self).expect("BUG: a greeting is not JSON");
        format!("{LINE_PREFIX}{json}\n")
    }

    /// Reads lines until one is a greeting; `None` if the stream ends before.
    ///
    /// Bytes after it in the same piece are dropped: a daemon sends nothing unasked.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut buffer = Vec::new();
        let mut begin = 0;
        while buffer.len() < MAX_BYTES && from.read_buf(&mut buffer).await? > 0 {
            while let Some(length) = buffer[begin..].iter().position(|byte| *byte == b'\n') {
                if let Some(found) = parse_greeting(&buffer[begin..begin + length]) {
                    return Ok(Some(found));
                }
                begin += length + 1;
            }
        }
        Ok(None)
    }
}

fn parse_greeting(line: &[u8]) -> Option<StdioGreeting> {
    serde_json::from_slice(line.strip_prefix(LINE_PREFIX.as_bytes())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &str) -> Option<StdioGreeting> {
        StdioGreeting::read(&mut bytes.as_bytes()).await.unwrap()
    }

    #[tokio::test]
    async fn a_greeting_is_found_behind_what_a_shell_has_printed() {
        let greeting = StdioGreeting { environment: [("HOME".into(), "/h\n".into())].into() };
        let found = read(&format!("Welcome!\n\n{}", greeting.to_line())).await.unwrap();
        assert_eq!(found.environment["HOME"], "/h\n");
    }

    #[tokio::test]
    async fn other_lines_alone_are_no_greeting() {
        assert!(read("runnerctl-stdio\nrunnerctl-stdio {\nrunnerctl-stdio {}").await.is_none());
        assert!(read(&"x".repeat(MAX_BYTES + 7)).await.is_none());
        assert!(read("runnerctl-stdio {}\n").await.is_some());
    }
}
