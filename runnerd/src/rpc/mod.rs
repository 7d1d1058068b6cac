//! The control socket: who may connect, who may make changes, and how calls are run.
//!
//! Locks and the socket come first ([`DaemonLocks`], [`BoundSocket`]), then [`serve`] answers with the methods it is given. What
//! the methods do is not known here, except which of them only read.

mod access;
mod ancestry;
mod backpressure;
mod detach;
mod guarded_io;
mod inside_limit;
mod listener;
mod lock;
mod middleware;
mod peer;
mod socket;

pub use self::access::{CallerCheck, READ_METHODS};
pub use self::ancestry::AgentSign;
pub use self::listener::{ServeHandle, ServerOptions, connection_limit, serve};
pub use self::lock::{DaemonLocks, LockError};
pub use self::peer::{Peer, PeerRole};
pub use self::socket::{BoundSocket, SocketError};
