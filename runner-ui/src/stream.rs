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
use crate::body::to_json_text;
use crate::daemon_link::new_notice;
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
pub(crate) async fn serve_events(
    State(app): State<App>,
    query: Result<Query<StreamQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiProblem> {
    let Query(query) = query.map_err(|_| ApiProblem::invalid("the query cannot be read"))?;
    // A header that is not text counts as an unknown id.
    let after = headers.get("last-event-id").map(|id| id.to_str().map_err(drop).and_then(str::parse));
    let subscription = app.hub.subscribe(after);
    let health = app.health_now().await;
    let hello = new_frame("hello", &health).retry(RETRY);
    let hello = match subscription.at {
        Some(at) if subscription.missed.is_none() || after.is_none() => hello.id(at.to_string()),
        _ => hello,
    };
    // A server that shows all repositories must also report those added later.
    let only = health.only.filter(|_| app.only_path.is_some());
    let filter = EventFilter { repo: query.repo.or(only) };
    let mut first = vec![hello];
    match subscription.missed {
        Some(missed) => first.extend(missed.iter().filter_map(|(id, event)| filter.event_frame(*id, event))),
        None => first.push(resync_frame("the place in the stream is not known any more", subscription.at)),
    }
    let output = query.output.is_some_and(|output| output != "0").then(|| app.hub.subscribe_output());
    let follower =
        EventFollower { hub: app.hub.clone(), live: subscription.live, output, filter, stop: app.stop.clone() };
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
                        Ok(news) => follower.news_frame(news),
                        Err(RecvError::Lagged(_)) => Some(follower.resync_here("the page was too slow: some events are lost")),
                        Err(RecvError::Closed) => return None,
                    },
                    () = stop.cancelled() => return None,
                    event = next_output(follower.output.as_mut()) => follower.filter.output_frame(&event),
                };
                if let Some(frame) = frame {
                    return Some((frame, follower));
                }
            }
        })
    }

    /// Returns the frame for a message, if this page gets it.
    fn news_frame(&self, news: HubMessage) -> Option<Frame> {
        match news {
            HubMessage::Event(id, event) => self.filter.event_frame(id, &event),
            HubMessage::Resync(notice) => Some(with_event_id(new_frame("resync", &notice), self.hub.last_id())),
            HubMessage::DaemonGone(notice) => Some(new_frame("daemon_gone", &notice)),
            HubMessage::DaemonBack(notice) => {
                Some(with_event_id(new_frame("daemon_back", &notice), self.hub.last_id()))
            }
        }
    }

    fn resync_here(&self, message: &str) -> Frame {
        resync_frame(message, self.hub.last_id())
    }
}

/// Waits for output, forever if it is not wanted; output that was too fast for this page is skipped.
async fn next_output(subscriber: Option<&mut OutputSubscriber>) -> Arc<Event> {
    let Some(looker) = subscriber else { return std::future::pending().await };
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
    fn matches(&self, event: &Event) -> bool {
        event.repo.is_none() || self.repo.is_none() || event.repo == self.repo
    }

    fn event_frame(&self, id: EventId, event: &Event) -> Option<Frame> {
        self.matches(event).then(|| new_frame(event_name(&event.kind), event).id(id.to_string()))
    }

    fn output_frame(&self, event: &Event) -> Option<Frame> {
        self.matches(event).then(|| new_frame(event_name(&event.kind), event))
    }
}

/// Returns the SSE name of an event.
fn event_name(kind: &EventKind) -> &'static str {
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

fn resync_frame(message: &str, at: Option<EventId>) -> Frame {
    with_event_id(new_frame("resync", &new_notice(message)), at)
}

fn with_event_id(frame: Frame, at: Option<EventId>) -> Frame {
    match at {
        Some(at) => frame.id(at.to_string()),
        None => frame,
    }
}

fn new_frame(name: &str, data: &impl Serialize) -> Frame {
    Frame::default().event(name).data(to_json_text(data))
}
