//! The files that say what the guard does: which these are, what a person has accepted of them, and what follows where
//! they are different.

mod command;
pub mod definition;
mod git;
pub mod ignored;
mod manifest;
mod paths;
mod reach;
mod script;
mod targets;
mod tools;
mod variables;
pub mod watched;
