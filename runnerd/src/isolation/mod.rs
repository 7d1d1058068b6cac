//! Isolated runs around their engine: the id that is taken in the source, and what is removed of a run that never came
//! to be or is over. How a workspace is made is `workspace`'s, what is brought to the source `publish`'s, and the run
//! itself a worker's like any other.

mod reservation;
mod disk_usage;
mod sweep;

pub use self::reservation::{ReserveError, ReservedId, reserve_id};
pub use self::disk_usage::{directory_bytes, free_bytes, low_disk_warning};
pub use self::sweep::{OrphanReservation, remove_run_traces, remove_workspace, release_id, find_orphans};
