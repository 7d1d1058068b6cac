//! The files under `.runner/` and their content: who may write which, and how a person's request changes them.

pub mod answer;
pub mod change;
pub mod guardrails;
pub mod layout;
pub mod notes;
pub mod person_edit;
pub mod questions;
