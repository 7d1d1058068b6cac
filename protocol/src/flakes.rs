//! Tests that fail and then pass on the same files.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of times from which it is worth knowing when it began.
const REPEATED: u32 = 3;

/// A test that failed and then passed on the same files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlakyTest {
    /// Its name, with its file if that is known; null for a guard that failed without naming a test.
    pub name: Option<String>,
    /// Number of times in this run.
    pub count: u32,
    /// The task whose guard it was the first time.
    pub first_node: String,
    /// The iteration of the last time.
    pub last_iter: u32,
}

impl fmt::Display for FlakyTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, count, first_node, .. } = self;
        let name = name.as_deref().unwrap_or("the guard, which named no test");
        match *count {
            0 | 1 => write!(f, "{name} (once)"),
            count if count < REPEATED => write!(f, "{name} ({count} times)"),
            count => write!(f, "{name} ({count} times, since task {first_node})"),
        }
    }
}

/// What failed in an iteration before its guard passed on the same files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlakyRunView {
    /// The first tests; empty if the guard named none.
    pub names: Vec<String>,
    /// Number of tests besides those.
    pub more: u32,
}

impl fmt::Display for FlakyRunView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { names, more } = self;
        f.write_str("failed, then passed on the same files")?;
        match (names.is_empty(), more) {
            (true, _) => Ok(()),
            (false, 0) => write!(f, ": {}", names.join(", ")),
            (false, more) => write!(f, ": {} and {more} more", names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_time_says_when_it_began() {
        let text = |count| {
            let name = Some("a_test.go TestA".to_owned());
            FlakyTest { name, count, first_node: "root.2".to_owned(), last_iter: 9 }.to_string()
        };
        assert_eq!(text(1), "a_test.go TestA (once)");
        assert_eq!(text(2), "a_test.go TestA (2 times)");
        assert_eq!(text(3), "a_test.go TestA (3 times, since task root.2)");
    }
}
