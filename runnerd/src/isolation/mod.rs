//! The surroundings of isolated runs: reserving an id in the source, and removing what is left of a run that was never
//! created or is over. Creating a workspace is in `workspace`, publishing to the source in `publish`, and the run
//! itself is driven by a worker like any other.

mod disk_usage;
mod reservation;
mod sweep;

pub use self::disk_usage::{directory_bytes, free_bytes, low_disk_warning};
pub use self::reservation::{ReserveError, ReservedId, reserve_id};
pub use self::sweep::{OrphanReservation, find_orphans, release_id, remove_run_traces, remove_workspace};
