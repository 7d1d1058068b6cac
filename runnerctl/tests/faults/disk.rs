//! A disk that is full, slow, read-only or failing, and too few file descriptors. Rows 42, 43, 48 to 54 and 56 to 63.
//!
//! The disturbed run splits its goal into three parts and completes them: it must arrive at the same task tree as an
//! undisturbed run, without a charged attempt.

pub(crate) mod course;
mod slow;
