//! The oracle of the rules: the specification as values written by hand, compared with `runner-core`.
//!
//! All tests are in one binary. No rule is computed a second time here; expectations are values.

mod change;
mod definition;
mod documents;
mod examine;
mod explain;
mod fallback;
mod feedback;
mod fixture;
mod flakes;
mod iteration;
mod landing;
mod next;
mod precedence;
mod prompts;
mod properties;
mod publish;
mod reach;
mod run;
mod schemas;
mod transition;
mod tree;
mod verdicts;
mod watched;
