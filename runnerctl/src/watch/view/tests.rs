//! Rendered frames as snapshots, and properties of every frame.

use protocol::words::{RunStatus, VerdictName};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use super::*;
use crate::text::samples;
use crate::watch::capabilities::TermCapabilities;
use crate::watch::fixtures::{answer_reads, fixed_now, populated_model, press_keys, sample_statuses};
use crate::watch::machines::MachineSummary;
use crate::watch::message::{Key, Message};

fn draw_to_buffer(model: &Model, size: (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a terminal");
    terminal.draw(|frame| draw_view(model, frame)).expect("it is drawn");
    terminal.backend().buffer().clone()
}

fn buffer_text(buffer: &Buffer) -> String {
    let row = |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
    let rows = buffer.content().chunks(usize::from(buffer.area.width));
    rows.map(|cells| row(cells).trim_end().to_owned() + "\n").collect()
}

fn frame_text(look: TermCapabilities, size: (u16, u16), keys: &[Key]) -> String {
    let mut model = populated_model(look, size);
    press_keys(&mut model, keys);
    buffer_text(&draw_to_buffer(&model, size))
}

#[test]
fn a_small_terminal_shows_the_tree_beside_the_activity() {
    insta::assert_snapshot!(frame_text(TermCapabilities::fixed(), (80, 24), &[]));
}

#[test]
fn a_middle_terminal_has_a_pane_for_everything() {
    insta::assert_snapshot!(frame_text(TermCapabilities::fixed(), (120, 40), &[Key::Tab]));
}

#[test]
fn a_wide_terminal_has_three_columns() {
    insta::assert_snapshot!(frame_text(TermCapabilities::fixed(), (200, 50), &[]));
}

#[test]
fn several_machines_have_a_row_of_their_own() {
    let mut model = populated_model(TermCapabilities::plain(), (120, 40));
    let lost = MachineSummary { name: "ssh://build".into(), runs: None, is_lost: true, is_shown: false };
    let unread = MachineSummary { name: "ssh://slow".into(), is_lost: false, ..lost.clone() };
    model.machines = vec![lost, MachineSummary::from_model("ssh://gpu", &model, true), unread];
    let shown = buffer_text(&draw_to_buffer(&model, (120, 40)));
    let row = shown.lines().next().expect("there is a row");
    assert!(
        row.starts_with("ssh://build no answer   [ssh://gpu] 1 stuck 1 running   ssh://slow connecting")
            && row.ends_with("< >"),
        "{row}"
    );
    assert!(shown.lines().nth(1).is_some_and(|row| row.contains("2/3 ")), "{shown}");
}

#[test]
fn the_c_locale_gets_ascii_and_no_colours_where_none_are_wanted() {
    let mut model = populated_model(TermCapabilities::plain(), (120, 40));
    press_keys(&mut model, &[Key::Char('c')]);
    let buffer = draw_to_buffer(&model, (120, 40));
    assert!(buffer_text(&buffer).is_ascii(), "{}", buffer_text(&buffer));
    assert!(buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    insta::assert_snapshot!(buffer_text(&buffer));
}

#[test]
fn a_run_that_stopped_says_why_and_what_to_type() {
    let text = frame_text(TermCapabilities::fixed(), (80, 24), &[Key::Char('[')]);
    assert!(
        text.contains(
            "stuck: \"Cut the text into tokens\" has used all of its 3 attempts\nto continue: runnerctl resume\n"
        ),
        "{text}"
    );
}

#[test]
fn a_small_terminal_opens_with_the_list_and_those_that_need_somebody_come_first() {
    let mut model = Model::new(TermCapabilities::fixed(), (80, 24), Some(crate::watch::fixtures::REPO.into()));
    let requests = model.update(fixed_now(), Message::Connected);
    answer_reads(&mut model, requests);
    let list = buffer_text(&draw_to_buffer(&model, (80, 24)));
    let rows: Vec<&str> = list.lines().filter(|row| row.contains('┃')).collect();
    assert!(rows[0].contains("  site ") && rows[0].contains("✖ stuck"), "{list}");
    assert!(rows[0].contains("asks 2 questions; has used all of its 3"), "{list}");
    assert!(rows[1].contains("▸ proj ") && rows[1].contains("● running"), "{list}");
    assert!(rows[2].contains("  tools ") && rows[2].contains("- idle"), "{list}");
    press_keys(&mut model, &[Key::Enter]);
    assert!(buffer_text(&draw_to_buffer(&model, (80, 24))).contains("Tree 3/6"));
    press_keys(&mut model, &[Key::Escape]);
    assert_eq!(buffer_text(&draw_to_buffer(&model, (80, 24))), list);
}

#[test]
fn a_task_that_awaits_a_review_is_not_shown_as_at_work_and_can_be_approved_from_the_list() {
    let mut model = populated_model(TermCapabilities::fixed(), (80, 24));
    let mut all = sample_statuses();
    let run = all[0].run.as_mut().expect("a run");
    (run.summary.state, run.summary.needs_you, run.phase) = (RunStatus::Waiting, true, None);
    run.recent[0].verdict = VerdictName::Pending;
    model.update(fixed_now(), Message::Statuses(Ok(all)));
    let panes = buffer_text(&draw_to_buffer(&model, (80, 24)));
    let row = panes.lines().find(|row| row.starts_with('┃') && row.contains("parser.lex")).expect("the task is shown");
    assert!(row.contains("◇ parser.lex") && row.contains("review"), "{panes}");
    press_keys(&mut model, &[Key::Escape]);
    let list = buffer_text(&draw_to_buffer(&model, (80, 24)));
    assert!(list.contains("◇ review") && list.contains("y:approve x:reject"), "{list}");
    press_keys(&mut model, &[Key::Char('y')]);
    assert!(buffer_text(&draw_to_buffer(&model, (80, 24))).contains("Approve task"));
}

#[test]
fn the_key_bar_keeps_help_and_quit_at_every_width() {
    for (width, keys) in [(60, &[][..]), (60, &[Key::Escape][..]), (80, &[]), (109, &[]), (200, &[])] {
        let text = frame_text(TermCapabilities::fixed(), (width, 24), keys);
        let bar = text.lines().last().expect("there is a bar");
        assert!(bar.ends_with("?:help q:quit") && bar.len() <= usize::from(width), "{bar}");
    }
}

#[test]
fn isolated_runs_stand_below_their_repository_by_their_ids_and_are_selected_like_others() {
    let mut model = populated_model(TermCapabilities::fixed(), (120, 40));
    let mut all = sample_statuses();
    all.splice(1..1, ["tidy", "port"].map(samples::workspace));
    model.update(fixed_now(), Message::Statuses(Ok(all)));
    let shown = buffer_text(&draw_to_buffer(&model, (120, 40)));
    let rows: Vec<usize> = ["  site ", "▸ proj ", "  └ tidy ", "  └ port "]
        .map(|row| shown.find(row).unwrap_or_else(|| panic!("`{row}` is not in\n{shown}")))
        .to_vec();
    assert!(rows.is_sorted(), "{shown}");
    model.update(fixed_now(), Message::Key(Key::Char(']')));
    let shown = buffer_text(&draw_to_buffer(&model, (120, 40)));
    assert!(shown.starts_with("3/5 ") && shown.contains("  /home/me/proj tidy"), "{shown}");
}

#[test]
fn a_daemon_that_is_away_is_told_with_the_age_of_what_is_shown() {
    let mut model = populated_model(TermCapabilities::fixed(), (80, 24));
    model.update("2026-01-01T12:00:12Z".parse().expect("a time"), Message::Lost("the daemon went away".into()));
    let text = buffer_text(&draw_to_buffer(&model, (80, 24)));
    assert!(text.contains("reconnecting; as of 12s ago"), "{text}");
    assert!(text.contains("the daemon went away\n") && text.contains("parser.lex"), "{text}");
}

#[test]
fn a_log_is_read_on_the_whole_screen_and_what_is_searched_stands_out() {
    let mut model = populated_model(TermCapabilities::fixed(), (80, 24));
    press_keys(
        &mut model,
        &[Key::Char('l'), Key::Char('2'), Key::Char('/'), Key::Char('f'), Key::Char('a'), Key::Enter],
    );
    let buffer = draw_to_buffer(&model, (80, 24));
    insta::assert_snapshot!(buffer_text(&buffer));
    let marked: String = buffer.content()[160..]
        .iter()
        .filter(|cell| cell.modifier.contains(Modifier::REVERSED))
        .map(ratatui::buffer::Cell::symbol)
        .collect();
    assert_eq!(marked, "FA");
}

#[test]
fn keys_are_explained() {
    insta::assert_snapshot!(frame_text(TermCapabilities::fixed(), (80, 24), &[Key::Char('?')]));
}

#[test]
fn a_long_refusal_has_a_box_of_its_own() {
    let mut model = populated_model(TermCapabilities::fixed(), (80, 24));
    model.set_notice("start: the working tree has changes:\n  a.txt\n  b.txt", true);
    let text = buffer_text(&draw_to_buffer(&model, (80, 24)));
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
        let mut model = populated_model(TermCapabilities::fixed(), (80, 24));
        press_keys(&mut model, keys);
        for width in [0, 1, 2, 9, 59, 60, 61, 79, 110, 170, 300] {
            for height in [0, 1, 2, 3, 15, 16, 17, 31, 32, 90] {
                model.update(fixed_now(), Message::Size(width, height));
                draw_to_buffer(&model, (width, height));
            }
        }
    }
    assert!(frame_text(TermCapabilities::fixed(), (59, 24), &[]).contains("watch needs 60x16"));
}

#[test]
fn nothing_of_an_agent_or_a_repository_reaches_the_terminal_as_a_command() {
    let json = serde_json::to_string(&sample_statuses()).expect("serializes");
    let hostile = json.replace("parser", "\\u001b]0;x\\u0007").replace("site", "\\u009b2J\\u202e");
    let mut model = populated_model(TermCapabilities::fixed(), (120, 40));
    let requests =
        model.update(fixed_now(), Message::Statuses(serde_json::from_str(&hostile).map_err(|_| unreachable!())));
    answer_reads(&mut model, requests);
    for what in [protocol::event::ActivityKind::Message, protocol::event::ActivityKind::Tool] {
        model.update(fixed_now(), crate::watch::fixtures::step_message(what, "a\u{1b}[2J\u{9b}31m\u{202e}b"));
    }
    let text = buffer_text(&draw_to_buffer(&model, (120, 40)));
    assert!(text.contains('␛') && text.contains("a␛[2J"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{text}");
}

#[test]
fn the_same_model_is_the_same_frame() {
    let model = populated_model(TermCapabilities::fixed(), (120, 40));
    assert_eq!(draw_to_buffer(&model, (120, 40)), draw_to_buffer(&model, (120, 40)));
}
