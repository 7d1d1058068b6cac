//! What `status` shows: one repository, or all of them.

use protocol::error::ExitStatus;
use protocol::view::StatusView;
use serde::Serialize;

use crate::failure::Failure;
use crate::text::screen::Screen;
use crate::text::status::{detail, overview};
use crate::ui::Ui;

/// A state as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Of one repository.
    One(Box<StatusView>),
    /// Of all.
    All(Vec<StatusView>),
}

#[derive(Serialize)]
struct Statuses<'a> {
    repos: &'a [StatusView],
}

/// Answers once.
pub(super) fn answer(ui: &Ui, shown: &Shown) -> Result<ExitStatus, Failure> {
    if ui.json {
        shown.object()?;
    } else {
        ui.text(&shown.text(&ui.screen()))?;
    }
    if matches!(shown, Shown::All(all) if all.is_empty()) {
        ui.note("No repositories. Add one: runnerctl start PATH\n");
    }
    Ok(ExitStatus::Fine)
}

impl Shown {
    /// Prints it as JSON.
    pub(super) fn object(&self) -> Result<(), Failure> {
        match self {
            Self::One(status) => Ui::object("status", status),
            Self::All(all) => Ui::object("statuses", &Statuses { repos: all }),
        }
    }

    /// Returns it for a person.
    pub(super) fn text(&self, screen: &Screen) -> String {
        match self {
            Self::One(status) => detail(status, screen),
            Self::All(all) => overview(all, screen),
        }
    }
}
