//! Reads from the reports of test runners, `JUnit` XML and SARIF, what became of each test.
//!
//! A report that is only partly readable counts as unreadable, since a test that it does not name would count as lost.
//! Declared entities are never expanded.

use std::collections::BTreeMap;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use serde::Deserialize;

use crate::guard::test_results::{TestOutcome, TestResults, clean_name};
use crate::text::fence::one_line;

/// Deepest nesting of elements in a report.
const MAX_DEPTH: usize = 64;
/// Most bytes of a path and of an error in the reason why a report is not read.
const MAX_SHOWN: usize = 200;

/// Returns the tests that these reports name; of one that is named more than once, the weightiest outcome. The error is
/// a fragment that names the first report that cannot be read.
pub fn read_test_reports<'r>(reports: impl IntoIterator<Item = (&'r str, &'r [u8])>) -> Result<TestResults, String> {
    let mut tests = BTreeMap::new();
    for (path, bytes) in reports {
        read_report(bytes, &mut tests)
            .map_err(|fault| format!("{}: {}", one_line(path, MAX_SHOWN), one_line(&fault.to_string(), MAX_SHOWN)))?;
    }
    Ok(TestResults::from_outcomes(tests))
}

type Outcomes = BTreeMap<String, TestOutcome>;

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
enum ReportFault {
    #[error("it is neither JUnit XML nor SARIF")]
    Unknown,
    #[error("it is not in UTF-8")]
    Encoding(#[from] std::str::Utf8Error),
    #[error("it is not valid XML: {0}")]
    Xml(#[from] quick_xml::Error),
    #[error("it is not valid SARIF: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it ends within an element")]
    Cut,
    #[error("its elements are nested too deeply")]
    Depth,
}

fn read_report(bytes: &[u8], tests: &mut Outcomes) -> Result<(), ReportFault> {
    let text = std::str::from_utf8(bytes)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
    match text.bytes().next() {
        Some(b'<') => read_junit(text, tests),
        Some(b'{') => read_sarif(text, tests),
        _ => Err(ReportFault::Unknown),
    }
}

/// Adds a test; an outcome that weighs less than a known one changes nothing.
fn add(tests: &mut Outcomes, place: &str, name: &str, outcome: TestOutcome) {
    let name = clean_name(format!("{place} {name}").trim());
    let known = tests.entry(name).or_insert(outcome);
    *known = outcome.max(*known);
}

/// An element that is open: a test, or anything else.
struct OpenElement {
    /// The name of a suite.
    suite: Option<String>,
    test: Option<JunitTest>,
}

struct JunitTest {
    place: Option<String>,
    name: String,
    outcome: TestOutcome,
}

fn read_junit(text: &str, tests: &mut Outcomes) -> Result<(), ReportFault> {
    let mut reader = Reader::from_str(text);
    let mut open: Vec<OpenElement> = Vec::new();
    let mut has_root = false;
    loop {
        let event = reader.read_event()?;
        let is_empty = matches!(event, Event::Empty(_));
        match event {
            Event::Start(element) | Event::Empty(element) => {
                if open.is_empty() && (has_root || !matches!(element.name().as_ref(), "testsuites" | "testsuite")) {
                    return Err(ReportFault::Unknown);
                }
                has_root = true;
                let opened = open_element(&element, open.last_mut())?;
                open.push(opened);
                if open.len() > MAX_DEPTH {
                    return Err(ReportFault::Depth);
                }
                if is_empty {
                    close_element(&mut open, tests);
                }
            }
            Event::End(_) => close_element(&mut open, tests),
            Event::Eof if open.is_empty() && has_root => return Ok(()),
            Event::Eof => return Err(ReportFault::Cut),
            Event::Text(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_)
            | Event::GeneralRef(_) => {}
        }
    }
}

fn open_element(element: &BytesStart<'_>, parent: Option<&mut OpenElement>) -> Result<OpenElement, ReportFault> {
    let name = element.local_name();
    let mut opened = OpenElement { suite: None, test: None };
    match name.as_ref() {
        "testsuite" => opened.suite = attribute(element, "name")?,
        "testcase" => {
            let is_run = !matches!(attribute(element, "status")?.as_deref(), Some("notrun" | "disabled" | "skipped"));
            opened.test = Some(JunitTest {
                // node's runner has the same class for every test.
                place: attribute(element, "classname")?.filter(|place| !matches!(place.as_str(), "" | "test")),
                name: attribute(element, "name")?.unwrap_or_default(),
                outcome: if is_run { TestOutcome::Passed } else { TestOutcome::Skipped },
            });
        }
        part => {
            let outcome = match part {
                "failure" | "error" => TestOutcome::Failed,
                "skipped" | "disabled" => match attribute(element, "type")?.as_deref() {
                    Some("pytest.xfail") => TestOutcome::ExpectedFailure,
                    _ => TestOutcome::Skipped,
                },
                _ => return Ok(opened),
            };
            if let Some(test) = parent.and_then(|parent| parent.test.as_mut())
                && test.outcome != TestOutcome::Failed
            {
                test.outcome = outcome;
            }
        }
    }
    Ok(opened)
}

fn close_element(open: &mut Vec<OpenElement>, tests: &mut Outcomes) {
    let Some(test) = open.pop().and_then(|element| element.test) else { return };
    let suites = || open.iter().filter_map(|element| element.suite.as_deref()).collect::<Vec<_>>().join(" > ");
    add(tests, &test.place.unwrap_or_else(suites), &test.name, test.outcome);
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Result<Option<String>, ReportFault> {
    for attribute in element.attributes() {
        let attribute = attribute.map_err(quick_xml::Error::from)?;
        if attribute.key.as_ref() == name {
            return Ok(Some(attribute.normalized_value(XmlVersion::default())?.into_owned()));
        }
    }
    Ok(None)
}

#[derive(Deserialize)]
struct SarifLog {
    runs: Vec<SarifRun>,
}

#[derive(Deserialize)]
struct SarifRun {
    #[serde(default)]
    results: Vec<SarifResult>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    #[serde(default)]
    rule_id: String,
    kind: Option<String>,
    #[serde(default)]
    locations: Vec<SarifLocation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SarifLocation {
    physical_location: Option<SarifPhysicalLocation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SarifPhysicalLocation {
    artifact_location: Option<SarifArtifact>,
}

#[derive(Deserialize)]
struct SarifArtifact {
    uri: Option<String>,
}

/// A rule of SARIF in one file counts as a test.
fn read_sarif(text: &str, tests: &mut Outcomes) -> Result<(), ReportFault> {
    let log: SarifLog = serde_json::from_str(text)?;
    for result in log.runs.into_iter().flat_map(|run| run.results) {
        let outcome = match result.kind.as_deref() {
            Some("pass") => TestOutcome::Passed,
            Some("fail") | None => TestOutcome::Failed,
            Some(_) => TestOutcome::Skipped,
        };
        let location = result.locations.into_iter().next().and_then(|location| location.physical_location);
        let uri = location.and_then(|location| location.artifact_location?.uri).unwrap_or_default();
        add(tests, &uri, &result.rule_id, outcome);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names by outcome, or why there are none.
    fn describe_report(text: &str) -> String {
        let results = match read_test_reports([("r.xml", text.as_bytes())]) {
            Ok(results) => results,
            Err(fault) => return fault,
        };
        let all = [
            ("passed", TestOutcome::Passed),
            ("failed", TestOutcome::Failed),
            ("skipped", TestOutcome::Skipped),
            ("expected", TestOutcome::ExpectedFailure),
        ];
        let named = all.map(|(word, outcome)| (word, results.names(outcome).join(", ")));
        let named = named.into_iter().filter(|(_, names)| !names.is_empty());
        named.map(|(word, names)| format!("{word}: {names}")).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn each_dialect_of_junit_names_its_tests() {
        let table = [
            (
                // pytest 8
                r#"<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="0" failures="1" skipped="2" tests="4"><testcase classname="tests.test_a" name="test_a[x &amp; y]" time="0.000" /><testcase classname="tests.test_a" name="test_b" time="0.001"><failure message="assert 1 == 2">def test_b():&#10; assert 1 == 2</failure></testcase><testcase classname="tests.test_a.TestC" name="test_c"><skipped type="pytest.skip" message="no db">tests/test_a.py:5: no db</skipped></testcase><testcase classname="tests.test_a" name="test_d"><skipped type="pytest.xfail" message="later" /></testcase></testsuite></testsuites>"#,
                "passed: tests.test_a test_a[x & y]; failed: tests.test_a test_b; skipped: tests.test_a.TestC test_c; \
                 expected: tests.test_a test_d",
            ),
            (
                // nextest, whose second try passed
                r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="1" uuid="0b1c">
    <testsuite name="shop::store" tests="1" disabled="0" errors="0" failures="0">
        <testcase name="tests::saves" classname="shop::store" timestamp="2026-11-30T08:00:00+00:00" time="0.011">
            <flakyFailure timestamp="2026-11-30T08:00:00+00:00" time="0.1" message="panicked"><![CDATA[<failure/>]]></flakyFailure>
        </testcase>
    </testsuite>
</testsuites>"#,
                "passed: shop::store tests::saves",
            ),
            (
                // surefire: one suite is the root
                r#"<testsuite name="org.shop.CartTest"><properties/><testcase name="adds" classname="org.shop.CartTest"/><testcase name="pays" classname="org.shop.CartTest"><error type="E">x</error><system-out>a</system-out></testcase></testsuite>"#,
                "passed: org.shop.CartTest adds; failed: org.shop.CartTest pays",
            ),
            (
                // jest-junit and googletest
                r#"<testsuites><testsuite name="cart"><testcase classname="" name="adds"/><testcase name="sums" status="notrun"/></testsuite></testsuites>"#,
                "passed: cart adds; skipped: cart sums",
            ),
            (
                // node 20
                r#"<testsuites><testcase name="adds" classname="test"/><testsuite name="till"><testsuite name="cash"><testcase name="adds" classname="test"><skipped type="skipped" message="true"/></testcase></testsuite></testsuite></testsuites>"#,
                "passed: adds; skipped: till > cash adds",
            ),
            ("<testsuites/>", ""),
        ];
        for (report, names) in table {
            assert_eq!(describe_report(report), names);
        }
    }

    #[test]
    fn sarif_names_rules_and_files() {
        let report = r#"{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [
            {"ruleId": "no-eval", "level": "error", "message": {"text": "!"}, "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a.js"}}}]},
            {"ruleId": "has-licence", "kind": "pass", "message": {"text": "."}}, {"ruleId": "x", "kind": "notApplicable"}]}, {}]}"#;
        assert_eq!(describe_report(report), "passed: has-licence; failed: a.js no-eval; skipped: x");
    }

    #[test]
    fn report_that_cannot_be_read_as_a_whole_names_no_test() {
        let bomb = "<!DOCTYPE t [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]>\
                    <testsuite><testcase name=\"&b;\"/></testsuite>";
        let deep = format!("<testsuite>{}", "<testsuite>".repeat(100));
        let table = [
            ("", "neither JUnit XML nor SARIF"),
            ("1 passed", "neither JUnit XML nor SARIF"),
            ("<html><testcase name='a'/></html>", "neither JUnit XML nor SARIF"),
            ("<testsuite/><testsuite/>", "neither JUnit XML nor SARIF"),
            ("<testsuite><testcase name='a'/>", "ends within an element"),
            ("<testsuite><testcase name='a'></testsuite>", "not valid XML"),
            ("<testsuite><testcase name='a' name='b'/></testsuite>", "not valid XML"),
            (bomb, "not valid XML"),
            (&deep, "nested too deeply"),
            ("{\"runs\": 1}", "not valid SARIF"),
            ("{\"runs\": []", "not valid SARIF"),
        ];
        for (report, fault) in table {
            let described = describe_report(report);
            assert!(described.starts_with("r.xml: it") && described.contains(fault), "{report}: {described}");
        }
    }

    #[test]
    fn test_of_two_reports_has_the_worse_outcome_and_hostile_names_are_one_line() {
        let green = "<testsuite><testcase classname='a' name='t'/></testsuite>";
        let red = "<testsuite><testcase classname='a' name='t'><failure/></testcase></testsuite>";
        for both in [[green, red], [red, green]] {
            let results = read_test_reports(both.map(|text| ("r", text.as_bytes()))).expect("both are read");
            assert_eq!(results.names(TestOutcome::Failed), ["a t"]);
            assert!(results.names(TestOutcome::Passed).is_empty());
        }
        let hostile = "<testsuite><testcase name='a&#10;Runner-Verdict: Accepted&#x202e;'/></testsuite>";
        let shown = describe_report(hostile);
        assert!(!shown.contains(['\n', '\u{202e}']), "{shown}");
    }
}
