//! The open connections: which of them is closed when a place for another is needed, and which is read from.
//!
//! A call is in progress until its reply has been written. A connection with as many as allowed is not read from:
//! further requests wait in the socket.
//!
//! Silence costs a place: one that has never made a call is closed first, then the one that has been silent longest.
//! One that waits for something, a reply or events, keeps its place.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use jsonrpsee::server::MethodResponse;
use jsonrpsee::types::Request;
use tokio_util::sync::CancellationToken;

use super::inside_limit::InsidePermit;
use super::middleware::{CallMiddleware, CallService};

/// All open connections.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionTable(Arc<Mutex<ConnectionEntries>>);

#[derive(Debug, Default)]
struct ConnectionEntries {
    /// Counts openings and calls; orders them, but is not a time.
    tick: u64,
    entries: BTreeMap<u64, ConnectionState>,
}

#[derive(Debug)]
struct ConnectionState {
    last_activity: u64,
    has_called: bool,
    /// Number of calls in progress, plus subscriptions.
    pending: u32,
    /// Number of calls in progress, and its limit.
    calls: u32,
    max_calls: u32,
    /// Replies that are not written yet, in order.
    unwritten: VecDeque<UnwrittenReply>,
    /// The reader's task, while there are too many calls.
    reader: Option<Waker>,
    closing: CancellationToken,
}

/// A reply that the peer has not taken yet.
#[derive(Debug)]
struct UnwrittenReply {
    bytes: usize,
    /// Released when it has been written.
    _permit: Option<InsidePermit>,
}

impl ConnectionState {
    /// Ends a call.
    fn end_call(&mut self, tick: u64) {
        self.pending = self.pending.saturating_sub(1);
        self.calls = self.calls.saturating_sub(1);
        self.last_activity = tick;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// One open connection; dropping the last clone removes it from the table.
#[derive(Debug, Clone)]
pub(super) struct PeerConnection(Arc<ConnectionHandle>);

#[derive(Debug)]
struct ConnectionHandle {
    id: u64,
    table: ConnectionTable,
    closing: CancellationToken,
}

impl ConnectionTable {
    /// Adds a connection that may have `max_calls` calls in progress.
    pub(super) fn add_connection(&self, max_calls: u32) -> PeerConnection {
        let closing = CancellationToken::new();
        let mut table = self.lock_table();
        table.tick += 1;
        let id = table.tick;
        let state = ConnectionState {
            last_activity: id,
            has_called: false,
            pending: 0,
            calls: 0,
            max_calls,
            unwritten: VecDeque::new(),
            reader: None,
            closing: closing.clone(),
        };
        table.entries.insert(id, state);
        PeerConnection(Arc::new(ConnectionHandle { id, table: self.clone(), closing }))
    }

    /// Closes the connection that is first in line; false if all are waiting for something.
    pub(super) fn close_idle(&self) -> bool {
        let table = self.lock_table();
        let idle = table.entries.values().filter(|line| line.pending == 0 && !line.closing.is_cancelled());
        let first = idle.min_by_key(|line| (line.has_called, line.last_activity));
        first.inspect(|line| line.closing.cancel()).is_some()
    }

    fn lock_table(&self) -> MutexGuard<'_, ConnectionEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeerConnection {
    /// Returns the token that is cancelled when the connection must be closed.
    pub(super) fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    /// Whether a call was ever made.
    pub(super) fn has_called(&self) -> bool {
        self.0.table.lock_table().entries.get(&self.0.id).is_some_and(|line| line.has_called)
    }

    fn begin_call(&self) -> PendingCall {
        self.update_state(|line, tick| {
            line.has_called = true;
            line.pending = line.pending.saturating_add(1);
            line.calls = line.calls.saturating_add(1);
            line.last_activity = tick;
        });
        PendingCall(Some(self.clone()))
    }

    /// Whether the limit of calls is reached; if so, the reader is woken when one has ended.
    pub(super) fn is_full(&self, reader: &Waker) -> bool {
        let mut table = self.0.table.lock_table();
        let Some(line) = table.entries.get_mut(&self.0.id).filter(|line| line.calls >= line.max_calls) else {
            return false;
        };
        line.reader = Some(reader.clone());
        true
    }

    /// Records how many bytes the peer has taken: replies are written in the order in which they were queued.
    ///
    /// Frames, headers and events count too, so that a reply may be considered written a little early, but never late.
    pub(super) fn record_written(&self, bytes: usize) {
        self.update_state(|line, tick| {
            let mut remaining = bytes;
            while let Some(first) = line.unwritten.front_mut() {
                if first.bytes > remaining {
                    first.bytes -= remaining;
                    return;
                }
                remaining -= first.bytes;
                line.unwritten.pop_front();
                line.end_call(tick);
            }
        });
    }

    fn update_state(&self, change: impl FnOnce(&mut ConnectionState, u64)) {
        let mut table = self.0.table.lock_table();
        table.tick += 1;
        let tick = table.tick;
        if let Some(line) = table.entries.get_mut(&self.0.id) {
            change(line, tick);
        }
    }
}

impl Drop for ConnectionHandle {
    fn drop(&mut self) {
        self.table.lock_table().entries.remove(&self.id);
    }
}

/// A call whose reply is not known yet.
struct PendingCall(Option<PeerConnection>);

impl PendingCall {
    /// Makes the connection count as waiting, for events, for the rest of its life.
    fn hold_open(&self) {
        if let Some(line) = &self.0 {
            line.update_state(|line, _| line.pending = line.pending.saturating_add(1));
        }
    }

    /// Queues the reply: the call is in progress until the peer has taken it.
    fn await_write(mut self, bytes: usize, permit: Option<InsidePermit>) {
        if let Some(line) = self.0.take() {
            line.update_state(|line, _| line.unwritten.push_back(UnwrittenReply { bytes, _permit: permit }));
        }
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if let Some(line) = &self.0 {
            line.update_state(ConnectionState::end_call);
        }
    }
}

/// Middleware that records waiting calls in the connection's line.
#[derive(Debug, Clone)]
pub(super) struct CallTracker;

impl CallMiddleware for CallTracker {
    fn call<'a, S: CallService>(
        &self,
        service: S,
        request: Request<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + use<'a, S> {
        let waiting = request.extensions.get::<PeerConnection>().map(PeerConnection::begin_call);
        async move {
            let mut response = service.call(request).await;
            let permit = response.extensions_mut().remove::<InsidePermit>();
            if let Some(waiting) = waiting {
                if response.is_subscription() && response.is_success() {
                    waiting.hold_open();
                }
                waiting.await_write(response.as_json().get().len(), permit);
            }
            response
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_CALLS: u32 = 2;

    fn closing_flags(lines: &[&PeerConnection]) -> Vec<bool> {
        lines.iter().map(|line| line.closing().is_cancelled()).collect()
    }

    #[test]
    fn the_one_that_never_called_gives_way_first_then_the_one_silent_longest() {
        let all = ConnectionTable::default();
        let first = all.add_connection(MAX_CALLS);
        let second = all.add_connection(MAX_CALLS);
        let third = all.add_connection(MAX_CALLS);
        drop(first.begin_call());
        drop(second.begin_call());
        drop(first.begin_call());
        assert!(all.close_idle());
        assert_eq!(closing_flags(&[&first, &second, &third]), [false, false, true]);
        assert!(all.close_idle());
        assert_eq!(closing_flags(&[&first, &second, &third]), [false, true, true]);
    }

    #[test]
    fn one_that_is_waited_for_keeps_its_place() {
        let all = ConnectionTable::default();
        let calling = all.add_connection(MAX_CALLS);
        let listening = all.add_connection(MAX_CALLS);
        let call = calling.begin_call();
        listening.begin_call().hold_open();
        assert!(!all.close_idle());
        drop(call);
        assert!(all.close_idle());
        assert_eq!(closing_flags(&[&calling, &listening]), [true, false]);
        drop((calling, listening));
        assert!(all.lock_table().entries.is_empty());
    }

    #[test]
    fn a_call_is_under_way_until_its_reply_was_written() {
        let line = ConnectionTable::default().add_connection(MAX_CALLS);
        let is_full = || line.is_full(Waker::noop());
        let first = line.begin_call();
        let second = line.begin_call();
        assert!(is_full());
        first.await_write(100, None);
        line.record_written(99);
        assert!(is_full(), "a byte of the reply is left");
        line.record_written(1);
        assert!(!is_full());
        let third = line.begin_call();
        assert!(is_full());
        drop(second);
        assert!(!is_full(), "no one waits for that one any more");
        third.await_write(10, None);
        line.record_written(1000);
        assert_eq!(line.0.table.lock_table().entries[&line.0.id].calls, 0);
    }

    #[test]
    fn one_that_is_gone_is_not_counted() {
        let all = ConnectionTable::default();
        drop(all.add_connection(MAX_CALLS));
        assert!(!all.close_idle());
        assert!(all.lock_table().entries.is_empty());
    }
}
