//! What clients see of a run: made anew from what is committed, and never decided from.

pub(crate) mod iterations;
pub(crate) mod snapshot;
pub(crate) mod totals;
