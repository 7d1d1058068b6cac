//! Shell completion for ids, paths and keys: queries a running daemon, within a second and silently.
//!
//! A shell calls this program with `COMPLETE` set, through the script of `runnerctl completions`; the program then does
//! nothing else. It starts no daemon, and offers nothing for what it cannot find out.

use std::env;
use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Command, CommandFactory as _};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _};
use clap_complete::env::CompleteEnv;
use protocol::api::{
    ConfigApiClient as _, IterationApiClient, QuestionApiClient as _, RepoApiClient, RunApiClient, TreeApiClient,
};
use protocol::client::{ConnectOptions, Connection};
use protocol::host::{HOST_VARIABLE, Host, HostError};
use protocol::path::WirePath;
use protocol::request::{AtPath, AtRun, AtSettings, QuestionsParams};
use protocol::tree::Node;
use protocol::view::{IterationView, RepoView};

use crate::args::Cli;
use crate::settings::{HostUrl, Settings};
use crate::text::sanitize::sanitize;

/// Longest wait for the daemon: the user has pressed Tab.
const TIMEOUT: Duration = Duration::from_millis(800);

/// A value and its description.
type CompletionValue = (String, String);

/// Answers a shell's completion request, if this is one; returns whether it was.
pub(crate) fn run_completion() -> clap::error::Result<bool> {
    let folder = env::current_dir().ok();
    CompleteEnv::with_factory(|| add_completers(Cli::command())).try_complete(env::args_os(), folder.as_deref())
}

/// Attaches completers to the arguments.
fn add_completers(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_args(|arg| add_completer(&name, arg)).mut_subcommands(add_completers)
}

fn add_completer(command: &str, arg: Arg) -> Arg {
    let completer = match (command, arg.get_id().as_str()) {
        ("log" | "export", "what") => ArgValueCompleter::new(complete_records),
        (_, "target" | "targets") => ArgValueCompleter::new(complete_targets),
        (_, "run") => ArgValueCompleter::new(|typed: &OsStr| complete_from_daemon(typed, list_runs)),
        ("repos", "remove") => ArgValueCompleter::new(|typed: &OsStr| complete_from_daemon(typed, list_repositories)),
        (_, "path") => ArgValueCompleter::new(complete_paths),
        (_, "host") => ArgValueCompleter::new(complete_hosts),
        (_, "node" | "parent" | "after") => {
            ArgValueCompleter::new(|typed: &OsStr| complete_from_daemon(typed, list_open_nodes))
        }
        (_, "iter" | "from") => ArgValueCompleter::new(|typed: &OsStr| complete_from_daemon(typed, list_iterations)),
        ("answer", "id") => ArgValueCompleter::new(|typed: &OsStr| complete_from_daemon(typed, list_questions)),
        ("get" | "set", "key") => ArgValueCompleter::new(|typed: &OsStr| complete_from_daemon(typed, list_config_keys)),
        ("set", "value") => ArgValueCompleter::new(|typed: &OsStr| complete_from_daemon(typed, list_config_values)),
        ("help", "topic") => ArgValueCompleter::new(complete_topics),
        _ => return arg,
    };
    arg.add(completer)
}

/// Returns folders, and the repositories that the daemon knows.
fn complete_paths(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = PathCompleter::dir().complete(typed);
    all.extend(complete_from_daemon(typed, list_repositories));
    all
}

fn complete_targets(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = complete_from_daemon(typed, list_runs);
    all.extend(complete_paths(typed));
    all
}

/// Returns the machines named in the client's settings.
fn complete_hosts(typed: &OsStr) -> Vec<CompletionCandidate> {
    let known = Settings::load().map(|settings| settings.hosts).unwrap_or_default();
    filter_candidates(typed, known.into_iter().map(|(name, HostUrl(host))| (name, host.to_string())))
}

fn complete_records(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = complete_from_daemon(typed, list_iterations);
    all.extend(complete_from_daemon(typed, list_runs));
    all
}

fn complete_topics(typed: &OsStr) -> Vec<CompletionCandidate> {
    let command = Cli::command();
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    let about = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    let topics = commands.map(|command| (command.get_name().to_owned(), about(command)));
    let tables = [
        ("states", "What each state of a run means"),
        ("environment", "The variables that are read"),
        ("exit-codes", "How commands end"),
    ];
    let tables = tables.map(|(topic, about)| (topic.to_owned(), about.to_owned()));
    filter_candidates(typed, topics.chain(tables))
}

/// Queries the daemon and returns the values that start with what was typed.
fn complete_from_daemon<F>(typed: &OsStr, ask: impl FnOnce(CompletionContext) -> F) -> Vec<CompletionCandidate>
where
    F: Future<Output = Option<Vec<CompletionValue>>>,
{
    let Ok(runtime) = crate::build_runtime() else { return Vec::new() };
    let answer = runtime.block_on(async {
        tokio::time::timeout(TIMEOUT, async { ask(CompletionContext::connect().await?).await }).await.ok().flatten()
    });
    filter_candidates(typed, answer.unwrap_or_default().into_iter())
}

fn filter_candidates(typed: &OsStr, values: impl Iterator<Item = CompletionValue>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let matching = values.filter(|(value, _)| value.starts_with(&*typed));
    let help = |text: &str| (!text.is_empty()).then(|| sanitize(text).into());
    matching.map(|(value, text)| CompletionCandidate::new(sanitize(&value)).help(help(&text))).collect()
}

/// A running daemon, and what the command line names so far.
struct CompletionContext {
    connection: Connection,
    path: WirePath,
    run: Option<String>,
    /// The key after `config set`.
    key: Option<String>,
}

impl CompletionContext {
    async fn connect() -> Option<Self> {
        let argv: Vec<OsString> = env::args_os().skip_while(|word| word != "--").collect();
        let named_path = |option: &str| option_value(&argv, option).map(PathBuf::from);
        let absolute = |path: PathBuf| std::path::absolute(path).ok();
        let options = ConnectOptions {
            host: parse_host(option_value(&argv, "--host")).ok()?,
            unattended: true,
            socket: named_path("--socket").and_then(absolute),
            client_name: "runnerctl".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ..ConnectOptions::default()
        };
        Some(Self {
            connection: Connection::open(&options).await.ok()?,
            path: WirePath(absolute(named_path("-C").unwrap_or_else(|| ".".into()))?),
            run: option_value(&argv, "--run").map(|run| run.to_string_lossy().into_owned()),
            key: config_key(&argv),
        })
    }

    fn at_run(&self) -> AtRun {
        AtRun { path: self.path.clone(), run: self.run.clone() }
    }
}

/// Returns the machine named on the command line, else by the variable, if any.
fn parse_host(name: Option<OsString>) -> Result<Option<Host>, HostError> {
    let named = name.or_else(|| env::var_os(HOST_VARIABLE)).filter(|named| !named.is_empty());
    let Some(named) = named else { return Ok(None) };
    let named = named.to_string_lossy();
    match Settings::load().ok().and_then(|mut settings| settings.hosts.remove(&*named)) {
        Some(HostUrl(host)) => Ok(Some(host)),
        None => named.parse().map(Some),
    }
}

/// Returns the value of an option on a command line, as `--option value` or `--option=value`.
fn option_value(argv: &[OsString], option: &str) -> Option<OsString> {
    let mut inline = argv.iter().rev().filter_map(|word| word.to_str()?.strip_prefix(option)?.strip_prefix('='));
    let mut separate = argv.windows(2).rev().filter(|pair| pair[0] == option).map(|pair| pair[1].clone());
    let value = separate.next().or_else(|| inline.next().map(OsString::from));
    value.filter(|value| !value.is_empty())
}

/// Returns the key to be set on a command line.
fn config_key(argv: &[OsString]) -> Option<String> {
    let following = argv.iter().skip_while(|word| *word != "set").skip(1).filter_map(|word| word.to_str());
    following.filter(|word| !word.starts_with('-')).map(str::to_owned).next()
}

async fn list_repositories(context: CompletionContext) -> Option<Vec<CompletionValue>> {
    let repos = RepoApiClient::list(context.connection.client()).await.ok()?;
    let state = |repo: &RepoView| repo.queue.first().map_or("idle", |run| run.state.as_str()).to_owned();
    Some(repos.iter().map(|repo| (repo.path.to_string(), state(repo))).collect())
}

async fn list_runs(context: CompletionContext) -> Option<Vec<CompletionValue>> {
    let runs = RunApiClient::list(context.connection.client(), AtPath { path: context.path }).await.ok()?;
    Some(runs.into_iter().map(|run| (run.id, run.state.as_str().to_owned())).collect())
}

async fn list_iterations(context: CompletionContext) -> Option<Vec<CompletionValue>> {
    let all = IterationApiClient::list(context.connection.client(), context.at_run()).await.ok()?;
    let to_value = |iter: &IterationView| (iter.iter.to_string(), format!("{} {}", iter.node, iter.verdict.as_str()));
    Some(all.iter().filter(|iter| iter.wait.is_none()).map(to_value).collect())
}

/// Returns the nodes that do not pass: the others never change.
async fn list_open_nodes(context: CompletionContext) -> Option<Vec<CompletionValue>> {
    let reply = TreeApiClient::get(context.connection.client(), context.at_run()).await.ok()?;
    let mut open = Vec::new();
    collect_open_nodes(&reply.tree.root, &mut open);
    Some(open)
}

fn collect_open_nodes(node: &Node, open: &mut Vec<CompletionValue>) {
    if !node.passes {
        open.push((node.id.clone(), node.title.clone()));
        node.children.iter().for_each(|child| collect_open_nodes(child, open));
    }
}

async fn list_questions(context: CompletionContext) -> Option<Vec<CompletionValue>> {
    let open = context.connection.client().questions(QuestionsParams { path: None, all: false }).await.ok()?;
    Some(open.into_iter().map(|question| (question.id, question.text)).collect())
}

async fn list_config_keys(context: CompletionContext) -> Option<Vec<CompletionValue>> {
    let reply = context.connection.client().show(AtSettings { path: context.path, defaults: None }).await.ok()?;
    Some(reply.settings.into_iter().map(|setting| (setting.key, setting.value.unwrap_or_default())).collect())
}

/// Returns the possible values of a key, and its current one.
async fn list_config_values(context: CompletionContext) -> Option<Vec<CompletionValue>> {
    let key = context.key?;
    let reply = context.connection.client().show(AtSettings { path: context.path, defaults: None }).await.ok()?;
    let setting = reply.settings.into_iter().find(|setting| setting.key == key)?;
    let current = setting.value.unwrap_or_default();
    let about = |word: &str| if word == current.trim_matches('"') { "now".to_owned() } else { String::new() };
    let mut offers: Vec<CompletionValue> = setting.choices.iter().map(|word| (word.clone(), about(word))).collect();
    if offers.is_empty() && !current.is_empty() {
        offers.push((current, "now".to_owned()));
    }
    Some(offers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_a_line_has_its_last_value() {
        let words = ["--", "runnerctl", "-C", "/a", "--run=r1", "-C", "/b", "--socket"].map(OsString::from);
        assert_eq!(option_value(&words, "-C"), Some("/b".into()));
        assert_eq!(option_value(&words, "--run"), Some("r1".into()));
        assert_eq!(option_value(&words, "--socket"), None);
        let words = ["--", "runnerctl", "config", "set", "--run", "guard.command", ""].map(OsString::from);
        assert_eq!(config_key(&words).as_deref(), Some("guard.command"));
    }

    #[test]
    fn every_argument_that_names_something_of_the_daemons_is_completed() {
        let mut names = Vec::new();
        collect_completed(&add_completers(Cli::command()), &mut names);
        for word in [
            "status target",
            "land targets",
            "gc path",
            "status run",
            "log what",
            "retry node",
            "answer id",
            "export what",
            "set key",
        ] {
            assert!(names.iter().any(|name| name == word), "{word}: {names:?}");
        }
    }

    fn collect_completed(command: &Command, names: &mut Vec<String>) {
        let completed = command.get_arguments().filter(|arg| arg.get::<ArgValueCompleter>().is_some());
        names.extend(completed.map(|arg| format!("{} {}", command.get_name(), arg.get_id())));
        command.get_subcommands().for_each(|command| collect_completed(command, names));
    }

    #[test]
    fn values_are_offered_by_their_beginning_and_harmless() {
        let offers = [("run-1", "completed"), ("run-2\u{1b}[2J", ""), ("other", "")];
        let offers = offers.map(|(value, text)| (value.to_owned(), text.to_owned()));
        let found = filter_candidates(OsStr::new("run"), offers.into_iter());
        let values: Vec<_> = found.iter().map(|found| found.get_value().to_string_lossy()).collect();
        assert_eq!(values, ["run-1", "run-2␛[2J"]);
    }
}
