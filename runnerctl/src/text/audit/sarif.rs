//! The findings of an audit as SARIF 2.1.0, which code scanners and editors read.
//!
//! Only formats. A finding is about a commit, but SARIF viewers show files: each finding gets a file of the repository
//! as its location, and names its commit as well.

use std::borrow::Cow;
use std::fmt::Write as _;

use protocol::verify::{AuditFinding, AuditReport, AuditRule, Severity};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::super::measure::short_id;
use super::super::sanitize::sanitize;
use super::rules;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Location of findings without a file: each of the runner's commits changes this file.
const RUN_STATE_PATH: &str = ".runner/state/run_state.json";

/// A log, with one run of the tool.
#[derive(Debug, Serialize)]
pub(crate) struct SarifLog<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [SarifRun<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRun<'a> {
    tool: SarifTool,
    automation_details: SarifId,
    column_kind: &'static str,
    results: Vec<SarifResult<'a>>,
    properties: SarifProperties<'a>,
}

#[derive(Debug, Serialize)]
struct SarifId {
    id: String,
}

#[derive(Debug, Serialize)]
struct SarifTool {
    driver: SarifDriver,
}

#[derive(Debug, Serialize)]
struct SarifDriver {
    name: &'static str,
    version: &'static str,
    rules: Vec<SarifRule>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRule {
    id: &'static str,
    short_description: SarifText,
    full_description: SarifText,
    help: SarifHelp,
}

#[derive(Debug, Serialize)]
struct SarifText {
    text: String,
}

#[derive(Debug, Serialize)]
struct SarifHelp {
    text: &'static str,
    markdown: &'static str,
}

/// What was audited.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifProperties<'a> {
    run: &'a str,
    base: Option<&'a str>,
    tip: &'a str,
    since: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult<'a> {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: SarifText,
    locations: [SarifLocation<'a>; 1],
    partial_fingerprints: SarifFingerprints,
    properties: &'a AuditFinding,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifLocation<'a> {
    physical_location: PhysicalLocation,
    logical_locations: [LogicalLocation<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    region: SarifRegion,
}

#[derive(Debug, Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRegion {
    start_line: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation<'a> {
    name: &'a str,
    fully_qualified_name: String,
    kind: &'static str,
}

/// The same finding about the same commit has the same fingerprint, whatever else is found. An unseen part belongs to
/// no commit: it has the same fingerprint at every tip of the branch, however much else is missing.
#[derive(Debug, Serialize)]
struct SarifFingerprints {
    #[serde(rename = "runnerVerify/v1")]
    verify: String,
}

/// Returns the log of a report.
pub(crate) fn build_log(report: &AuditReport) -> SarifLog<'_> {
    let driver = SarifDriver {
        name: "runnerctl verify",
        version: env!("CARGO_PKG_VERSION"),
        rules: AuditRule::ALL.iter().map(|rule| build_rule(*rule)).collect(),
    };
    let properties = SarifProperties {
        run: &report.run,
        base: report.base.as_deref(),
        tip: &report.tip,
        since: report.since.as_ref().map(|since| since.commit.as_str()),
    };
    let run = SarifRun {
        tool: SarifTool { driver },
        automation_details: SarifId { id: format!("runnerctl-verify/{}", report.run) },
        column_kind: "unicodeCodePoints",
        results: report.findings.iter().map(build_result).collect(),
        properties,
    };
    SarifLog { schema: SCHEMA, version: "2.1.0", runs: [run] }
}

fn build_rule(rule: AuditRule) -> SarifRule {
    let text = || SarifText { text: rules::rule_summary(rule) };
    let section = rules::rule_section(rule);
    let help = SarifHelp { text: section, markdown: section };
    SarifRule { id: rule.as_str(), short_description: text(), full_description: text(), help }
}

fn build_result(finding: &AuditFinding) -> SarifResult<'_> {
    let AuditFinding { commit, iter, rule, severity, at, expected, found } = finding;
    let iteration = iter.map(|iter| format!(" (iteration {iter:04})")).unwrap_or_default();
    let text = format!(
        "Commit {}{iteration}, {}: expected {}, found {}.",
        short_id(commit),
        sanitize(at),
        sanitize(expected),
        sanitize(found)
    );
    let physical_location = PhysicalLocation {
        artifact_location: ArtifactLocation { uri: to_uri(&finding_file(*rule, at)) },
        region: SarifRegion { start_line: 1 },
    };
    let logical =
        LogicalLocation { name: short_id(commit), fully_qualified_name: format!("commit/{commit}"), kind: "resource" };
    SarifResult {
        rule_id: rule.as_str(),
        rule_index: AuditRule::ALL.iter().position(|known| known == rule).unwrap_or_default(),
        level: match severity {
            Severity::Violation => "error",
            Severity::Warning => "warning",
        },
        message: SarifText { text },
        locations: [SarifLocation { physical_location, logical_locations: [logical] }],
        partial_fingerprints: SarifFingerprints { verify: finding_fingerprint(finding) },
        properties: finding,
    }
}

/// Returns the repository file at which a finding is shown.
fn finding_file(rule: AuditRule, at: &str) -> String {
    let path = at.strip_prefix('/').or_else(|| at.starts_with(".runner/").then_some(at));
    let path = path.map(|path| path.split_once(": ").map_or(path, |(path, _)| path));
    let is_inside = |path: &&str| path.split('/').all(|name| !matches!(name, "" | "." | ".."));
    if let Some(path) = path.filter(is_inside) {
        return path.to_owned();
    }
    match rule {
        AuditRule::Tree | AuditRule::Passes | AuditRule::Passed | AuditRule::Selection => ".runner/state/tree.json",
        _ if at.starts_with("GOAL.md") => ".runner/GOAL.md",
        _ => RUN_STATE_PATH,
    }
    .to_owned()
}

/// Returns a path as a relative reference of RFC 3986.
fn to_uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

fn finding_fingerprint(AuditFinding { commit, rule, at, expected, found, .. }: &AuditFinding) -> String {
    let (commit, found) = match rule {
        AuditRule::Unseen => ("", strip_count(found)),
        _ => (commit.as_str(), Cow::Borrowed(found.as_str())),
    };
    let digest = Sha256::digest(format!("{commit}\0{rule}\0{at}\0{expected}\0{found}"));
    digest.iter().take(16).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Returns the description of an unseen part without the number of other files.
fn strip_count(found: &str) -> Cow<'_, str> {
    let Some((head, why)) = found.split_once(" more that commits add: ") else { return Cow::Borrowed(found) };
    Cow::Owned(format!("{}: {why}", head.rsplit_once(" and ").map_or(head, |(head, _)| head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_seen_is_the_same_at_each_tip_and_however_much_is_missing() {
        let fingerprint = |commit: &str, rule, found: &str| {
            finding_fingerprint(&AuditFinding {
                commit: commit.to_owned(),
                iter: None,
                rule,
                severity: Severity::Violation,
                at: "branch".to_owned(),
                expected: "all that is to be judged".to_owned(),
                found: found.to_owned(),
            })
        };
        let one = "file a and b of commit c0: not here; `git fsck` tells which";
        let three = "file a and b of commit c0 and 2 more that commits add: not here; `git fsck` tells which";
        let unseen = AuditRule::Unseen;
        assert_eq!(fingerprint("c1", unseen, one), fingerprint("c2", unseen, three));
        assert_ne!(fingerprint("c1", unseen, one), fingerprint("c1", unseen, &one.replace("c0", "c1")));
        assert_ne!(fingerprint("c1", AuditRule::Valid, one), fingerprint("c2", AuditRule::Valid, one));
    }

    #[test]
    fn a_place_is_a_path_within_the_repository_whatever_a_finding_names() {
        let location = |rule, at| to_uri(&finding_file(rule, at));
        assert_eq!(location(AuditRule::Progress, ".runner/state/progress.md"), ".runner/state/progress.md");
        assert_eq!(location(AuditRule::Valid, "/src/a b.rs"), "src/a%20b.rs");
        assert_eq!(location(AuditRule::Milestone, ".runner/state/run_state.json: base"), RUN_STATE_PATH);
        assert_eq!(location(AuditRule::Tree, "node root.3: title"), ".runner/state/tree.json");
        assert_eq!(location(AuditRule::Person, "GOAL.md: id"), ".runner/GOAL.md");
        for at in ["Runner-From", "/", "//etc/passwd", "/../../etc/passwd", ".runner/../x", "", "https://e.org/x"] {
            assert_eq!(location(AuditRule::Form, at), RUN_STATE_PATH, "{at}");
        }
    }
}
