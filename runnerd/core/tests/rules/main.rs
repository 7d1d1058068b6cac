//! The oracle of the rules: what the specification says, typed anew and held against `runner-core`.
//!
//! One binary for all of it. Nothing here repeats how a rule is computed; expectations are values.

mod change;
mod definition;
mod documents;
mod examine;
mod explain;
mod fallback;
mod feedback;
mod fixture;
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
