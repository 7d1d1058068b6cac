//! The open connections: which of them gives way when there is no place for another, and which is read from.
//!
//! A call is under way until its reply was written. A connection with as many as it may have is not read from: what it
//! asks further waits in the socket.
//!
//! Silence costs a place: one that has never called gives way first, then the one that was silent longest. One that
//! waits for something, a reply or events, keeps its place.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use jsonrpsee::server::MethodResponse;
use jsonrpsee::types::Request;
use tokio_util::sync::CancellationToken;

use super::turn::Permit;
use super::wrapped::{Around, Service};

/// All open connections.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    /// Counts openings and calls: it orders them, and is no time.
    tick: u64,
    lines: BTreeMap<u64, State>,
}

#[derive(Debug)]
struct State {
    heard: u64,
    has_called: bool,
    /// Calls under way, and subscriptions.
    waiting: u32,
    /// Calls under way, and most of them.
    calls: u32,
    most_calls: u32,
    /// Replies that are not written yet, in order.
    owed: VecDeque<Reply>,
    /// Who reads, while there are too many calls.
    reader: Option<Waker>,
    closing: CancellationToken,
}

/// A reply that the peer has not taken yet.
#[derive(Debug)]
struct Reply {
    bytes: usize,
    /// Given back when it was written.
    _place: Option<Permit>,
}

impl State {
    /// A call has come to its end.
    fn end_call(&mut self, tick: u64) {
        self.waiting = self.waiting.saturating_sub(1);
        self.calls = self.calls.saturating_sub(1);
        self.heard = tick;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// One open connection; dropping the last clone takes it from the table.
#[derive(Debug, Clone)]
pub(super) struct Connection(Arc<Open>);

#[derive(Debug)]
struct Open {
    id: u64,
    all: Lines,
    closing: CancellationToken,
}

impl Lines {
    /// Adds a connection that may have so many calls under way.
    pub(super) fn open(&self, most_calls: u32) -> Connection {
        let closing = CancellationToken::new();
        let mut table = self.table();
        table.tick += 1;
        let id = table.tick;
        let state = State {
            heard: id,
            has_called: false,
            waiting: 0,
            calls: 0,
            most_calls,
            owed: VecDeque::new(),
            reader: None,
            closing: closing.clone(),
        };
        table.lines.insert(id, state);
        Connection(Arc::new(Open { id, all: self.clone(), closing }))
    }

    /// Closes the connection that gives way first; false if all are waited for.
    pub(super) fn close_silent(&self) -> bool {
        let table = self.table();
        let silent = table.lines.values().filter(|line| line.waiting == 0 && !line.closing.is_cancelled());
        let first = silent.min_by_key(|line| (line.has_called, line.heard));
        first.inspect(|line| line.closing.cancel()).is_some()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Returns what is cancelled when the connection is to be closed.
    pub(super) fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    /// Returns whether something was ever called.
    pub(super) fn has_called(&self) -> bool {
        self.0.all.table().lines.get(&self.0.id).is_some_and(|line| line.has_called)
    }

    fn begin(&self) -> Waiting {
        self.change(|line, tick| {
            line.has_called = true;
            line.waiting = line.waiting.saturating_add(1);
            line.calls = line.calls.saturating_add(1);
            line.heard = tick;
        });
        Waiting(Some(self.clone()))
    }

    /// Returns whether there are as many calls as there may be; then the reader is woken when one has ended.
    pub(super) fn is_full(&self, reader: &Waker) -> bool {
        let mut table = self.0.all.table();
        let Some(line) = table.lines.get_mut(&self.0.id).filter(|line| line.calls >= line.most_calls) else {
            return false;
        };
        line.reader = Some(reader.clone());
        true
    }

    /// Tells how much the peer has taken: replies are written in the order in which they were given.
    ///
    /// Frames, heads and events count too, so that a reply may be taken for written a little early, and never late.
    pub(super) fn written(&self, bytes: usize) {
        self.change(|line, tick| {
            let mut left = bytes;
            while let Some(first) = line.owed.front_mut() {
                if first.bytes > left {
                    first.bytes -= left;
                    return;
                }
                left -= first.bytes;
                line.owed.pop_front();
                line.end_call(tick);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut State, u64)) {
        let mut table = self.0.all.table();
        table.tick += 1;
        let tick = table.tick;
        if let Some(line) = table.lines.get_mut(&self.0.id) {
            change(line, tick);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.all.table().lines.remove(&self.id);
    }
}

/// A call whose reply is not known yet.
struct Waiting(Option<Connection>);

impl Waiting {
    /// The connection waits for as long as it lives: for events.
    fn for_good(&self) {
        if let Some(line) = &self.0 {
            line.change(|line, _| line.waiting = line.waiting.saturating_add(1));
        }
    }

    /// The reply is on its way: the call is under way until the peer has taken it.
    fn owes(mut self, bytes: usize, place: Option<Permit>) {
        if let Some(line) = self.0.take() {
            line.change(|line, _| line.owed.push_back(Reply { bytes, _place: place }));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(line) = &self.0 {
            line.change(State::end_call);
        }
    }
}

/// Notes on the connection's line who waits.
#[derive(Debug, Clone)]
pub(super) struct Noted;

impl Around for Noted {
    fn call<'a, S: Service>(
        &self,
        service: S,
        request: Request<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + use<'a, S> {
        let waiting = request.extensions.get::<Connection>().map(Connection::begin);
        async move {
            let mut response = service.call(request).await;
            let place = response.extensions_mut().remove::<Permit>();
            if let Some(waiting) = waiting {
                if response.is_subscription() && response.is_success() {
                    waiting.for_good();
                }
                waiting.owes(response.as_json().get().len(), place);
            }
            response
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u32 = 2;

    fn closed(lines: &[&Connection]) -> Vec<bool> {
        lines.iter().map(|line| line.closing().is_cancelled()).collect()
    }

    #[test]
    fn the_one_that_never_called_gives_way_first_then_the_one_silent_longest() {
        let all = Lines::default();
        let (first, second, third) = (all.open(MOST), all.open(MOST), all.open(MOST));
        drop(first.begin());
        drop(second.begin());
        drop(first.begin());
        assert!(all.close_silent());
        assert_eq!(closed(&[&first, &second, &third]), [false, false, true]);
        assert!(all.close_silent());
        assert_eq!(closed(&[&first, &second, &third]), [false, true, true]);
    }

    #[test]
    fn one_that_is_waited_for_keeps_its_place() {
        let all = Lines::default();
        let (calling, listening) = (all.open(MOST), all.open(MOST));
        let call = calling.begin();
        listening.begin().for_good();
        assert!(!all.close_silent());
        drop(call);
        assert!(all.close_silent());
        assert_eq!(closed(&[&calling, &listening]), [true, false]);
        drop((calling, listening));
        assert!(all.table().lines.is_empty());
    }

    #[test]
    fn a_call_is_under_way_until_its_reply_was_written() {
        let line = Lines::default().open(MOST);
        let is_full = || line.is_full(Waker::noop());
        let (first, second) = (line.begin(), line.begin());
        assert!(is_full());
        first.owes(100, None);
        line.written(99);
        assert!(is_full(), "a byte of the reply is left");
        line.written(1);
        assert!(!is_full());
        let third = line.begin();
        assert!(is_full());
        drop(second);
        assert!(!is_full(), "nobody waits for that one any more");
        third.owes(10, None);
        line.written(1000);
        assert_eq!(line.0.all.table().lines[&line.0.id].calls, 0);
    }

    #[test]
    fn one_that_is_gone_is_not_counted() {
        let all = Lines::default();
        drop(all.open(MOST));
        assert!(!all.close_silent());
        assert!(all.table().lines.is_empty());
    }
}
