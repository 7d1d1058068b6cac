//! Shows the progress of creating a workspace: one line on a terminal, while the request takes.
//!
//! Progress that cannot be determined is omitted: the answer to the request says how it ended.

use std::fmt;

use indicatif::ProgressBar;
use protocol::api::EventApiClient as _;
use protocol::client::Connection;
use protocol::event::EventKind;
use protocol::path::WirePath;
use protocol::request::Subscription;
use tokio::task::JoinHandle;

use crate::invocation::Invocation;
use crate::text::sanitize::safe;
use crate::wait::{bar, bar_style, line_style};

/// The progress line; it is removed on drop.
#[derive(Debug)]
pub(crate) struct WorkspaceProgress(Option<(ProgressBar, JoinHandle<()>)>);

/// Shows the creation of a workspace for a run of the repository at `path`, as soon as it starts.
pub(crate) fn making(invocation: &Invocation<'_>, path: WirePath) -> WorkspaceProgress {
    let ui = invocation.ui;
    // For another machine this would require one more connection.
    if !ui.is_live() || invocation.host.is_some() {
        return WorkspaceProgress(None);
    }
    let (line, options) = (bar(ui), invocation.connect_options(false));
    line.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    let shown = line.clone();
    let (measured, unmeasured) = (bar_style(ui), line_style(ui));
    let told = tokio::spawn(async move {
        let Ok(connection) = Connection::open(&options).await else { return };
        let wanted = Subscription { path: Some(path), since: None, output: true };
        let Ok(mut events) = connection.client().subscribe_events(wanted).await else { return };
        while let Some(Ok(event)) = events.next().await {
            let EventKind::Workspace { stage, done, total } = event.kind else { continue };
            shown.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            let stage = WorkspaceStage { name: &stage, done, total };
            shown.set_message(stage.to_string());
            if stage.is_measured() {
                shown.set_length(total);
                shown.set_position(done);
            }
            shown.set_style(if stage.is_measured() { measured.clone() } else { unmeasured.clone() });
        }
    });
    WorkspaceProgress(Some((line, told)))
}

/// What is being done, and its total amount.
struct WorkspaceStage<'a> {
    name: &'a str,
    done: u64,
    /// 0 if unknown.
    total: u64,
}

impl WorkspaceStage<'_> {
    fn is_measured(&self) -> bool {
        self.total > 0
    }
}

impl fmt::Display for WorkspaceStage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "making the workspace: {}", safe(self.name))?;
        match (self.is_measured(), self.done) {
            (true, done) => write!(f, " {done} of {}", self.total),
            (false, 0) => Ok(()),
            (false, done) => write!(f, " {done}"),
        }
    }
}

impl Drop for WorkspaceProgress {
    fn drop(&mut self) {
        if let Some((line, told)) = self.0.take() {
            told.abort();
            line.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_tells_of_how_much_it_is_where_that_is_known() {
        let told = |name, done, total| WorkspaceStage { name, done, total }.to_string();
        assert_eq!(told("history", 0, 0), "making the workspace: history");
        assert_eq!(told("counting", 2000, 0), "making the workspace: counting 2000");
        assert_eq!(told("copying", 2000, 30_000), "making the workspace: copying 2000 of 30000");
    }
}
