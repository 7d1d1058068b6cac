//! What is seen: whole frames as snapshots, and what must hold for every frame.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use super::*;
use crate::text::samples;
use crate::watch::capabilities::TermCapabilities;
use crate::watch::fixtures::{now, press, serve, statuses, told};
use crate::watch::machines::MachineSummary;
use crate::watch::message::{Key, Message};

fn drawn(model: &Model, size: (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a terminal");
    terminal.draw(|frame| view(model, frame)).expect("it is drawn");
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let row = |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
    let rows = buffer.content().chunks(usize::from(buffer.area.width));
    rows.map(|cells| row(cells).trim_end().to_owned() + "\n").collect()
}

fn frame(look: TermCapabilities, size: (u16, u16), keys: &[Key]) -> String {
    let mut model = told(look, size);
    press(&mut model, keys);
    text(&drawn(&model, size))
}

#[test]
fn a_small_terminal_shows_the_tree_beside_what_goes_on() {
    insta::assert_snapshot!(frame(TermCapabilities::fixed(), (80, 24), &[]));
}

#[test]
fn a_middle_terminal_has_a_pane_for_everything() {
    insta::assert_snapshot!(frame(TermCapabilities::fixed(), (120, 40), &[Key::Tab]));
}

#[test]
fn a_wide_terminal_has_three_columns() {
    insta::assert_snapshot!(frame(TermCapabilities::fixed(), (200, 50), &[]));
}

#[test]
fn several_machines_have_a_row_of_their_own() {
    let mut model = told(TermCapabilities::plain(), (120, 40));
    let lost = MachineSummary { name: "ssh://build".into(), runs: None, is_lost: true, is_shown: false };
    let unread = MachineSummary { name: "ssh://slow".into(), is_lost: false, ..lost.clone() };
    model.machines = vec![lost, MachineSummary::of("ssh://gpu", &model, true), unread];
    let shown = text(&drawn(&model, (120, 40)));
    let row = shown.lines().next().expect("there is a row");
    assert!(
        row.starts_with("ssh://build no answer   [ssh://gpu] 1 stuck 1 running   ssh://slow connecting")
            && row.ends_with("< >"),
        "{row}"
    );
    assert!(shown.lines().nth(1).is_some_and(|row| row.contains("1/3 ")), "{shown}");
}

#[test]
fn the_c_locale_gets_ascii_and_no_colours_where_none_are_wanted() {
    let mut model = told(TermCapabilities::plain(), (120, 40));
    press(&mut model, &[Key::Char('c')]);
    let buffer = drawn(&model, (120, 40));
    assert!(text(&buffer).is_ascii(), "{}", text(&buffer));
    assert!(buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    insta::assert_snapshot!(text(&buffer));
}

#[test]
fn a_run_that_stopped_says_why_and_what_to_type() {
    let text = frame(TermCapabilities::fixed(), (80, 24), &[Key::Char(']')]);
    assert!(
        text.contains(
            "stuck: \"Cut the text into tokens\" has used all of its 3 attempts\nto continue: runnerctl resume\n"
        ),
        "{text}"
    );
}

#[test]
fn the_list_of_repositories_unfolds_in_a_small_terminal() {
    let text = frame(TermCapabilities::fixed(), (80, 24), &[Key::BackTab]);
    for row in ["▸ proj ", "● running", "  site ", "✖ stuck", "  tools ", "- idle"] {
        assert!(text.contains(row), "`{row}` is not in\n{text}");
    }
}

#[test]
fn isolated_runs_stand_below_their_repository_by_their_ids_and_are_selected_like_others() {
    let mut model = told(TermCapabilities::fixed(), (120, 40));
    let mut all = statuses();
    all.splice(1..1, ["tidy", "port"].map(samples::workspace));
    model.update(now(), Message::Statuses(Ok(all)));
    let shown = text(&drawn(&model, (120, 40)));
    let rows: Vec<usize> = ["▸ proj ", "  └ tidy ", "  └ port ", "  site "]
        .map(|row| shown.find(row).unwrap_or_else(|| panic!("`{row}` is not in\n{shown}")))
        .to_vec();
    assert!(rows.is_sorted(), "{shown}");
    model.update(now(), Message::Key(Key::Char(']')));
    let shown = text(&drawn(&model, (120, 40)));
    assert!(shown.starts_with("2/5 ") && shown.contains("  /home/me/proj tidy"), "{shown}");
}

#[test]
fn a_daemon_that_is_away_is_told_with_the_age_of_what_is_shown() {
    let mut model = told(TermCapabilities::fixed(), (80, 24));
    model.update("2026-01-01T12:00:12Z".parse().expect("a time"), Message::Lost("the daemon went away".into()));
    let text = text(&drawn(&model, (80, 24)));
    assert!(text.contains("reconnecting; as of 12s ago"), "{text}");
    assert!(text.contains("the daemon went away\n") && text.contains("parser.lex"), "{text}");
}

#[test]
fn a_log_is_read_on_the_whole_screen_and_what_is_searched_stands_out() {
    let mut model = told(TermCapabilities::fixed(), (80, 24));
    press(&mut model, &[Key::Char('l'), Key::Char('2'), Key::Char('/'), Key::Char('f'), Key::Char('a'), Key::Enter]);
    let buffer = drawn(&model, (80, 24));
    insta::assert_snapshot!(text(&buffer));
    let marked: String = buffer.content()[160..]
        .iter()
        .filter(|cell| cell.modifier.contains(Modifier::REVERSED))
        .map(ratatui::buffer::Cell::symbol)
        .collect();
    assert_eq!(marked, "FA");
}

#[test]
fn keys_are_explained() {
    insta::assert_snapshot!(frame(TermCapabilities::fixed(), (80, 24), &[Key::Char('?')]));
}

#[test]
fn a_long_refusal_has_a_box_of_its_own() {
    let mut model = told(TermCapabilities::fixed(), (80, 24));
    model.say("start: the work tree has changes:\n  a.txt\n  b.txt", true);
    let text = text(&drawn(&model, (80, 24)));
    assert!(text.contains("press any key") && text.contains("  b.txt"), "{text}");
}

#[test]
fn no_size_of_the_terminal_is_too_much() {
    let keys: [&[Key]; 6] = [
        &[],
        &[Key::BackTab],
        &[Key::Char('?')],
        &[Key::Char('c')],
        &[Key::Char('n'), Key::Char('x')],
        &[Key::Char('l'), Key::Char('/'), Key::Char('e')],
    ];
    for keys in keys {
        let mut model = told(TermCapabilities::fixed(), (80, 24));
        press(&mut model, keys);
        for width in [0, 1, 2, 9, 59, 60, 61, 79, 110, 170, 300] {
            for height in [0, 1, 2, 3, 15, 16, 17, 31, 32, 90] {
                model.update(now(), Message::Size(width, height));
                drawn(&model, (width, height));
            }
        }
    }
    assert!(frame(TermCapabilities::fixed(), (59, 24), &[]).contains("watch needs 60x16"));
}

#[test]
fn nothing_of_an_agent_or_a_repository_reaches_the_terminal_as_a_command() {
    let json = serde_json::to_string(&statuses()).expect("serializes");
    let hostile = json.replace("parser", "\\u001b]0;x\\u0007").replace("site", "\\u009b2J\\u202e");
    let mut model = told(TermCapabilities::fixed(), (120, 40));
    let requests = model.update(now(), Message::Statuses(serde_json::from_str(&hostile).map_err(|_| unreachable!())));
    serve(&mut model, requests);
    for what in [protocol::event::ActivityKind::Message, protocol::event::ActivityKind::Tool] {
        model.update(now(), crate::watch::fixtures::step(what, "a\u{1b}[2J\u{9b}31m\u{202e}b"));
    }
    let text = text(&drawn(&model, (120, 40)));
    assert!(text.contains('␛') && text.contains("a␛[2J"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{text}");
}

#[test]
fn the_same_model_is_the_same_frame() {
    let model = told(TermCapabilities::fixed(), (120, 40));
    assert_eq!(drawn(&model, (120, 40)), drawn(&model, (120, 40)));
}
