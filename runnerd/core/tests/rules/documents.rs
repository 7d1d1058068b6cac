//! Compares the generated parts of pages with the output of the code. The tables of `docs/iteration.md` and
//! `docs/run.md` are here.
//!
//! `UPDATE_GENERATED=1` rewrites the page; the prose around the parts is written by hand.

use std::fmt::Write as _;
use std::path::Path;

use protocol::words::{GuardOutcome, VerdictName};
use runner_core::iteration::IterationEffect;
use runner_core::verdict::{FeedbackEffect, RunEffect, TreeSource, VerdictRow, verdict_row};

use crate::{iteration, precedence, run};

/// The row of a verdict in the page's wording.
fn cells(row: VerdictRow) -> [String; 6] {
    let tree = match row.tree {
        TreeSource::Agent => "the agent's",
        TreeSource::AgentPassed => "the agent's, the task passes",
        TreeSource::AgentIfLegal => "the agent's if legal, else From's",
        TreeSource::FromCommit => "From's",
    };
    let run = match row.run {
        RunEffect::Continues => "continues",
        RunEffect::WaitsForPerson => "waits for a person",
        RunEffect::WaitsForService => "waits for the service",
        RunEffect::CountsFault => "continues; failed after too many in a row",
        RunEffect::TimedOut => "timed out",
        RunEffect::Failed => "failed, with the fix",
        RunEffect::ByStopCause => "as asked; failed after too many deaths in a row",
    };
    let feedback = match row.feedback {
        FeedbackEffect::Clear => "cleared",
        FeedbackEffect::Keep => "kept",
        FeedbackEffect::Record => "recorded",
    };
    let attempts = if row.attempts == 0 { "–".to_owned() } else { format!("+{}", row.attempts) };
    let guard = row.guard.map_or("as it ran", GuardOutcome::as_str);
    [tree, &attempts, guard, row.status.as_str(), run, feedback].map(str::to_owned)
}

fn verdicts() -> String {
    let mut text = String::from("| verdict | task tree | attempts | `guard=` | `status=` | the run | feedback |\n");
    text.push_str("|---|---|---|---|---|---|---|\n");
    for verdict in VerdictName::ALL {
        writeln!(text, "| **{verdict}** | {} |", cells(verdict_row(*verdict)).join(" | ")).expect("writes");
    }
    text
}

/// The effect in flight in each phase, and after a stop in that phase.
fn effects() -> String {
    let mut text = String::from("| phase | effect | after a stop |\n|---|---|---|\n");
    for (phase, runs, ends) in iteration::effects() {
        let word = |effect: Option<IterationEffect>| effect.map_or("–".to_owned(), |effect| format!("`{effect:?}`"));
        writeln!(text, "| {phase} | {} | {} |", word(runs), word(ends)).expect("writes");
    }
    text
}

/// Inserts a generated part between its markers.
fn replace_part(page: &str, name: &str, part: &str) -> String {
    let begin = format!("<!-- generated: {name} -->\n");
    let end = format!("<!-- end: {name} -->");
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("the mark of {name} is missing"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("the end of {name} is missing"));
    format!("{before}{begin}\n{part}\n{end}{after}")
}

/// Compares the generated parts of a page with the code's output, or rewrites them.
#[expect(clippy::disallowed_methods, reason = "the test compares and rewrites a file")]
pub(crate) fn compare(page: &str, parts: &[(&str, String)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let found = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let expect = parts.iter().fold(found.clone(), |page, (name, part)| replace_part(&page, name, part));
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(path, expect).unwrap_or_else(|error| panic!("{page}: {error}"));
    } else {
        assert!(found == expect, "{page} is stale: UPDATE_GENERATED=1 rewrites it");
    }
}

#[test]
fn the_page_about_iterations_has_the_tables_of_the_code() {
    let parts = [
        ("phases", iteration::table()),
        ("effects", effects()),
        ("precedence", precedence::list_text()),
        ("verdicts", verdicts()),
    ];
    compare("docs/iteration.md", &parts);
}

#[test]
fn the_page_about_runs_has_the_tables_of_the_code() {
    let parts =
        [("requests", run::requests_table()), ("refusals", run::refusals_table()), ("events", run::events_table())];
    compare("docs/run.md", &parts);
}
