//! `gc`: removes the records of runs that are over, but for the newest.

use clap::Args;
use protocol::api::IterationApiClient as _;
use protocol::error::ExitStatus;
use protocol::reply::GcReply;
use protocol::request::GcParams;

use crate::args::Place;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::measure::size;
use crate::text::paint::DIM;
use crate::text::screen::Screen;
use crate::text::table::{Cell, Table};

const EXAMPLES: &str = "Examples:
  runnerctl gc --dry-run     show what would be removed
  runnerctl gc               of all but the 10 latest runs
  runnerctl gc --keep 0      of every finished run";

/// Remove the records of old runs; branches and commits are kept
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GcArgs {
    #[command(flatten)]
    place: Place,
    /// Keep the records of the N latest runs, and of all unfinished ones
    #[arg(long, value_name = "N", default_value_t = 10)]
    keep: u32,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: GcArgs) -> Result<ExitStatus, Failure> {
    let path = invocation.place(args.place.path())?;
    let params = GcParams { path, keep: args.keep, dry_run: args.dry_run };
    let reply = invocation.connect().await?.client().gc(params).await?;
    invocation.ui.answer("gc", &reply, |screen| render(&reply, screen))?;
    Ok(ExitStatus::Fine)
}

fn render(reply: &GcReply, screen: &Screen) -> String {
    let mut table = Table::bare();
    let word = if reply.dry_run { "would go" } else { "removed" };
    for (runs, word) in [(&reply.removed, word), (&reply.kept, "kept")] {
        for run in runs {
            let records = if run.records == 1 { "1 record".into() } else { format!("{} records", run.records) };
            table.row([Cell::styled(DIM, word), run.run.as_str().into(), records.into(), size(run.bytes).into()]);
        }
    }
    let verb = if reply.dry_run { "would be freed" } else { "freed" };
    table.render(screen, 0) + &format!("{} {verb}\n", size(reply.freed_bytes))
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
    }
}
