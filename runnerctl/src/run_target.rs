//! Decides what `[RUN|PATH]` means: the only place that does, for every command about a run.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use protocol::api::RunApiClient;
use protocol::path::WirePath;
use protocol::request::{AtPath, AtRun};
use protocol::view::RunSummary;

use crate::confirm::ask_choice;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::sanitize::sanitize;

/// Number of runs that are named to someone who has mistyped one.
const NAMED_RUNS: usize = 10;

/// The run that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunTarget {
    /// Run id or a unique prefix, or any path in the repository [default: the one run here that has not ended, else the last]
    #[arg(value_name = "RUN|PATH")]
    pub(crate) target: Option<PathBuf>,
    /// Run id or a unique prefix; the other argument is then a path
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) run: Option<String>,
}

impl RunTarget {
    /// Returns the target that a word names.
    pub(crate) fn from_word(word: impl Into<PathBuf>) -> Self {
        Self { target: Some(word.into()), run: None }
    }

    /// Returns the target with this id in the current repository.
    pub(crate) fn from_id(run: String) -> Self {
        Self { target: None, run: Some(run) }
    }

    /// Whether nothing is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.target.is_none() && self.run.is_none()
    }

    /// Returns the target with the id of a run that is named by its branch.
    fn without_branch(self) -> Self {
        let run = self.run.map(|run| to_run_name(Path::new(&run)).unwrap_or(&run).to_owned());
        Self { run, ..self }
    }

    /// Asks the daemon which run or repository the arguments select.
    ///
    /// Only the daemon can say whether a path exists, since the path is on its machine.
    pub(crate) async fn resolve<C: RunApiClient + Sync>(
        self,
        invocation: &Invocation<'_>,
        client: &C,
    ) -> Result<AtRun, Failure> {
        let Self { target, run } = self.without_branch();
        let Some(word) = target else { return Ok(AtRun { path: invocation.daemon_path(None)?, run }) };
        let Some(name) = to_run_name(&word).filter(|_| run.is_none()) else {
            return Ok(AtRun { path: invocation.daemon_path(Some(&word))?, run });
        };
        let is_path = is_local_path(invocation, &word)?;
        // If no repository is named, a word can only be a path.
        let Ok(folder) = invocation.daemon_path(None) else {
            return Ok(AtRun { path: invocation.daemon_path(Some(&word))?, run });
        };
        let known = list_ids(client, &folder, name).await;
        let mut matching = known.iter().filter(|id| id.starts_with(name));
        let exact = known.iter().find(|id| *id == name);
        let run = match (exact, matching.next(), matching.next()) {
            (Some(id), ..) | (None, Some(id), None) => Some(id.clone()),
            // The daemon names the runs of an ambiguous prefix.
            (None, Some(_), Some(_)) => Some(name.to_owned()),
            (None, None, _) => None,
        };
        match (is_path, run) {
            (true, None) => Ok(AtRun { path: invocation.daemon_path(Some(&word))?, run: None }),
            (false, Some(run)) => Ok(AtRun { path: folder, run: Some(run) }),
            (true, Some(run)) => {
                let word = word.display();
                let failure = Failure::usage(format!("`{word}` is a path, and run {run} has that name too"));
                Err(failure.hint(format!("write ./{word} for the path, or: --run {run}")))
            }
            (false, None) => Err(unknown_target(name, &known)),
        }
    }

    /// Refuses a text that is the id of a run, if no run is named: the person has left the text out.
    pub(crate) async fn refuse_run_as_text<C: RunApiClient + Sync>(
        &self,
        invocation: &Invocation<'_>,
        client: &C,
        text: &str,
    ) -> Result<(), Failure> {
        let is_word = self.is_empty() && !text.contains(char::is_whitespace);
        let Some(id) = to_run_name(Path::new(text)).filter(|_| is_word) else { return Ok(()) };
        // If runs cannot be listed, the command itself reports why.
        let known = client.list(AtPath { path: invocation.daemon_path(None)? }).await.unwrap_or_default();
        if !known.iter().any(|run| run.id == id) {
            return Ok(());
        }
        let failure = Failure::usage(format!("`{id}` is a run, and no text is given"));
        Err(failure.hint(format!("give the text first, then {id}")))
    }

    /// Asks the daemon which run is meant; of several that have not ended, the user chooses one on a terminal.
    pub(crate) async fn resolve_one<C: RunApiClient + Sync>(
        self,
        invocation: &Invocation<'_>,
        client: &C,
    ) -> Result<AtRun, Failure> {
        let at = self.resolve(invocation, client).await?;
        if at.run.is_some() || !invocation.ui.can_ask() {
            return Ok(at);
        }
        // A request that fails here fails again, with the daemon's reason.
        let mut runs = client.list(AtPath { path: at.path.clone() }).await.unwrap_or_default();
        runs.retain(|run| !run.state.is_terminal());
        if runs.len() < 2 {
            return Ok(at);
        }
        Ok(AtRun { run: Some(choose_run(runs)?), ..at })
    }

    /// Returns the path and the run if no daemon can be asked, as for a remote: a word that is not a path names a run.
    pub(crate) fn split(self, invocation: &Invocation<'_>) -> Result<(Option<PathBuf>, Option<String>), Failure> {
        let Self { target, run } = self.without_branch();
        let Some(word) = target else { return Ok((None, run)) };
        match to_run_name(&word) {
            Some(name) if run.is_none() && !is_local_path(invocation, &word)? => Ok((None, Some(name.to_owned()))),
            _ => Ok((Some(word), run)),
        }
    }
}

/// Asks the user for one of several runs, and returns its id.
pub(crate) fn choose_run(runs: Vec<RunSummary>) -> Result<String, Failure> {
    let rows: Vec<String> = runs.iter().map(|run| sanitize(&format!("{}  {}", run.id, run.state))).collect();
    let chosen = ask_choice("Which run?", &rows)?.and_then(|index| runs.into_iter().nth(index));
    let run = chosen.ok_or_else(|| Failure::usage("no run was chosen").hint("name it with --run"))?;
    Ok(run.id)
}

/// Returns the run that a word can name, as its id or as its branch, `runner/ID`: any other word with a slash is a path,
/// and so are `.` and `..`.
pub(crate) fn to_run_name(word: &Path) -> Option<&str> {
    let word = word.to_str()?;
    let id = word.strip_prefix("runner/").filter(|id| !id.is_empty()).unwrap_or(word);
    (!id.contains('/') && !matches!(id, "." | "..")).then_some(id)
}

/// Whether a word names something on this machine; on another one, only absolute paths do.
pub(crate) fn is_local_path(invocation: &Invocation<'_>, word: &Path) -> Result<bool, Failure> {
    Ok(invocation.host.is_none() && invocation.resolve_local(Some(word))?.symlink_metadata().is_ok())
}

/// Returns the ids of the runs of a repository; of a clone that the daemon does not know, those of its branches.
async fn list_ids<C: RunApiClient + Sync>(client: &C, folder: &WirePath, name: &str) -> Vec<String> {
    let runs = client.list(AtPath { path: folder.clone() }).await.unwrap_or_default();
    let ids: Vec<String> = runs.into_iter().map(|run| run.id).collect();
    if ids.iter().any(|id| id.starts_with(name)) {
        return ids;
    }
    let branches =
        client.branches(AtRun { path: folder.clone(), run: Some(name.to_owned()) }).await.unwrap_or_default();
    branches.into_iter().map(|branch| branch.run).chain(ids).collect()
}

fn unknown_target(name: &str, known: &[String]) -> Failure {
    let failure = Failure::usage(format!("`{name}` is neither a run of this repository nor a path"));
    if known.is_empty() {
        return failure.hint("there is no run here yet: runnerctl start -m 'What is to be true'");
    }
    let more = if known.len() > NAMED_RUNS { ", …" } else { "" };
    let named: Vec<&str> = known.iter().rev().take(NAMED_RUNS).map(String::as_str).collect();
    failure.hint(format!(
        "name one of its runs with --run: {}{more}; a new goal is given with: runnerctl start -m",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_slash_is_a_path_and_a_dot_is_the_folder() {
        let name = |word: &'static str| to_run_name(Path::new(word));
        assert_eq!((name("tidy"), name("port-1.2"), name("..a")), (Some("tidy"), Some("port-1.2"), Some("..a")));
        assert_eq!((name("runner/tidy"), name("runner")), (Some("tidy"), Some("runner")), "a branch names its run");
        let paths = [".", "..", "./tidy", "/p", "tidy/", "a/b", "runner/", "runner/..", "runner/a/b", "./runner/a"];
        assert!(paths.into_iter().all(|word| name(word).is_none()));
    }

    #[test]
    fn who_mistypes_a_run_is_told_which_there_are() {
        let text = |known: &[String]| match unknown_target("mistake", known) {
            Failure::Report(report) => format!("{}\n{}", report.message, report.hint.unwrap_or_default()),
            Failure::BrokenPipe => String::new(),
        };
        insta::assert_snapshot!(text(&["port".into(), "tidy-2".into()]), @r"
        `mistake` is neither a run of this repository nor a path
        name one of its runs with --run: tidy-2, port; a new goal is given with: runnerctl start -m
        ");
        insta::assert_snapshot!(text(&[]), @r"
        `mistake` is neither a run of this repository nor a path
        there is no run here yet: runnerctl start -m 'What is to be true'
        ");
    }
}
