//! The names of the service that `runnerctl service install` writes, for the client that writes it and for every client
//! that starts it. The contents of the files are up to the client.

use std::path::Path;

/// The unit of the daemon.
pub const SERVICE_UNIT: &str = "runnerd.service";
/// The unit of its socket.
pub const SOCKET_UNIT: &str = "runnerd.socket";

/// Returns the line of the socket's unit that names the socket; `None` for a path that cannot be written in a unit.
pub fn listen_line(socket: &Path) -> Option<String> {
    let path = socket.to_str().filter(|path| !path.contains(char::is_control))?;
    Some(format!("ListenStream={}", path.replace('%', "%%")))
}
