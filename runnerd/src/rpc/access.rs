//! A peer from inside an iteration may read, not steer.
//!
//! An explained refusal instead of a closed socket: an agent that calls the runner by mistake learns what
//! it may do. A guard rail, not a boundary: see `docs/security.md`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jsonrpsee::server::MethodResponse;
use jsonrpsee::types::Request;
use nix::unistd::Pid;
use protocol::error::{ErrorData, ErrorKind};
use protocol::event::EventKind;

use super::ancestry::AgentSign;
use super::peer::find_process_sign;
use super::middleware::{CallMiddleware, CallService};
use super::{Peer, PeerRole};
use crate::clock;
use crate::events::{EventSubject, EventStream};

/// Most characters of a method's name that are told: it may be anything.
const MAX_NAME: usize = 100;

/// The methods that change nothing. Any other one is refused to a peer from inside an iteration, one that
/// is added later too.
pub const READING: &[&str] = &[
    "bisect.points",
    "config.get",
    "config.path",
    "config.show",
    "config.text",
    "daemon.handshake",
    "daemon.info",
    "delivery.describe",
    "doctor.repository",
    "events.subscribe",
    "events.unsubscribe",
    "iteration.activity",
    "iteration.get",
    "iteration.list",
    "iteration.log",
    "memory.get",
    "question.list",
    "repo.disk",
    "repo.list",
    "review.pending",
    "run.list",
    "run.locate",
    "run.queue",
    "run.status",
    "run.status_all",
    "tree.get",
    "tree.explain",
    "tree.select",
    "tree.validate",
    "verify.run",
    "verify.tips",
];

/// Shortest time between two refusals that are told: an agent in a loop hides no other events.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells subscribers and the log of calls that were refused; of many at once, the first.
#[derive(Debug, Clone)]
pub(super) struct RefusalReporter {
    events: EventStream,
    last: Arc<Mutex<Option<Timestamp>>>,
}

impl RefusalReporter {
    /// Tells of none yet.
    pub(super) fn new(events: EventStream) -> Self {
        Self { events, last: Arc::default() }
    }

    fn report(&self, method: &str, pid: Option<i32>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        if last.is_some_and(|last| now.duration_since(last).unsigned_abs() < PAUSE) {
            return;
        }
        *last = Some(now);
        let method: String = method.chars().take(MAX_NAME).collect();
        tracing::warn!(method, pid, "refused to a process inside an iteration");
        self.events.publish(EventSubject::default(), EventKind::Refused { method, pid });
    }
}

/// Refuses steering calls of agents.
#[derive(Debug, Clone)]
pub(super) struct AccessCheck {
    /// Who is told.
    pub(super) refusals: RefusalReporter,
}

impl CallMiddleware for AccessCheck {
    fn call<'a, S: CallService>(
        &self,
        service: S,
        request: Request<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + use<'a, S> {
        let refusals = self.refusals.clone();
        async move {
            match refusal(&request) {
                None => service.call(request).await,
                Some(refusal) => {
                    refusals.report(request.method_name(), request.extensions.get::<Peer>().and_then(|peer| peer.pid));
                    MethodResponse::error(request.id, refusal)
                }
            }
        }
    }
}

fn refusal(request: &Request<'_>) -> Option<ErrorData> {
    // A request without a peer did not come through the listener: it gets the lesser right.
    let peer = request.extensions.get::<Peer>();
    let role = peer.map_or(PeerRole::Agent, |peer| peer.role);
    if role == PeerRole::Person || READING.contains(&request.method_name()) {
        return None;
    }
    Some(refusal_error(request.method_name(), peer.and_then(|peer| peer.sign)))
}

fn refusal_error(method: &str, sign: Option<AgentSign>) -> ErrorData {
    let (place, hint) = describe_origin(sign);
    let message = format!("`{method}` was called from {place}, where only reading is allowed");
    ErrorData::new(ErrorKind::InsideIteration, message).hint(hint)
}

/// Judges processes that ask by a client: what is refused to them is refused to it.
#[derive(Debug, Clone)]
pub struct CallerCheck(RefusalReporter);

impl CallerCheck {
    /// Tells where calls that are refused to an iteration are told.
    pub fn new(events: EventStream) -> Self {
        Self(RefusalReporter::new(events))
    }

    /// Returns why a method is not to be called for these processes; for nobody, nothing is.
    pub fn refusal(&self, pids: &[i32], method: &str) -> Option<ErrorData> {
        if pids.is_empty() {
            return Some(refusal_error(method, Some(AgentSign::Unseen)));
        }
        pids.iter().find_map(|pid| {
            let sign = if *pid > 0 { find_process_sign(Pid::from_raw(*pid))? } else { AgentSign::OtherNamespace };
            self.0.report(method, Some(*pid));
            Some(refusal_error(method, Some(sign)))
        })
    }
}

/// Says where a peer is, and what it can do instead.
fn describe_origin(sign: Option<AgentSign>) -> (&'static str, &'static str) {
    match sign {
        Some(AgentSign::Iteration) | None => ("inside an iteration", "answer as the prompt says; the runner does the rest"),
        Some(AgentSign::OtherNamespace) => (
            "another PID namespace than the daemon's, as an iteration's or a container's",
            "call it where the daemon runs, outside of the container",
        ),
        Some(AgentSign::Unseen) => ("a process that the daemon cannot look at", "call it from an ordinary shell"),
    }
}
