//! Renders answers as text: pure functions from views to strings.
//!
//! Styles are always in the string; `ui` removes them if the output is not a terminal.

pub(crate) mod audit;
pub(crate) mod bisect;
pub(crate) mod branch;
pub(crate) mod change;
pub(crate) mod checkout;
pub(crate) mod deliver;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod iteration;
pub(crate) mod landing;
pub(crate) mod measure;
pub(crate) mod paint;
pub(crate) mod repo;
pub(crate) mod review;
pub(crate) mod run;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod screen;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod titles;
pub(crate) mod tree;
pub(crate) mod usage;
pub(crate) mod wrap;

pub(crate) use protocol::sanitize;
