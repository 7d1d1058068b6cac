//! The effects of messages on the model, and the resulting commands. Pure: no clock, no terminal, no connection.

use std::collections::BTreeSet;

use jiff::Timestamp;
use protocol::event::{Event, EventKind};
use protocol::request::LogStream;
use protocol::view::{StatusView, TextView};
use protocol::words::PhaseName;

use super::entries::EventEntry;
use super::message::{LogPosition, Message, Request, RequestError, RunKey, SteerRequest};
use super::model::{Confirmation, Focus, LostConnection, Mode, Model, PaneScrolls, PendingRequests, RepoActivity};
use super::single_flight::SingleFlight;
use super::steps::AgentStep;
use crate::text::titles::task_title;

impl Model {
    /// Handles one message and returns the resulting commands.
    pub(crate) fn update(&mut self, now: Timestamp, message: Message) -> Vec<Request> {
        self.caps.screen.now = now;
        match message {
            Message::Key(key) => self.handle_key(key),
            Message::Paste(text) => self.paste(&text),
            Message::Size(columns, rows) => self.on_resize((columns, rows)),
            Message::Tick => Vec::new(),
            Message::Connected => self.on_connected(),
            Message::Lost(why) => self.on_lost(why),
            Message::Event(event) => self.on_event(*event),
            Message::Statuses(reply) => self.on_statuses(reply),
            Message::Tree(target, reply) => {
                let is_due = self.pending.tree.complete();
                if let (true, Ok(reply)) = (self.shown_run.as_ref() == Some(&target), reply) {
                    self.tree_view.set_tree(reply.tree);
                }
                self.repeat_if(is_due, Request::Tree)
            }
            Message::Iterations(target, reply) => {
                let is_due = self.pending.iterations.complete();
                if let (true, Ok(list)) = (self.shown_run.as_ref() == Some(&target), reply) {
                    self.iterations = list;
                }
                self.repeat_if(is_due, Request::Iterations)
            }
            Message::LogChunk(at, piece) => self.on_log_chunk(&at, piece),
            Message::Questions(of, reply) => self.on_questions(&of, reply),
            Message::Steered(steer, result) => self.on_steered(steer, result),
        }
    }

    fn repeat_if(&self, is_due: bool, request: impl FnOnce(RunKey) -> Request) -> Vec<Request> {
        self.target().filter(|_| is_due).map(request).into_iter().collect()
    }

    fn on_resize(&mut self, size: (u16, u16)) -> Vec<Request> {
        self.size = size;
        if let Mode::Read(reader) = &mut self.mode {
            reader.resize(size);
        }
        Vec::new()
    }

    fn on_connected(&mut self) -> Vec<Request> {
        self.lost = None;
        self.reset_pending();
        let mut requests = request_once(&mut self.pending.statuses, || Request::Statuses);
        requests.extend(self.show_selected());
        if let Mode::Read(reader) = &mut self.mode {
            requests.extend(reader.request_more());
        }
        requests
    }

    fn on_lost(&mut self, why: String) -> Vec<Request> {
        let since = self.lost.take().map_or(self.now(), |lost| lost.since);
        self.lost = Some(LostConnection { since, why });
        self.reset_pending();
        Vec::new()
    }

    /// Requests over a lost connection get no reply.
    fn reset_pending(&mut self) {
        self.pending = PendingRequests::default();
        self.agent.reset_pending();
        self.guard.reset_pending();
        if let Mode::Read(reader) = &mut self.mode {
            reader.reset_pending();
        }
    }

    fn on_event(&mut self, event: Event) -> Vec<Request> {
        let is_shown = event.repo.is_some() && event.repo == self.selected;
        match event.kind {
            EventKind::Output { phase, .. } => {
                if is_shown {
                    self.on_output(phase)
                } else {
                    Vec::new()
                }
            }
            EventKind::Activity(activity) => {
                if let (Some(repo), Some(iter)) = (event.repo, event.iter) {
                    self.activities.entry(repo).or_default().steps.push(AgentStep { iter, activity });
                }
                Vec::new()
            }
            _ => self.on_repo_event(&event, is_shown),
        }
    }

    /// Records an event, and requests the state that it changed.
    fn on_repo_event(&mut self, event: &Event, is_shown: bool) -> Vec<Request> {
        let repo_id = event.repo.clone().or_else(|| self.selected.clone());
        if let Some(repo) = repo_id {
            let activity: &mut RepoActivity = self.activities.entry(repo).or_default();
            match &event.kind {
                EventKind::Phase { phase, .. } => activity.timeline.enter_phase(event.iter, *phase, event.time),
                EventKind::Iteration { .. } => activity.timeline.enter_phase(event.iter, PhaseName::Over, event.time),
                _ => {}
            }
            let title = |id: &str| {
                let runs = self.repos.iter().filter(|status| event.repo.as_ref() == Some(&status.repo.id));
                let run_title = || runs.filter_map(|status| status.run.as_ref()).find_map(|run| task_title(run, id));
                self.tree_view.title(id).filter(|_| is_shown).or_else(run_title)
            };
            if let Some(entry) = EventEntry::from_event(event, title) {
                activity.entries.push(entry);
            }
        }
        let mut requests = request_once(&mut self.pending.statuses, || Request::Statuses);
        let is_changed = matches!(
            event.kind,
            EventKind::Tree { .. }
                | EventKind::Commit { .. }
                | EventKind::Iteration { .. }
                | EventKind::RunState { .. }
        );
        // A run is announced before its branch has a tree.
        let is_due = is_changed || self.tree_view.rows().is_empty();
        if let Some(target) = self.shown_run.clone().filter(|_| is_shown && is_due || event.kind == EventKind::Lagged) {
            requests.extend(request_once(&mut self.pending.tree, || Request::Tree(target.clone())));
            requests.extend(request_once(&mut self.pending.iterations, || Request::Iterations(target)));
        }
        requests
    }

    /// Requests the output of the selected repository's agent or guard.
    fn on_output(&mut self, phase: PhaseName) -> Vec<Request> {
        let mut requests = Vec::new();
        if phase == PhaseName::Guard {
            requests.extend(self.guard.request_more());
        } else if !self.shows_steps() {
            requests.extend(self.agent.request_more());
        }
        if let Mode::Read(reader) = &mut self.mode {
            requests.extend(reader.request_more());
        }
        requests
    }

    fn on_statuses(&mut self, reply: Result<Vec<StatusView>, RequestError>) -> Vec<Request> {
        let mut requests = if self.pending.statuses.complete() { vec![Request::Statuses] } else { Vec::new() };
        let Ok(repos) = reply else { return requests };
        for status in &repos {
            if let Some(run) = &status.run {
                self.activities.entry(status.repo.id.clone()).or_default().timeline.reconcile(run);
            }
        }
        self.activities.retain(|id, _| repos.iter().any(|status| status.repo.id == *id));
        let state = self.run().map(|run| run.summary.state);
        if self.read_at.is_none() && repos.len() > 1 && self.is_small() {
            self.focus = Focus::Repos;
        }
        (self.repos, self.read_at) = (sort_by_need(repos), Some(self.now()));
        if self.run().map(|run| run.summary.state) != state {
            self.notice = self.notice.take().filter(|notice| notice.is_error);
        }
        if self.selected_index().is_none() {
            self.selected = self.repos.first().map(|status| status.repo.id.clone());
        }
        if self.target() != self.shown_run {
            requests.extend(self.show_selected());
        }
        let current = self.run().and_then(|run| run.node.as_ref()).map(|node| node.id.clone());
        self.tree_view.set_current(current.as_deref());
        requests.extend(self.refresh_panes());
        requests
    }

    /// Shows the selected repository from the beginning; returns the commands that load its data.
    pub(super) fn show_selected(&mut self) -> Vec<Request> {
        let target = self.target();
        if self.shown_run != target {
            self.shown_run.clone_from(&target);
            (self.tree_view, self.iterations) = Default::default();
            self.scrolls = PaneScrolls::default();
            self.pending = PendingRequests { statuses: self.pending.statuses, ..PendingRequests::default() };
        }
        let Some(target) = target else { return Vec::new() };
        let current = self.run().and_then(|run| run.node.as_ref()).map(|node| node.id.clone());
        self.tree_view.set_current(current.as_deref());
        let mut requests = vec![Request::Follow(target.path.clone())];
        if target.run.is_some() {
            requests.extend(request_once(&mut self.pending.tree, || Request::Tree(target.clone())));
            requests.extend(request_once(&mut self.pending.iterations, || Request::Iterations(target)));
        }
        requests.extend(self.refresh_panes());
        requests
    }

    /// Switches the panes to the files of the displayed iteration, and requests their contents.
    pub(super) fn refresh_panes(&mut self) -> Vec<Request> {
        let agent = self.pane_log(LogStream::Agent);
        let guard = self.pane_log(LogStream::Guard);
        self.agent.set_file(agent);
        self.guard.set_file(guard);
        let mut requests: Vec<Request> = self.guard.request_more().into_iter().collect();
        if !self.shows_steps() {
            requests.extend(self.agent.request_more());
        }
        if let Mode::Read(reader) = &mut self.mode {
            requests.extend(reader.request_more());
        }
        requests
    }

    fn on_log_chunk(&mut self, position: &LogPosition, chunk: Result<TextView, RequestError>) -> Vec<Request> {
        let caps = self.caps;
        let mut requests: Vec<Request> = Vec::new();
        requests.extend(self.agent.append_chunk(position, chunk.clone(), caps));
        requests.extend(self.guard.append_chunk(position, chunk.clone(), caps));
        if let Mode::Read(reader) = &mut self.mode {
            requests.extend(reader.append_chunk(position, chunk, caps));
        }
        requests.dedup();
        requests
    }

    fn on_steered(&mut self, request: SteerRequest, result: Result<String, RequestError>) -> Vec<Request> {
        match result {
            Ok(text) => self.set_notice(text, false),
            Err(trouble) if trouble.is_unconfirmed && matches!(self.mode, Mode::Normal) => {
                let text = format!("{}\nRun these commands?", trouble.message);
                self.mode = Mode::Ask(Confirmation { text, request: SteerRequest { confirmed: true, ..request } });
            }
            Err(trouble) => {
                let hint = trouble.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                self.set_notice(format!("{}: {}{hint}", request.action, trouble.message), true);
            }
        }
        request_once(&mut self.pending.statuses, || Request::Statuses)
    }
}

/// Puts repositories first that need a person, or one of whose isolated runs does; isolated runs stay below theirs.
fn sort_by_need(mut repos: Vec<StatusView>) -> Vec<StatusView> {
    let owner = |status: &StatusView| status.repo.source_id.clone().unwrap_or_else(|| status.repo.id.clone());
    let needing: BTreeSet<String> = repos.iter().filter(|status| status.needs_you()).map(owner).collect();
    repos.sort_by_key(|status| !needing.contains(&owner(status)));
    repos
}

/// Returns the request, unless it is already in flight.
fn request_once(flight: &mut SingleFlight, request: impl FnOnce() -> Request) -> Vec<Request> {
    if flight.request() { vec![request()] } else { Vec::new() }
}

#[cfg(test)]
mod tests;
