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
use protocol::request::{AtPath, AtRun, QuestionsParams};
use protocol::tree::Node;
use protocol::view::{IterationView, RepoView};

use crate::args::Cli;
use crate::settings::{HostUrl, Settings};
use crate::text::sanitize::safe;

/// Longest wait for the daemon: the user has pressed Tab.
const LIMIT: Duration = Duration::from_millis(800);

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
        (_, "run") => ArgValueCompleter::new(|typed: &OsStr| offered(typed, runs)),
        ("repos", "remove") => ArgValueCompleter::new(|typed: &OsStr| offered(typed, repositories)),
        (_, "path") => ArgValueCompleter::new(places),
        (_, "host") => ArgValueCompleter::new(hosts),
        (_, "node" | "parent" | "after") => ArgValueCompleter::new(|typed: &OsStr| offered(typed, nodes)),
        (_, "iter" | "from") => ArgValueCompleter::new(|typed: &OsStr| offered(typed, iterations)),
        ("export", "what") => ArgValueCompleter::new(iterations_and_runs),
        ("answer", "id") => ArgValueCompleter::new(|typed: &OsStr| offered(typed, questions)),
        ("get" | "set", "key") => ArgValueCompleter::new(|typed: &OsStr| offered(typed, keys)),
        ("set", "value") => ArgValueCompleter::new(|typed: &OsStr| offered(typed, values)),
        ("help", "topic") => ArgValueCompleter::new(topics),
        _ => return arg,
    };
    arg.add(completer)
}

/// Returns folders, and the repositories that the daemon knows.
fn places(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = PathCompleter::dir().complete(typed);
    all.extend(offered(typed, repositories));
    all
}

/// Returns the machines named in the client's settings.
fn hosts(typed: &OsStr) -> Vec<CompletionCandidate> {
    let known = Settings::load().map(|settings| settings.hosts).unwrap_or_default();
    candidates(typed, known.into_iter().map(|(name, HostUrl(host))| (name, host.to_string())))
}

fn iterations_and_runs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = offered(typed, iterations);
    all.extend(offered(typed, runs));
    all
}

fn topics(typed: &OsStr) -> Vec<CompletionCandidate> {
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
    candidates(typed, topics.chain(tables))
}

/// Queries the daemon and returns the values that start with what was typed.
fn offered<F>(typed: &OsStr, ask: impl FnOnce(CompletionContext) -> F) -> Vec<CompletionCandidate>
where
    F: Future<Output = Option<Vec<CompletionValue>>>,
{
    let Ok(runtime) = crate::runtime() else { return Vec::new() };
    let answer = runtime.block_on(async {
        tokio::time::timeout(LIMIT, async { ask(CompletionContext::connect().await?).await }).await.ok().flatten()
    });
    candidates(typed, answer.unwrap_or_default().into_iter())
}

fn candidates(typed: &OsStr, offers: impl Iterator<Item = CompletionValue>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let fitting = offers.filter(|(value, _)| value.starts_with(&*typed));
    let help = |text: &str| (!text.is_empty()).then(|| safe(text).into());
    fitting.map(|(value, text)| CompletionCandidate::new(safe(&value)).help(help(&text))).collect()
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
        let words: Vec<OsString> = env::args_os().skip_while(|word| word != "--").collect();
        let named = |option: &str| value_of(&words, option).map(PathBuf::from);
        let absolute = |path: PathBuf| std::path::absolute(path).ok();
        let options = ConnectOptions {
            host: host(value_of(&words, "--host")).ok()?,
            unattended: true,
            socket: named("--socket").and_then(absolute),
            client_name: "runnerctl".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ..ConnectOptions::default()
        };
        Some(Self {
            connection: Connection::open(&options).await.ok()?,
            path: WirePath(absolute(named("-C").unwrap_or_else(|| ".".into()))?),
            run: value_of(&words, "--run").map(|run| run.to_string_lossy().into_owned()),
            key: key_of(&words),
        })
    }

    fn at_run(&self) -> AtRun {
        AtRun { path: self.path.clone(), run: self.run.clone() }
    }
}

/// Returns the machine named on the command line, else by the variable, if any.
fn host(named: Option<OsString>) -> Result<Option<Host>, HostError> {
    let named = named.or_else(|| env::var_os(HOST_VARIABLE)).filter(|named| !named.is_empty());
    let Some(named) = named else { return Ok(None) };
    let named = named.to_string_lossy();
    match Settings::load().ok().and_then(|mut settings| settings.hosts.remove(&*named)) {
        Some(HostUrl(host)) => Ok(Some(host)),
        None => named.parse().map(Some),
    }
}

/// Returns the value of an option on a command line, as `--option value` or `--option=value`.
fn value_of(words: &[OsString], option: &str) -> Option<OsString> {
    let mut beside = words.iter().rev().filter_map(|word| word.to_str()?.strip_prefix(option)?.strip_prefix('='));
    let mut behind = words.windows(2).rev().filter(|pair| pair[0] == option).map(|pair| pair[1].clone());
    let value = behind.next().or_else(|| beside.next().map(OsString::from));
    value.filter(|value| !value.is_empty())
}

/// Returns the key to be set on a command line.
fn key_of(words: &[OsString]) -> Option<String> {
    let behind = words.iter().skip_while(|word| *word != "set").skip(1).filter_map(|word| word.to_str());
    behind.filter(|word| !word.starts_with('-')).map(str::to_owned).next()
}

async fn repositories(asked: CompletionContext) -> Option<Vec<CompletionValue>> {
    let repos = RepoApiClient::list(asked.connection.client()).await.ok()?;
    let state = |repo: &RepoView| repo.queue.first().map_or("idle", |run| run.state.as_str()).to_owned();
    Some(repos.iter().map(|repo| (repo.path.to_string(), state(repo))).collect())
}

async fn runs(asked: CompletionContext) -> Option<Vec<CompletionValue>> {
    let runs = RunApiClient::list(asked.connection.client(), AtPath { path: asked.path }).await.ok()?;
    Some(runs.into_iter().map(|run| (run.id, run.state.as_str().to_owned())).collect())
}

async fn iterations(asked: CompletionContext) -> Option<Vec<CompletionValue>> {
    let all = IterationApiClient::list(asked.connection.client(), asked.at_run()).await.ok()?;
    let offer = |iter: &IterationView| (iter.iter.to_string(), format!("{} {}", iter.node, iter.verdict.as_str()));
    Some(all.iter().filter(|iter| iter.wait.is_none()).map(offer).collect())
}

/// Returns the nodes that do not pass: the others never change.
async fn nodes(asked: CompletionContext) -> Option<Vec<CompletionValue>> {
    let reply = TreeApiClient::get(asked.connection.client(), asked.at_run()).await.ok()?;
    let mut open = Vec::new();
    collect(&reply.tree.root, &mut open);
    Some(open)
}

fn collect(node: &Node, open: &mut Vec<CompletionValue>) {
    if !node.passes {
        open.push((node.id.clone(), node.title.clone()));
        node.children.iter().for_each(|child| collect(child, open));
    }
}

async fn questions(asked: CompletionContext) -> Option<Vec<CompletionValue>> {
    let open = asked.connection.client().questions(QuestionsParams { path: None, all: false }).await.ok()?;
    Some(open.into_iter().map(|question| (question.id, question.text)).collect())
}

async fn keys(asked: CompletionContext) -> Option<Vec<CompletionValue>> {
    let reply = asked.connection.client().show(AtPath { path: asked.path }).await.ok()?;
    Some(reply.settings.into_iter().map(|setting| (setting.key, setting.value.unwrap_or_default())).collect())
}

/// Returns the possible values of a key, and its current one.
async fn values(asked: CompletionContext) -> Option<Vec<CompletionValue>> {
    let key = asked.key?;
    let reply = asked.connection.client().show(AtPath { path: asked.path }).await.ok()?;
    let setting = reply.settings.into_iter().find(|setting| setting.key == key)?;
    let now = setting.value.unwrap_or_default();
    let about = |word: &str| if word == now.trim_matches('"') { "now".to_owned() } else { String::new() };
    let mut offers: Vec<CompletionValue> = setting.choices.iter().map(|word| (word.clone(), about(word))).collect();
    if offers.is_empty() && !now.is_empty() {
        offers.push((now, "now".to_owned()));
    }
    Some(offers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_a_line_has_its_last_value() {
        let words = ["--", "runnerctl", "-C", "/a", "--run=r1", "-C", "/b", "--socket"].map(OsString::from);
        assert_eq!(value_of(&words, "-C"), Some("/b".into()));
        assert_eq!(value_of(&words, "--run"), Some("r1".into()));
        assert_eq!(value_of(&words, "--socket"), None);
        let words = ["--", "runnerctl", "config", "set", "--run", "guard.command", ""].map(OsString::from);
        assert_eq!(key_of(&words).as_deref(), Some("guard.command"));
    }

    #[test]
    fn every_argument_that_names_something_of_the_daemons_is_completed() {
        let mut names = Vec::new();
        list(&add_completers(Cli::command()), &mut names);
        for wanted in ["status path", "status run", "log iter", "retry node", "answer id", "export what", "set key"] {
            assert!(names.iter().any(|name| name == wanted), "{wanted}: {names:?}");
        }
    }

    fn list(command: &Command, names: &mut Vec<String>) {
        let completed = command.get_arguments().filter(|arg| arg.get::<ArgValueCompleter>().is_some());
        names.extend(completed.map(|arg| format!("{} {}", command.get_name(), arg.get_id())));
        command.get_subcommands().for_each(|command| list(command, names));
    }

    #[test]
    fn values_are_offered_by_their_beginning_and_harmless() {
        let offers = [("run-1", "completed"), ("run-2\u{1b}[2J", ""), ("other", "")];
        let offers = offers.map(|(value, text)| (value.to_owned(), text.to_owned()));
        let found = candidates(OsStr::new("run"), offers.into_iter());
        let values: Vec<_> = found.iter().map(|found| found.get_value().to_string_lossy()).collect();
        assert_eq!(values, ["run-1", "run-2␛[2J"]);
    }
}
