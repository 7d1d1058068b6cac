//! What clients see of a run: rebuilt from the committed state, and never an input to decisions.

pub(crate) mod iterations;
pub(crate) mod snapshot;
pub(crate) mod totals;
