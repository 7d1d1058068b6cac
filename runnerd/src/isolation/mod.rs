//! Isolated runs around their engine: the id that is taken in the source, and what is removed of a run that never came
//! to be or is over. How a workspace is made is `workspace`'s, what is brought to the source `publish`'s, and the run
//! itself a worker's like any other.

mod reservation;
mod room;
mod sweep;

pub use self::reservation::{ReserveError, Reserved, reserve};
pub use self::room::{bytes_below, free_bytes, short_of_room};
pub use self::sweep::{Orphan, forget, forsake, give_back, stillborn};
