//! Every line of the table with the failure that shows it, and the table's own format.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use super::*;

/// A failure as recorded, or as documented by a service.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignatureSample {
    origin: SampleOrigin,
    /// The program that was recorded.
    program: Option<String>,
    /// When it was shown.
    at: Timestamp,
    /// The time zone of the program, unless UTC.
    zone: Option<String>,
    resets_at: Option<Timestamp>,
    class: FailureClass,
    until: Option<Timestamp>,
    signals: Vec<SampleSignal>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum SampleOrigin {
    Recorded,
    Documented,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleSignal {
    field: String,
    value: String,
}

fn samples_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/samples")
}

fn sample_path(line: &FailureSignature) -> PathBuf {
    let backend = line.backend.map_or("any", ExecutorKind::as_str);
    samples_dir().join(backend).join(format!("{}.toml", line.sample))
}

fn read_sample(line: &FailureSignature) -> SignatureSample {
    let path = sample_path(line);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{line}: {}: {error}", path.display()));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl SignatureSample {
    fn build_evidence(&self) -> EndEvidence {
        let mut evidence = EndEvidence { resets_at: self.resets_at, ..EndEvidence::default() };
        for signal in &self.signals {
            evidence.add(signal.field.clone().leak(), signal.value.as_str());
        }
        evidence
    }

    fn classify_sample(&self, kind: ExecutorKind) -> Option<KnownFailure> {
        let zone = |name: &str| TimeZone::get(name).ok();
        let local = self.zone.as_deref().map_or(TimeZone::UTC, |name| zone(name).expect("the zone is known"));
        classify(kind, &self.build_evidence(), &Clock { now: self.at, local, zone: &zone })
    }
}

fn is_text_field(field: &str) -> bool {
    ["message", "stderr"].contains(&field)
}

#[test]
fn every_line_is_the_first_that_fits_its_sample() {
    for line in &TABLE.lines {
        let sample = read_sample(line);
        let kinds = line.backend.map_or(vec![ExecutorKind::Opencode, ExecutorKind::Gemini], |kind| vec![kind]);
        for kind in kinds {
            let known = sample.classify_sample(kind).unwrap_or_else(|| panic!("nothing fits the sample of: {line}"));
            assert_eq!(known.signature, Some(line.to_string()), "another line fits the sample `{}`", line.sample);
            assert_eq!((known.failure.class, known.failure.until), (sample.class, sample.until), "{line}");
            assert!(!known.failure.why.is_empty(), "{line}");
        }
    }
}

#[test]
fn every_sample_has_its_line_and_says_where_it_is_from() {
    let named: BTreeSet<PathBuf> = TABLE.lines.iter().map(sample_path).collect();
    assert_eq!(named.len(), TABLE.lines.len(), "two lines have one sample");
    let backends = fs::read_dir(samples_dir()).expect("there are samples").map(|entry| entry.expect("an entry").path());
    let files = backends.flat_map(|folder| fs::read_dir(folder).expect("a folder of a backend"));
    let files = files.map(|entry| entry.expect("an entry").path());
    let found: BTreeSet<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    assert_eq!(found, named, "samples without a line, or lines without a sample");
    for line in &TABLE.lines {
        let sample = read_sample(line);
        assert_eq!(sample.program.is_some(), sample.origin == SampleOrigin::Recorded, "{line}");
    }
}

#[test]
fn no_text_stands_before_what_is_structural() {
    let first_text = TABLE.lines.iter().position(|line| is_text_field(&line.field)).expect("there are texts");
    let late = TABLE.lines[first_text..].iter().find(|line| !is_text_field(&line.field));
    assert!(late.is_none(), "structural, and behind a text: {}", late.expect("it is late"));
}

#[test]
fn every_program_has_lines_and_every_class_that_a_person_mends_a_fix() {
    use ExecutorKind::{Claude, Codex, Gemini, Opencode};
    for kind in [Codex, Claude, Opencode, Gemini] {
        assert!(TABLE.lines.iter().any(|line| line.backend == Some(kind)), "{kind}");
        for class in [FailureClass::Authentication, FailureClass::ModelUnknown, FailureClass::Misused] {
            assert!(TABLE.fixes[&kind].contains_key(&class), "{kind}: {class}");
        }
    }
}

#[test]
fn a_table_is_read_strictly() {
    let table = |line: &str| {
        toml::from_str::<SignatureTable>(&format!("version = 1\nfixes = {{}}\nsignatures = [{{ {line} }}]"))
    };
    let rest = r#"backend = "codex", field = "message", class = "network", since = "1", sample = "x""#;
    assert!(table(&format!(r#"{rest}, contains = "a""#)).is_ok());
    for (wrong, expected) in [
        (rest.to_owned(), "there must be one of"),
        (format!(r#"{rest}, contains = "a", equals = "a""#), "there must be one of"),
        (format!(r#"{rest}, contains = " ""#), "is empty"),
        (format!(r#"{rest}, contains = "a", regex = "a""#), "unknown field `regex`"),
        (format!(r#"{rest}, status = "429""#), "did not match any variant"),
        (rest.replace("network", "weather"), "unknown variant `weather`"),
        (rest.replace("codex", "cursor"), "did not match any variant"),
    ] {
        let error = table(&wrong).expect_err(&wrong).to_string();
        assert!(error.contains(expected), "{wrong}: {error}");
    }
    let newer = toml::from_str::<SignatureTable>("version = 2\nfixes = {}\nsignatures = []").expect_err("it is newer");
    assert!(newer.to_string().contains("version 2"), "{newer}");
}

/// Classifies a message of a program at 20:00 UTC on 22 November 2026, in Berlin.
fn classify_signals(kind: ExecutorKind, signals: &[(&'static str, &str)]) -> Option<KnownFailure> {
    let mut evidence = EndEvidence::default();
    for (field, value) in signals {
        evidence.add(field, *value);
    }
    let zone = |name: &str| TimeZone::get(name).ok();
    let now = "2026-11-22T20:00:00Z".parse().expect("a time");
    classify(kind, &evidence, &Clock { now, local: zone("Europe/Berlin").expect("the zone is known"), zone: &zone })
}

#[test]
fn what_is_structural_wins_over_what_is_said() {
    let known = classify_signals(
        ExecutorKind::Codex,
        &[("error_info", "context_window_exceeded"), ("message", "You\u{2019}ve hit your usage limit.")],
    );
    assert_eq!(known.expect("it is known").failure.class, FailureClass::ContextExceeded);
    let known =
        classify_signals(ExecutorKind::Claude, &[("api_error_status", "503"), ("message", "status 401 Unauthorized")]);
    assert_eq!(known.expect("it is known").failure.class, FailureClass::Overloaded);
}

#[test]
fn other_words_around_the_same_facts_change_nothing() {
    let table = [
        (ExecutorKind::Codex, "YOU'VE HIT YOUR USAGE LIMIT; try again in 5 days 2h", "usage_limit"),
        (ExecutorKind::Codex, "Something new happened (http status 429), slow down", "rate_limit"),
        (ExecutorKind::Codex, "upstream said {\"error\":{\"type\":\"overloaded_error\"}}", "overloaded"),
        (ExecutorKind::Claude, "Your 5\u{2011}hour usage limit is used up \u{b7} resets at 14:30", "usage_limit"),
        (ExecutorKind::Claude, "API Error: 503 upstream connect error", "overloaded"),
        (ExecutorKind::Claude, "API Error: Connection error (ECONNREFUSED)", "network"),
        (ExecutorKind::Opencode, "AI_APICallError: Too Many Requests", "rate_limit"),
        (ExecutorKind::Gemini, "got status: RESOURCE_EXHAUSTED. {\"error\":{\"code\":429}}", "rate_limit"),
    ];
    for (kind, message, class) in table {
        let known = classify_signals(kind, &[("message", message)]).unwrap_or_else(|| panic!("unknown: {message}"));
        assert_eq!(known.failure.class.as_str(), class, "{message}");
    }
}

#[test]
fn a_time_without_a_zone_is_of_the_zone_that_the_program_had() {
    let known = classify_signals(
        ExecutorKind::Codex,
        &[("message", "You\u{2019}ve hit your usage limit. Try again at 9:16 PM.")],
    );
    let until = known.expect("it is known").failure.until;
    assert_eq!(until, Some("2026-11-22T20:16:00Z".parse().expect("a time")));
}

#[test]
fn what_only_a_person_can_mend_has_the_fix_of_its_program_and_no_time() {
    let known =
        classify_signals(ExecutorKind::Codex, &[("http_status", "401"), ("message", "no; try again at 9:16 PM")]);
    let failure = known.expect("it is known").failure;
    assert_eq!((failure.class, failure.until), (FailureClass::Authentication, None));
    assert!(failure.fix.expect("there is a fix").contains("codex login"));
}

#[test]
fn what_nobody_knows_is_not_classed() {
    assert_eq!(
        classify_signals(ExecutorKind::Codex, &[("error_info", "other"), ("message", "something is wrong")]),
        None
    );
    assert_eq!(
        classify_signals(ExecutorKind::Claude, &[("api_error_status", "400"), ("message", "API Error: 400 no")]),
        None
    );
    assert_eq!(
        classify_signals(ExecutorKind::Claude, &[("said", "I met a usage limit in the code"), ("subtype", "success")]),
        None
    );
    assert_eq!(classify_signals(ExecutorKind::Command, &[]), None);
}

#[test]
fn a_program_that_no_line_is_about_waits_for_its_service_and_is_never_ended_by_its_words() {
    let class =
        |message| classify_signals(ExecutorKind::Command, &[("message", message)]).map(|known| known.failure.class);
    assert_eq!(class("Error: 429 {\"error\": \"usage limit reached\"}"), Some(FailureClass::UsageLimit));
    assert_eq!(class("connect ECONNREFUSED 127.0.0.1:443"), Some(FailureClass::Network));
    assert_eq!(class("401 Unauthorized"), None);
    assert_eq!(class("prompt is too long"), None);
}
