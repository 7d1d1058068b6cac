//! What messages and keys lead to.

use protocol::event::EventKind;
use protocol::view::TextView;

use super::*;
use crate::watch::capabilities::TermCapabilities;
use crate::watch::fixtures::{REPO, event, now, press, serve, statuses, told};
use crate::watch::message::{Key, SteerAction};
use crate::watch::model::Focus;
use crate::watch::tree_view::TreeView;

const SIZE: (u16, u16) = (80, 24);

fn model() -> Model {
    told(TermCapabilities::fixed(), SIZE)
}

fn steers(requests: &[Request]) -> Vec<(String, Option<&str>)> {
    let steers = requests.iter().filter_map(|request| match request {
        Request::Steer(steer) => Some(steer),
        _ => None,
    });
    steers.map(|steer| (steer.what.to_string(), steer.target.run.as_deref())).collect()
}

fn chars(keys: &str) -> Vec<Key> {
    keys.chars().map(|c| if c == '\n' { Key::Enter } else { Key::Char(c) }).collect()
}

fn trouble(is_unconfirmed: bool) -> RequestError {
    RequestError { message: "the run is held".into(), hint: Some("runnerctl status".into()), is_unconfirmed }
}

#[test]
fn a_burst_of_events_reads_the_state_once_and_once_more_behind_it() {
    let mut model = model();
    let tree = || event(59, EventKind::Tree { leaves_passed: 5, leaves_total: 9 });
    let reads = |requests: Vec<Request>| requests.iter().filter(|request| **request == Request::Statuses).count();
    let first = model.update(now(), tree());
    assert!(first.iter().any(|request| matches!(request, Request::Tree(target) if target.repo == REPO)));
    let rest: usize = (0..9).map(|_| reads(model.update(now(), tree()))).sum();
    assert_eq!((reads(first), rest), (1, 0));
    assert_eq!(reads(model.update(now(), Message::Statuses(Ok(statuses())))), 1);
    assert_eq!(reads(model.update(now(), Message::Statuses(Ok(statuses())))), 0);
}

#[test]
fn what_a_slow_subscriber_missed_is_read_anew() {
    let mut model = model();
    let requests = model.update(now(), event(59, EventKind::Lagged));
    assert!(requests.contains(&Request::Statuses));
    assert!(requests.iter().any(|request| matches!(request, Request::Tree(_))));
}

#[test]
fn a_daemon_that_comes_back_is_asked_for_everything() {
    let mut model = model();
    model.update(now(), event(59, EventKind::Stopping));
    assert_eq!(model.update(now(), Message::Lost("gone".into())), []);
    assert!(model.needs_clock(), "the age of what is shown grows");
    assert_eq!(model.status().map(|status| status.repo.id.as_str()), Some(REPO), "what was seen stays");
    let requests = model.update(now(), Message::Linked);
    let is = |wanted: fn(&Request) -> bool| requests.iter().filter(|request| wanted(request)).count();
    assert_eq!(is(|request| matches!(request, Request::Statuses)), 1);
    assert_eq!(is(|request| matches!(request, Request::Follow(_))), 1);
    assert_eq!(is(|request| matches!(request, Request::Tree(_))), 1);
    assert_eq!(model.lost, None);
}

#[test]
fn a_daemon_that_stays_away_is_away_since_the_first_moment() {
    let mut model = model();
    model.update(now(), Message::Lost("gone".into()));
    let later = "2026-01-01T12:05:00Z".parse().expect("a time");
    model.update(later, Message::Lost("another version".into()));
    assert_eq!(model.lost, Some(LostConnection { since: now(), why: "another version".into() }));
    assert_eq!(steers(&press(&mut model, &chars("p"))), []);
    assert!(model.notice.is_some_and(|notice| notice.is_bad), "it says that nothing was sent");
}

#[test]
fn keys_steer_the_run_that_is_shown() {
    let mut model = model();
    let asked = press(&mut model, &chars("prs"));
    let run = Some("run-1a2b3c4d");
    assert_eq!(steers(&asked), [("pause".into(), run), ("resume".into(), run), ("step".into(), run)]);
    press(&mut model, &chars("]]"));
    assert_eq!(steers(&press(&mut model, &chars("p"))), [], "the last repository has no run");
}

#[test]
fn a_run_is_cancelled_only_where_a_person_says_yes() {
    let mut model = model();
    assert_eq!(steers(&press(&mut model, &chars("cn"))), []);
    assert_eq!(steers(&press(&mut model, &chars("cx\n"))), [], "no other key is an answer");
    assert_eq!(steers(&press(&mut model, &chars("y"))), [("cancel".into(), Some("run-1a2b3c4d"))]);
    assert!(matches!(model.mode, Mode::Normal));
}

#[test]
fn a_note_is_typed_and_sent_with_enter() {
    let mut model = model();
    press(&mut model, &chars("nUse sqlxx"));
    press(&mut model, &[Key::Backspace]);
    model.update(now(), Message::Paste(", q is no key here".into()));
    let sent = press(&mut model, &[Key::Enter]);
    let [Request::Steer(steer)] = &sent[..] else { panic!("one request: {sent:?}") };
    assert_eq!(steer.what, SteerAction::Note("Use sqlx, q is no key here".into()));
    assert_eq!(steers(&press(&mut model, &chars("n  \n"))), [], "an empty note is none");
    press(&mut model, &chars("nabc"));
    assert_eq!(steers(&press(&mut model, &[Key::Escape])), []);
}

#[test]
fn a_note_is_no_longer_than_the_daemon_takes() {
    let mut model = model();
    press(&mut model, &chars("n"));
    model.update(now(), Message::Paste("ä".repeat(10_000)));
    let Mode::Type(draft) = &model.mode else { panic!("a note is typed") };
    assert_eq!(draft.text.len(), 8 * 1024);
}

#[test]
fn commands_that_nobody_has_confirmed_are_asked_about() {
    let mut model = model();
    let Some(Request::Steer(steer)) = press(&mut model, &chars("r")).pop() else { panic!("a request") };
    model.update(now(), Message::Steered(steer, Err(trouble(true))));
    let sent = press(&mut model, &chars("y"));
    assert!(matches!(&sent[..], [Request::Steer(steer)] if steer.confirmed), "{sent:?}");
}

#[test]
fn a_refusal_is_shown_with_its_hint_until_the_next_key() {
    let mut model = model();
    let Some(Request::Steer(steer)) = press(&mut model, &chars("r")).pop() else { panic!("a request") };
    model.update(now(), Message::Steered(steer, Err(trouble(false))));
    assert_eq!(
        model.notice.as_ref().map(|notice| notice.text.as_str()),
        Some("resume: the run is held; runnerctl status")
    );
    press(&mut model, &[Key::Tab]);
    assert_eq!(model.notice, None);
}

#[test]
fn a_run_that_waits_is_resumed_at_once() {
    let mut model = model();
    let mut waiting = statuses();
    waiting[0].run.as_mut().expect("a run").summary.state = protocol::words::RunStatus::Waiting;
    model.update(now(), Message::Statuses(Ok(waiting)));
    let sent = model.update(now(), Message::Key(Key::Char('r')));
    assert!(
        matches!(&sent[..], [Request::Steer(steer)] if steer.what == SteerAction::Resume { now: true }),
        "{sent:?}"
    );
}

#[test]
fn another_repository_is_followed_and_its_tree_read() {
    let mut model = model();
    let requests = model.update(now(), Message::Key(Key::Char(']')));
    assert!(matches!(&requests[0], Request::Follow(path) if path.to_string() == "/home/me/site"), "{requests:?}");
    assert!(requests.iter().any(|request| matches!(request, Request::Tree(target) if target.repo == "b2")));
    assert!(model.forest.rows().is_empty(), "the tree of the other one is not shown");
}

#[test]
fn a_repository_that_is_gone_gives_way_to_the_first() {
    let mut model = model();
    let rest = statuses().split_off(1);
    let requests = model.update(now(), Message::Statuses(Ok(rest)));
    assert_eq!(model.selected.as_deref(), Some("b2"));
    assert!(requests.iter().any(|request| matches!(request, Request::Follow(_))));
}

#[test]
fn a_tree_of_a_run_that_is_not_shown_any_more_is_ignored() {
    let mut model = model();
    let old = model.target().expect("a target");
    model.update(now(), Message::Key(Key::Char(']')));
    model.update(now(), Message::Tree(old, Ok(Box::new(crate::watch::fixtures::tree()))));
    assert!(model.forest.rows().is_empty());
}

#[test]
fn a_tree_that_was_not_there_yet_is_asked_for_again() {
    let mut model = model();
    let target = model.target().expect("a target");
    let work = || event(59, EventKind::Phase { phase: PhaseName::Work, node: Some("parser.lex".into()) });
    let is_asked = |requests: &[Request]| requests.contains(&Request::Tree(target.clone()));
    assert!(!is_asked(&model.update(now(), work())), "it is known");
    model.forest = TreeView::default();
    assert!(is_asked(&model.update(now(), work())));
}

#[test]
fn the_log_of_a_leaf_is_that_of_its_last_iteration() {
    let mut model = model();
    assert_eq!(model.forest.chosen().map(|row| row.id.as_str()), Some("parser.lex"));
    press(&mut model, &[Key::Enter]);
    assert_eq!(model.reader().map(|reader| reader.key().iter), Some(4), "it is live");
    press(&mut model, &chars("q"));
    press(&mut model, &[Key::Up, Key::Enter]);
    assert_eq!(model.reader().map(|reader| reader.key().iter), Some(2));
    press(&mut model, &chars("]"));
    assert_eq!(model.reader().map(|reader| reader.key().iter), Some(3));
    press(&mut model, &chars("q"));
    press(&mut model, &[Key::End, Key::Enter]);
    assert!(model.reader().is_none() && model.notice.is_some(), "nothing has worked on the last leaf");
}

#[test]
fn a_piece_is_taken_by_the_one_that_lacks_it() {
    let mut model = model();
    let mut asked = |key| {
        let requests = model.update(now(), Message::Key(Key::Char(key)));
        let place = requests.into_iter().find_map(|request| match request {
            Request::Piece(place) if place.key.stream == LogStream::Agent => Some(place),
            _ => None,
        });
        place.expect("the agent's output is read")
    };
    let (for_pane, for_reader) = (asked('v'), asked('l'));
    assert_eq!((&for_pane.key, for_reader.offset), (&for_reader.key, 0), "one file, two places");
    for (place, text) in [(for_reader, "one\n"), (for_pane, "two\n")] {
        let piece = TextView { text: text.into(), next_offset: place.offset + 4, complete: false, size: None };
        model.update(now(), Message::Piece(place, Ok(piece)));
    }
    assert_eq!(model.agent.lines().back().map(String::as_str), Some("two"));
    let read = model.reader().map(|reader| reader.tail().lines().iter().map(String::as_str).collect());
    assert_eq!(read, Some(vec!["one"]));
}

#[test]
fn output_of_the_guard_is_read_as_it_comes() {
    let mut model = model();
    let output = event(59, EventKind::Output { phase: PhaseName::Guard, text: "x".into() });
    let requests = model.update(now(), output);
    assert!(matches!(&requests[..], [Request::Piece(place)] if place.key.stream == LogStream::Guard), "{requests:?}");
}

#[test]
fn keys_move_the_pane_that_has_them() {
    let mut model = model();
    press(&mut model, &[Key::Tab]);
    assert_eq!(model.focus, Focus::Agent);
    press(&mut model, &[Key::Up, Key::Up]);
    assert!(!model.scrolls.agent.is_following());
    press(&mut model, &chars("f"));
    assert!(model.scrolls.agent.is_following());
    press(&mut model, &[Key::BackTab, Key::BackTab, Key::Down]);
    assert_eq!(model.selected.as_deref(), Some("b2"));
}

#[test]
fn leaving_is_possible_from_everywhere() {
    for keys in ["", "?", "c", "nabc", "l", "l/abc"] {
        let mut model = model();
        press(&mut model, &chars(keys));
        assert_eq!(model.update(now(), Message::Key(Key::Ctrl('c'))), [Request::Quit], "after {keys}");
    }
    assert_eq!(model().update(now(), Message::Key(Key::Char('q'))), [Request::Quit]);
}

#[test]
fn nothing_runs_and_no_clock_is_needed() {
    let mut model = model();
    let requests = model.update(now(), Message::Clock);
    assert_eq!(serve(&mut model, requests), []);
    assert!(model.needs_clock());
    model.update(now(), Message::Statuses(Ok(statuses().split_off(1))));
    assert!(!model.needs_clock());
}
