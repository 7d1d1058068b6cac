//! `init`: creates `.runner/` in a repository.

use std::fmt::Write as _;

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;
use protocol::reply::InitReply;
use protocol::request::InitParams;

use crate::args::RepoTarget;
use crate::detection::{Asker, choose_settings};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::sanitize::sanitize;

const EXAMPLES: &str = "Examples:
  runnerctl init                    in this repository
  runnerctl init --yes              with the detected guard and agent
  runnerctl init ~/proj --force     overwrite existing files";

/// Create `.runner/`: goal, task tree and configuration
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    repo: RepoTarget,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Use the detected settings without asking
    #[arg(short, long)]
    yes: bool,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: InitArgs) -> Result<ExitStatus, Failure> {
    args.repo.check_path(invocation)?;
    let path = invocation.daemon_path(args.repo.path())?;
    let connection = invocation.connect().await?;
    let asker = Asker { ui: invocation.ui, yes: args.yes, is_optional: true, is_local: invocation.host.is_none() };
    let defaults = choose_settings(&connection, &path, asker).await?.defaults;
    let reply = connection.client().init(InitParams { path, force: args.force, defaults }).await?;
    invocation.ui.print_answer("init", &reply, |_| render(&reply))?;
    invocation.ui.print_note("\nWrite the goal into .runner/GOAL.md, then: runnerctl start\n");
    Ok(ExitStatus::Success)
}

fn render(reply: &InitReply) -> String {
    let mut text = String::new();
    for (label, files) in [("created", &reply.created), ("overwritten", &reply.overwritten), ("kept", &reply.kept)] {
        for file in files {
            let _ = writeln!(text, "{label:<11}  {}", sanitize(file));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_was_kept_is_told_apart_from_what_was_made() {
        let reply = InitReply {
            path: Path::new("/p").into(),
            created: vec![".runner/GOAL.md".into()],
            kept: vec![".runner/state/tree.json".into()],
            overwritten: vec![".runner/state/config.toml".into()],
        };
        insta::assert_snapshot!(render(&reply), @r"
        created      .runner/GOAL.md
        overwritten  .runner/state/config.toml
        kept         .runner/state/tree.json
        ");
    }
}
