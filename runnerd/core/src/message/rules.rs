//! The number of the rules that a commit was made by: it selects what the commit is judged by.
//!
//! A runner writes the number into every commit; a message without one is of the first rules. This says which numbers
//! there are, and nothing of what they select.

use std::fmt;

/// The number of a set of rules, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rules(u32);

impl Rules {
    /// The rules of commits that name none.
    pub const FIRST: Self = Self(1);
    /// The first rules that commits name.
    pub const SECOND: Self = Self(2);
    /// The first rules by which what is watched of the guard is told from its command, and a message begins with the title
    /// of its task.
    pub const THIRD: Self = Self(3);
    /// The first rules by which what the guard or the reviewer has found wrong is remembered until it is overcome.
    pub const FOURTH: Self = Self(4);
    /// The rules that this runner keeps.
    pub const CURRENT: Self = Self::FOURTH;

    /// Returns the rules with this number, whether they are known or not.
    pub const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// Tells whether a commit of these rules can be judged here.
    pub fn are_known(self) -> bool {
        (Self::FIRST..=Self::CURRENT).contains(&self)
    }
}

impl Default for Rules {
    /// Those that this runner keeps.
    fn default() -> Self {
        Self::CURRENT
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rules={}", self.0)
    }
}
