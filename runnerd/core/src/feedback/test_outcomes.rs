//! Reads from the output of a guard what became of each test, as far as its test runners name them.
//!
//! jest and vitest name single tests only in some settings or if there is one file, so their files count as the tests,
//! unless vitest writes each test with its file.

use std::collections::BTreeMap;

use super::lines;
use super::report_parsers::{is_script, read_nextest_status};
use crate::guard::test_results::{TestOutcome, TestResults, clean_name};

/// Returns the tests that known runners have named; of one that is named more than once, the weightiest outcome. `None`
/// if none is named although tests may have run, as with runners that print dots.
pub fn read_test_results(output: &[u8]) -> Option<TestResults> {
    let output = String::from_utf8_lossy(output);
    let mut reader = OutcomeReader::default();
    lines::terminal_lines(&output).for_each(|line| reader.read_line(line));
    let is_known = !reader.tests.is_empty() || reader.cargo_tests == Some(0);
    is_known.then(|| TestResults::from_outcomes(reader.tests))
}

/// The tests so far, and what the last lines say of the next ones.
#[derive(Default)]
struct OutcomeReader {
    tests: BTreeMap<String, TestOutcome>,
    /// The target whose tests cargo runs.
    cargo_target: String,
    /// Tests of a package of Go, whose name follows them.
    go_tests: Vec<(String, TestOutcome)>,
    /// The number of tests that cargo has announced, if it has announced any target.
    cargo_tests: Option<u64>,
    last_line: String,
}

impl OutcomeReader {
    fn read_line(&mut self, line: String) {
        let before = std::mem::take(&mut self.last_line);
        if let Some(target) = read_cargo_target(&line) {
            self.cargo_target = target;
        } else if let Some((name, outcome)) = read_cargo_test(&line) {
            let target = &self.cargo_target;
            let name = if target.is_empty() { name.to_owned() } else { format!("{target} {name}") };
            self.add(&name, outcome);
        } else if let Some((word, name)) = read_nextest_status(&line) {
            self.add_nextest(word, name);
        } else if let Some((name, outcome)) = read_go_test(&line) {
            self.go_tests.push((name.to_owned(), outcome));
        } else if let Some((package, outcome)) = read_go_package(&line) {
            for (name, outcome) in std::mem::take(&mut self.go_tests) {
                self.add(&format!("{package} {name}"), outcome);
            }
            self.add(package, outcome);
        } else if let Some((name, outcome)) = read_unittest(&line, &before) {
            self.add(name, outcome);
        } else if let Some((name, outcome)) = read_pytest(&line).or_else(|| read_script(&line)) {
            self.add(name, outcome);
        } else if let Some(count) = read_cargo_count(&line) {
            self.cargo_tests = Some(self.cargo_tests.unwrap_or(0).saturating_add(count));
        }
        self.last_line = line;
    }

    /// Adds a test; an outcome that weighs less than a known one changes nothing.
    fn add(&mut self, name: &str, outcome: TestOutcome) {
        let known = self.tests.entry(clean_name(name)).or_insert(outcome);
        *known = outcome.max(*known);
    }

    /// Adds a test of nextest, whose last try counts.
    fn add_nextest(&mut self, word: &str, name: &str) {
        let outcome = match word {
            "PASS" | "LEAK" | "FLAKY" => TestOutcome::Passed,
            "SKIP" => TestOutcome::Skipped,
            "FAIL" | "TIMEOUT" | "ABORT" | "LEAK-FAIL" | "XFAIL" => TestOutcome::Failed,
            signal if signal.starts_with("SIG") => TestOutcome::Failed,
            _ => return,
        };
        self.tests.insert(clean_name(name), outcome);
    }
}

/// Returns the number of tests that cargo announces for a target.
fn read_cargo_count(line: &str) -> Option<u64> {
    line.strip_prefix("running ")?.split_once(" test")?.0.parse().ok()
}

/// Returns the target of `Running unittests src/lib.rs (target/debug/deps/shop-507999230d6984fa)`.
fn read_cargo_target(line: &str) -> Option<String> {
    let text = line.trim_start();
    if let Some(name) = text.strip_prefix("Doc-tests ") {
        return Some(format!("{name} (doc)"));
    }
    let (_, file) = text.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once('(')?;
    let (target, _digest) = file.rsplit(['/', '\\']).next()?.rsplit_once('-')?;
    Some(target.to_owned())
}

fn read_cargo_test(line: &str) -> Option<(&str, TestOutcome)> {
    let (name, end) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let outcome = match end {
        "ok" => TestOutcome::Passed,
        "FAILED" => TestOutcome::Failed,
        _ if end == "ignored" || end.starts_with("ignored, ") => TestOutcome::Skipped,
        _ => return None,
    };
    // Without the line of an example, which any change above moves.
    let name = name.split_once(" (line ").map_or(name, |(name, _)| name);
    Some((name.strip_suffix(" - should panic").unwrap_or(name), outcome))
}

fn read_go_test(line: &str) -> Option<(&str, TestOutcome)> {
    let (word, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
    let outcome = match word {
        "PASS" => TestOutcome::Passed,
        "FAIL" => TestOutcome::Failed,
        "SKIP" => TestOutcome::Skipped,
        _ => return None,
    };
    Some((rest.split_once(" (").map_or(rest, |(name, _)| name), outcome))
}

fn read_go_package(line: &str) -> Option<(&str, TestOutcome)> {
    let (word, rest) = line.split_once('\t')?;
    let package = rest.split(['\t', ' ']).next()?;
    match word.trim_end() {
        "ok" if rest.contains("[no tests to run]") => None,
        "ok" => Some((package, TestOutcome::Passed)),
        "FAIL" => Some((package, TestOutcome::Failed)),
        _ => None,
    }
}

/// Reads a line of unittest; a test with a description has its name on the line before.
fn read_unittest<'a>(line: &'a str, before: &'a str) -> Option<(&'a str, TestOutcome)> {
    let (name, end) = line.split_once(" ... ")?;
    let outcome = match end {
        "ok" => TestOutcome::Passed,
        "FAIL" | "ERROR" | "unexpected success" => TestOutcome::Failed,
        "expected failure" => TestOutcome::ExpectedFailure,
        _ if end.starts_with("skipped") => TestOutcome::Skipped,
        _ => return None,
    };
    let is_name = |text: &&str| text.contains(" (") && text.ends_with(')');
    let name = [name, before].into_iter().find(is_name)?;
    Some((name.trim_start(), outcome))
}

/// The words of pytest for an outcome.
const PYTEST_WORDS: [(&str, TestOutcome); 6] = [
    ("PASSED", TestOutcome::Passed),
    ("XPASS", TestOutcome::Passed),
    ("FAILED", TestOutcome::Failed),
    ("ERROR", TestOutcome::Failed),
    ("SKIPPED", TestOutcome::Skipped),
    ("XFAIL", TestOutcome::ExpectedFailure),
];

/// Reads a line of pytest: of `-v`, of `-v -n`, or of the summary at the end.
fn read_pytest(line: &str) -> Option<(&str, TestOutcome)> {
    let line = line.strip_prefix("[gw").and_then(|rest| rest.split_once("%] ")).map_or(line, |(_, rest)| rest);
    if !line.contains(".py::") {
        return None;
    }
    let text = if line.ends_with("%]") { line.rsplit_once('[').map_or(line, |(text, _)| text) } else { line };
    let text = text.trim_end();
    let in_summary = |(word, outcome): (&str, TestOutcome)| {
        let name = text.strip_prefix(word)?.strip_prefix(' ')?;
        Some((name.split_once(" - ").map_or(name, |(name, _)| name), outcome))
    };
    let behind_name = |(word, outcome): (&str, TestOutcome)| {
        let (name, rest) = text.rsplit_once(word)?;
        let is_end = name.ends_with(' ') && (rest.is_empty() || rest.starts_with(" ("));
        is_end.then(|| (name.trim_end(), outcome))
    };
    PYTEST_WORDS.into_iter().find_map(in_summary).or_else(|| PYTEST_WORDS.into_iter().find_map(behind_name))
}

/// Reads a line of jest or vitest about a file, or of vitest about a test of a file.
fn read_script(line: &str) -> Option<(&str, TestOutcome)> {
    let (text, outcome) = match line.strip_prefix(' ') {
        None => [("PASS ", TestOutcome::Passed), ("FAIL ", TestOutcome::Failed)]
            .into_iter()
            .find_map(|(word, outcome)| Some((line.strip_prefix(word)?, outcome)))?,
        Some(rest) => {
            let (mark, text) = rest.split_once(' ')?;
            let outcome = match mark {
                "✓" | "✔" => TestOutcome::Passed,
                "×" | "❯" => TestOutcome::Failed,
                "↓" => TestOutcome::Skipped,
                _ => return None,
            };
            (text, outcome)
        }
    };
    let text = text.rsplit_once(' ').filter(|(_, time)| is_time(time)).map_or(text, |(text, _)| text);
    let of_file = text.split_once(" (").map_or(text, |(file, _)| file);
    match text.split_once(" > ") {
        Some((file, _)) if is_script(file) => Some((text, outcome)),
        _ => is_script(of_file).then_some((of_file, outcome)),
    }
}

/// Whether a word is a duration such as `12ms`.
fn is_time(word: &str) -> bool {
    let number = word.strip_suffix('s').map(|text| text.trim_end_matches(['m', 'µ']));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names by outcome, as one text.
    fn describe_results(output: &str) -> String {
        let Some(results) = read_test_results(output.as_bytes()) else { return "unknown".to_owned() };
        let all = [
            ("passed", results.names(TestOutcome::Passed)),
            ("failed", results.names(TestOutcome::Failed)),
            ("skipped", results.names(TestOutcome::Skipped)),
            ("expected", results.names(TestOutcome::ExpectedFailure)),
        ];
        let named = all.into_iter().filter(|(_, names)| !names.is_empty());
        named.map(|(word, names)| format!("{word}: {}", names.join(", "))).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn each_runner_names_its_tests() {
        let table = [
            (
                "     Running tests/store.rs (target/debug/deps/store-50fa)\ntest saves ... ok\ntest old ... ignored, slow\n\
                 test panics - should panic ... ok\n   Doc-tests shop\ntest src/lib.rs - price (line 10) ... FAILED\n",
                "passed: store panics, store saves; failed: shop (doc) src/lib.rs - price; skipped: store old",
            ),
            (
                "        PASS [   0.005s] (1/3) shop tests::a\n  TRY 1 FAIL [   0.005s] (2/3) shop tests::b\n  \
                 TRY 2 PASS [   0.005s] (2/3) shop tests::b\n        SLOW [> 60.000s] shop tests::c\n     \
                 SIGABRT [   0.005s] shop tests::c\n",
                "passed: shop tests::a, shop tests::b; failed: shop tests::c",
            ),
            (
                "a.py::test_a PASSED    [ 50%]\na.py::test_b[x - y] SKIPPED (no db)  [100%]\n\
                 [gw0] [ 50%] PASSED b.py::T::test_c \nXFAIL a.py::test_d - later\nFAILED a.py::test_e - AssertionError: PASSED\n",
                "passed: a.py::test_a, b.py::T::test_c; failed: a.py::test_e; skipped: a.py::test_b[x - y]; expected: a.py::test_d",
            ),
            (
                "test_a (t.T.test_a) ... ok\ntest_b (t.T.test_b)\nAdds. ... skipped 'later'\ntest_c (t.T.test_c) ... expected failure\n",
                "passed: test_a (t.T.test_a); skipped: test_b (t.T.test_b); expected: test_c (t.T.test_c)",
            ),
            (
                "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- SKIP: TestA/sub (0.00s)\nok  \texample.com/shop\t0.006s\n\
                 ok  \texample.com/none\t0.1s [no tests to run]\n?   \texample.com/x\t[no test files]\nFAIL\texample.com/bad [build failed]\n",
                "passed: example.com/shop, example.com/shop TestA; failed: example.com/bad; skipped: example.com/shop TestA/sub",
            ),
            (
                "PASS src/a.test.js (5.1 s)\n  cart\n    ✓ adds (2 ms)\nFAIL ./b.test.ts\nPASS: all\n",
                "passed: src/a.test.js; failed: ./b.test.ts",
            ),
            (
                " ✓ a.test.ts (3 tests | 1 skipped) 5ms\n     ✓ adds 1ms\n ❯ b.test.ts (2 tests | 1 failed) 6ms\n ↓ c.test.ts > all > later\n",
                "passed: a.test.ts; failed: b.test.ts; skipped: c.test.ts > all > later",
            ),
            ("all is well\nPASS\nok\n", "unknown"),
            (".....  [100%]\n5 passed in 0.02s\n", "unknown"),
            ("running 0 tests\n\ntest result: ok. 0 passed; 0 failed\n", ""),
            ("running 0 tests\n\nrunning 2 tests\n..\ntest result: ok. 2 passed; 0 failed\n", "unknown"),
        ];
        for (output, names) in table {
            assert_eq!(describe_results(output), names);
        }
    }

    #[test]
    fn a_test_that_failed_in_one_of_two_summaries_failed() {
        let twice = "a.py::t PASSED\na.py::u SKIPPED\n== 1 passed ==\na.py::t FAILED\na.py::u PASSED\n== 1 failed ==\n";
        assert_eq!(describe_results(twice), "passed: a.py::u; failed: a.py::t");
    }
}
