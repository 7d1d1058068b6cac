//! The effects of keys. Those that steer a run are in `steer`.

use protocol::request::LogStream;

use super::message::{Key, LogKey, Request};
use super::model::{Focus, Mode, Model, PaneScrolls};
use super::reader::{LogViewer, ViewerAction};
use super::scroll::ScrollPosition;

/// Number of rows that a page key scrolls a pane.
const PAGE: isize = 10;

/// Every key of the panes with its effect, for the help.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Tab", "next pane"),
    ("j k arrows", "move, scroll; PgUp PgDn Home End too"),
    ("[ ]", "previous, next repository"),
    ("< >", "previous, next machine, of several"),
    ("Enter", "open a repository; fold a branch; open the log of a task or pane"),
    ("Esc", "the list of repositories"),
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
    pub(super) fn handle_key(&mut self, key: Key) -> Vec<Request> {
        match key {
            Key::Ctrl('c') => return vec![Request::Quit],
            Key::Ctrl('z') => return vec![Request::Suspend],
            Key::Ctrl('l') => return vec![Request::Redraw],
            _ => self.notice = None,
        }
        match &mut self.mode {
            Mode::Normal => self.handle_normal_key(key),
            Mode::Help => {
                self.mode = Mode::Normal;
                Vec::new()
            }
            Mode::Ask(_) => self.handle_answer_key(key),
            Mode::Type(_) => self.handle_text_key(key),
            Mode::Questions { .. } => self.handle_question_key(key),
            Mode::Read(reader) => match reader.handle_key(key) {
                ViewerAction::Stay(request) => request.into_iter().collect(),
                ViewerAction::Iteration(by) => self.switch_iteration(by),
                ViewerAction::Close => {
                    self.mode = Mode::Normal;
                    Vec::new()
                }
            },
        }
    }

    fn handle_normal_key(&mut self, key: Key) -> Vec<Request> {
        match key {
            Key::Char('q') => return vec![Request::Quit],
            Key::Char('?') => self.mode = Mode::Help,
            Key::Tab => self.cycle_focus(1),
            Key::BackTab => self.cycle_focus(Focus::ALL.len() - 1),
            Key::Char('<') => return vec![Request::SwitchMachine(-1)],
            Key::Char('>') => return vec![Request::SwitchMachine(1)],
            Key::Char('[') => return self.select_repo_by(-1),
            Key::Char(']') => return self.select_repo_by(1),
            Key::Up | Key::Char('k') => return self.move_by(-1),
            Key::Down | Key::Char('j') => return self.move_by(1),
            Key::PageUp => return self.move_by(-PAGE),
            Key::PageDown | Key::Char(' ') => return self.move_by(PAGE),
            Key::Home | Key::Char('g') => return self.move_by(isize::MIN / 2),
            Key::End | Key::Char('G') => return self.move_by(isize::MAX / 2),
            Key::Left if self.focus == Focus::Tree => drop(self.tree_view.toggle_fold(Some(true))),
            Key::Right if self.focus == Focus::Tree => drop(self.tree_view.toggle_fold(Some(false))),
            Key::Enter => return self.activate(),
            Key::Escape => self.focus = Focus::Repos,
            Key::Char('f') => self.follow_live(),
            Key::Char('v') => return self.toggle_raw(),
            Key::Char('l') => return self.open_log(LogStream::Agent),
            Key::Char(command) => return self.handle_command_key(command),
            _ => {}
        }
        Vec::new()
    }

    fn cycle_focus(&mut self, by: usize) {
        let at = Focus::ALL.iter().position(|focus| *focus == self.focus).unwrap_or(0);
        self.focus = Focus::ALL[(at + by) % Focus::ALL.len()];
    }

    fn select_repo_by(&mut self, by: isize) -> Vec<Request> {
        let last = self.repos.len().saturating_sub(1);
        let at = self.selected_index().unwrap_or(0).saturating_add_signed(by).min(last);
        let id = self.repos.get(at).map(|status| status.repo.id.clone());
        self.select(id)
    }

    fn move_by(&mut self, by: isize) -> Vec<Request> {
        match self.focus {
            Focus::Repos => return self.select_repo_by(by),
            Focus::Tree => self.tree_view.move_cursor(by),
            Focus::Agent => {
                let steps = self.activity().map(|live| live.steps.range()).unwrap_or_default();
                let range = if self.shows_steps() { steps } else { self.agent.range() };
                self.scrolls.agent.scroll_by(by, range);
            }
            Focus::Guard => self.scrolls.guard.scroll_by(by, self.guard.range()),
            Focus::Events => {
                let range = self.activity().map(|live| live.entries.range()).unwrap_or_default();
                self.scrolls.events.scroll_by(by, range);
            }
        }
        Vec::new()
    }

    fn follow_live(&mut self) {
        self.scrolls = PaneScrolls::default();
        self.tree_view.follow_current();
    }

    fn toggle_raw(&mut self) -> Vec<Request> {
        self.is_raw = !self.is_raw;
        self.scrolls.agent = ScrollPosition::default();
        self.refresh_panes()
    }

    fn activate(&mut self) -> Vec<Request> {
        match self.focus {
            Focus::Repos => {
                self.focus = Focus::Tree;
                Vec::new()
            }
            Focus::Tree if self.tree_view.toggle_fold(None) => Vec::new(),
            Focus::Tree => self.open_leaf(),
            Focus::Agent | Focus::Events => self.open_log(LogStream::Agent),
            Focus::Guard => self.open_log(LogStream::Guard),
        }
    }

    /// Opens the log of the last iteration on the selected leaf.
    fn open_leaf(&mut self) -> Vec<Request> {
        let Some(id) = self.tree_view.selected().map(|row| row.id.clone()) else { return Vec::new() };
        let live = self.run().filter(|run| run.phase.is_some() && run.node.as_ref().is_some_and(|node| node.id == id));
        let live = live.map(|run| (run.iteration, None));
        let last = || self.iterations.iter().rev().find(|view| view.node == id).map(|view| (view.iter, view.wait));
        if let (Some((iter, wait)), Some(target)) = (live.or_else(last), self.target()) {
            return self.open_reader(LogKey { target, iter, wait, stream: LogStream::Agent });
        }
        self.set_notice(format!("no iteration has worked on {id} yet"), true);
        Vec::new()
    }

    fn open_log(&mut self, stream: LogStream) -> Vec<Request> {
        if let Some(key) = self.pane_log(stream) {
            return self.open_reader(key);
        }
        self.set_notice("there is no log yet", true);
        Vec::new()
    }

    fn open_reader(&mut self, key: LogKey) -> Vec<Request> {
        let (reader, request) = LogViewer::open(key, self.size);
        self.mode = Mode::Read(Box::new(reader));
        request.into_iter().collect()
    }

    /// Switches the reader to an earlier or later iteration.
    fn switch_iteration(&mut self, by: isize) -> Vec<Request> {
        let live = self.run().filter(|run| run.phase.is_some()).map(|run| (run.iteration, None));
        let mut known: Vec<(u32, Option<u32>)> = self.iterations.iter().map(|view| (view.iter, view.wait)).collect();
        known.extend(live.filter(|live| !known.contains(live)));
        let Mode::Read(reader) = &mut self.mode else { return Vec::new() };
        let current = (reader.key().iter, reader.key().wait);
        let index = known.iter().position(|known| *known == current).unwrap_or(known.len());
        match index.checked_add_signed(by).and_then(|at| known.get(at)) {
            Some((iter, wait)) => reader.open_iteration(*iter, *wait).into_iter().collect(),
            None => Vec::new(),
        }
    }
}
