//! The files under `.runner/` and what stands in them: who may write which, and what a person's request makes of them.

pub mod answer;
pub mod change;
pub mod guardrails;
pub mod layout;
pub mod notes;
pub mod person;
pub mod questions;
