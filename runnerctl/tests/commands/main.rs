//! What surrounds the runs, as a user types it: what a shell completes, the manual, and mistakes.

mod completion;
mod manual;
mod mistakes;
