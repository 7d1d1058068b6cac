//! Commands other than runs, as a user types them: shell completion, the manual, `doctor`, and mistakes.

mod completion;
mod doctor;
mod fleet;
mod fresh;
mod hosts;
mod manual;
mod mcp;
mod mistakes;
mod targets;
mod traces;
mod ui;
