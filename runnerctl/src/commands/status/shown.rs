//! What `status` shows: one repository, or all of them.

use protocol::error::ExitStatus;
use protocol::view::{DiskView, StatusView};
use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::text::screen::Screen;
use crate::text::status::{detail, overview, room};
use crate::ui::Ui;

/// A state as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Of one repository.
    One(Box<StatusView>),
    /// Of all.
    All(Vec<StatusView>, Option<DiskView>),
}

#[derive(Serialize)]
struct Statuses<'a> {
    repos: &'a [StatusView],
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<&'a DiskView>,
}

/// Answers once.
pub(super) fn answer(ui: &Ui, shown: &Shown) -> Result<ExitStatus, Failure> {
    if ui.json {
        shown.object()?;
    } else {
        ui.text(&shown.text(&ui.screen()))?;
    }
    if matches!(shown, Shown::All(all, _) if all.is_empty()) {
        ui.note("No repositories. Add one: runnerctl start PATH\n");
    }
    Ok(ExitStatus::Fine)
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(status) => status.serialize(serializer),
            Self::All(all, disk) => Statuses { repos: all, disk: disk.as_ref() }.serialize(serializer),
        }
    }
}

impl Shown {
    /// Prints it as JSON.
    pub(super) fn object(&self) -> Result<(), Failure> {
        match self {
            Self::One(_) => Ui::object("status", self),
            Self::All(..) => Ui::object("statuses", self),
        }
    }

    /// Returns it for a person.
    pub(super) fn text(&self, screen: &Screen) -> String {
        match self {
            Self::One(status) => detail(status, screen),
            Self::All(all, disk) => overview(all, screen) + &disk.as_ref().map(room).unwrap_or_default(),
        }
    }
}
