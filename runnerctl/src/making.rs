//! How far a workspace is that is being made: one line of a terminal, for as long as the request takes.
//!
//! What cannot be told is left out: the answer to the request says how it ended.

use indicatif::ProgressBar;
use protocol::api::EventApiClient as _;
use protocol::client::Connection;
use protocol::event::EventKind;
use protocol::path::WirePath;
use protocol::request::Subscription;
use tokio::task::JoinHandle;

use crate::invocation::Invocation;
use crate::text::safe::safe;
use crate::wait::bar;

/// The line; it goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Making(Option<(ProgressBar, JoinHandle<()>)>);

/// Shows on a terminal how the workspace of a run of the repository at `path` is made, as soon as one is.
pub(crate) fn making(invocation: &Invocation<'_>, path: WirePath) -> Making {
    let ui = invocation.ui;
    if !ui.is_live() {
        return Making(None);
    }
    let (line, options) = (bar(ui), invocation.connect_options(false));
    line.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    let shown = line.clone();
    let told = tokio::spawn(async move {
        let Ok(connection) = Connection::open(&options).await else { return };
        let wanted = Subscription { path: Some(path), since: None, output: true };
        let Ok(mut events) = connection.client().subscribe_events(wanted).await else { return };
        while let Some(Ok(event)) = events.next().await {
            let EventKind::Workspace { stage, done, .. } = event.kind else { continue };
            shown.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            let count = if done > 0 { format!(" {done}") } else { String::new() };
            shown.set_message(format!("making the workspace: {}{count}", safe(&stage)));
        }
    });
    Making(Some((line, told)))
}

impl Drop for Making {
    fn drop(&mut self) {
        if let Some((line, told)) = self.0.take() {
            told.abort();
            line.finish_and_clear();
        }
    }
}
