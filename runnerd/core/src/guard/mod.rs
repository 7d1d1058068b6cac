//! The files that define what the guard does: which these are, what a person has accepted of them, and what follows if
//! they differ; the tests that it names, and what follows if it is flaky.

mod command;
pub mod definition;
pub mod flakes;
mod git_rules;
pub mod ignored_files;
mod includes;
mod make_targets;
mod manifest;
mod paths;
mod reached_files;
mod script;
mod targets;
pub mod test_results;
mod tools;
mod variables;
pub mod watched_files;
