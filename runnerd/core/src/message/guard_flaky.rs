//! The trailer of a guard that failed and then passed on the same files.

use std::fmt;
use std::str::FromStr;

use protocol::flakes::FlakyRunView;

use super::name_list::NameList;
use super::trailer_values::MalformedValue;
use crate::guard::flakes::FlakyGuard;

/// Number of runs that failed, of how many.
const COUNTS: &str = "1/2";

/// How often the guard failed on the same files, and what: `1/2 tests/test_a.py::test_b`. It passed the second time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardFlaky {
    /// The tests that failed, with the file if it is known; empty if the guard named none.
    pub names: NameList,
}

impl GuardFlaky {
    /// Returns it for readers.
    pub fn to_view(&self) -> FlakyRunView {
        FlakyRunView { names: self.names.to_texts(), more: u32::try_from(self.names.more()).unwrap_or(u32::MAX) }
    }
}

impl From<&FlakyGuard> for GuardFlaky {
    fn from(flaky: &FlakyGuard) -> Self {
        Self { names: flaky.failing.clone() }
    }
}

impl fmt::Display for GuardFlaky {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(COUNTS)?;
        if self.names.is_empty() { Ok(()) } else { write!(f, " {}", self.names) }
    }
}

impl FromStr for GuardFlaky {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        const FORM: MalformedValue = MalformedValue("`1/2 <names>`");
        let (counts, names) = text.split_once(' ').map_or((text, None), |(counts, names)| (counts, Some(names)));
        let names = names.map_or(Ok(NameList::default()), str::parse).map_err(|_| FORM)?;
        let flaky = Self { names };
        if counts == COUNTS && flaky.to_string() == text { Ok(flaky) } else { Err(FORM) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_written_and_in_no_other_form() {
        let many: Vec<String> = (0..30).map(|at| format!("a.rs t{at}")).collect();
        for names in [NameList::default(), NameList::new(["a_test.go TestA", "b, c"]), NameList::new(&many)] {
            let flaky = GuardFlaky { names };
            assert_eq!(flaky.to_string().parse(), Ok(flaky));
        }
        for text in ["", "1/2 ", "2/2 a", "1/3", "a", "1/2 a,b", "1/2  a"] {
            assert!(text.parse::<GuardFlaky>().is_err(), "{text}");
        }
    }
}
