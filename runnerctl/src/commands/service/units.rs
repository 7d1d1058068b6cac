//! What is written into the units: the templates of `systemd/` with the paths of this machine. Writes nothing.

use std::ffi::OsStr;
use std::path::Path;

use protocol::service::listen_line;

const SERVICE: &str = include_str!("../../../../systemd/runnerd.service");
const SOCKET: &str = include_str!("../../../../systemd/runnerd.socket");
const AGENT: &str = include_str!("../../../../systemd/dev.runnerd.plist");

/// The variables that a service manager would lack, or have otherwise.
pub(super) const PASSED_ON: [&str; 4] = ["PATH", "RUNNERD_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"];

/// What differs from machine to machine.
#[derive(Debug)]
pub(super) struct Values<'a> {
    /// The daemon's program.
    pub(super) program: &'a Path,
    /// Its socket.
    pub(super) socket: &'a Path,
    /// Variables, by name.
    pub(super) environment: Vec<(&'static str, String)>,
}

/// A path or variable that cannot stand in a unit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unwritable(pub(super) String);

/// Returns the daemon's unit.
pub(super) fn service(values: &Values<'_>) -> Result<String, Unwritable> {
    let mut environment = Vec::new();
    for (name, value) in &values.environment {
        environment.push(format!("Environment={}", quoted(&format!("{name}={}", line(value.as_ref())?))));
    }
    let program = quoted(line(values.program.as_os_str())?);
    Ok(SERVICE.replace("@PROGRAM@", &program).replace("@ENVIRONMENT@", &environment.join("\n")))
}

/// Returns the unit of its socket.
pub(super) fn socket(values: &Values<'_>) -> Result<String, Unwritable> {
    let listen = listen_line(values.socket).ok_or_else(|| Unwritable(values.socket.display().to_string()))?;
    Ok(SOCKET.replace("@LISTEN@", &listen))
}

/// Returns the agent of launchd.
pub(super) fn agent(values: &Values<'_>) -> Result<String, Unwritable> {
    let mut environment = Vec::new();
    for (name, value) in &values.environment {
        let value = escaped(line(value.as_ref())?);
        environment.push(format!("\t\t<key>{name}</key>\n\t\t<string>{value}</string>"));
    }
    let text = AGENT.replace("@PROGRAM@", &escaped(line(values.program.as_os_str())?));
    let text = text.replace("@SOCKET@", &escaped(line(values.socket.as_os_str())?));
    Ok(text.replace("@ENVIRONMENT@", &environment.join("\n")))
}

fn line(text: &OsStr) -> Result<&str, Unwritable> {
    let readable = text.to_str().filter(|text| !text.contains(char::is_control));
    readable.ok_or_else(|| Unwritable(text.to_string_lossy().into_owned()))
}

/// Quotes a word as systemd reads it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

/// Escapes a text as XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values<'static> {
        Values {
            program: Path::new("/home/me/my programs/100%/runnerd"),
            socket: Path::new("/run/user/1000/runnerd/runnerd.sock"),
            environment: vec![
                ("PATH", "/home/me/a \"b\" & c:/usr/bin".to_owned()),
                ("XDG_STATE_HOME", "/home/me/state".to_owned()),
            ],
        }
    }

    #[test]
    fn the_unit_of_the_daemon() {
        insta::assert_snapshot!(service(&values()).expect("a unit"));
    }

    #[test]
    fn the_unit_of_the_socket() {
        insta::assert_snapshot!(socket(&values()).expect("a unit"));
    }

    #[test]
    fn the_agent_of_launchd() {
        insta::assert_snapshot!(agent(&values()).expect("an agent"));
    }

    #[test]
    fn a_path_with_a_line_break_is_written_into_no_unit() {
        let hostile = Values { program: Path::new("/tmp/a\nExecStartPre=/bin/evil"), ..values() };
        assert!(service(&hostile).is_err() && agent(&hostile).is_err());
        let hostile = Values { socket: Path::new("/tmp/a\nb"), ..values() };
        assert!(socket(&hostile).is_err());
    }
}
