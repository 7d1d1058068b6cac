//! `repos`: lists the repositories known to the daemon.

use clap::Args;
use protocol::api::RepoApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::RemoveParams;
use protocol::view::RepoView;
use serde::Serialize;
use std::path::PathBuf;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::paint::WARN;
use crate::text::run::state_cell;
use crate::text::sanitize::sanitize;
use crate::text::screen::Screen;
use crate::text::table::{Table, TableCell};

const EXAMPLES: &str = "Examples:
  runnerctl repos
  runnerctl repos --remove ~/old            forget one; its files are kept
  runnerctl repos --remove ~/old --force    a lost one, with its runs";

/// List known repositories
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReposArgs {
    /// Forget the repository at PATH; its files are kept
    #[arg(long, value_name = "PATH")]
    remove: Option<PathBuf>,

    /// Also forget the isolated runs of a missing repository; their workspaces are kept
    #[arg(long, requires = "remove")]
    force: bool,
}

#[derive(Serialize)]
struct RepoList<'a> {
    repos: &'a [RepoView],
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ReposArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    if let Some(path) = &args.remove {
        let path = invocation.daemon_path(Some(path))?;
        let repo = connection.client().remove(RemoveParams { path, force: args.force }).await?;
        let text = format!("forgot {}\n", sanitize(&repo.path.to_string()));
        invocation.ui.print_answer("repo", &repo, |_| text)?;
        return Ok(ExitStatus::Success);
    }
    let repos = connection.client().list().await?;
    invocation.ui.print_answer("repos", &RepoList { repos: &repos }, |screen| render(&repos, screen))?;
    if repos.is_empty() {
        invocation.ui.print_note("No repositories. Add one: runnerctl start PATH\n");
    }
    Ok(ExitStatus::Success)
}

fn render(repos: &[RepoView], screen: &Screen) -> String {
    let mut table = Table::with_heading(["REPO", "STATE", "RUNS", "PATH"]).shrinking(3);
    for repo in repos {
        let state = match (&repo.held, repo.queue.first()) {
            (Some(_), _) => TableCell::styled(WARN, "held"),
            (None, Some(run)) => state_cell(run),
            (None, None) => "idle".into(),
        };
        // The workspace of an isolated run is indented below its repository.
        let path = format!("{}{}", if repo.source_id.is_some() { "  " } else { "" }, repo.path);
        table.add_row([TableCell::from(&repo.id), state, repo.queue.len().to_string().into(), path.into()]);
    }
    if repos.is_empty() { String::new() } else { table.render(screen, 0) }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;
    use crate::text::samples;

    #[test]
    fn a_repository_has_the_state_of_its_first_run() {
        let mut idle = samples::repo();
        idle.queue.clear();
        let repos = [samples::repo(), idle];
        insta::assert_snapshot!(strip_str(&render(&repos, &Screen::fixed())), @r"
        REPO      STATE    RUNS  PATH
        9f86d081  running  1     /home/me/proj
        9f86d081  idle     0     /home/me/proj
        ");
    }
}
