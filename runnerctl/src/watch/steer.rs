//! Steering a run: the keys for it, and the input that is needed before anything is sent.

use protocol::view::QuestionView;
use protocol::words::RunStatus;

use super::message::{Key, Request, RequestError, RunKey, SteerAction, SteerRequest};
use super::model::{Confirmation, Draft, DraftPurpose, Mode, Model};

/// Maximum length of a text.
const TEXT_BYTES: usize = 8 * 1024;

impl Model {
    /// Handles a key that steers the run.
    pub(super) fn handle_command_key(&mut self, key: char) -> Vec<Request> {
        if !"pPrscnayx".contains(key) {
            return Vec::new();
        }
        let Some(target) = self.target().filter(|target| target.run.is_some()) else {
            let is_known = self.read_at.is_some();
            self.set_notice(if is_known { "no run here yet: runnerctl start PATH" } else { "not connected yet" }, true);
            return Vec::new();
        };
        if self.lost.is_some() {
            self.set_notice("no daemon answers: nothing was sent", true);
            return Vec::new();
        }
        let is_waiting = self.run().is_some_and(|run| run.summary.state == RunStatus::Waiting);
        match key {
            'p' => self.send_steer(SteerRequest::new(target, SteerAction::Pause { now: false })),
            'P' => self.ask_confirmation(target, SteerAction::Pause { now: true }),
            'r' => self.send_steer(SteerRequest::new(target, SteerAction::Resume { now: is_waiting })),
            's' => self.send_steer(SteerRequest::new(target, SteerAction::Step)),
            'c' => self.ask_confirmation(target, SteerAction::Cancel),
            'n' => self.start_draft(target, DraftPurpose::Note),
            'a' => self.request_questions(target),
            _ => self.start_review(target, key),
        }
    }

    /// Approves or rejects the node that is pending review.
    fn start_review(&mut self, target: RunKey, key: char) -> Vec<Request> {
        let Some(iter) = self.iteration_under_review().map(|view| view.iter) else {
            self.set_notice("nothing in this run awaits your review", true);
            return Vec::new();
        };
        if key == 'y' {
            self.ask_confirmation(target, SteerAction::Approve { iter })
        } else {
            self.start_draft(target, DraftPurpose::Reject { iter })
        }
    }

    fn send_steer(&mut self, request: SteerRequest) -> Vec<Request> {
        self.set_notice(format!("{}: sent", request.action), false);
        vec![Request::Steer(request)]
    }

    fn ask_confirmation(&mut self, target: RunKey, action: SteerAction) -> Vec<Request> {
        let run = target.run.clone().unwrap_or_default();
        let text = match action {
            SteerAction::Cancel => format!("Cancel run {run}? Its branch and commits are kept."),
            SteerAction::Approve { iter } => {
                let node = self.iteration_under_review().map(|view| view.node.as_str()).unwrap_or_default();
                format!("Approve task {node} of iteration {iter} of run {run}?")
            }
            _ => format!("End the session of run {run} now? Its work will be committed."),
        };
        self.mode = Mode::Ask(Confirmation { text, request: SteerRequest::new(target, action) });
        Vec::new()
    }

    /// Handles yes or no.
    pub(super) fn handle_answer_key(&mut self, key: Key) -> Vec<Request> {
        let is_answer = matches!(key, Key::Char('y' | 'Y' | 'n' | 'N' | 'q') | Key::Escape);
        if !is_answer {
            return Vec::new();
        }
        match (std::mem::replace(&mut self.mode, Mode::Normal), key) {
            (Mode::Ask(question), Key::Char('y' | 'Y')) => self.send_steer(question.request),
            _ => Vec::new(),
        }
    }

    fn start_draft(&mut self, target: RunKey, purpose: DraftPurpose) -> Vec<Request> {
        self.mode = Mode::Type(Draft { target, purpose, text: String::new() });
        Vec::new()
    }

    /// Handles a key while a text is typed.
    pub(super) fn handle_text_key(&mut self, key: Key) -> Vec<Request> {
        let Mode::Type(Draft { text, .. }) = &mut self.mode else { return Vec::new() };
        match key {
            Key::Char(c) => append_limited(text, c.encode_utf8(&mut [0; 4])),
            Key::Backspace => drop(text.pop()),
            Key::Ctrl('u') => text.clear(),
            Key::Ctrl('w') => text.truncate(text.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1)),
            Key::Escape => self.mode = Mode::Normal,
            Key::Enter => return self.send_draft(),
            _ => {}
        }
        Vec::new()
    }

    /// Sends the typed text, if there is any.
    fn send_draft(&mut self) -> Vec<Request> {
        let Mode::Type(Draft { target, purpose, text }) = std::mem::replace(&mut self.mode, Mode::Normal) else {
            return Vec::new();
        };
        if text.trim().is_empty() {
            return Vec::new();
        }
        let action = match purpose {
            DraftPurpose::Note => SteerAction::Note(text),
            DraftPurpose::Reject { iter } => SteerAction::Reject { iter, reason: text },
            DraftPurpose::Answer(question) => SteerAction::Answer { id: question.id, text },
        };
        self.send_steer(SteerRequest::new(target, action))
    }

    /// Handles pasted text: it is inserted into a text input, otherwise ignored.
    pub(super) fn paste(&mut self, text: &str) -> Vec<Request> {
        match &mut self.mode {
            Mode::Type(draft) => append_limited(&mut draft.text, text),
            Mode::Read(reader) => reader.paste(text),
            Mode::Normal | Mode::Help | Mode::Ask(_) | Mode::Questions { .. } => {}
        }
        Vec::new()
    }

    fn request_questions(&mut self, target: RunKey) -> Vec<Request> {
        self.mode = Mode::Questions { list: None, cursor: 0 };
        vec![Request::Questions(target)]
    }

    /// Lists the questions of the selected repository.
    pub(super) fn on_questions(
        &mut self,
        target: &RunKey,
        reply: Result<Vec<QuestionView>, RequestError>,
    ) -> Vec<Request> {
        let Mode::Questions { list, .. } = &mut self.mode else { return Vec::new() };
        match reply {
            Ok(found) if self.shown_run.as_ref() == Some(target) && !found.is_empty() => *list = Some(found),
            reply => {
                self.mode = Mode::Normal;
                let message = reply.map_or_else(|trouble| trouble.message, |_| "no question is open".to_owned());
                self.set_notice(message, true);
            }
        }
        Vec::new()
    }

    /// Handles a key while the questions are listed.
    pub(super) fn handle_question_key(&mut self, key: Key) -> Vec<Request> {
        let Mode::Questions { list, cursor } = &mut self.mode else { return Vec::new() };
        let last = list.as_ref().map_or(0, |list| list.len().saturating_sub(1));
        match key {
            Key::Up | Key::Char('k') => *cursor = cursor.saturating_sub(1),
            Key::Down | Key::Char('j') => *cursor = (*cursor + 1).min(last),
            Key::Char('q') | Key::Escape => self.mode = Mode::Normal,
            Key::Enter => {
                let selected = list.as_mut().map(|list| list.swap_remove(*cursor));
                if let (Some(question), Some(target)) = (selected, self.shown_run.clone()) {
                    return self.start_draft(target, DraftPurpose::Answer(Box::new(question)));
                }
            }
            _ => {}
        }
        Vec::new()
    }
}

impl SteerRequest {
    fn new(target: RunKey, action: SteerAction) -> Self {
        Self { target, action, confirmed: false }
    }
}

/// Adds to a text up to the maximum length.
fn append_limited(text: &mut String, more: &str) {
    let available = TEXT_BYTES.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(available)]);
}
