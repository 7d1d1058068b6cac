//! The data that `status` prints: one repository, or all of them.

use protocol::error::ExitStatus;
use protocol::view::{DiskView, StatusView};
use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::text::screen::Screen;
use crate::text::status::{render_detail, render_disk_use, render_overview};
use crate::ui::Ui;

/// A state as read from the daemon.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StatusSnapshot {
    /// One repository.
    One(Box<StatusView>),
    /// All repositories, and the disk usage of workspaces.
    All(Vec<StatusView>, Option<DiskView>),
}

#[derive(Serialize)]
struct StatusList<'a> {
    repos: &'a [StatusView],
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<&'a DiskView>,
}

/// Prints it once.
pub(super) fn print_once(ui: &Ui, snapshot: &StatusSnapshot) -> Result<ExitStatus, Failure> {
    if ui.json {
        snapshot.print_json()?;
    } else {
        ui.print_text(&snapshot.render(&ui.screen()))?;
    }
    if matches!(snapshot, StatusSnapshot::All(all, _) if all.is_empty()) {
        ui.print_note("No repositories. Add one: runnerctl start PATH\n");
    }
    Ok(ExitStatus::Success)
}

impl Serialize for StatusSnapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(status) => status.serialize(serializer),
            Self::All(all, disk) => StatusList { repos: all, disk: disk.as_ref() }.serialize(serializer),
        }
    }
}

impl StatusSnapshot {
    /// Prints it as JSON.
    pub(super) fn print_json(&self) -> Result<(), Failure> {
        match self {
            Self::One(_) => Ui::print_object("status", self),
            Self::All(..) => Ui::print_object("statuses", self),
        }
    }

    /// Renders it for a person.
    pub(super) fn render(&self, screen: &Screen) -> String {
        match self {
            Self::One(status) => render_detail(status, screen),
            Self::All(all, disk) => {
                render_overview(all, screen) + &disk.as_ref().map(render_disk_use).unwrap_or_default()
            }
        }
    }
}
