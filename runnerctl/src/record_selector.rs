//! Names of records: `7`, `7.w2` for a wait under that number, `port/7` including the run.

use std::str::FromStr;

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
}
