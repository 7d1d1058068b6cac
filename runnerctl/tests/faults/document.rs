//! Compares the tables of promises and faults in `docs/contributing/faults.md` with the existing tests.

use std::fs;
use std::path::{Path, PathBuf};

const PROMISES: u32 = 15;
const ROWS: u32 = 120;
/// Minimum number of rows that have a test; the table says why the others have none.
const FEWEST_TESTED: usize = 105;

/// A line of the table.
struct TableRow {
    row: u32,
    place: String,
}

#[test]
fn every_row_is_a_test_in_the_place_that_the_document_names() {
    let lines = table();
    let rows: Vec<u32> = lines.iter().map(|line| line.row).collect();
    assert_eq!(rows, (1..=ROWS).collect::<Vec<_>>(), "a row is missing, or not in its place");
    let untested: Vec<u32> = lines.iter().filter(|line| !line.is_tested()).map(|line| line.row).collect();
    let tested = lines.len() - untested.len();
    assert!(tested >= FEWEST_TESTED, "{tested} rows are tested; not these: {untested:?}");
    let unexplained: Vec<&TableRow> = lines.iter().filter(|line| untested.contains(&line.row)).collect();
    for line in unexplained {
        assert!(line.place.starts_with("not here: "), "row {} is no test, and `{}` is no reason", line.row, line.place);
    }
}

#[test]
fn every_promise_names_tests_that_there_are() {
    let code = code();
    let promises: Vec<Vec<&str>> = cells().filter(|cells| cells[0].starts_with('P')).collect();
    let ids: Vec<&str> = promises.iter().map(|cells| cells[0]).collect();
    assert_eq!(ids, (1..=PROMISES).map(|number| format!("P{number}")).collect::<Vec<_>>());
    for promise in promises.iter().filter(|cells| !cells[2].starts_with("not here: ")) {
        assert_tested(&code, promise[0], promise[2]);
    }
}

#[test]
fn rules_of_git_and_what_helps_a_run_are_shown_by_tests_that_there_are() {
    let code = code();
    let page = include_str!("../../../docs/contributing/faults.md");
    for title in ["Rules of git in the working tree", "Runs that succeed"] {
        let section = page.split("## ").find(|section| section.starts_with(title)).expect("the section");
        let lines = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
        let lines: Vec<(&str, &str)> = lines.filter(|(_, tests)| tests.starts_with('`')).collect();
        assert!(lines.len() >= 10, "{lines:?}");
        for (what, tests) in lines {
            assert_tested(&code, what, tests);
        }
    }
}

/// Asserts that all tests of a list exist.
#[track_caller]
fn assert_tested(code: &str, what: &str, tests: &str) {
    for name in tests.split(", ").map(|name| name.trim_matches('`')) {
        assert!(code.contains(&format!("fn {name}(")), "{what} names no test: {name}");
    }
}

/// Returns all code that may contain tests.
fn code() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["protocol/tests", "runnerctl/tests", "runnerd"];
    let files = folders.iter().flat_map(|folder| files_below(&root.join(folder)));
    files.filter_map(|file| fs::read_to_string(file).ok()).collect()
}

impl TableRow {
    /// Whether each place named before the row's remarks has a test of the row.
    fn is_tested(&self) -> bool {
        let places = self.place.split([';', ':']).next().filter(|first| first.contains('/'));
        match places {
            Some(path) => {
                self.is_found_in(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path.trim_matches('`'))])
            }
            None => self.modules().all(|module| self.is_found_in(&module_files(&module))),
        }
    }

    fn modules(&self) -> impl Iterator<Item = String> {
        let named = self.place.split("; ").next().unwrap_or_default();
        named.split(", ").filter(|name| !name.starts_with("at `")).map(str::to_owned)
    }

    fn is_found_in(&self, files: &[PathBuf]) -> bool {
        let name = format!("fn row_{:02}_", self.row);
        files.iter().any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(&name)))
    }
}

fn table() -> Vec<TableRow> {
    let rows = cells().filter_map(|cells| Some(TableRow { row: cells[0].parse().ok()?, place: cells[2].to_owned() }));
    rows.collect()
}

/// The cells of every line of a table with three columns.
fn cells() -> impl Iterator<Item = Vec<&'static str>> {
    let lines = include_str!("../../../docs/contributing/faults.md").lines();
    let lines = lines.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    lines.map(|line| line.split(" | ").collect::<Vec<_>>()).filter(|cells| cells.len() == 3)
}

/// The files of a module: its own, and those of its submodules.
fn module_files(module: &str) -> Vec<PathBuf> {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults").join(module.replace("::", "/"));
    let mut files = vec![base.with_extension("rs")];
    files.extend(files_below(&base));
    files
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
