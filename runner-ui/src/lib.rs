//! The web view: a server on loopback that shows repositories, runs and iterations, and follows them.
//!
//! A client of the daemon like any other: it knows the protocol, and the format of the records for when no daemon is
//! running. It changes nothing unless started with steering enabled.

mod access;
mod app;
mod args;
mod assets;
mod body;
mod caller;
mod compress;
mod connection_limit;
mod daemon_link;
mod export;
mod head;
mod headers;
mod hub;
mod problem;
mod range;
mod records;
mod routes;
mod serve;
mod source;
mod steer;
mod stream;
mod target;
mod text;
pub mod wire;

pub use self::access::AccessKeys;
pub use self::app::App;
pub use self::args::Args;
pub use self::assets::embedded_files;
pub use self::export::export;
pub use self::problem::startup_error;
pub use self::serve::{LoopbackListeners, serve};
