//! What surrounds the runs, as a user types it: what a shell completes, the manual, `doctor`, and mistakes.

mod completion;
mod doctor;
mod fleet;
mod hosts;
mod manual;
mod mcp;
mod mistakes;
mod traces;
mod ui;
