//! Reads the daemon's own configuration file; what it means is defined in `runner_config`.

use std::io::{self, Read as _};
use std::path::Path;

use protocol::settings_file::{SettingsFileError, open_settings};
use runner_config::{ConfigError, DaemonConfig, MAX_BYTES, decode_text};

/// Reads the settings of a user's daemon; defaults if the file does not exist.
pub fn load_daemon_config(file: &Path) -> Result<DaemonConfig, ConfigError> {
    let mut bytes = Vec::new();
    // One byte beyond the limit shows that the file is too large.
    let limit = MAX_BYTES as u64 + 1;
    let read = open_settings(file).and_then(|file| Ok(file.take(limit).read_to_end(&mut bytes)?));
    match read {
        Ok(_) => DaemonConfig::parse(decode_text(&bytes, file)?, file),
        Err(SettingsFileError::Open(error)) if error.kind() == io::ErrorKind::NotFound => Ok(DaemonConfig::default()),
        Err(SettingsFileError::Open(source)) => Err(ConfigError::Read { path: file.to_owned(), source }),
        Err(error) => Err(ConfigError::Untrusted(error)),
    }
}

#[cfg(test)]
mod tests {
    use protocol::words::Containment;
    use runner_config::LogLevel;

    use super::*;

    #[test]
    fn a_file_that_is_too_large_is_not_read_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 40).unwrap();
        let error = load_daemon_config(file.path()).unwrap_err().to_string();
        assert!(error.contains("bytes"), "{error}");
    }

    #[test]
    fn a_missing_file_means_the_defaults() {
        let home = tempfile::tempdir().unwrap();
        let config = load_daemon_config(&home.path().join("config.toml")).unwrap();
        assert_eq!(config.max_repositories, 4);
        assert_eq!(config.log_level, LogLevel::Info);
        assert_eq!(config.socket, None);
        assert_eq!(config.workspaces, None);
        assert!(config.inhibit_sleep);
        assert_eq!(config.containment, Containment::Pidns);
    }

    #[test]
    fn a_file_is_read() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        std::fs::write(&file, "socket = \"/run/x.sock\"\ninhibit_sleep = false\n").unwrap();
        let config = load_daemon_config(&file).unwrap();
        assert_eq!(config.socket.as_deref(), Some(Path::new("/run/x.sock")));
        assert!(!config.inhibit_sleep);
    }

    #[test]
    fn a_file_that_is_no_text_is_refused_with_its_line() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        std::fs::write(&file, b"inhibit_sleep = false\n# caf\xe9\n").unwrap();
        let error = load_daemon_config(&file).unwrap_err();
        assert_eq!(error.to_string(), format!("{}:2:6: invalid UTF-8", file.display()));
    }

    #[test]
    fn an_unreadable_file_is_no_missing_file() {
        let home = tempfile::tempdir().unwrap();
        let error = load_daemon_config(home.path()).unwrap_err();
        assert!(matches!(error, ConfigError::Read { .. }), "{error}");
        assert!(error.to_string().contains(&home.path().display().to_string()));
    }

    #[test]
    fn a_relative_socket_is_refused() {
        let error = DaemonConfig::parse("socket = \"x.sock\"", Path::new("c.toml")).unwrap_err();
        insta::assert_snapshot!(error, @r#"c.toml:1:10: `socket` must be an absolute path, not "x.sock""#);
    }
}
