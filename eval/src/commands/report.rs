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
    let mut entries = ResultStore::new(&places.results).read_cases(&args.cases)?;
    if entries.is_empty() {
        let message = format!("there are no results in {}", places.results.display());
        return Err(EvalError::usage(message).hint("runner-eval run CASE"));
    }
    if let Some(set) = &args.only {
        entries = ResultSelector::parse(set)?.select(&entries)?;
    }
    let report = report::build_report(&entries, args.by, args.pass_at);
    write_page(args.html.as_deref(), || html::render_report(&report, &entries))?;
    print_answer(global, &report, || text::render_report(&report))?;
    Ok(ExitStatus::Success)
}

/// Runs `compare`.
pub(super) fn run_compare(
    global: &GlobalOptions,
    places: &EvalDirs,
    args: &CompareArgs,
) -> Result<ExitStatus, EvalError> {
    let entries = ResultStore::new(&places.results).read_cases(&[])?;
    let [a, b] = [&args.a, &args.b].map(|set| ResultSelector::parse(set));
    let a = a?;
    let b = b?;
    let comparison = report::compare::compare_sets([a.text(), b.text()], &a.select(&entries)?, &b.select(&entries)?);
    let comparison = comparison.with_threshold(args.fail_under);
    write_page(args.html.as_deref(), || html::render_comparison(&comparison))?;
    print_answer(global, &comparison, || text::render_comparison(&comparison))?;
    Ok(if comparison.failed { ExitStatus::RunEnded } else { ExitStatus::Success })
}

/// Writes an HTML page, if a file was requested.
pub(crate) fn write_page(file: Option<&Path>, page: impl FnOnce() -> String) -> Result<(), EvalError> {
    let Some(file) = file else { return Ok(()) };
    let current_dir =
        std::env::current_dir().map_err(|error| EvalError::new("finding this directory").caused_by(&error))?;
    let file: PathBuf = current_dir.join(file);
    write_durably(&file, page().as_bytes())
}
