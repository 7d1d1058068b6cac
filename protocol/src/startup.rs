//! What a client and the daemon that it starts say to each other before there is a socket.
//!
//! The client gives the daemon a pipe as its standard output. The daemon writes one line to it, [`READY`]
//! once it listens or [`FAILED`] and a reason, and closes it. Nothing here starts anything.

/// The flag that tells the daemon that a client started it: it leaves the client's session and reports on
/// its standard output.
pub const FLAG: &str = "--launched";

/// The line that says that the daemon listens.
pub const READY: &str = "READY";

/// The start of the line that says why the daemon does not come up.
pub const FAILED: &str = "FAILED ";

/// Exit code of a daemon that found another one in its place; trying again later may succeed (`EX_TEMPFAIL`).
pub const EXIT_OCCUPIED: u8 = 75;

/// The variable that every process of an iteration has in its environment.
pub const MARK_VARIABLE: &str = "RUNNERD_MARK";
