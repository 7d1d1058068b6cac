//! A disk that is full, slow, read-only or failing, and too few handles. Rows 42, 43, 48 to 54 and 56 to 63.
//!
//! The run that is disturbed splits its goal in three and does the parts: it must come to the same task tree as one that
//! nothing happens to, without an attempt charged.

pub(crate) mod course;
mod slow;
