//! `gc`: removes the records of ended runs, except for the newest.

use clap::Args;
use protocol::api::IterationApiClient as _;
use protocol::error::ExitStatus;
use protocol::reply::{GcReply, WorkspaceSwept};
use protocol::request::GcParams;

use crate::args::RepoTarget;
use crate::confirm::ask_yes_no;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::measure::format_bytes;
use crate::text::paint::{DIM, HINT, WARN, paint};
use crate::text::sanitize::sanitize;
use crate::text::screen::Screen;
use crate::text::table::{Table, TableCell};

const EXAMPLES: &str = "Examples:
  runnerctl gc --dry-run     show what would be removed
  runnerctl gc               keep those of the 10 latest runs
  runnerctl gc --keep 0      remove those of every ended run
  runnerctl gc --force       also workspaces with uncommitted files";

/// Remove the records of old runs; branches and commits are kept
///
/// Also removes the workspaces of ended isolated runs, except those with work that exists nowhere else. Their records
/// are kept like those of other runs. Directories with a `CACHEDIR.TAG` and those that setup or the guard created do
/// not keep a workspace. If only uncommitted files keep it, `gc` asks on a terminal and refuses elsewhere.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GcArgs {
    #[command(flatten)]
    repo: RepoTarget,
    /// Keep the records of the N latest runs and of all runs that have not ended
    #[arg(long, value_name = "N", default_value_t = 10)]
    keep: u32,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Also remove workspaces with uncommitted files
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: GcArgs) -> Result<ExitStatus, Failure> {
    args.repo.check_path(invocation)?;
    let path = invocation.daemon_path(args.repo.path())?;
    let connection = invocation.connect().await?;
    let mut params = GcParams { path, keep: args.keep, dry_run: args.dry_run, discard: Vec::new() };
    if args.force || (invocation.ui.can_ask() && !args.dry_run) {
        let preview = connection.client().gc(GcParams { dry_run: true, ..params.clone() }).await?;
        for swept in preview.workspaces.iter().filter(|swept| swept.uncommitted > 0) {
            if args.force || ask_yes_no(&(render_workspace(swept) + "Remove it with these files? [y/N] "))? {
                params.discard.push(swept.run.clone());
            }
        }
    }
    let reply = connection.client().gc(params).await?;
    invocation.ui.print_answer("gc", &reply, |screen| render(&reply, screen))?;
    let is_refused = !args.dry_run && reply.workspaces.iter().any(|swept| swept.uncommitted > 0);
    Ok(if is_refused { ExitStatus::Refused } else { ExitStatus::Success })
}

/// Says why a workspace stays, and what to do; nothing for one that is removed.
fn render_workspace(swept: &WorkspaceSwept) -> String {
    let Some(why) = &swept.kept else { return String::new() };
    let line = format!("workspace of {} kept: {}\n", sanitize(&swept.run), sanitize(&why.message));
    let command = why.command.iter().map(|command| format!("  {}\n", paint(HINT, &sanitize(command))));
    paint(WARN, &line) + &command.collect::<String>()
}

fn render(reply: &GcReply, screen: &Screen) -> String {
    let mut table = Table::without_names();
    let word = if reply.dry_run { "would go" } else { "removed" };
    for (runs, word) in [(&reply.removed, word), (&reply.kept, "kept")] {
        for run in runs {
            let records = if run.records == 1 { "1 record".into() } else { format!("{} records", run.records) };
            table.add_row([
                TableCell::styled(DIM, word),
                run.run.as_str().into(),
                records.into(),
                format_bytes(run.bytes).into(),
            ]);
        }
    }
    for swept in &reply.workspaces {
        let word = if swept.kept.is_some() { "kept" } else { word };
        let what = swept.path.to_string();
        table.add_row([
            TableCell::styled(DIM, word),
            swept.run.as_str().into(),
            what.into(),
            format_bytes(swept.bytes).into(),
        ]);
    }
    let reasons: String = reply.workspaces.iter().map(render_workspace).collect();
    let verb = if reply.dry_run { "would be freed" } else { "freed" };
    table.render(screen, 0) + &reasons + &format!("{} {verb}\n", format_bytes(reply.freed_bytes))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anstream::adapter::strip_str;
    use protocol::reply::RunRecords;

    use super::*;

    #[test]
    fn every_run_is_named_with_what_becomes_of_its_records() {
        let of_run = |run: &str, records, bytes| RunRecords { run: run.into(), records, bytes };
        let mut reply = GcReply {
            path: Path::new("/p").into(),
            removed: vec![of_run("tidy", 31, 48_310_225)],
            kept: vec![of_run("port", 1, 9_200)],
            workspaces: Vec::new(),
            freed_bytes: 48_310_225,
            dry_run: true,
        };
        insta::assert_snapshot!(strip_str(&render(&reply, &Screen::fixed())), @r"
        would go  tidy  31 records  48 MB
        kept      port  1 record    9.2 kB
        48 MB would be freed
        ");
        reply.dry_run = false;
        assert!(render(&reply, &Screen::fixed()).ends_with("48 MB freed\n"));
        let why = protocol::view::StopReason::new("it is not published", "runnerctl status --run lint");
        let swept = |run: &str, kept| WorkspaceSwept {
            run: run.into(),
            path: Path::new("/w").join(run).as_path().into(),
            bytes: 2_000_000,
            kept,
            uncommitted: 0,
        };
        reply.workspaces = vec![swept("tidy", None), swept("lint", Some(why))];
        insta::assert_snapshot!(strip_str(&render(&reply, &Screen::fixed())), @r"
        removed  tidy  31 records  48 MB
        kept     port  1 record    9.2 kB
        removed  tidy  /w/tidy     2.0 MB
        kept     lint  /w/lint     2.0 MB
        workspace of lint kept: it is not published
          runnerctl status --run lint
        48 MB freed
        ");
    }
}
