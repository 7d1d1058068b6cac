//! Renders the state of the service.

use std::path::PathBuf;

use serde::Serialize;

use super::files::FileState;
use super::manager::{ServiceManager, ServiceState};
use crate::text::paint::DIM;
use crate::text::sanitize::sanitize;
use crate::text::screen::Screen;
use crate::text::table::{Table, TableCell};

/// The service, in the form that `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct ServiceView {
    /// The service manager.
    pub(super) manager: ServiceManager,
    /// Its files.
    pub(super) files: Vec<FileView>,
    /// Files that were just written or removed.
    pub(super) changed: Vec<PathBuf>,
    /// State reported by the service manager.
    #[serde(flatten)]
    pub(super) state: ServiceState,
}

/// A file of the service.
#[derive(Debug, Serialize)]
pub(super) struct FileView {
    /// Where it is.
    pub(super) path: PathBuf,
    /// State of the file.
    pub(super) state: FileState,
}

impl ServiceView {
    /// Returns the lines for a person.
    pub(super) fn render(&self, screen: &Screen) -> String {
        let mut facts = Table::without_names();
        let mut fact = |name, value: &str| facts.add_row([TableCell::styled(DIM, name), sanitize(value).into()]);
        for file in &self.files {
            fact(self.file_label(file), &file.path.display().to_string());
        }
        for (name, value) in [("daemon", &self.state.state), ("says", &self.state.said), ("socket", &self.state.socket)]
        {
            if let Some(value) = value {
                fact(name, value);
            }
        }
        if let Some(pid) = self.state.pid {
            fact("process", &pid.to_string());
        }
        if let Some(restarts) = self.state.restarts.filter(|restarts| *restarts > 0) {
            fact("restarts", &format!("{restarts} after a failure: runnerctl service logs"));
        }
        if let Some(enabled) = &self.state.enabled {
            fact("at login", enabled);
        }
        match self.state.linger {
            Some(true) => fact("linger", "on: it runs from boot on, and after you have logged out"),
            Some(false) => fact("linger", "off: it ends when you log out. To keep it: loginctl enable-linger"),
            None => {}
        }
        if self.is_outdated() {
            fact("", "to write the units of this version: runnerctl service install");
        }
        facts.render(screen, 0)
    }

    fn is_outdated(&self) -> bool {
        self.files.iter().any(|file| file.state == FileState::Outdated)
    }

    fn file_label(&self, file: &FileView) -> &'static str {
        let is_changed = self.changed.contains(&file.path);
        match file.state {
            FileState::Missing if is_changed => "removed",
            FileState::Missing => "not installed",
            FileState::Current if is_changed => "written",
            FileState::Current => "installed",
            FileState::Outdated => "outdated",
            FileState::Changed => "changed by hand",
        }
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn render_view(state: FileState, service: ServiceState) -> String {
        let path = PathBuf::from("/home/me/.config/systemd/user/runnerd.service");
        let files = vec![FileView { path, state }];
        let view = ServiceView { manager: ServiceManager::Systemd, files, changed: Vec::new(), state: service };
        strip_str(&view.render(&Screen::fixed())).to_string()
    }

    #[test]
    fn a_service_that_runs_says_how_it_is_and_whether_it_outlives_the_login() {
        let state = ServiceState {
            state: Some("active (running)".into()),
            pid: Some(4711),
            said: Some("repositories: 3, running: 1".into()),
            restarts: Some(2),
            enabled: Some("enabled".into()),
            socket: Some("active (running)".into()),
            linger: Some(false),
        };
        insta::assert_snapshot!(render_view(FileState::Outdated, state));
    }

    #[test]
    fn a_service_that_is_not_there_is_said_so() {
        let text = render_view(FileState::Missing, ServiceState::default());
        assert_eq!(text, "not installed  /home/me/.config/systemd/user/runnerd.service\n");
    }
}
