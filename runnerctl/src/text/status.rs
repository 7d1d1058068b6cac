//! `status` as text: a repository in detail, or one line for each.

use std::fmt::Write as _;

use protocol::branch::RunCheckout;
use protocol::flakes::FlakyTest;
use protocol::test_record::TestsView;
use protocol::view::{DiskView, GitWaitView, NodeRef, PhaseView, PublishedView, RunSummary, RunView, StatusView};
use protocol::words::{Containment, GuardOutcome, RunStatus};

use super::checkout::back_command;
use super::iteration::render_lines;
use super::measure::{format_bytes, format_duration, format_until, millis_between};
use super::paint::{BAD, DIM, HEADING, HINT, WARN, paint};
use super::repo;
use super::run::{join_within, reason_text, render_headline, render_stop_reason, state_cell};
use super::sanitize::sanitize;
use super::screen::Screen;
use super::table::{Table, TableCell};
use super::{titles, usage};

/// Maximum number of paths listed; the total is shown as well.
const PATHS_SHOWN: usize = 10;
/// Maximum number of isolated runs listed.
const RUNS_SHOWN: usize = 20;

/// Returns one line per repository under a heading, each followed by its isolated runs; the number of open questions
/// comes last.
pub(crate) fn render_overview(all: &[StatusView], screen: &Screen) -> String {
    let mut table = Table::with_heading(["REPOSITORY", "STATE", "TASKS", "COST", "NOW"]).shrinking(0);
    for status in all {
        let name = match repo::isolated_run_id(status).filter(|_| repo::is_nested(status, all)) {
            Some(run) => format!("  {run}"),
            None => repo::display_name(status),
        };
        table.add_row(overview_row(status, name, screen));
    }
    let questions: u32 = all.iter().filter_map(|status| status.run.as_ref()).map(|run| run.questions).sum();
    let questions_line = match questions {
        0 => String::new(),
        1 => "\n1 question is open: runnerctl questions\n".to_owned(),
        more => format!("\n{more} questions are open: runnerctl questions\n"),
    };
    if all.is_empty() { String::new() } else { table.render(screen, 0) + &questions_line }
}

/// Describes the disk space that workspaces use, and the space available.
pub(crate) fn render_disk_use(disk: &DiskView) -> String {
    let used: u64 = disk.workspaces.iter().map(|workspace| workspace.bytes).sum();
    let finished = disk.workspaces.iter().filter(|workspace| workspace.removable).count();
    let free = disk.free_bytes.map(|free| format!(", {} free", format_bytes(free))).unwrap_or_default();
    let gc = if finished > 0 { format!("; {finished} of runs that are over: runnerctl gc") } else { String::new() };
    let line = format!("workspaces: {} in {}{free}{gc}", format_bytes(used), disk.workspaces.len());
    let is_short = disk.free_bytes.is_some_and(|free| free < used);
    format!("\n{}\n", if is_short { paint(WARN, &line) } else { line })
}

fn overview_row(status: &StatusView, path: String, screen: &Screen) -> [TableCell; 5] {
    match (&status.repo.held, &status.run) {
        (Some(held), _) => {
            [path.into(), TableCell::styled(WARN, "held"), "".into(), "".into(), TableCell::from(&held.message)]
        }
        (None, None) => [path.into(), TableCell::styled(DIM, "idle"), "".into(), "".into(), "".into()],
        (None, Some(run)) => {
            let leaves = render_leaves(run).unwrap_or_default();
            [
                path.into(),
                state_cell(&run.summary),
                leaves.into(),
                usage::render_short_cost(&run.usage).into(),
                describe_activity(run, screen).into(),
            ]
        }
    }
}

/// Returns what a run is doing, or why it is idle, in one line.
pub(crate) fn describe_activity(run: &RunView, screen: &Screen) -> String {
    if let (RunStatus::Running, Some(phase)) = (run.summary.state, &run.phase) {
        let node = run.node.as_ref().map(|node| node.title.as_str()).unwrap_or_default();
        let elapsed = format_duration(millis_between(phase.iteration_since, screen.now));
        if phase.baseline {
            return format!("the guard on the base {elapsed}");
        }
        let waits = run.git_wait.as_ref().map(|wait| format!(", waits for {}", git_wait_text(wait, screen)));
        return format!("{:04} {} {node} {elapsed}{}", run.iteration, phase.name, waits.unwrap_or_default());
    }
    if run.summary.reason.is_none() {
        return match run.summary.state {
            RunStatus::Queued => "waiting for its turn".to_owned(),
            RunStatus::Running => {
                let waits =
                    run.git_wait.as_ref().map(|wait| format!("begins, waits for {}", git_wait_text(wait, screen)));
                waits.unwrap_or_else(|| "begins".to_owned())
            }
            _ => String::new(),
        };
    }
    let wait = run.wait_until.map(|time| format!("until {}: ", format_until(time, screen))).unwrap_or_default();
    wait + &titles::reason_before_title(run).unwrap_or_default()
}

/// Returns the number of passed leaves and of all leaves; `None` if no tree is known yet.
fn render_leaves(run: &RunView) -> Option<String> {
    (run.leaves_total > 0).then(|| format!("{}/{}", run.leaves_passed, run.leaves_total))
}

/// Returns a repository in detail.
pub(crate) fn render_detail(status: &StatusView, screen: &Screen) -> String {
    let mut text = format!("{}\n", paint(HEADING, &sanitize(&status.repo.path.to_string())));
    if let Some(held) = &status.repo.held {
        let _ = write!(text, "{}\n{}", paint(WARN, "held"), render_stop_reason(Some(held), &status.repo.path, screen));
    }
    if let Some(source) = &status.repo.source {
        let _ = writeln!(text, "{}", paint(DIM, &format!("workspace of {}", sanitize(&source.to_string()))));
    }
    match &status.run {
        Some(run) => text += &render_run(run, screen),
        None if status.isolated.is_empty() => text += "no run\n",
        None => text += "no run in place\n",
    }
    text += &render_checkout(status, screen);
    text += &render_isolated_runs(status, screen);
    let queued = status.repo.queue.len().saturating_sub(1);
    if queued > 0 {
        let _ = writeln!(text, "\n{queued} more in the queue: runnerctl queue");
    }
    text
}

/// Says which run's branch the work tree is on, and the way back.
fn render_checkout(status: &StatusView, screen: &Screen) -> String {
    let Some(RunCheckout { branch, back, uncommitted }) = &status.on_run else { return String::new() };
    let place = format!("\nthis working tree is on {}", sanitize(branch));
    let Some(back) = back else { return place + "\n" };
    let command = paint(HINT, &sanitize(&back_command(back, uncommitted)));
    join_within(&format!("{place}; back:"), &command, screen)
}

/// Lists the isolated runs of a repository: all active ones, and as many of the others as fit.
fn render_isolated_runs(status: &StatusView, screen: &Screen) -> String {
    if status.isolated.is_empty() {
        return String::new();
    }
    let mut runs: Vec<&RunSummary> = status.isolated.iter().collect();
    runs.sort_by_key(|run| (run.state.is_terminal(), std::cmp::Reverse(run.queued_at)));
    let mut table = Table::with_names(["RUN", "STATE", "PATH", "WHY"]).shrinking(2);
    for run in runs.iter().take(RUNS_SHOWN) {
        table.add_row([run.id.as_str().into(), state_cell(run), run.path.to_string().into(), reason_text(run).into()]);
    }
    let more = runs.len().saturating_sub(RUNS_SHOWN);
    let more = if more > 0 { format!("    and {more} more: runnerctl queue --ended\n") } else { String::new() };
    render_heading(&format!("isolated runs ({})", runs.len()), screen) + &table.render(screen, 4) + &more
}

fn render_run(run: &RunView, screen: &Screen) -> String {
    let goal =
        run.summary.goal.as_ref().map(|goal| format!("{}\n", paint(HEADING, &sanitize(goal)))).unwrap_or_default();
    let mut text = goal
        + &render_headline(&run.summary, screen)
        + &render_stop_reason(titles::titled_reason(run).as_ref(), &run.summary.path, screen);
    text += "\n";
    let mut facts = Table::without_names();
    for (name, value) in run_facts(run, screen) {
        facts.add_row([TableCell::styled(DIM, name), value]);
    }
    text += &facts.render(screen, 2);
    if !run.recent.is_empty() {
        text += &render_heading("last iterations", screen);
        text += &render_lines(&run.recent, screen, 4);
    }
    let secrets: Vec<String> =
        run.secrets.iter().map(|finding| format!("{}: {}", finding.path, finding.variable)).collect();
    let lists = [
        ("held back", &run.held_back),
        ("put back", &run.reverted),
        ("files with secrets in them", &secrets),
        ("notices", &run.notices),
    ];
    lists.iter().fold(text, |text, (title, list)| text + &render_paths(title, list, screen))
}

fn run_facts(run: &RunView, screen: &Screen) -> Vec<(&'static str, TableCell)> {
    let mut facts: Vec<(&'static str, TableCell)> = Vec::new();
    if let Some(phase) = &run.phase {
        facts.push(("phase", render_phase(run.iteration, phase, screen).into()));
        if let Some(obstacle) = &phase.obstacle {
            facts.push(("obstacle", TableCell::styled(BAD, obstacle)));
        }
    }
    if let Some(wait) = &run.git_wait {
        facts.push(("waits for", TableCell::styled(WARN, &git_wait_text(wait, screen))));
    }
    if let Some(time) = run.wait_until {
        facts.push(("waits", format!("until {}", format_until(time, screen)).into()));
    }
    // If a run waits for a single service, its reason already says so.
    let is_reported = run.wait_until.is_some() && run.outages.len() == 1;
    for outage in run.outages.iter().filter(|_| !is_reported) {
        let text = format!("{} until {}: {}", outage.agent, format_until(outage.until, screen), outage.why);
        facts.push(("out", TableCell::styled(WARN, &text)));
    }
    if let Some(pending) = run.pending {
        facts.push(("asked for", TableCell::styled(WARN, render_pending(pending))));
    }
    if let Some(node) = &run.node {
        facts.push(("task", render_node(node).into()));
        facts.push(("attempts", render_attempts(node).into()));
        if let Some(used) = node.usage.as_ref().filter(|used| used.sessions > 0) {
            facts.push(("this task", usage::render_total_with_price(used, run.list_price.as_deref()).into()));
        }
    }
    facts.extend(render_leaves(run).map(|leaves| ("tasks", format!("{leaves} passed").into())));
    if run.usage.sessions > 0 {
        facts.push(("time", format!("{} in sessions and guards", format_duration(run.elapsed_ms)).into()));
        facts.push(("usage", usage::render_total_with_price(&run.usage, run.list_price.as_deref()).into()));
    }
    facts.extend(run.baseline.map(|guard| ("baseline", render_baseline(guard))));
    if !run.guard_changed.is_empty() {
        let text = format!("definition changed: {}; runnerctl guard accept", render_first_paths(&run.guard_changed));
        facts.push(("guard", TableCell::styled(WARN, &text)));
    }
    facts.extend(render_tests(&run.tests).map(|tests| ("tests", tests)));
    facts.extend(render_flakes(&run.flakes).map(|flakes| ("flaky", flakes)));
    if run.guard.as_ref().is_some_and(|guard| guard.is_blind) {
        facts.push(("guard", TableCell::styled(WARN, UNWATCHED)));
    }
    if !run.notes.is_empty() {
        let notes = format!("{} for the next session that answers", run.notes.join(", "));
        facts.push(("notes", notes.into()));
    }
    for change in &run.changes {
        let id = change.id.iter().fold(String::new(), |_, id| format!(" {id}"));
        let text = format!("{}{id}: {}", change.command, change.text);
        facts.push(("to commit", text.into()));
    }
    if let Some(text) = run.summary.published.as_ref().and_then(|published| render_behind(run, published)) {
        facts.push(("published", TableCell::styled(WARN, &text)));
    }
    if run.questions > 0 {
        facts.push(("questions", format!("{} open, in .runner/state/questions.md", run.questions).into()));
    }
    let more = if run.containment < Containment::Pidns { "; what is missing: runnerctl daemon status" } else { "" };
    facts.push(("containment", format!("{}{more}", run.containment).into()));
    facts
}

/// Says how far the branch is behind and what would let it move, unless that is the reason why the run is held.
fn render_behind(run: &RunView, published: &PublishedView) -> Option<String> {
    let distance = match published.behind {
        None => "not known".to_owned(),
        Some(1) => "1 commit behind".to_owned(),
        Some(behind) => format!("{behind} commits behind"),
    };
    let Some(why) = &published.why else { return (published.behind != Some(0)).then_some(distance) };
    if run.summary.reason.as_ref() == Some(why) {
        return None;
    }
    let command = why.command.as_ref().map(|command| format!("; {command}")).unwrap_or_default();
    Some(format!("{distance}: {}{command}", why.message))
}

/// The text for a guard whose files are not known.
pub(crate) const UNWATCHED: &str =
    "none of its files are watched: an agent could change what it checks; see: runnerctl doctor";

/// Describes the result of the guard on the base; if it failed, every node has to fix that, too.
fn render_baseline(guard: GuardOutcome) -> TableCell {
    match guard {
        GuardOutcome::Pass => "the guard passed before the first session".into(),
        GuardOutcome::Fail => TableCell::styled(WARN, "the guard failed before the first session"),
        GuardOutcome::Skipped => TableCell::styled(WARN, "the guard did not finish before the first session"),
    }
}

fn render_first_paths(paths: &[String]) -> String {
    render_first(paths, paths.len())
}

fn render_first(names: &[String], count: usize) -> String {
    const SHOWN: usize = 3;
    let more = count.saturating_sub(SHOWN.min(names.len()));
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.iter().take(SHOWN).map(|name| sanitize(name)).collect::<Vec<_>>().join(", ") + &more
}

/// How many tests pass, and which passed before and do not now; `None` if the guard names none.
fn render_tests(tests: &TestsView) -> Option<TableCell> {
    let passed = format!("{} named by the guard pass", tests.passed);
    if tests.lost == 0 {
        return (tests.passed > 0).then(|| passed.into());
    }
    let names: Vec<String> = tests.first_lost.iter().map(ToString::to_string).collect();
    let lost = render_first(&names, usize::try_from(tests.lost).unwrap_or(usize::MAX));
    Some(TableCell::styled(WARN, &format!("{passed}; not any more: {lost}")))
}

/// Which tests failed and then passed on the same files, and how often; `None` if none did.
fn render_flakes(flakes: &[FlakyTest]) -> Option<TableCell> {
    let names: Vec<String> = flakes.iter().map(ToString::to_string).collect();
    let text = format!("failed, then passed on the same files: {}", render_first(&names, names.len()));
    (!names.is_empty()).then(|| TableCell::styled(WARN, &text))
}

fn render_phase(iteration: u32, phase: &PhaseView, screen: &Screen) -> String {
    let phase_time = format_duration(millis_between(phase.since, screen.now));
    let iteration_time = format_duration(millis_between(phase.iteration_since, screen.now));
    if phase.baseline {
        return format!(
            "the guard on the base, before the first session: {phase_time} of {}",
            format_duration(phase.budget_ms)
        );
    }
    let agent = phase.agent.as_ref().map(|agent| format!(", agent {agent}")).unwrap_or_default();
    format!(
        "{iteration:04} {} {phase_time}, iteration {iteration_time} of {}{agent}",
        phase.name,
        format_duration(phase.budget_ms)
    )
}

fn render_node(node: &NodeRef) -> String {
    let role = node.role.map(|role| format!(" ({role})")).unwrap_or_default();
    format!("{}  {}{role}", node.path.join("/"), node.title)
}

fn render_attempts(node: &NodeRef) -> String {
    format!("{}/{} used", node.attempts, node.max_attempts)
}

/// Names the program that git is waiting for, or git itself.
fn git_wait_text(wait: &GitWaitView, screen: &Screen) -> String {
    let for_how_long = format_duration(millis_between(wait.since, screen.now));
    match &wait.program {
        Some(program) => format!("{program} (git {}), {for_how_long}", wait.command),
        None => format!("git {}, {for_how_long}", wait.command),
    }
}

fn render_pending(pending: protocol::view::PendingControl) -> &'static str {
    match pending {
        protocol::view::PendingControl::Pause => "pause",
        protocol::view::PendingControl::Cancel => "cancel",
    }
}

fn render_heading(title: &str, screen: &Screen) -> String {
    if screen.is_plain { format!("\n{title}:\n") } else { format!("\n  {title}\n") }
}

fn render_paths(title: &str, paths: &[String], screen: &Screen) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let mut text = render_heading(&format!("{title} ({})", paths.len()), screen);
    for path in paths.iter().take(PATHS_SHOWN) {
        let _ = writeln!(text, "    {}", sanitize(path));
    }
    if paths.len() > PATHS_SHOWN {
        let _ = writeln!(text, "    and {} more", paths.len() - PATHS_SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use protocol::test_record::{LostTest, TestAbsence};

    use super::*;
    use crate::text::samples;

    fn strip_styles(text: &str) -> String {
        strip_str(text).to_string()
    }

    #[test]
    fn a_running_run_is_told_with_phase_node_and_usage() {
        insta::assert_snapshot!(strip_styles(&render_detail(&samples::status(), &Screen::fixed())), @r"
        /home/me/proj
        run run-1a2b3c4d running on branch runner/run-1a2b3c4d

          phase        0004 guard 2.0s, iteration 12s of 30m 00s
          task         root/parser/parser.lex  Cut the text into tokens (worker)
          attempts     1/3 used
          this task    sessions 1, tokens in unknown, cached unknown, out unknown, cost $0.42
          tasks        4/9 passed
          time         1h 05m in sessions and guards
          usage        sessions 3, tokens in 1.2M, cached 800k, out 30.4k, cost unknown
          baseline     the guard passed before the first session
          questions    2 open, in .runner/state/questions.md
          containment  walk; what is missing: runnerctl daemon status

          last iterations
            0003  guard failed  guard=fail  parser.lex  14s     $0.42  01234567  The lexer: the lexer knows…
            0002  finished      guard=pass  parser.ast  1m 01s  $?     01234567  The syntax tree

          held back (1)
            .env
        ");
    }

    #[test]
    fn a_run_is_called_by_its_goal() {
        let mut run = samples::stuck();
        run.summary.goal = Some("A calculator\u{1b}[2J that explains itself".into());
        let status = StatusView { run: Some(run), ..samples::status() };
        let text = strip_str(&render_detail(&status, &Screen::fixed())).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "A calculator␛[2J that explains itself", "{text}");
        assert!(lines[2].starts_with("run run-1a2b3c4d stuck"), "{text}");
    }

    #[test]
    fn a_stuck_run_says_why_and_how_to_continue() {
        let status = StatusView { run: Some(samples::stuck()), ..samples::status() };
        let text = strip_styles(&render_detail(&status, &Screen::fixed()));
        assert!(text.contains("run run-1a2b3c4d stuck on branch"), "{text}");
        assert!(text.contains("  to continue: runnerctl resume\n"), "{text}");
        assert!(!text.contains("phase"), "{text}");
    }

    #[test]
    fn a_waiting_run_says_why_until_when_and_how_to_continue_at_once() {
        let until = "2026-01-01T15:01:00Z".parse().expect("a time");
        let mut run = samples::stuck();
        (run.summary.state, run.summary.needs_you) = (RunStatus::Waiting, false);
        run.summary.reason = Some(protocol::view::StopReason::new(
            "the model's service is not available: usage limit reached",
            "runnerctl resume --now",
        ));
        run.wait_until = Some(until);
        run.outages =
            vec![protocol::view::OutageView { agent: "codex".into(), why: "usage limit reached".into(), until }];
        let text = strip_styles(&render_run(&run, &Screen::fixed()));
        let head: Vec<&str> = text.lines().take(6).collect();
        insta::assert_snapshot!(head.join("\n"), @r"
        run run-1a2b3c4d waiting on branch runner/run-1a2b3c4d
          the model's service is not available: usage limit reached
          to continue: runnerctl resume --now

          waits        until 15:01 (in 3h 01m)
          task         root/parser/parser.lex  Cut the text into tokens (worker)
        ");
        assert!(describe_activity(&run, &Screen::fixed()).starts_with("until 15:01 (in 3h 01m): the model's service"));
    }

    #[test]
    fn a_run_on_its_fallback_says_which_agent_and_until_when() {
        let until = "2026-01-01T15:01:00Z".parse().expect("a time");
        let mut run = samples::run();
        run.phase.as_mut().expect("it is live").agent = Some("claude".into());
        run.outages =
            vec![protocol::view::OutageView { agent: "codex".into(), why: "usage limit reached".into(), until }];
        let text = strip_styles(&render_run(&run, &Screen::fixed()));
        assert!(text.contains("iteration 12s of 30m 00s, agent claude\n"), "{text}");
        assert!(text.contains("out          codex until 15:01 (in 3h 01m): usage limit reached\n"), "{text}");
    }

    #[test]
    fn what_a_person_has_asked_and_no_session_has_seen_is_listed_with_its_id() {
        let mut run = samples::run();
        run.notes = vec!["n1".into(), "n2".into()];
        let change = |command: &str, id: Option<&str>, text: &str| protocol::view::ChangeView {
            command: command.into(),
            id: id.map(str::to_owned),
            text: text.into(),
        };
        run.changes = vec![change("note", Some("n3"), "Use sqlx"), change("add", None, "under root: Docs")];
        let text = strip_styles(&render_run(&run, &Screen::fixed()));
        let lines: Vec<&str> =
            text.lines().filter(|line| line.contains("note") || line.contains("to commit")).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        notes        n1, n2 for the next session that answers
        to commit    note n3: Use sqlx
        to commit    add: under root: Docs
        ");
    }

    #[test]
    fn a_line_per_repository_fits_the_terminal() {
        let held = protocol::view::StopReason::new("cannot read its journal", "");
        let broken = StatusView {
            repo: protocol::view::RepoView { held: Some(held), ..samples::repo() },
            run: None,
            ..samples::status()
        };
        let stuck = StatusView { run: Some(samples::stuck()), ..samples::status() };
        let text = strip_styles(&render_overview(
            &[samples::status(), stuck, broken],
            &Screen { width: Some(60), ..Screen::fixed() },
        ));
        insta::assert_snapshot!(text, @r#"
        REPOSITORY    STATE    TASKS  COST  NOW
        …ome/me/proj  running  4/9    $?    0004 guard Cut the text…
        …ome/me/proj  stuck    4/9    $?    has used all of its 3 a…
        …ome/me/proj  held                  cannot read its journal

        4 questions are open: runnerctl questions
        "#);
    }

    #[test]
    fn isolated_runs_stand_below_their_repository_by_their_ids() {
        let idle = StatusView { run: None, ..samples::status() };
        let mut elsewhere = samples::workspace("port");
        elsewhere.repo.source_id = Some("gone".into());
        let all = [idle, samples::workspace("tidy"), samples::workspace("port"), elsewhere];
        let text = strip_styles(&render_overview(&all, &Screen::fixed()));
        let begins = ["REPOSITORY ", "/home/me/proj ", "  tidy ", "  port ", "/home/me/proj port "];
        for (line, begin) in text.lines().zip(begins) {
            assert!(line.starts_with(begin), "`{begin}` is not the beginning of `{line}`");
        }
    }

    #[test]
    fn tests_that_are_lost_are_named_and_many_are_counted() {
        let lost = |name: &str| LostTest { name: name.to_owned(), iter: 3, now: TestAbsence::Skipped };
        let text = |tests: TestsView| {
            let text = strip_styles(&render_run(&RunView { tests, ..samples::run() }, &Screen::fixed()));
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let some = text(TestsView { passed: 12, lost: 30, first_lost: ["a", "b", "c", "d"].map(lost).to_vec() });
        let line = "tests 12 named by the guard pass; not any more: a (skipped, iteration 3), b (skipped, iteration 3), \
                    c (skipped, iteration 3) and 27 more questions";
        assert!(some.contains(line), "{some}");
        assert!(!text(TestsView::default()).contains("named by the guard"));
    }

    #[test]
    fn a_changed_definition_of_the_guard_is_named_with_the_command_that_accepts_it() {
        let run = RunView { guard_changed: ["a", "b", "c", "d"].map(str::to_owned).to_vec(), ..samples::run() };
        let text = strip_styles(&render_run(&run, &Screen::fixed()));
        assert!(
            text.contains("guard        definition changed: a, b, c and 1 more; runnerctl guard accept\n"),
            "{text}"
        );
    }

    #[test]
    fn a_branch_that_is_behind_is_told_with_what_lets_it_move_and_once() {
        let why = protocol::view::StopReason::new("runner/x is in use in /home/me/proj", "git switch --detach");
        let published = PublishedView {
            to: samples::summary().path,
            tip: Some("1".repeat(40)),
            behind: Some(2),
            why: Some(why.clone()),
        };
        let mut run = samples::run();
        run.summary.published = Some(published.clone());
        let line = "published    2 commits behind: runner/x is in use in /home/me/proj; git switch --detach\n";
        let text = strip_styles(&render_run(&run, &Screen::fixed()));
        assert!(text.contains(line), "{text}");
        run.summary.reason = Some(why);
        assert!(!strip_styles(&render_run(&run, &Screen::fixed())).contains("commits behind"), "its reason says it");
        let mut render_published = |behind, why| {
            run.summary.published = Some(PublishedView { behind, why, ..published.clone() });
            strip_styles(&render_run(&run, &Screen::fixed()))
        };
        assert!(!render_published(Some(0), None).contains("published"));
        assert!(render_published(Some(1), None).contains("published    1 commit behind\n"), "it has been set back");
        let failed = protocol::view::StopReason::new("reading /srv/x", "mount it");
        assert!(render_published(None, Some(failed)).contains("published    not known: reading /srv/x; mount it\n"));
    }

    #[test]
    fn the_guard_on_the_base_is_shown_while_it_runs() {
        let mut run = samples::run();
        run.phase.as_mut().expect("it is live").baseline = true;
        let text = strip_styles(&render_run(&run, &Screen::fixed()));
        assert!(text.contains("the guard on the base, before the first session: 2.0s of 30m 00s"), "{text}");
        assert_eq!(describe_activity(&run, &Screen::fixed()), "the guard on the base 12s");
    }

    #[test]
    fn nothing_of_an_agent_reaches_the_terminal_as_a_command() {
        let json = serde_json::to_string(&samples::status()).expect("serializes");
        let hostile = json
            .replace("parser", "\\u001b]0;x\\u0007")
            .replace("Cut", "\\u001b[2J")
            .replace("knows", "\\u009b2J\\u202e");
        let status: StatusView = serde_json::from_str(&hostile).expect("parses");
        let screen = Screen::fixed();
        for text in [render_detail(&status, &screen), render_overview(&[status], &screen)] {
            let plain = strip_styles(&text);
            assert!(plain.contains('␛') && plain.chars().all(|c| c == '\n' || !c.is_control()), "{plain}");
        }
    }

    #[test]
    fn a_long_list_of_paths_is_counted() {
        let many: Vec<String> = (0..12).map(|n| format!("f{n}")).collect();
        let text = render_paths("held back", &many, &Screen::fixed());
        assert!(text.contains("held back (12)") && text.contains("and 2 more") && !text.contains("f10"), "{text}");
    }
}
