//! The command line: options that hold everywhere, and the list of commands.
//!
//! A command's own options are in its file under `commands/`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use protocol::error::ExitStatus;
use protocol::shell;

use crate::commands::{
    add, answer, approve, bisect, cancel, completions, config, daemon, deliver, demo, doctor, edit, explain, export,
    fork, gc, guard, help, init, land, log, man, mcp, note, path, pause, questions, queue, reject, repos, resume,
    retry, select, self_update, service, start, status, stdio, step, submit, tree, ui, uninstall, validate, verify,
    version, watch,
};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::{is_local_path, to_run_name};

/// Listed in the help of each command instead of being explained there.
const GLOBAL_OPTIONS_HELP: &str = "Global options; see `runnerctl help`:
  --json  --quiet  -C DIR  --socket PATH  --no-spawn  --color WHEN  --plain
  --host HOST  --all-hosts";

/// Run coding agents through a task tree in a git repository, one commit per session.
#[derive(Debug, Parser)]
#[command(
    name = "runnerctl",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = help::FIRST
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct GlobalArgs {
    /// Print JSON: one object, or one per line while following
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Run as if started in DIR
    #[arg(short = 'C', global = true, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// The daemon's socket [default: `RUNNERD_SOCKET`, else in the runtime directory]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Use the daemon of another machine over ssh: `ssh://[user@]host[:port]`, or a name in `[hosts]` of the client's settings; may be repeated for `status`, `watch` and `questions` [default: `RUNNER_HOST`, else this machine]
    #[arg(long, global = true, value_name = "HOST", conflicts_with = "socket")]
    pub(crate) host: Vec<String>,
    /// Use all machines in `[hosts]`; only for `status`, `watch` and `questions`
    #[arg(long, global = true, conflicts_with_all = ["socket", "host"])]
    pub(crate) all_hosts: bool,
    /// Do not start a daemon if none is running
    #[arg(long, global = true)]
    pub(crate) no_spawn: bool,
    /// When to use colours; `NO_COLOR` is honoured
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorWhen,
    /// Print one fact per line, for screen readers: no tables, symbols, colours or pager [default with `RUNNER_PLAIN=1` or `TERM=dumb`]
    #[arg(long, global = true)]
    pub(crate) plain: bool,
    /// Print only results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    Auto,
    Always,
    Never,
}

/// The repository that a command is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct RepoTarget {
    /// Any path in the repository [default: current directory]
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
}

impl RepoTarget {
    /// Returns the path, if one was given.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Refuses a word that is not a path: in a repository's work tree, it would be taken for a path below it.
    pub(crate) fn check_path(&self, invocation: &Invocation<'_>) -> Result<(), Failure> {
        let Some(word) = self.path().and_then(Path::to_str) else { return Ok(()) };
        if to_run_name(Path::new(word)).is_none() || is_local_path(invocation, Path::new(word))? {
            return Ok(());
        }
        let hint = format!("name a path in the repository; for a run: runnerctl status {}", shell::quote(word));
        Err(Failure::usage(format!("`{word}` is not a path")).hint(hint))
    }
}

/// Declares the commands in their groups, and how the options of each are added to its name.
macro_rules! commands {
    ($($group:literal { $($name:literal $variant:ident($args:ty),)* })*) => {
        /// The commands.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[command(name = $name)] $variant($args),)*)*
            #[command(name = "__demo-agent", hide = true)]
            DemoAgent,
        }

        /// Each command that has options, and what adds them.
        const COMMANDS: &[(&str, fn(clap::Command) -> clap::Command)] = &[$($(($name, <$args>::augment_args),)*)*];

        /// The groups in which `--help` lists the commands.
        const GROUPS: &[(&str, &[&str])] = &[$(($group, &[$($name),*]),)*];
    };
}

commands! {
    "Run" {
        "start" Start(start::StartArgs),
        "pause" Pause(pause::PauseArgs),
        "resume" Resume(resume::ResumeArgs),
        "step" Step(step::StepArgs),
        "cancel" Cancel(cancel::CancelArgs),
        "fork" Fork(fork::ForkArgs),
        "land" Land(land::LandArgs),
        "deliver" Deliver(deliver::DeliverArgs),
        "submit" Submit(submit::SubmitArgs),
    }
    "Look" {
        "status" Status(status::StatusArgs),
        "watch" Watch(watch::WatchArgs),
        "ui" Ui(ui::UiArgs),
        "mcp" Mcp(mcp::McpArgs),
        "tree" Tree(tree::TreeArgs),
        "log" Log(log::LogArgs),
        "questions" Questions(questions::QuestionsArgs),
        "queue" Queue(queue::QueueArgs),
        "path" Path(path::PathArgs),
        "explain" Explain(explain::ExplainArgs),
        "select" Select(select::SelectArgs),
        "verify" Verify(verify::VerifyArgs),
        "bisect" Bisect(bisect::BisectArgs),
    }
    "Steer" {
        "note" Note(note::NoteArgs),
        "answer" Answer(answer::AnswerArgs),
        "approve" Approve(approve::ApproveArgs),
        "reject" Reject(reject::RejectArgs),
        "retry" Retry(retry::RetryArgs),
        "add" Add(add::AddArgs),
        "edit" Edit(edit::EditArgs),
        "guard" Guard(guard::GuardArgs),
    }
    "Repository" {
        "init" Init(init::InitArgs),
        "config" Config(config::ConfigArgs),
        "validate" Validate(validate::ValidateArgs),
        "export" Export(export::ExportArgs),
        "gc" Gc(gc::GcArgs),
        "repos" Repos(repos::ReposArgs),
    }
    "Daemon and installation" {
        "daemon" Daemon(daemon::DaemonArgs),
        "service" Service(service::ServiceArgs),
        "stdio" Stdio(stdio::StdioArgs),
        "doctor" Doctor(doctor::DoctorArgs),
        "version" Version(version::VersionArgs),
        "self-update" SelfUpdate(self_update::SelfUpdateArgs),
        "uninstall" Uninstall(uninstall::UninstallArgs),
        "demo" Demo(demo::DemoArgs),
        "completions" Completions(completions::CompletionsArgs),
        "man" Man(man::ManArgs),
        "help" Help(help::HelpArgs),
    }
}

/// Returns the template of the program's own help: the commands are in groups, which clap does not support.
fn render_help_template(command: &clap::Command) -> String {
    let style = command.get_styles();
    let header = style.get_header();
    let literal = style.get_literal();
    let width = GROUPS.iter().flat_map(|(_, names)| names.iter()).map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (group, names) in GROUPS {
        let _ = write!(text, "\n{header}{group}:{header:#}\n");
        for name in *names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {literal}{name:width$}{literal:#}  {about}");
        }
    }
    text + &format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}")
}

/// Returns the command line with all that it explains: a command below another has the examples of that one that are its own.
pub(crate) fn build_documented_command() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command.mut_subcommands(|command| {
        let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        command.mut_subcommands(|subcommand| {
            let words = format!("  {}", subcommand.get_bin_name().unwrap_or_default());
            let own: Vec<&str> = examples.lines().filter(|line| line.starts_with(&words)).collect();
            if own.is_empty() { subcommand } else { subcommand.after_help(format!("Examples:\n{}", own.join("\n"))) }
        })
    })
}

/// Returns the command line as it is parsed: the help of a command leaves out what holds for all, and says where that is.
pub(crate) fn build_parser() -> clap::Command {
    let command = build_documented_command();
    let template = render_help_template(&command);
    command.help_template(template).mut_subcommands(hide_global_options)
}

fn hide_global_options(command: clap::Command) -> clap::Command {
    let help_prefix = command.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
    let command = command.mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg });
    command.after_help(format!("{help_prefix}{GLOBAL_OPTIONS_HELP}")).mut_subcommands(hide_global_options)
}

/// Parses the command line of this process.
///
/// What all the commands are, and what each help says, is put together for those alone who get no further: that takes
/// longer than all else.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let argv = separate_command_words(std::env::args_os().collect());
    if let Some(cli) = parse_single_command(&argv) {
        return Ok(cli);
    }
    if let Some(version) = parse_version_flag(&argv) {
        return Err(version);
    }
    let mut command = build_parser();
    let matches = command.try_get_matches_from_mut(argv)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Marks the words of a command that `config set KEY WORD...` sets, so that their options are not taken for ours.
fn separate_command_words(mut argv: Vec<OsString>) -> Vec<OsString> {
    let is_command = |key: &str| {
        let name = key.rsplit('.').next().unwrap_or_default();
        key.starts_with("hooks.") || ["command", "extra_args", "setup", "wrapper"].contains(&name)
    };
    let set = argv.windows(4).position(|words| {
        let [config, set, key, first] = words else { return false };
        let first = first.to_string_lossy();
        config == "config" && set == "set" && is_command(&key.to_string_lossy()) && !first.starts_with(['-', '['])
    });
    if let Some(at) = set {
        argv.insert(at + 3, "--".into());
    }
    argv
}

/// Parses a command line by the command alone that it seems to name; none where it is not understood so.
fn parse_single_command(argv: &[OsString]) -> Option<Cli> {
    let (name, options) = argv.iter().skip(1).find_map(|word| COMMANDS.iter().find(|(name, _)| word == name))?;
    let line = GlobalArgs::augment_args(clap::Command::default().name("runnerctl").disable_help_subcommand(true));
    let matches = line.subcommand(options(clap::Command::default().name(name))).try_get_matches_from(argv).ok()?;
    Cli::from_arg_matches(&matches).ok()
}

/// Returns what is printed where nothing but the version is asked for.
fn parse_version_flag(argv: &[OsString]) -> Option<clap::Error> {
    let line = clap::Command::default().name("runnerctl").version(env!("CARGO_PKG_VERSION"));
    let error = GlobalArgs::augment_args(line).try_get_matches_from(argv).err()?;
    (error.kind() == clap::error::ErrorKind::DisplayVersion).then_some(error)
}

/// Prints what the parser has to say, as JSON where that was asked for, and returns the exit code.
pub(crate) fn report_parse_error(error: &clap::Error) -> ExitStatus {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitStatus::Success;
    }
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    if let (true, Failure::Report(report)) = (wants_json, Failure::usage(first_error_line(error))) {
        let _ = std::io::stderr().write_all(report.to_json().as_bytes());
    } else {
        let _ = anstream::stderr().write_all(reword_numbers(&error.render().ansi().to_string()).as_bytes());
    }
    ExitStatus::Usage
}

/// Rewords the standard library's errors about text that is not a number.
fn reword_numbers(text: &str) -> String {
    let text = text.replace("invalid digit found in string", "it is not a whole number");
    text.replace("number too large to fit in target type", "the number is too large")
}

fn first_error_line(error: &clap::Error) -> String {
    let text = reword_numbers(&error.render().to_string());
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc_tests::split_words;

    #[test]
    fn the_version_alone_is_what_the_whole_command_line_says() {
        let words = |line: &str| line.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        for line in ["runnerctl --version", "runnerctl -V", "runnerctl --json --version"] {
            let whole = build_parser().try_get_matches_from(words(line)).expect_err("it is no command");
            assert_eq!(parse_version_flag(&words(line)).expect("it is one").to_string(), whole.to_string());
        }
        for line in ["runnerctl", "runnerctl --help", "runnerctl status --version", "runnerctl --unknown"] {
            assert!(parse_version_flag(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn only_the_words_of_a_command_that_is_set_have_options_of_their_own() {
        let separate = |line: &str| {
            let words = separate_command_words(line.split_whitespace().map(OsString::from).collect());
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        for (line, separated) in [
            ("runnerctl config set guard.command pytest -q", "runnerctl config set guard.command -- pytest -q"),
            ("runnerctl config set hooks.on_stuck mail -s x", "runnerctl config set hooks.on_stuck -- mail -s x"),
        ] {
            assert_eq!(separate(line), separated);
        }
        for line in [
            "runnerctl config set max_iterations 3 --json",
            "runnerctl config set guard.command [\"make\"] --run x",
            "runnerctl config set guard.command --default",
            "runnerctl config set guard.command -- make -k",
        ] {
            assert_eq!(separate(line), line);
        }
        assert!(parse("runnerctl config set max_iterations 3 --json --run x").expect("it is parsed").global.json);
    }

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn a_word_that_is_no_number_is_called_that() {
        let error = parse("runnerctl gc --keep abc").expect_err("it is no number");
        assert_eq!(first_error_line(&error), "invalid value 'abc' for '--keep <N>': it is not a whole number");
        let error = parse("runnerctl gc --keep 99999999999").expect_err("it is too large");
        assert!(!first_error_line(&error).contains("type"), "{error}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_visible_command_has_examples() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(examples.starts_with("Examples:\n"), "`{}` has no examples", command.get_name());
            assert!(examples.contains(&format!("runnerctl {}", command.get_name())), "`{}`", command.get_name());
        }
    }

    #[test]
    fn examples_can_be_typed() {
        for command in Cli::command().get_subcommands() {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in examples.lines().filter_map(|line| line.trim().strip_prefix("runnerctl ")) {
                let typed = format!("runnerctl {}", line.split("  ").next().unwrap_or(line));
                let parsed = Cli::try_parse_from(split_words(&typed));
                assert!(parsed.is_ok(), "{line}: {}", parsed.err().map(|error| error.to_string()).unwrap_or_default());
            }
        }
    }

    #[test]
    fn the_help_of_every_command_fits_a_terminal_and_is_as_it_was_last_read() {
        fn read(command: &clap::Command, pages: &mut Vec<(String, String)>) {
            let name = command.get_bin_name().unwrap_or("runnerctl").replace(' ', "-");
            pages.push((name, crate::commands::help::render_command_help(command.clone().term_width(80)).to_string()));
            let subcommands =
                command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
            subcommands.for_each(|below| read(below, pages));
        }
        let mut all = Vec::new();
        read(&build_parser(), &mut all);
        for (name, page) in all {
            let longest = page.lines().map(|line| line.chars().count()).max().unwrap_or_default();
            assert!(longest <= 80, "{name} has a line of {longest} columns:\n{page}");
            insta::with_settings!({ snapshot_path => "commands/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!(name, page);
            });
        }
    }

    #[test]
    fn lines_of_examples_fit_a_terminal_as_they_are_written() {
        let mut long = Vec::new();
        for command in Cli::command().get_subcommands() {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            long.extend(examples.lines().filter(|line| line.chars().count() > 79).map(str::to_owned));
        }
        assert!(long.is_empty(), "{}", long.join("\n"));
    }

    #[test]
    fn a_command_alone_is_understood_as_among_all() {
        let lines = [
            "runnerctl --json status /p --no-spawn",
            "runnerctl -C log status --all",
            "runnerctl status",
            "runnerctl status --all /p",
            "runnerctl --nonsense status",
            "runnerctl config set a.b 1",
            "runnerctl repos remove /p",
            "runnerctl help status",
            "runnerctl -V status",
            "runnerctl status --help",
            "runnerctl",
        ];
        for line in lines {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let alone = parse_single_command(&words);
            let among_all = parse(line).ok();
            // `log` is taken for the command first, and `status` then found among all.
            let alone = if line.contains("-C log") { alone.or(parse(line).ok()) } else { alone };
            assert_eq!(format!("{alone:?}"), format!("{among_all:?}"), "{line}");
        }
    }

    #[test]
    fn options_for_every_command_stand_on_either_side() {
        let cli = parse("runnerctl --json status /p --no-spawn").expect("parses");
        assert!(cli.global.json && cli.global.no_spawn);
    }

    #[test]
    fn a_goal_is_a_file_or_a_text_and_not_both() {
        assert!(parse("runnerctl start --goal a.md -m text").is_err());
        assert!(parse("runnerctl start --queue-only --wait").is_err());
    }

    #[test]
    fn an_iteration_may_be_written_with_its_zeros() {
        let cli = parse("runnerctl log 0003 --guard").expect("parses");
        assert!(matches!(cli.command, Command::Log(args) if args.what == "3".parse().ok()));
        assert!(parse("runnerctl log 3 --guard --agent").is_err());
    }
}
