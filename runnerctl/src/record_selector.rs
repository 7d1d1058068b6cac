//! Names of records: `7`, `7.w2` for a wait under that number, `port/7` including the run.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::run_target::{RunTarget, to_run_name};

/// An iteration, of the current run if none is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordSelector {
    /// Id of the run or a unique prefix.
    pub(crate) run: Option<String>,
    /// Number of the iteration.
    pub(crate) iter: u32,
    /// Number of the wait under it, if named.
    pub(crate) wait: Option<u32>,
}

/// A record, or a run or repository by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordTarget {
    /// A record.
    Record(RecordSelector),
    /// What `[RUN|PATH]` means.
    Run(PathBuf),
}

impl RecordTarget {
    /// Returns the selected run or repository, and the selected record of it.
    pub(crate) fn into_parts(self) -> (RunTarget, Option<RecordSelector>) {
        match self {
            Self::Record(record) => (RunTarget { target: None, run: record.run.clone() }, Some(record)),
            Self::Run(word) => (RunTarget::from_word(word), None),
        }
    }
}

impl FromStr for RecordTarget {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let Ok(record) = RecordSelector::from_str(text) else { return Ok(Self::Run(text.into())) };
        let Some(run) = &record.run else { return Ok(Self::Record(record)) };
        Ok(match to_run_name(Path::new(run)).map(str::to_owned) {
            Some(run) => Self::Record(RecordSelector { run: Some(run), ..record }),
            None => Self::Run(text.into()),
        })
    }
}

impl FromStr for RecordSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (run, name) = text.rsplit_once('/').map_or((None, text), |(run, name)| (Some(run.to_owned()), name));
        let (iter, wait) = name.split_once(".w").map_or((name, None), |(iter, wait)| (iter, Some(wait)));
        let number = |text: &str| {
            text.parse().map_err(|_| format!("`{text}` is not the number of an iteration: write 7, 7.w2 or RUN/7"))
        };
        Ok(Self { run, iter: number(iter)?, wait: wait.map(number).transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_a_number_and_perhaps_a_run_and_a_wait() {
        let parse = |text: &str| text.parse::<RecordSelector>().map(|record| (record.run, record.iter, record.wait));
        assert_eq!(parse("0007"), Ok((None, 7, None)));
        assert_eq!(parse("7.w2"), Ok((None, 7, Some(2))));
        assert_eq!(parse("port-1.2/7"), Ok((Some("port-1.2".into()), 7, None)));
        assert!(["", "port", "port/", "7.w", "-1", "1/2/x"].iter().all(|text| parse(text).is_err()));
    }

    #[test]
    fn a_word_that_is_no_record_is_a_run_or_a_path() {
        let parse = |text: &str| match text.parse() {
            Ok(RecordTarget::Record(record)) => format!("{:?} {}", record.run, record.iter),
            Ok(RecordTarget::Run(word)) => word.display().to_string(),
        };
        assert_eq!(
            ["7", "port/7", "runner/port/7", "port", "runner/port", "./port/7", "/p/7"].map(parse),
            ["None 7", "Some(\"port\") 7", "Some(\"port\") 7", "port", "runner/port", "./port/7", "/p/7"]
        );
    }
}
