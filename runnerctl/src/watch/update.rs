//! How messages change the model, and what is asked for then. Pure: no clock, no terminal, no connection.

use jiff::Timestamp;
use protocol::event::{Event, EventKind};
use protocol::request::LogStream;
use protocol::view::{StatusView, TextView};
use protocol::words::PhaseName;

use super::entries::EventEntry;
use super::message::{LogPosition, Message, Request, RequestError, RunKey, SteerRequest};
use super::model::{Confirmation, LostConnection, Mode, Model, PaneScrolls, PendingRequests, RepoActivity};
use super::single_flight::SingleFlight;
use super::steps::AgentStep;
use crate::text::titles::title;

impl Model {
    /// Takes a message at a time and returns what is to be done.
    pub(crate) fn update(&mut self, now: Timestamp, message: Message) -> Vec<Request> {
        self.look.screen.now = now;
        match message {
            Message::Key(key) => self.key(key),
            Message::Paste(text) => self.paste(&text),
            Message::Size(columns, rows) => self.resize((columns, rows)),
            Message::Clock => Vec::new(),
            Message::Linked => self.linked(),
            Message::Lost(why) => self.lose(why),
            Message::Event(event) => self.event(*event),
            Message::Statuses(reply) => self.statuses(reply),
            Message::Tree(target, reply) => {
                let again = self.awaited.tree.arrived();
                if let (true, Ok(reply)) = (self.shown.as_ref() == Some(&target), reply) {
                    self.forest.take(reply.tree);
                }
                self.again(again, Request::Tree)
            }
            Message::Iterations(target, reply) => {
                let again = self.awaited.iterations.arrived();
                if let (true, Ok(list)) = (self.shown.as_ref() == Some(&target), reply) {
                    self.iterations = list;
                }
                self.again(again, Request::Iterations)
            }
            Message::Piece(at, piece) => self.piece(&at, piece),
            Message::Questions(of, reply) => self.questions(&of, reply),
            Message::Steered(steer, result) => self.steered(steer, result),
        }
    }

    fn again(&self, again: bool, request: impl FnOnce(RunKey) -> Request) -> Vec<Request> {
        self.target().filter(|_| again).map(request).into_iter().collect()
    }

    fn resize(&mut self, size: (u16, u16)) -> Vec<Request> {
        self.size = size;
        if let Mode::Read(reader) = &mut self.mode {
            reader.resize(size);
        }
        Vec::new()
    }

    fn linked(&mut self) -> Vec<Request> {
        self.lost = None;
        self.forget_awaited();
        let mut requests = ask(&mut self.awaited.statuses, || Request::Statuses);
        requests.extend(self.show());
        if let Mode::Read(reader) = &mut self.mode {
            requests.extend(reader.more());
        }
        requests
    }

    fn lose(&mut self, why: String) -> Vec<Request> {
        let since = self.lost.take().map_or(self.now(), |lost| lost.since);
        self.lost = Some(LostConnection { since, why });
        self.forget_awaited();
        Vec::new()
    }

    /// Answers of a connection that is gone do not come.
    fn forget_awaited(&mut self) {
        self.awaited = PendingRequests::default();
        self.agent.lost();
        self.guard.lost();
        if let Mode::Read(reader) = &mut self.mode {
            reader.lost();
        }
    }

    fn event(&mut self, event: Event) -> Vec<Request> {
        let is_shown = event.repo.is_some() && event.repo == self.selected;
        match event.kind {
            EventKind::Output { phase, .. } => {
                if is_shown {
                    self.printed(phase)
                } else {
                    Vec::new()
                }
            }
            EventKind::Activity(activity) => {
                if let (Some(repo), Some(iter)) = (event.repo, event.iter) {
                    self.lives.entry(repo).or_default().steps.push(AgentStep { iter, activity });
                }
                Vec::new()
            }
            _ => self.happened(&event, is_shown),
        }
    }

    /// Notes what happened, and asks for the state that it changed.
    fn happened(&mut self, event: &Event, is_shown: bool) -> Vec<Request> {
        let about = event.repo.clone().or_else(|| self.selected.clone());
        if let Some(repo) = about {
            let live: &mut RepoActivity = self.lives.entry(repo).or_default();
            match &event.kind {
                EventKind::Phase { phase, .. } => live.timeline.enter(event.iter, *phase, event.time),
                EventKind::Iteration { .. } => live.timeline.enter(event.iter, PhaseName::Over, event.time),
                _ => {}
            }
            let title = |id: &str| {
                let runs = self.repos.iter().filter(|status| event.repo.as_ref() == Some(&status.repo.id));
                let told = || runs.filter_map(|status| status.run.as_ref()).find_map(|run| title(run, id));
                self.forest.title(id).filter(|_| is_shown).or_else(told)
            };
            if let Some(entry) = EventEntry::of(event, title) {
                live.entries.push(entry);
            }
        }
        let mut requests = ask(&mut self.awaited.statuses, || Request::Statuses);
        let is_changed = matches!(
            event.kind,
            EventKind::Tree { .. }
                | EventKind::Commit { .. }
                | EventKind::Iteration { .. }
                | EventKind::RunState { .. }
        );
        // A run is announced before its branch has a tree.
        let is_due = is_changed || self.forest.rows().is_empty();
        if let Some(target) = self.shown.clone().filter(|_| is_shown && is_due || event.kind == EventKind::Lagged) {
            requests.extend(ask(&mut self.awaited.tree, || Request::Tree(target.clone())));
            requests.extend(ask(&mut self.awaited.iterations, || Request::Iterations(target)));
        }
        requests
    }

    /// Asks for what the agent or the guard of the selected repository has printed.
    fn printed(&mut self, phase: PhaseName) -> Vec<Request> {
        let mut requests = Vec::new();
        if phase == PhaseName::Guard {
            requests.extend(self.guard.more());
        } else if !self.shows_steps() {
            requests.extend(self.agent.more());
        }
        if let Mode::Read(reader) = &mut self.mode {
            requests.extend(reader.more());
        }
        requests
    }

    fn statuses(&mut self, reply: Result<Vec<StatusView>, RequestError>) -> Vec<Request> {
        let mut requests = if self.awaited.statuses.arrived() { vec![Request::Statuses] } else { Vec::new() };
        let Ok(repos) = reply else { return requests };
        for status in &repos {
            if let Some(run) = &status.run {
                self.lives.entry(status.repo.id.clone()).or_default().timeline.agree(run);
            }
        }
        self.lives.retain(|id, _| repos.iter().any(|status| status.repo.id == *id));
        let state = self.run().map(|run| run.summary.state);
        (self.repos, self.read_at) = (repos, Some(self.now()));
        if self.run().map(|run| run.summary.state) != state {
            self.notice = self.notice.take().filter(|notice| notice.is_bad);
        }
        if self.position().is_none() {
            self.selected = self.repos.first().map(|status| status.repo.id.clone());
        }
        if self.target() != self.shown {
            requests.extend(self.show());
        }
        let current = self.run().and_then(|run| run.node.as_ref()).map(|node| node.id.clone());
        self.forest.mark(current.as_deref());
        requests.extend(self.read_on());
        requests
    }

    /// Shows the selected repository from the beginning; returns what must be read for it.
    pub(super) fn show(&mut self) -> Vec<Request> {
        let target = self.target();
        if self.shown != target {
            self.shown.clone_from(&target);
            (self.forest, self.iterations) = Default::default();
            self.scrolls = PaneScrolls::default();
            self.awaited = PendingRequests { statuses: self.awaited.statuses, ..PendingRequests::default() };
        }
        let Some(target) = target else { return Vec::new() };
        let current = self.run().and_then(|run| run.node.as_ref()).map(|node| node.id.clone());
        self.forest.mark(current.as_deref());
        let mut requests = vec![Request::Follow(target.path.clone())];
        if target.run.is_some() {
            requests.extend(ask(&mut self.awaited.tree, || Request::Tree(target.clone())));
            requests.extend(ask(&mut self.awaited.iterations, || Request::Iterations(target)));
        }
        requests.extend(self.read_on());
        requests
    }

    /// Turns the panes to the files of the iteration that is shown, and asks for what is in them.
    pub(super) fn read_on(&mut self) -> Vec<Request> {
        let (agent, guard) = (self.file(LogStream::Agent), self.file(LogStream::Guard));
        self.agent.aim(agent);
        self.guard.aim(guard);
        let mut requests: Vec<Request> = self.guard.more().into_iter().collect();
        if !self.shows_steps() {
            requests.extend(self.agent.more());
        }
        if let Mode::Read(reader) = &mut self.mode {
            requests.extend(reader.more());
        }
        requests
    }

    fn piece(&mut self, at: &LogPosition, piece: Result<TextView, RequestError>) -> Vec<Request> {
        let look = self.look;
        let mut requests: Vec<Request> = Vec::new();
        requests.extend(self.agent.take(at, piece.clone(), look));
        requests.extend(self.guard.take(at, piece.clone(), look));
        if let Mode::Read(reader) = &mut self.mode {
            requests.extend(reader.take(at, piece, look));
        }
        requests.dedup();
        requests
    }

    fn steered(&mut self, steer: SteerRequest, result: Result<String, RequestError>) -> Vec<Request> {
        match result {
            Ok(text) => self.say(text, false),
            Err(trouble) if trouble.is_unconfirmed && matches!(self.mode, Mode::Normal) => {
                let text = format!("{}\nRun these commands?", trouble.message);
                self.mode = Mode::Ask(Confirmation { text, steer: SteerRequest { confirmed: true, ..steer } });
            }
            Err(trouble) => {
                let hint = trouble.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                self.say(format!("{}: {}{hint}", steer.what, trouble.message), true);
            }
        }
        ask(&mut self.awaited.statuses, || Request::Statuses)
    }
}

/// Returns the request, unless its answer is awaited already.
fn ask(flight: &mut SingleFlight, request: impl FnOnce() -> Request) -> Vec<Request> {
    if flight.want() { vec![request()] } else { Vec::new() }
}

#[cfg(test)]
mod tests;
