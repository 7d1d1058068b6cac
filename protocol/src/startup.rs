//! The protocol between a client and the daemon that it starts, before there is a socket.
//!
//! The client gives the daemon a pipe as its standard output. The daemon writes one line to it, [`READY`] once it
//! listens or [`FAILED`] and a reason, and closes it. Nothing here starts anything.

/// The flag that tells the daemon that a client started it: it then leaves the client's session and reports on its
/// standard output.
pub const FLAG: &str = "--launched";

/// The line that reports that the daemon is listening.
pub const READY: &str = "READY";

/// The start of the line that reports why the daemon cannot start.
pub const FAILED: &str = "FAILED ";

/// Exit code of a daemon that found another one running; trying again later may succeed (`EX_TEMPFAIL`).
pub const EXIT_OCCUPIED: u8 = 75;

/// The variable that every process of an iteration has in its environment.
pub const MARK_VARIABLE: &str = "RUNNERD_MARK";
