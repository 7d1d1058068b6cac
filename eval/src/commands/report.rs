//! `report` and `compare`: read results, print summaries, and write HTML pages.

use std::path::{Path, PathBuf};

use protocol::error::ExitStatus;

use super::print_answer;
use crate::args::{CompareArgs, GlobalOptions, ReportArgs};
use crate::case::find::EvalDirs;
use crate::error::EvalError;
use crate::report::{self, html, text};
use crate::results::{ResultSelector, ResultStore, write_durably};

/// Runs `report`.
pub(super) fn run_report(
    global: &GlobalOptions,
    places: &EvalDirs,
    args: &ReportArgs,
) -> Result<ExitStatus, EvalError> {
    let mut entries = ResultStore::at(&places.results).read_cases(&args.cases)?;
    if entries.is_empty() {
        let message = format!("there are no results in {}", places.results.display());
        return Err(EvalError::usage(message).hint("runner-eval run CASE"));
    }
    if let Some(set) = &args.only {
        entries = ResultSelector::parse(set)?.of(&entries)?;
    }
    let report = report::report(&entries, args.by, args.pass_at);
    write_page(args.html.as_deref(), || html::report(&report, &entries))?;
    print_answer(global, &report, || text::report(&report))?;
    Ok(ExitStatus::Fine)
}

/// Runs `compare`.
pub(super) fn run_compare(
    global: &GlobalOptions,
    places: &EvalDirs,
    args: &CompareArgs,
) -> Result<ExitStatus, EvalError> {
    let entries = ResultStore::at(&places.results).read_cases(&[])?;
    let [a, b] = [&args.a, &args.b].map(|set| ResultSelector::parse(set));
    let (a, b) = (a?, b?);
    let comparison = report::compare::compare([a.text(), b.text()], &a.of(&entries)?, &b.of(&entries)?);
    let comparison = comparison.held_to(args.fail_under);
    write_page(args.html.as_deref(), || html::comparison(&comparison))?;
    print_answer(global, &comparison, || text::comparison(&comparison))?;
    Ok(if comparison.failed { ExitStatus::RunEnded } else { ExitStatus::Fine })
}

/// Writes an HTML page, if a file was requested.
pub(crate) fn write_page(file: Option<&Path>, page: impl FnOnce() -> String) -> Result<(), EvalError> {
    let Some(file) = file else { return Ok(()) };
    let here = std::env::current_dir().map_err(|error| EvalError::new("finding this folder").caused_by(&error))?;
    let file: PathBuf = here.join(file);
    write_durably(&file, page().as_bytes())
}
