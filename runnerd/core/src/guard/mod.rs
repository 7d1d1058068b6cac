//! The files that say what the guard does: which these are, what a person has accepted of them, and what follows where
//! they are different.

pub mod definition;
mod git;
pub mod ignored;
mod manifest;
mod reach;
mod script;
mod tools;
pub mod watched;
