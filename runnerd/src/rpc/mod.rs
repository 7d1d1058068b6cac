//! The control socket: who may connect, who may steer, and how calls are carried out.
//!
//! Locks and the socket come first ([`Locks`], [`Bound`]), then [`serve`] answers with the methods that it
//! is given. What the methods do is not known here, but for which of them only read.

mod access;
mod ancestry;
mod detach;
mod guarded_io;
mod backpressure;
mod listener;
mod lock;
mod peer;
mod socket;
mod inside_limit;
mod middleware;

pub use self::access::{CallerCheck, READING};
pub use self::ancestry::AgentSign;
pub use self::listener::{ServeHandle, ServerOptions, connection_limit, serve};
pub use self::lock::{LockError, DaemonLocks};
pub use self::peer::{Peer, PeerRole};
pub use self::socket::{BoundSocket, SocketError};
