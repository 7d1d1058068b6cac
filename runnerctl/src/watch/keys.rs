//! What the keys do. Those that steer a run are in `steer`.

use protocol::request::LogStream;

use super::message::{Key, LogKey, Request};
use super::model::{Focus, Mode, Model, PaneScrolls};
use super::reader::{LogViewer, ViewerAction};
use super::scroll::ScrollPosition;

/// Rows that a page key moves a pane by.
const PAGE: isize = 10;

/// Every key of the panes with what it does, for the help.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Tab", "next pane"),
    ("j k arrows", "move, scroll; PgUp PgDn Home End too"),
    ("[ ]", "previous, next repository"),
    ("< >", "previous, next machine, of several"),
    ("Enter", "fold or unfold a branch; open the log of a leaf or pane"),
    ("f", "follow what is live again"),
    ("v", "the agent's steps, or its output as printed"),
    ("l", "open the log; / searches in it"),
    ("p", "pause after this iteration"),
    ("P", "pause now: end the session, its work is committed"),
    ("r", "resume"),
    ("s", "step: run one iteration"),
    ("c", "cancel the run; branch and commits are kept"),
    ("n", "note to the next session"),
    ("a", "answer a question of an agent"),
    ("y", "approve the task awaiting your review"),
    ("x", "reject it, and say why"),
    ("?", "this help"),
    ("q", "quit; runs continue"),
];

impl Model {
    /// Handles a key.
    pub(super) fn key(&mut self, key: Key) -> Vec<Request> {
        match key {
            Key::Ctrl('c') => return vec![Request::Quit],
            Key::Ctrl('z') => return vec![Request::Suspend],
            Key::Ctrl('l') => return vec![Request::Redraw],
            _ => self.notice = None,
        }
        match &mut self.mode {
            Mode::Normal => self.normal(key),
            Mode::Help => {
                self.mode = Mode::Normal;
                Vec::new()
            }
            Mode::Ask(_) => self.answer(key),
            Mode::Type(_) => self.type_text(key),
            Mode::Questions { .. } => self.choose(key),
            Mode::Read(reader) => match reader.key_pressed(key) {
                ViewerAction::Stay(request) => request.into_iter().collect(),
                ViewerAction::Iteration(by) => self.other_iteration(by),
                ViewerAction::Close => {
                    self.mode = Mode::Normal;
                    Vec::new()
                }
            },
        }
    }

    fn normal(&mut self, key: Key) -> Vec<Request> {
        match key {
            Key::Char('q') => return vec![Request::Quit],
            Key::Char('?') => self.mode = Mode::Help,
            Key::Tab => self.turn_focus(1),
            Key::BackTab => self.turn_focus(Focus::ALL.len() - 1),
            Key::Char('<') => return vec![Request::Machine(-1)],
            Key::Char('>') => return vec![Request::Machine(1)],
            Key::Char('[') => return self.next_repo(-1),
            Key::Char(']') => return self.next_repo(1),
            Key::Up | Key::Char('k') => return self.go(-1),
            Key::Down | Key::Char('j') => return self.go(1),
            Key::PageUp => return self.go(-PAGE),
            Key::PageDown | Key::Char(' ') => return self.go(PAGE),
            Key::Home | Key::Char('g') => return self.go(isize::MIN / 2),
            Key::End | Key::Char('G') => return self.go(isize::MAX / 2),
            Key::Left if self.focus == Focus::Tree => drop(self.forest.fold(Some(true))),
            Key::Right if self.focus == Focus::Tree => drop(self.forest.fold(Some(false))),
            Key::Enter => return self.enter(),
            Key::Char('f') => self.follow(),
            Key::Char('v') => return self.turn_raw(),
            Key::Char('l') => return self.open_log(LogStream::Agent),
            Key::Char(command) => return self.command(command),
            _ => {}
        }
        Vec::new()
    }

    fn turn_focus(&mut self, by: usize) {
        let at = Focus::ALL.iter().position(|focus| *focus == self.focus).unwrap_or(0);
        self.focus = Focus::ALL[(at + by) % Focus::ALL.len()];
    }

    fn next_repo(&mut self, by: isize) -> Vec<Request> {
        let last = self.repos.len().saturating_sub(1);
        let at = self.position().unwrap_or(0).saturating_add_signed(by).min(last);
        let id = self.repos.get(at).map(|status| status.repo.id.clone());
        self.select(id)
    }

    fn go(&mut self, by: isize) -> Vec<Request> {
        match self.focus {
            Focus::Repos => return self.next_repo(by),
            Focus::Tree => self.forest.step(by),
            Focus::Agent => {
                let steps = self.live().map(|live| live.steps.range()).unwrap_or_default();
                let range = if self.shows_steps() { steps } else { self.agent.range() };
                self.scrolls.agent.step(by, range);
            }
            Focus::Guard => self.scrolls.guard.step(by, self.guard.range()),
            Focus::Events => {
                let range = self.live().map(|live| live.entries.range()).unwrap_or_default();
                self.scrolls.events.step(by, range);
            }
        }
        Vec::new()
    }

    fn follow(&mut self) {
        self.scrolls = PaneScrolls::default();
        self.forest.follow();
    }

    fn turn_raw(&mut self) -> Vec<Request> {
        self.is_raw = !self.is_raw;
        self.scrolls.agent = ScrollPosition::default();
        self.read_on()
    }

    fn enter(&mut self) -> Vec<Request> {
        match self.focus {
            Focus::Repos => {
                self.focus = Focus::Tree;
                Vec::new()
            }
            Focus::Tree if self.forest.fold(None) => Vec::new(),
            Focus::Tree => self.open_leaf(),
            Focus::Agent | Focus::Events => self.open_log(LogStream::Agent),
            Focus::Guard => self.open_log(LogStream::Guard),
        }
    }

    /// Opens the log of the last iteration on the chosen leaf.
    fn open_leaf(&mut self) -> Vec<Request> {
        let Some(id) = self.forest.chosen().map(|row| row.id.clone()) else { return Vec::new() };
        let live = self.run().filter(|run| run.phase.is_some() && run.node.as_ref().is_some_and(|node| node.id == id));
        let live = live.map(|run| (run.iteration, None));
        let last = || self.iterations.iter().rev().find(|view| view.node == id).map(|view| (view.iter, view.wait));
        if let (Some((iter, wait)), Some(target)) = (live.or_else(last), self.target()) {
            return self.read(LogKey { target, iter, wait, stream: LogStream::Agent });
        }
        self.say(format!("no iteration has worked on {id} yet"), true);
        Vec::new()
    }

    fn open_log(&mut self, stream: LogStream) -> Vec<Request> {
        if let Some(key) = self.file(stream) {
            return self.read(key);
        }
        self.say("there is no log yet", true);
        Vec::new()
    }

    fn read(&mut self, key: LogKey) -> Vec<Request> {
        let (reader, request) = LogViewer::open(key, self.size);
        self.mode = Mode::Read(Box::new(reader));
        request.into_iter().collect()
    }

    /// Turns the reader to an iteration before or after the one that is read.
    fn other_iteration(&mut self, by: isize) -> Vec<Request> {
        let live = self.run().filter(|run| run.phase.is_some()).map(|run| (run.iteration, None));
        let mut known: Vec<(u32, Option<u32>)> = self.iterations.iter().map(|view| (view.iter, view.wait)).collect();
        known.extend(live.filter(|live| !known.contains(live)));
        let Mode::Read(reader) = &mut self.mode else { return Vec::new() };
        let here = (reader.key().iter, reader.key().wait);
        let at = known.iter().position(|known| *known == here).unwrap_or(known.len());
        match at.checked_add_signed(by).and_then(|at| known.get(at)) {
            Some((iter, wait)) => reader.go(*iter, *wait).into_iter().collect(),
            None => Vec::new(),
        }
    }
}
