//! What `status` shows: one repository, or all of them.

use protocol::error::ExitStatus;
use protocol::view::{RunView, StatusView};
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

    /// Whether something in it changes with the time alone.
    pub(super) fn needs_clock(&self) -> bool {
        let counts = |run: &RunView| run.phase.is_some() || run.wait_until.is_some();
        match self {
            Self::One(status) => status.run.as_ref().is_some_and(counts),
            Self::All(all) => all.iter().filter_map(|status| status.run.as_ref()).any(counts),
        }
    }
}
