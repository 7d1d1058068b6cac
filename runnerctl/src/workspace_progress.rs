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
use crate::text::sanitize::sanitize;
use crate::wait::{bar_style, new_progress_bar, spinner_style};

/// The progress line; it is removed on drop.
#[derive(Debug)]
pub(crate) struct WorkspaceProgress(Option<(ProgressBar, JoinHandle<()>)>);

/// Shows the creation of a workspace for a run of the repository at `path`, as soon as it starts.
pub(crate) fn show_workspace_progress(invocation: &Invocation<'_>, path: WirePath) -> WorkspaceProgress {
    let ui = invocation.ui;
    // For another machine this would require one more connection.
    if !ui.can_draw_progress() || invocation.host.is_some() {
        return WorkspaceProgress(None);
    }
    let line = new_progress_bar(ui);
    let options = invocation.connect_options(false);
    line.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    let bar = line.clone();
    let measured = bar_style(ui);
    let unmeasured = spinner_style(ui);
    let task = tokio::spawn(async move {
        let Ok(connection) = Connection::open(&options).await else { return };
        let subscription = Subscription { path: Some(path), since: None, output: true };
        let Ok(mut events) = connection.client().subscribe_events(subscription).await else { return };
        while let Some(Ok(event)) = events.next().await {
            let EventKind::Workspace { stage, done, total } = event.kind else { continue };
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            let stage = WorkspaceStage { name: &stage, done, total };
            bar.set_message(stage.to_string());
            if stage.is_measured() {
                bar.set_length(total);
                bar.set_position(done);
            }
            bar.set_style(if stage.is_measured() { measured.clone() } else { unmeasured.clone() });
        }
    });
    WorkspaceProgress(Some((line, task)))
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
        write!(f, "making the workspace: {}", sanitize(self.name))?;
        match (self.is_measured(), self.done) {
            (true, done) => write!(f, " {done} of {}", self.total),
            (false, 0) => Ok(()),
            (false, done) => write!(f, " {done}"),
        }
    }
}

impl Drop for WorkspaceProgress {
    fn drop(&mut self) {
        if let Some((line, task)) = self.0.take() {
            task.abort();
            line.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_tells_of_how_much_it_is_where_that_is_known() {
        let render = |name, done, total| WorkspaceStage { name, done, total }.to_string();
        assert_eq!(render("history", 0, 0), "making the workspace: history");
        assert_eq!(render("counting", 2000, 0), "making the workspace: counting 2000");
        assert_eq!(render("copying", 2000, 30_000), "making the workspace: copying 2000 of 30000");
    }
}
