//! `/events`: the daemon's events, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use futures_util::stream::{self, Stream, StreamExt as _};
use http::HeaderMap;
use protocol::event::{Event, EventKind};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::body::json_text;
use crate::daemon_link::notice;
use crate::hub::{EventHub, EventId, HubMessage, OutputSubscriber};
use crate::problem::ApiProblem;

/// Time between two keep-alive messages.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Time after which a browser reconnects.
const RETRY: Duration = Duration::from_secs(1);

/// Query parameters of the stream.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct StreamQuery {
    /// Only events of the repository with this id.
    repo: Option<String>,
    /// Whether output is included.
    output: Option<String>,
}

/// Answers with the stream.
pub(crate) async fn events(
    State(app): State<App>,
    query: Result<Query<StreamQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiProblem> {
    let Query(wanted) = query.map_err(|_| ApiProblem::invalid("the query cannot be read"))?;
    // A header that is not text counts as an unknown id.
    let after = headers.get("last-event-id").map(|id| id.to_str().map_err(drop).and_then(str::parse));
    let joined = app.hub.join(after);
    let health = app.health_now().await;
    let hello = frame("hello", &health).retry(RETRY);
    let hello = match joined.at {
        Some(at) if joined.missed.is_none() || after.is_none() => hello.id(at.to_string()),
        _ => hello,
    };
    // A server that shows all repositories must also report those added later.
    let only = health.only.filter(|_| app.only.is_some());
    let filter = EventFilter { repo: wanted.repo.or(only) };
    let mut first = vec![hello];
    match joined.missed {
        Some(missed) => first.extend(missed.iter().filter_map(|(id, event)| filter.event(*id, event))),
        None => first.push(resync("the place in the stream is not known any more", joined.at)),
    }
    let output = wanted.output.is_some_and(|output| output != "0").then(|| app.hub.look());
    let follower = EventFollower { hub: app.hub.clone(), live: joined.live, output, filter, stop: app.stop.clone() };
    let frames = stream::iter(first).chain(follower.frames()).map(Ok::<_, Infallible>);
    Ok(Sse::new(frames).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

/// State of one page's stream.
struct EventFollower {
    hub: EventHub,
    live: Receiver<HubMessage>,
    output: Option<OutputSubscriber>,
    filter: EventFilter,
    stop: CancellationToken,
}

impl EventFollower {
    fn frames(self) -> impl Stream<Item = Frame> {
        stream::unfold(self, |mut follower| async move {
            loop {
                let stop = follower.stop.clone();
                let frame = tokio::select! {
                    biased;
                    // Handled before the end of the stream, because it may explain why the stream ends.
                    news = follower.live.recv() => match news {
                        Ok(news) => follower.news(news),
                        Err(RecvError::Lagged(_)) => Some(follower.resync("the page was too slow: some events are lost")),
                        Err(RecvError::Closed) => return None,
                    },
                    () = stop.cancelled() => return None,
                    event = next_output(follower.output.as_mut()) => follower.filter.output(&event),
                };
                if let Some(frame) = frame {
                    return Some((frame, follower));
                }
            }
        })
    }

    /// Returns the frame for a message, if this page gets it.
    fn news(&self, news: HubMessage) -> Option<Frame> {
        match news {
            HubMessage::Event(id, event) => self.filter.event(id, &event),
            HubMessage::Resync(notice) => Some(at_place(frame("resync", &notice), self.hub.last())),
            HubMessage::Gone(notice) => Some(frame("daemon_gone", &notice)),
            HubMessage::Back(notice) => Some(at_place(frame("daemon_back", &notice), self.hub.last())),
        }
    }

    fn resync(&self, message: &str) -> Frame {
        resync(message, self.hub.last())
    }
}

/// Waits for output, forever if it is not wanted; output that was too fast for this page is skipped.
async fn next_output(looker: Option<&mut OutputSubscriber>) -> Arc<Event> {
    let Some(looker) = looker else { return std::future::pending().await };
    loop {
        match looker.output.recv().await {
            Ok(event) => return event,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Selects the events for a page.
struct EventFilter {
    repo: Option<String>,
}

impl EventFilter {
    fn is_wanted(&self, event: &Event) -> bool {
        event.repo.is_none() || self.repo.is_none() || event.repo == self.repo
    }

    fn event(&self, id: EventId, event: &Event) -> Option<Frame> {
        self.is_wanted(event).then(|| frame(name(&event.kind), event).id(id.to_string()))
    }

    fn output(&self, event: &Event) -> Option<Frame> {
        self.is_wanted(event).then(|| frame(name(&event.kind), event))
    }
}

/// Returns the SSE name of an event.
fn name(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::RunState { .. } => "run_state_changed",
        EventKind::Outage { .. } => "outage",
        EventKind::Phase { .. } => "phase_changed",
        EventKind::Obstacle { .. } => "obstacle",
        EventKind::Iteration { .. } => "iteration_added",
        EventKind::Tree { .. } => "tree_changed",
        EventKind::Commit { .. } => "commit",
        EventKind::Reverted { .. } => "reverted",
        EventKind::Refs { .. } => "refs",
        EventKind::Refused { .. } => "refused",
        EventKind::Secrets { .. } => "secrets",
        EventKind::Questions { .. } => "question",
        EventKind::Output { .. } => "output",
        EventKind::Activity(_) => "activity",
        EventKind::Workspace { .. } => "workspace",
        EventKind::Warning { .. } => "warning",
        EventKind::Lagged => "resync",
        EventKind::Stopping => "daemon_stopping",
    }
}

fn resync(message: &str, at: Option<EventId>) -> Frame {
    at_place(frame("resync", &notice(message)), at)
}

fn at_place(frame: Frame, at: Option<EventId>) -> Frame {
    match at {
        Some(at) => frame.id(at.to_string()),
        None => frame,
    }
}

fn frame(name: &str, data: &impl Serialize) -> Frame {
    Frame::default().event(name).data(json_text(data))
}
