//! Access control: a peer from inside an iteration may read, but not change anything.
//!
//! It gets an explained refusal instead of a closed socket: an agent that calls the runner by mistake learns what it
//! may do. A guard rail, not a boundary: see `docs/contributing/attacks.md`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jsonrpsee::server::MethodResponse;
use jsonrpsee::types::Request;
use nix::unistd::Pid;
use protocol::error::{ErrorData, ErrorKind};
use protocol::event::EventKind;
use runner_os::clock;

use super::ancestry::AgentSign;
use super::middleware::{CallMiddleware, CallService};
use super::peer::find_process_sign;
use super::{Peer, PeerRole};
use crate::events::{EventStream, EventSubject};

/// Length limit of a method name in messages, in characters: it may be anything.
const MAX_METHOD_CHARS: usize = 100;

/// The methods that change nothing. All others, including those added later, are refused to a peer from inside an
/// iteration.
pub const READ_METHODS: &[&str] = &[
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

/// Minimum time between two reported refusals, so that an agent in a loop does not hide other events.
const MIN_REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Reports refused calls to subscribers and the log; of many at once, only the first.
#[derive(Debug, Clone)]
pub(super) struct RefusalReporter {
    events: EventStream,
    last_reported: Arc<Mutex<Option<Timestamp>>>,
}

impl RefusalReporter {
    /// Creates it without any reports so far.
    pub(super) fn new(events: EventStream) -> Self {
        Self { events, last_reported: Arc::default() }
    }

    fn report(&self, method: &str, pid: Option<i32>) {
        let mut last_reported = self.last_reported.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        if last_reported.is_some_and(|last| now.duration_since(last).unsigned_abs() < MIN_REPORT_INTERVAL) {
            return;
        }
        *last_reported = Some(now);
        let method: String = method.chars().take(MAX_METHOD_CHARS).collect();
        tracing::warn!(method, pid, "refused: the caller is a process of an iteration");
        self.events.publish(EventSubject::default(), EventKind::Refused { method, pid });
    }
}

/// Refuses changes requested by agents.
#[derive(Debug, Clone)]
pub(super) struct AccessCheck {
    /// Reports the refusals.
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
            match find_refusal(&request) {
                None => service.call(request).await,
                Some(refusal) => {
                    refusals.report(request.method_name(), request.extensions.get::<Peer>().and_then(|peer| peer.pid));
                    MethodResponse::error(request.id, refusal)
                }
            }
        }
    }
}

fn find_refusal(request: &Request<'_>) -> Option<ErrorData> {
    // A request without a peer did not come through the listener: it gets the lesser rights.
    let peer = request.extensions.get::<Peer>();
    let role = peer.map_or(PeerRole::Agent, |peer| peer.role);
    if role == PeerRole::Person || READ_METHODS.contains(&request.method_name()) {
        return None;
    }
    Some(refusal_error(request.method_name(), peer.and_then(|peer| peer.sign)))
}

fn refusal_error(method: &str, sign: Option<AgentSign>) -> ErrorData {
    let (place, hint) = describe_origin(sign);
    let message = format!("`{method}` was called from {place}, where only reading is allowed");
    ErrorData::new(ErrorKind::InsideIteration, message).hint(hint)
}

/// Checks processes on whose behalf a client calls: what is refused to them is refused to the client.
#[derive(Debug, Clone)]
pub struct CallerCheck(RefusalReporter);

impl CallerCheck {
    /// Refused calls are reported to `events`.
    pub fn new(events: EventStream) -> Self {
        Self(RefusalReporter::new(events))
    }

    /// Returns why a method must not be called for these processes; never refuses an empty list.
    pub fn check_callers(&self, pids: &[i32], method: &str) -> Option<ErrorData> {
        if pids.is_empty() {
            return Some(refusal_error(method, Some(AgentSign::Unreadable)));
        }
        pids.iter().find_map(|pid| {
            let sign = if *pid > 0 { find_process_sign(Pid::from_raw(*pid))? } else { AgentSign::OtherNamespace };
            self.0.report(method, Some(*pid));
            Some(refusal_error(method, Some(sign)))
        })
    }
}

/// Describes where a peer is, and what it can do instead.
fn describe_origin(sign: Option<AgentSign>) -> (&'static str, &'static str) {
    match sign {
        Some(AgentSign::Iteration) | None => {
            ("inside an iteration", "answer as the prompt says; the runner does the rest")
        }
        Some(AgentSign::OtherNamespace) => (
            "another PID namespace than the daemon's, as an iteration's or a container's",
            "call it where the daemon runs, outside of the container",
        ),
        Some(AgentSign::Unreadable) => ("a process that the daemon cannot look at", "call it from an ordinary shell"),
    }
}
