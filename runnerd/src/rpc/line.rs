//! The open connections, and which of them gives way when there is no place for another.
//!
//! Silence costs a place: one that has never called gives way first, then the one that was silent longest. One that
//! waits for something, a reply or events, keeps its place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jsonrpsee::server::MethodResponse;
use jsonrpsee::types::Request;
use tokio_util::sync::CancellationToken;

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
    /// Calls without a reply, and subscriptions.
    waiting: u32,
    closing: CancellationToken,
}

/// One open connection; dropping the last clone takes it from the table.
#[derive(Debug, Clone)]
pub(super) struct Line(Arc<Open>);

#[derive(Debug)]
struct Open {
    id: u64,
    all: Lines,
    closing: CancellationToken,
}

impl Lines {
    /// Adds a connection.
    pub(super) fn open(&self) -> Line {
        let closing = CancellationToken::new();
        let mut table = self.table();
        table.tick += 1;
        let id = table.tick;
        let state = State { heard: id, has_called: false, waiting: 0, closing: closing.clone() };
        table.lines.insert(id, state);
        Line(Arc::new(Open { id, all: self.clone(), closing }))
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

impl Line {
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
            line.heard = tick;
        });
        Waiting(self.clone())
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

/// A call without a reply.
struct Waiting(Line);

impl Waiting {
    /// The connection waits for as long as it lives: for events.
    fn for_good(self) {
        self.0.change(|line, _| line.waiting = line.waiting.saturating_add(1));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.change(|line, tick| {
            line.waiting = line.waiting.saturating_sub(1);
            line.heard = tick;
        });
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
        let waiting = request.extensions.get::<Line>().map(Line::begin);
        async move {
            let response = service.call(request).await;
            if let Some(waiting) = waiting.filter(|_| response.is_subscription() && response.is_success()) {
                waiting.for_good();
            }
            response
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(lines: &[&Line]) -> Vec<bool> {
        lines.iter().map(|line| line.closing().is_cancelled()).collect()
    }

    #[test]
    fn the_one_that_never_called_gives_way_first_then_the_one_silent_longest() {
        let all = Lines::default();
        let (first, second, third) = (all.open(), all.open(), all.open());
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
        let (calling, listening) = (all.open(), all.open());
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
    fn one_that_is_gone_is_not_counted() {
        let all = Lines::default();
        drop(all.open());
        assert!(!all.close_silent());
        assert!(all.table().lines.is_empty());
    }
}
