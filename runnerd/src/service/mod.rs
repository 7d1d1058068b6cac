//! The interface to a service manager like systemd: a socket that it passes, and notifications to it.
//!
//! It uses variables and datagrams, which other supervisors understand too; without them nothing is sent. Installing a
//! service is up to the client.

mod health_check;
mod notify;
mod socket_activation;
mod watchdog;

pub use self::notify::ServiceNotifier;
pub use self::socket_activation::{ActivatedSocket, ActivationError};
pub use self::watchdog::ServiceWatchdog;
