//! What a service manager like systemd and the daemon have with each other: a socket that it passes, and what it is told.
//!
//! It is spoken to by variables and datagrams, which other supervisors understand too; without them nothing here says
//! anything. How a service is installed is the client's affair.

mod watchdog;
mod notify;
mod socket_activation;
mod health_check;

pub use self::watchdog::ServiceWatchdog;
pub use self::notify::ServiceNotifier;
pub use self::socket_activation::{ActivatedSocket, ActivationError};
