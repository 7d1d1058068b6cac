//! `start`: queues a run in a repository, or resumes one.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::branch::RunCheckout;
use protocol::client::{Connection, caller_env};
use protocol::doctor::GuardFiles;
use protocol::error::{ErrorKind, ExitStatus};
use protocol::path::WirePath;
use protocol::reply::{CreatedWorkspace, StartReply, StartSettings, TakenSetting};
use protocol::request::{AtPath, AtRun, StartParams};
use protocol::shell;
use protocol::view::StatusView;
use protocol::words::RunStatus;

use crate::args::RepoTarget;
use crate::confirm::{ask_yes_no, with_confirmation};
use crate::detection::{Asker, NewSettings, choose_settings};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::{is_local_path, to_run_name};
use crate::settings::Settings;
use crate::text::paint::{HINT, WARN, paint, state_style};
use crate::text::run::join_within;
use crate::text::sanitize::sanitize;
use crate::text::screen::Screen;
use crate::text::status::UNWATCHED;
use crate::text_file;
use crate::wait::{wait_for_run, wait_for_start};
use crate::workspace_progress::show_workspace_progress;

/// Number of uncommitted paths that are listed; the JSON answer has more.
const UNCOMMITTED_SHOWN: usize = 5;
/// The daemon's size limit for a goal; a larger one is refused before it is sent.
const GOAL_LIMIT: u64 = 64 * 1024;

const EXAMPLES: &str = "Examples:
  runnerctl start                            the goal in .runner/GOAL.md
  runnerctl start ~/proj --goal port.md      a new goal from a file
  runnerctl start --goal - --wait            from stdin; wait until it ends
  runnerctl start -m Tidy --id tidy-1        a goal and an id of your own
  runnerctl start --base v1.2 --queue-only   queued, but paused
  runnerctl start --isolated -m Tidy         beside your work, in a workspace

Exit codes with --wait:
  0  completed
  3  stuck
  4  limit or timed out
  6  paused or held
  9  failed or cancelled";

/// Start or resume a run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct StartArgs {
    #[command(flatten)]
    repo: RepoTarget,
    /// Further words, which are a goal without quotes
    #[arg(value_name = "WORD", hide = true)]
    more: Vec<String>,
    /// A new goal, from a Markdown file (`-`: stdin)
    #[arg(long, value_name = "FILE", conflicts_with = "message")]
    goal: Option<PathBuf>,
    /// A new goal, as text
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Id of the run [default: the first words of the goal]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Revision to branch from [default: HEAD]
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// The branch to land on [default: the one that is checked out]
    #[arg(long, value_name = "BRANCH")]
    onto: Option<String>,
    /// Keep the task tree, even though the goal is new
    #[arg(long)]
    keep_tree: bool,
    /// Work in a separate workspace and leave this repository's files alone
    #[arg(long, visible_alias = "worktree")]
    isolated: bool,
    /// Work in this repository [default, unless `[workspace] kind` says otherwise]
    #[arg(long, conflicts_with = "isolated")]
    in_place: bool,
    /// Start with the default settings instead of those of the previous run
    #[arg(long)]
    default_config: bool,
    /// Queue the run paused
    #[arg(long, conflicts_with = "wait")]
    queue_only: bool,
    /// Show progress until the run ends, pauses or is held
    #[arg(long)]
    wait: bool,
    /// Confirm the commands in the repository's configuration, and use the detected settings
    #[arg(short, long)]
    yes: bool,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: StartArgs) -> Result<ExitStatus, Failure> {
    let path = resolve_place(invocation, &args)?;
    let goal = load_goal(invocation, args.goal.as_deref(), args.message.as_deref())?;
    let goal_option = match (&args.goal, &args.message) {
        (Some(file), _) => format!("--goal {}", shell::quote(&file.display().to_string())),
        (None, message) => format!("-m {}", shell::quote(message.as_deref().unwrap_or_default())),
    };
    let connection = invocation.connect().await?;
    // Another base, or a run that is resumed, has settings of its own.
    let settings = if goal.is_none() || args.base.is_some() || args.default_config {
        NewSettings { defaults: Settings::load()?.defaults(), has_detected: false }
    } else {
        let asker = Asker { ui: invocation.ui, yes: args.yes, is_optional: false, is_local: invocation.host.is_none() };
        choose_settings(&connection, &path, asker).await?
    };
    let params = StartParams {
        env: caller_env::collect_for_new(&connection, &path, settings.defaults.clone()).await,
        path: path.clone(),
        goal,
        goal_file: match args.goal.as_deref().filter(|file| invocation.host.is_none() && *file != Path::new("-")) {
            Some(file) => Some(WirePath(invocation.resolve_local(Some(file))?)),
            None => None,
        },
        id: args.id,
        base: args.base,
        onto: args.onto,
        keep_tree: args.keep_tree,
        queue_only: args.queue_only,
        isolated: match (args.isolated, args.in_place) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            (false, false) => None,
        },
        default_config: args.default_config,
        defaults: settings.defaults,
        confirmed: false,
    };
    if invocation.ui.can_ask() && !args.yes && params.goal.is_some() && params.base.is_none() {
        confirm_base(&connection, &path, &goal_option).await?;
    }
    let client = connection.client();
    let request = async |confirmed| {
        let start = client.start(StartParams { confirmed, ..params.clone() });
        wait_for_start(invocation.ui, client, &path, start).await
    };
    let mut reply = {
        let _progress = (!args.in_place).then(|| show_workspace_progress(invocation, path.clone()));
        with_confirmation(invocation.ui, args.yes, request).await?
    };
    invocation.ui.print_answer("start", &reply, |screen| render_start(&reply, screen))?;
    let screen = invocation.ui.screen();
    invocation.ui.print_note(&(render_origin(&reply, &screen) + &render_settings(&reply, settings.has_detected)));
    if let Some(workspace) = &reply.workspace {
        invocation.ui.print_note(&render_workspace_notes(workspace));
    }
    if let Some(guard) = &reply.guard {
        invocation.ui.print_note(&render_guard_files(guard));
    }
    if args.wait {
        let (status, run) = wait_for_run(invocation, path, reply.run.id.clone()).await?;
        reply.run.branch = format!("runner/{run}");
        invocation.ui.print_note(&render_way_back(&reply, "is on", &screen));
        return Ok(status);
    }
    invocation.ui.print_note(&format!("\nCheck progress: {}\n", paint(HINT, "runnerctl status")));
    Ok(ExitStatus::Success)
}

/// Asks whether a new run is to begin on top of another one that has not completed.
async fn confirm_base(connection: &Connection, path: &WirePath, goal_option: &str) -> Result<(), Failure> {
    let client = connection.client();
    let at = AtRun { path: path.clone(), run: None };
    // If there is no run yet, there is nothing to ask.
    let Ok(StatusView { on_run: Some(RunCheckout { branch, back, .. }), .. }) = client.status(at).await else {
        return Ok(());
    };
    let runs = client.list(AtPath { path: path.clone() }).await?;
    let Some(run) = runs.iter().find(|run| run.branch == branch && run.state != RunStatus::Completed) else {
        return Ok(());
    };
    let other = back.as_ref().map(|back| format!("; from {0}: --base {0}", sanitize(back))).unwrap_or_default();
    let question =
        format!("it begins from {}, which {}{other}\nBegin there? [y/N] ", sanitize(&branch), run.state.predicate());
    if ask_yes_no(&question)? {
        return Ok(());
    }
    let refused = Failure::new(ExitStatus::Refused, ErrorKind::Unconfirmed.as_str(), "nothing was started");
    Err(refused.hint(back.map_or("name where it begins: --base REV".into(), |back| {
        format!("runnerctl start --base {} {goal_option}", shell::quote(&back))
    })))
}

/// Returns the path in the repository; a text in its place, or beside it, is refused.
fn resolve_place(invocation: &Invocation<'_>, args: &StartArgs) -> Result<WirePath, Failure> {
    let path = args.repo.path();
    let word = match path.and_then(to_run_name) {
        Some(word) if !is_local_path(invocation, Path::new(word))? => Some(word),
        Some(_) | None => None,
    };
    if word.is_none() && args.more.is_empty() {
        return invocation.daemon_path(path);
    }
    let words: Vec<&str> = word.into_iter().chain(args.more.iter().map(String::as_str)).collect();
    let text = words.join(" ");
    let place = path.filter(|_| word.is_none()).map(|path| format!(" {}", shell::quote(&path.display().to_string())));
    let sentence: Vec<&str> = args.message.as_deref().into_iter().chain(words).collect();
    let goal = format!("a goal: runnerctl start{} -m {}", place.unwrap_or_default(), shell::quote(&sentence.join(" ")));
    let quoted = shell::quote(&text);
    let is_id = args.message.is_none() && !text.contains(char::is_whitespace);
    let hint = if is_id { format!("{goal}; a run: runnerctl start --id {quoted}") } else { goal };
    Err(Failure::usage(format!("{quoted} is not a path")).hint(hint))
}

/// Returns the text of a new goal, if one was given.
pub(super) fn load_goal(
    invocation: &Invocation<'_>,
    file: Option<&Path>,
    message: Option<&str>,
) -> Result<Option<String>, Failure> {
    match file {
        None => Ok(message.map(str::to_owned)),
        Some(file) if file == Path::new("-") => read_goal(io::stdin().lock(), "stdin").map(Some),
        Some(file) => {
            let file = invocation.resolve_local(Some(file))?;
            let name = file.display().to_string();
            let opened = text_file::open_file(&file).map_err(|error| {
                let failure = Failure::io(format!("reading the goal {name}"), &error);
                failure.hint("name an existing file, or write the goal itself: runnerctl start -m TEXT")
            })?;
            read_goal(opened, &name).map(Some)
        }
    }
}

fn read_goal(source: impl Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = source.take(GOAL_LIMIT + 1).read_to_string(&mut text);
    read.map_err(|error| Failure::io(format!("reading the goal {name}"), &error))?;
    if text.len() as u64 > GOAL_LIMIT {
        return Err(Failure::usage(format!("the goal {name} is longer than 64 KiB")));
    }
    if text.trim().is_empty() {
        return Err(Failure::usage(format!("the goal {name} is empty")));
    }
    Ok(text)
}

/// Describes the position of a queued run.
pub(super) fn render_start(reply: &StartReply, screen: &Screen) -> String {
    let run = &reply.run;
    let ahead = match reply.ahead {
        0 => String::new(),
        1 => ", behind 1 run".into(),
        n => format!(", behind {n} runs"),
    };
    let suffix = match (reply.resumed, run.state) {
        (true, RunStatus::Running | RunStatus::Waiting) => " already",
        (true, _) => " again",
        (false, _) => "",
    };
    let state = paint(state_style(run.state), run.state.as_str());
    let workspace =
        reply.workspace.as_ref().map(|workspace| format!("  in {}\n", sanitize(&workspace.path.to_string())));
    let head = format!("run {} {state}{suffix}", sanitize(&run.id));
    join_within(&head, &format!("on branch {}{ahead}", sanitize(&run.branch)), screen) + &workspace.unwrap_or_default()
}

/// Says what a new run begins from, and how a work tree that goes to its branch comes back.
fn render_origin(reply: &StartReply, screen: &Screen) -> String {
    let Some(from) = &reply.from else { return String::new() };
    let is_behind = from.starts_with("runner/");
    let from = sanitize(from);
    let other = reply.back.as_ref().map(|back| format!("from {0}: --base {0}", sanitize(back)));
    let origin = match (is_behind, reply.ahead) {
        (true, 0) => paint(WARN, &format!("it begins from {from}, on top of that run")),
        (true, _) => "it begins from the end of the run before it".to_owned(),
        (false, _) if reply.detached.as_ref() == Some(&from) => format!("it begins from commit {from}, where HEAD is"),
        (false, _) => format!("it begins from {from}"),
    };
    let origin = match other.filter(|_| is_behind) {
        Some(other) => join_within(&format!("{origin};"), &other, screen),
        None => format!("{origin}\n"),
    };
    origin + &render_way_back(reply, "is then on", screen)
}

/// Says which settings a new run takes from another one.
fn render_settings(reply: &StartReply, has_detected: bool) -> String {
    if reply.head_config {
        return ".runner/state/config.toml is not in the work tree: HEAD's applies\n".to_owned();
    }
    let Some(StartSettings { run, keys }) = reply.settings.as_ref().filter(|taken| !taken.keys.is_empty()) else {
        return String::new();
    };
    let line = |TakenSetting { key, value }: &TakenSetting| format!("  {} = {}\n", sanitize(key), sanitize(value));
    let keys: String = keys.iter().map(line).collect();
    let source = match run {
        Some(run) => format!("those of run {} (start --default-config takes the defaults)", sanitize(run)),
        None if has_detected => "those that were detected, and your own defaults".to_owned(),
        None => "your own defaults".to_owned(),
    };
    format!("its settings are {source}:\n{keys}")
}

/// Says how the work tree of a run comes back to the branch that it was on.
fn render_way_back(reply: &StartReply, is_on: &str, screen: &Screen) -> String {
    let command = match (&reply.back, &reply.detached) {
        _ if reply.workspace.is_some() => return String::new(),
        (_, Some(commit)) => format!("git switch --detach {}", sanitize(commit)),
        (Some(back), None) => format!("git switch {}", sanitize(&shell::quote(back))),
        (None, None) => return String::new(),
    };
    let command = paint(HINT, &command);
    join_within(&format!("this working tree {is_on} {}; back:", sanitize(&reply.run.branch)), &command, screen)
}

/// Describes what a workspace lacks, and other notes on it.
fn render_workspace_notes(workspace: &CreatedWorkspace) -> String {
    let warnings = workspace
        .warnings
        .iter()
        .flat_map(|warning| [paint(WARN, &sanitize(warning)), "\n".to_owned()])
        .collect::<String>();
    if workspace.not_taken_count == 0 {
        return warnings;
    }
    let paths: Vec<_> = workspace.not_taken.iter().take(UNCOMMITTED_SHOWN).map(|path| sanitize(path)).collect();
    let more = workspace.not_taken_count.saturating_sub(paths.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{warnings}not committed, so the run does not see: {}{more}\n", paths.join(", "))
}

/// Describes which files are watched for the guard.
fn render_guard_files(guard: &GuardFiles) -> String {
    if guard.is_blind {
        return format!("{}\n", paint(WARN, &format!("guard: {UNWATCHED}")));
    }
    let files = guard.watched.iter().map(|path| sanitize(path)).collect::<Vec<_>>().join(", ");
    let watched = if files.is_empty() { String::new() } else { format!("guard: watching {files} for changes\n") };
    if guard.unknown.is_empty() {
        return watched;
    }
    let unknown = guard.unknown.iter().map(|command| sanitize(command)).collect::<Vec<_>>().join(", ");
    let text = format!(
        "this guard runs files that are not watched: {unknown}\n  if they check something, name them in [guard] definition"
    );
    format!("{watched}{}\n", paint(WARN, &text))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;
    use crate::text::samples;

    #[test]
    fn the_branch_is_named_and_so_are_the_runs_before() {
        let mut reply = StartReply {
            run: samples::summary(),
            ahead: 0,
            resumed: false,
            workspace: None,
            from: None,
            back: None,
            detached: None,
            guard: None,
            settings: None,
            head_config: false,
        };
        insta::assert_snapshot!(strip_str(&render_start(&reply, &Screen::fixed())), @"run run-1a2b3c4d running on branch runner/run-1a2b3c4d");
        (reply.ahead, reply.resumed) = (2, true);
        insta::assert_snapshot!(strip_str(&render_start(&reply, &Screen::fixed())), @"run run-1a2b3c4d running already on branch runner/run-1a2b3c4d, behind 2 runs");
    }

    #[test]
    fn what_a_run_begins_from_is_told_and_how_to_go_back() {
        let from = Some("main".to_owned());
        let back = Some("main".to_owned());
        let mut reply = StartReply {
            run: samples::summary(),
            ahead: 0,
            resumed: false,
            workspace: None,
            from,
            back,
            detached: None,
            guard: None,
            settings: None,
            head_config: false,
        };
        insta::assert_snapshot!(strip_str(&render_origin(&reply, &Screen::fixed())), @r"
        it begins from main
        this working tree is then on runner/run-1a2b3c4d; back: git switch main
        ");
        reply.from = Some("runner/bad".into());
        insta::assert_snapshot!(strip_str(&render_origin(&reply, &Screen::fixed())), @r"
        it begins from runner/bad, on top of that run; from main: --base main
        this working tree is then on runner/run-1a2b3c4d; back: git switch main
        ");
        (reply.ahead, reply.back) = (1, None);
        insta::assert_snapshot!(strip_str(&render_origin(&reply, &Screen::fixed())), @"it begins from the end of the run before it");
        (reply.from, reply.detached) = (Some("0123456789ab".into()), Some("0123456789ab".into()));
        insta::assert_snapshot!(strip_str(&render_origin(&reply, &Screen::fixed())), @r"
        it begins from commit 0123456789ab, where HEAD is
        this working tree is then on runner/run-1a2b3c4d; back: git switch --detach 0123456789ab
        ");
        reply.from = None;
        assert_eq!(render_origin(&reply, &Screen::fixed()), "");
    }

    #[test]
    fn settings_of_the_run_before_are_shown_if_they_differ_from_the_defaults() {
        let mut settings = StartSettings {
            run: Some("port".into()),
            keys: vec![TakenSetting { key: "max_cost_usd".into(), value: "20.0".into() }],
        };
        let run = samples::summary();
        let mut reply = StartReply {
            run,
            ahead: 0,
            resumed: false,
            workspace: None,
            from: None,
            back: None,
            detached: None,
            guard: None,
            settings: None,
            head_config: false,
        };
        assert_eq!(render_settings(&reply, false), "");
        reply.settings = Some(settings.clone());
        insta::assert_snapshot!(strip_str(&render_settings(&reply, false)), @r"
        its settings are those of run port (start --default-config takes the defaults):
          max_cost_usd = 20.0
        ");
        settings.keys.clear();
        reply.settings = Some(settings);
        assert_eq!(render_settings(&reply, false), "");
    }

    #[test]
    fn files_that_are_not_watched_are_named_beside_those_that_are() {
        let unknown = vec!["justfile: sh \"$(pick)\"".to_owned()];
        let guard = GuardFiles { watched: vec!["justfile".to_owned()], is_blind: false, unknown };
        insta::assert_snapshot!(strip_str(&render_guard_files(&guard)), @r#"
        guard: watching justfile for changes
        this guard runs files that are not watched: justfile: sh "$(pick)"
          if they check something, name them in [guard] definition
        "#);
    }

    #[test]
    fn a_workspace_is_named_and_what_it_lacks_told() {
        let workspace = CreatedWorkspace {
            path: Path::new("/state/workspaces/9f86d081884c/tidy").into(),
            base: "0123456789abcdef0123456789abcdef01234567".into(),
            not_taken: vec!["a.txt".into(), "b\u{1b}.txt".into()],
            not_taken_count: 7,
            warnings: vec!["node_modules/x leads out of the workspace".into()],
        };
        insta::assert_snapshot!(strip_str(&render_workspace_notes(&workspace)), @r"
        node_modules/x leads out of the workspace
        not committed, so the run does not see: a.txt, b␛.txt and 5 more
        ");
        let run = samples::summary();
        let reply = StartReply {
            run,
            ahead: 0,
            resumed: false,
            workspace: Some(workspace),
            from: None,
            back: None,
            detached: None,
            guard: None,
            settings: None,
            head_config: false,
        };
        assert!(render_start(&reply, &Screen::fixed()).ends_with("  in /state/workspaces/9f86d081884c/tidy\n"));
    }

    #[test]
    fn a_goal_that_is_too_long_is_refused_before_it_is_sent() {
        assert!(read_goal("x".repeat(64 * 1024).as_bytes(), "g").is_ok());
        assert!(read_goal("x".repeat(64 * 1024 + 1).as_bytes(), "g").is_err());
        assert!(read_goal(" \n".as_bytes(), "g").is_err());
    }
}
