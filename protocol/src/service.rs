//! The names by which a service that `runnerctl service install` wrote is known: to the client that writes it, and to
//! every client that has it started. What is in the files is the client's affair.

use std::path::Path;

/// The unit of the daemon.
pub const SERVICE_UNIT: &str = "runnerd.service";
/// The unit of its socket.
pub const SOCKET_UNIT: &str = "runnerd.socket";

/// Returns the line of the socket's unit that names the socket; none for a path that no unit can name.
pub fn listen_line(socket: &Path) -> Option<String> {
    let path = socket.to_str().filter(|path| !path.contains(char::is_control))?;
    Some(format!("ListenStream={}", path.replace('%', "%%")))
}
