//! Renders the units: the templates of `systemd/` with the paths of this machine. Writes nothing.

use std::ffi::OsStr;
use std::path::Path;

use protocol::service::listen_line;

const SERVICE_TEMPLATE: &str = include_str!("../../../../systemd/runnerd.service");
const SOCKET_TEMPLATE: &str = include_str!("../../../../systemd/runnerd.socket");
const PLIST_TEMPLATE: &str = include_str!("../../../../systemd/dev.runnerd.plist");

/// Variables that would be missing or different under a service manager.
pub(super) const PASSED_VARIABLES: [&str; 4] = ["PATH", "RUNNERD_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"];

/// Values that differ between machines.
#[derive(Debug)]
pub(super) struct UnitValues<'a> {
    /// The daemon's program.
    pub(super) program: &'a Path,
    /// Its socket.
    pub(super) socket: &'a Path,
    /// Environment variables, by name.
    pub(super) environment: Vec<(&'static str, String)>,
}

/// A path or variable that cannot be written in a unit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnitValueError(pub(super) String);

/// Returns the daemon's service unit.
pub(super) fn render_service_unit(values: &UnitValues<'_>) -> Result<String, UnitValueError> {
    let mut environment = Vec::new();
    for (name, value) in &values.environment {
        environment.push(format!("Environment={}", quote(&format!("{name}={}", to_line(value.as_ref())?))));
    }
    let program = quote(to_line(values.program.as_os_str())?);
    Ok(SERVICE_TEMPLATE.replace("@PROGRAM@", &program).replace("@ENVIRONMENT@", &environment.join("\n")))
}

/// Returns the daemon's socket unit.
pub(super) fn render_socket_unit(values: &UnitValues<'_>) -> Result<String, UnitValueError> {
    let listen = listen_line(values.socket).ok_or_else(|| UnitValueError(values.socket.display().to_string()))?;
    Ok(SOCKET_TEMPLATE.replace("@LISTEN@", &listen))
}

/// Returns the launchd agent.
pub(super) fn render_plist(values: &UnitValues<'_>) -> Result<String, UnitValueError> {
    let mut environment = Vec::new();
    for (name, value) in &values.environment {
        let value = escape_xml(to_line(value.as_ref())?);
        environment.push(format!("\t\t<key>{name}</key>\n\t\t<string>{value}</string>"));
    }
    let text = PLIST_TEMPLATE.replace("@PROGRAM@", &escape_xml(to_line(values.program.as_os_str())?));
    let text = text.replace("@SOCKET@", &escape_xml(to_line(values.socket.as_os_str())?));
    Ok(text.replace("@ENVIRONMENT@", &environment.join("\n")))
}

fn to_line(text: &OsStr) -> Result<&str, UnitValueError> {
    let readable = text.to_str().filter(|text| !text.contains(char::is_control));
    readable.ok_or_else(|| UnitValueError(text.to_string_lossy().into_owned()))
}

/// Quotes a word for systemd.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

/// Escapes text for XML.
fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_values() -> UnitValues<'static> {
        UnitValues {
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
        insta::assert_snapshot!(render_service_unit(&sample_values()).expect("a unit"));
    }

    #[test]
    fn the_unit_of_the_socket() {
        insta::assert_snapshot!(render_socket_unit(&sample_values()).expect("a unit"));
    }

    #[test]
    fn the_agent_of_launchd() {
        insta::assert_snapshot!(render_plist(&sample_values()).expect("an agent"));
    }

    #[test]
    fn a_path_with_a_line_break_is_written_into_no_unit() {
        let hostile = UnitValues { program: Path::new("/tmp/a\nExecStartPre=/bin/evil"), ..sample_values() };
        assert!(render_service_unit(&hostile).is_err() && render_plist(&hostile).is_err());
        let hostile = UnitValues { socket: Path::new("/tmp/a\nb"), ..sample_values() };
        assert!(render_socket_unit(&hostile).is_err());
    }
}
