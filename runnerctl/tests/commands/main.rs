//! What surrounds the runs, as a user types it: mistakes.

mod mistakes;
