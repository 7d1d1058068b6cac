//! The effects of messages and keys.

use protocol::event::EventKind;
use protocol::view::TextView;

use super::*;
use crate::watch::capabilities::TermCapabilities;
use crate::watch::fixtures::{
    REPO, answer_reads, event_message, fixed_now, populated_model, press_keys, sample_statuses,
};
use crate::watch::message::{Key, SteerAction};
use crate::watch::model::Focus;
use crate::watch::tree_view::TreeView;

const SIZE: (u16, u16) = (80, 24);

fn new_model() -> Model {
    populated_model(TermCapabilities::fixed(), SIZE)
}

fn steer_actions(requests: &[Request]) -> Vec<(String, Option<&str>)> {
    let steers = requests.iter().filter_map(|request| match request {
        Request::Steer(steer) => Some(steer),
        _ => None,
    });
    steers.map(|steer| (steer.action.to_string(), steer.target.run.as_deref())).collect()
}

fn to_keys(keys: &str) -> Vec<Key> {
    keys.chars().map(|c| if c == '\n' { Key::Enter } else { Key::Char(c) }).collect()
}

fn request_error(is_unconfirmed: bool) -> RequestError {
    RequestError { message: "the run is held".into(), hint: Some("runnerctl status".into()), is_unconfirmed }
}

#[test]
fn a_burst_of_events_reads_the_state_once_and_once_more_behind_it() {
    let mut model = new_model();
    let tree = || event_message(59, EventKind::Tree { leaves_passed: 5, leaves_total: 9 });
    let reads = |requests: Vec<Request>| requests.iter().filter(|request| **request == Request::Statuses).count();
    let first = model.update(fixed_now(), tree());
    assert!(first.iter().any(|request| matches!(request, Request::Tree(target) if target.repo == REPO)));
    let rest: usize = (0..9).map(|_| reads(model.update(fixed_now(), tree()))).sum();
    assert_eq!((reads(first), rest), (1, 0));
    assert_eq!(reads(model.update(fixed_now(), Message::Statuses(Ok(sample_statuses())))), 1);
    assert_eq!(reads(model.update(fixed_now(), Message::Statuses(Ok(sample_statuses())))), 0);
}

#[test]
fn state_that_a_slow_subscriber_missed_is_read_again() {
    let mut model = new_model();
    let requests = model.update(fixed_now(), event_message(59, EventKind::Lagged));
    assert!(requests.contains(&Request::Statuses));
    assert!(requests.iter().any(|request| matches!(request, Request::Tree(_))));
}

#[test]
fn a_daemon_that_comes_back_is_asked_for_everything() {
    let mut model = new_model();
    model.update(fixed_now(), event_message(59, EventKind::Stopping));
    assert_eq!(model.update(fixed_now(), Message::Lost("gone".into())), []);
    assert!(model.needs_clock(), "the age of what is shown grows");
    assert_eq!(model.status().map(|status| status.repo.id.as_str()), Some(REPO), "what was seen stays");
    let requests = model.update(fixed_now(), Message::Connected);
    let count_of = |is_counted: fn(&Request) -> bool| requests.iter().filter(|request| is_counted(request)).count();
    assert_eq!(count_of(|request| matches!(request, Request::Statuses)), 1);
    assert_eq!(count_of(|request| matches!(request, Request::Follow(_))), 1);
    assert_eq!(count_of(|request| matches!(request, Request::Tree(_))), 1);
    assert_eq!(model.lost, None);
}

#[test]
fn a_daemon_that_stays_away_is_away_since_the_first_moment() {
    let mut model = new_model();
    model.update(fixed_now(), Message::Lost("gone".into()));
    let later = "2026-01-01T12:05:00Z".parse().expect("a time");
    model.update(later, Message::Lost("another version".into()));
    assert_eq!(model.lost, Some(LostConnection { since: fixed_now(), why: "another version".into() }));
    assert_eq!(steer_actions(&press_keys(&mut model, &to_keys("p"))), []);
    assert!(model.notice.is_some_and(|notice| notice.is_error), "it says that nothing was sent");
}

#[test]
fn keys_steer_the_run_that_is_shown() {
    let mut model = new_model();
    let requests = press_keys(&mut model, &to_keys("prs"));
    let run = Some("run-1a2b3c4d");
    assert_eq!(steer_actions(&requests), [("pause".into(), run), ("resume".into(), run), ("step".into(), run)]);
    press_keys(&mut model, &to_keys("]]"));
    assert_eq!(steer_actions(&press_keys(&mut model, &to_keys("p"))), [], "the last repository has no run");
}

#[test]
fn a_run_is_cancelled_only_where_a_person_says_yes() {
    let mut model = new_model();
    assert_eq!(steer_actions(&press_keys(&mut model, &to_keys("cn"))), []);
    assert_eq!(steer_actions(&press_keys(&mut model, &to_keys("cx\n"))), [], "no other key is an answer");
    assert_eq!(steer_actions(&press_keys(&mut model, &to_keys("y"))), [("cancel".into(), Some("run-1a2b3c4d"))]);
    assert!(matches!(model.mode, Mode::Normal));
}

#[test]
fn a_note_is_typed_and_sent_with_enter() {
    let mut model = new_model();
    press_keys(&mut model, &to_keys("nUse sqlxx"));
    press_keys(&mut model, &[Key::Backspace]);
    model.update(fixed_now(), Message::Paste(", q is no key here".into()));
    let sent = press_keys(&mut model, &[Key::Enter]);
    let [Request::Steer(steer)] = &sent[..] else { panic!("one request: {sent:?}") };
    assert_eq!(steer.action, SteerAction::Note("Use sqlx, q is no key here".into()));
    assert_eq!(steer_actions(&press_keys(&mut model, &to_keys("n  \n"))), [], "an empty note is none");
    press_keys(&mut model, &to_keys("nabc"));
    assert_eq!(steer_actions(&press_keys(&mut model, &[Key::Escape])), []);
}

#[test]
fn a_note_is_no_longer_than_the_daemon_takes() {
    let mut model = new_model();
    press_keys(&mut model, &to_keys("n"));
    model.update(fixed_now(), Message::Paste("ä".repeat(10_000)));
    let Mode::Type(draft) = &model.mode else { panic!("a note is typed") };
    assert_eq!(draft.text.len(), 8 * 1024);
}

#[test]
fn commands_that_nobody_has_confirmed_are_asked_about() {
    let mut model = new_model();
    let Some(Request::Steer(steer)) = press_keys(&mut model, &to_keys("r")).pop() else { panic!("a request") };
    model.update(fixed_now(), Message::Steered(steer, Err(request_error(true))));
    let sent = press_keys(&mut model, &to_keys("y"));
    assert!(matches!(&sent[..], [Request::Steer(steer)] if steer.confirmed), "{sent:?}");
}

#[test]
fn a_refusal_is_shown_with_its_hint_until_the_next_key() {
    let mut model = new_model();
    let Some(Request::Steer(steer)) = press_keys(&mut model, &to_keys("r")).pop() else { panic!("a request") };
    model.update(fixed_now(), Message::Steered(steer, Err(request_error(false))));
    assert_eq!(
        model.notice.as_ref().map(|notice| notice.text.as_str()),
        Some("resume: the run is held; runnerctl status")
    );
    press_keys(&mut model, &[Key::Tab]);
    assert_eq!(model.notice, None);
}

#[test]
fn a_run_that_waits_is_resumed_at_once() {
    let mut model = new_model();
    let mut waiting = sample_statuses();
    waiting[0].run.as_mut().expect("a run").summary.state = protocol::words::RunStatus::Waiting;
    model.update(fixed_now(), Message::Statuses(Ok(waiting)));
    let sent = model.update(fixed_now(), Message::Key(Key::Char('r')));
    assert!(
        matches!(&sent[..], [Request::Steer(steer)] if steer.action == SteerAction::Resume { now: true }),
        "{sent:?}"
    );
}

#[test]
fn another_repository_is_followed_and_its_tree_read() {
    let mut model = new_model();
    let requests = model.update(fixed_now(), Message::Key(Key::Char('[')));
    assert!(matches!(&requests[0], Request::Follow(path) if path.to_string() == "/home/me/site"), "{requests:?}");
    assert!(requests.iter().any(|request| matches!(request, Request::Tree(target) if target.repo == "b2")));
    assert!(model.tree_view.rows().is_empty(), "the tree of the other one is not shown");
}

#[test]
fn a_repository_that_is_gone_gives_way_to_the_first() {
    let mut model = new_model();
    let rest = sample_statuses().split_off(1);
    let requests = model.update(fixed_now(), Message::Statuses(Ok(rest)));
    assert_eq!(model.selected.as_deref(), Some("b2"));
    assert!(requests.iter().any(|request| matches!(request, Request::Follow(_))));
}

#[test]
fn a_tree_of_a_run_that_is_not_shown_any_more_is_ignored() {
    let mut model = new_model();
    let old = model.target().expect("a target");
    model.update(fixed_now(), Message::Key(Key::Char(']')));
    model.update(fixed_now(), Message::Tree(old, Ok(Box::new(crate::watch::fixtures::sample_tree()))));
    assert!(model.tree_view.rows().is_empty());
}

#[test]
fn a_tree_that_was_not_there_yet_is_asked_for_again() {
    let mut model = new_model();
    let target = model.target().expect("a target");
    let work = || event_message(59, EventKind::Phase { phase: PhaseName::Work, node: Some("parser.lex".into()) });
    let is_requested = |requests: &[Request]| requests.contains(&Request::Tree(target.clone()));
    assert!(!is_requested(&model.update(fixed_now(), work())), "it is known");
    model.tree_view = TreeView::default();
    assert!(is_requested(&model.update(fixed_now(), work())));
}

#[test]
fn the_log_of_a_leaf_is_that_of_its_last_iteration() {
    let mut model = new_model();
    assert_eq!(model.tree_view.selected().map(|row| row.id.as_str()), Some("parser.lex"));
    press_keys(&mut model, &[Key::Enter]);
    assert_eq!(model.reader().map(|reader| reader.key().iter), Some(4), "it is live");
    press_keys(&mut model, &to_keys("q"));
    press_keys(&mut model, &[Key::Up, Key::Enter]);
    assert_eq!(model.reader().map(|reader| reader.key().iter), Some(2));
    press_keys(&mut model, &to_keys("]"));
    assert_eq!(model.reader().map(|reader| reader.key().iter), Some(3));
    press_keys(&mut model, &to_keys("q"));
    press_keys(&mut model, &[Key::End, Key::Enter]);
    assert!(model.reader().is_none() && model.notice.is_some(), "nothing has worked on the last leaf");
}

#[test]
fn a_piece_is_taken_by_the_one_that_lacks_it() {
    let mut model = new_model();
    let mut request_chunk = |key| {
        let requests = model.update(fixed_now(), Message::Key(Key::Char(key)));
        let place = requests.into_iter().find_map(|request| match request {
            Request::LogChunk(place) if place.key.stream == LogStream::Agent => Some(place),
            _ => None,
        });
        place.expect("the agent's output is read")
    };
    let for_pane = request_chunk('v');
    let for_reader = request_chunk('l');
    assert_eq!((&for_pane.key, for_reader.offset), (&for_reader.key, 0), "one file, two places");
    for (place, text) in [(for_reader, "one\n"), (for_pane, "two\n")] {
        let piece = TextView { text: text.into(), next_offset: place.offset + 4, complete: false, size: None };
        model.update(fixed_now(), Message::LogChunk(place, Ok(piece)));
    }
    assert_eq!(model.agent.lines().back().map(String::as_str), Some("two"));
    let read = model.reader().map(|reader| reader.tail().lines().iter().map(String::as_str).collect());
    assert_eq!(read, Some(vec!["one"]));
}

#[test]
fn output_of_the_guard_is_read_as_it_comes() {
    let mut model = new_model();
    let output = event_message(59, EventKind::Output { phase: PhaseName::Guard, text: "x".into() });
    let requests = model.update(fixed_now(), output);
    assert!(
        matches!(&requests[..], [Request::LogChunk(place)] if place.key.stream == LogStream::Guard),
        "{requests:?}"
    );
}

#[test]
fn keys_move_the_pane_that_has_them() {
    let mut model = new_model();
    press_keys(&mut model, &[Key::Tab]);
    assert_eq!(model.focus, Focus::Agent);
    press_keys(&mut model, &[Key::Up, Key::Up]);
    assert!(!model.scrolls.agent.is_following());
    press_keys(&mut model, &to_keys("f"));
    assert!(model.scrolls.agent.is_following());
    press_keys(&mut model, &[Key::BackTab, Key::BackTab, Key::Up]);
    assert_eq!(model.selected.as_deref(), Some("b2"));
}

#[test]
fn leaving_is_possible_from_everywhere() {
    for keys in ["", "?", "c", "nabc", "l", "l/abc"] {
        let mut model = new_model();
        press_keys(&mut model, &to_keys(keys));
        assert_eq!(model.update(fixed_now(), Message::Key(Key::Ctrl('c'))), [Request::Quit], "after {keys}");
    }
    assert_eq!(new_model().update(fixed_now(), Message::Key(Key::Char('q'))), [Request::Quit]);
}

#[test]
fn nothing_runs_and_no_clock_is_needed() {
    let mut model = new_model();
    let requests = model.update(fixed_now(), Message::Tick);
    assert_eq!(answer_reads(&mut model, requests), []);
    assert!(model.needs_clock());
    model.update(fixed_now(), Message::Statuses(Ok(sample_statuses().split_off(1))));
    assert!(!model.needs_clock());
}
