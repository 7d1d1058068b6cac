//! The rules as a table: facts, severity, and suggested fix.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use protocol::path::WirePath;
use protocol::view::{CheckView, MissingLevel, SleepView};

use super::*;

fn table(rows: Vec<(&str, DoctorCheck)>) -> String {
    rows.into_iter().fold(String::new(), |mut text, (case, check)| {
        let DoctorCheck { name, level, found, details, fix } = check;
        let level = format!("{level:?}").to_lowercase();
        let _ = writeln!(text, "{case}: {level} {name}: {found}");
        for line in details {
            let _ = writeln!(text, "    {line}");
        }
        if let Some(fix) = fix {
            let _ = writeln!(text, "    fix: {fix}");
        }
        text
    })
}

fn fine(line: &str) -> ProbeResult {
    ProbeResult::Fine(line.to_owned())
}

fn failed(line: &str) -> ProbeResult {
    ProbeResult::Failed(line.to_owned())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn owned(is_socket: bool) -> FileAccess {
    FileAccess { path: "/s".into(), is_own: true, mode: 0o600, is_socket, is_writable: true }
}

fn view() -> DaemonView {
    DaemonView {
        version: "0.1.0".into(),
        api_version: 1,
        pid: 4711,
        started_at: "2026-01-01T11:00:00Z".parse().expect("a time"),
        socket: WirePath("/run/s".into()),
        state_folder: WirePath("/state".into()),
        containment: Containment::Walk,
        containment_missing: vec![MissingLevel {
            level: Containment::Pidns,
            why: "no user namespaces".into(),
            raise: "sysctl user.max_user_namespaces=10000".into(),
        }],
        repositories: 3,
        running: 1,
        draining: false,
        log_filter: "info".into(),
        log: None,
        program: None,
        outdated: false,
        socket_passed: false,
        sleep: SleepView { inhibited: false, why: Some("no run is active".into()) },
    }
}

fn facts() -> RepositoryFacts {
    RepositoryFacts {
        path: WirePath("/p".into()),
        has_layout: true,
        by_program: Vec::new(),
        locks: Vec::new(),
        operation: None,
        confirmed: Some(true),
        guard: Some(GuardFiles { watched: words(&["justfile"]), is_blind: false, unknown: Vec::new() }),
        workspace: None,
    }
}

#[test]
fn files_of_the_guard_that_are_not_watched_are_named_with_what_to_do() {
    let unknown = vec!["justfile: sh \"$(pick)\"".to_owned()];
    let check = guard_files(&GuardFiles { watched: words(&["justfile"]), is_blind: false, unknown });
    assert_eq!(check.level, CheckLevel::Warn);
    assert_eq!(check.found, "this guard runs files that are not watched: justfile: sh \"$(pick)\"");
    assert_eq!(check.details, ["watched for changes: justfile"]);
}

#[test]
fn what_a_workspace_would_lack_is_told_with_what_to_type() {
    let proposal = WorkspaceProposal {
        by: words(&[".env", "package-lock.json"]),
        copy: words(&[".env"]),
        setup: words(&["npm", "ci"]),
    };
    let check = workspace(&proposal);
    assert_eq!(check.level, CheckLevel::Ok);
    assert_eq!(
        check.details,
        [
            r#"runnerctl config set workspace.copy '[".env"]'"#,
            r#"runnerctl config set workspace.setup '["npm", "ci"]'"#,
        ]
    );
}

#[test]
fn programs_are_judged_by_what_they_say() {
    let just = |said: ProbeResult| Some(("ci".to_owned(), said));
    let guard =
        |there: bool, recipe: Option<(String, ProbeResult)>| guard(&words(&["just", "ci"]), there, recipe.as_ref());
    insta::assert_snapshot!(table(vec![
        ("git", git(&fine("git version 2.47.3"))),
        ("git with a vendor", git(&fine("git version 2.39.5 (Apple Git-154)"))),
        ("git too old", git(&fine("git version 2.30.9"))),
        ("git too old to land", git(&fine("git version 2.34.1"))),
        ("no git", git(&ProbeResult::Missing)),
        ("slow git", git(&ProbeResult::TimedOut)),
        ("broken git", git(&failed("cannot open shared object"))),
        ("odd git", git(&fine("hello"))),
        ("no agent", agents(&[("codex", ProbeResult::Missing), ("claude", ProbeResult::Missing)])),
        (
            "agents",
            agents(&[
                ("codex", fine("codex-cli 0.151.0")),
                ("claude", failed("no node")),
                ("gemini", ProbeResult::Missing)
            ])
        ),
        ("broken agents", agents(&[("codex", ProbeResult::TimedOut), ("claude", failed("no node"))])),
        ("recipe", guard(true, just(fine("ci:")))),
        ("no recipe", guard(true, just(failed("error: Justfile does not contain recipe `ci`")))),
        ("slow just", guard(true, just(ProbeResult::TimedOut))),
        ("no just", guard(false, just(ProbeResult::Missing))),
        ("no recipe to ask for", guard(true, None)),
        ("no configuration", super::guard(&[], false, None)),
    ]));
}

#[test]
fn the_daemon_and_its_files_are_judged() {
    let none = ConnectError::NoDaemon { socket: "/run/s".into() };
    let other = ConnectError::ProtocolMismatch {
        at: protocol::client::Address::Socket("/run/s".into()),
        daemon_version: "9.0.0".into(),
        api_version: 99,
    };
    let going = DaemonView { draining: true, ..view() };
    let replaced = DaemonView { outdated: true, ..view() };
    let open = FileAccess { mode: 0o666, ..owned(true) };
    let foreign = FileAccess { is_own: false, ..owned(false) };
    let closed = FileAccess { is_writable: false, ..owned(false) };
    let at = Path::new("/s");
    insta::assert_snapshot!(table(vec![
        ("runs", daemon(Ok(&view()), Some(4711))),
        ("goes down", daemon(Ok(&going), None)),
        ("its program was replaced", daemon(Ok(&replaced), None)),
        ("none", daemon(Err(&none), None)),
        ("silent", daemon(Err(&none), Some(4711))),
        ("another version", daemon(Err(&other), None)),
        ("no socket yet", socket(at, None)),
        ("socket", socket(at, Some(&owned(true)))),
        ("no socket", socket(at, Some(&owned(false)))),
        ("open socket", socket(at, Some(&open))),
        ("no folder yet", state(at, None)),
        ("open folder", state(at, Some(&open))),
        ("another's folder", state(at, Some(&foreign))),
        ("closed folder", state(at, Some(&closed))),
        ("another's socket", socket(at, Some(&FileAccess { is_own: false, ..owned(true) }))),
        ("closed work tree", work_tree(at, Some(&closed))),
    ]));
}

#[test]
fn the_machine_is_judged() {
    let time = |text: &str| text.parse::<Timestamp>().expect("a time");
    let shows = |now: &str, is_synchronised| ClockState { now: time(now), is_synchronised };
    let unit = |lingers| ServiceStatus { unit: Some(PathBuf::from("/u/runnerd.service")), lingers };
    let awake = SleepView { inhibited: false, why: Some("no bus answers".into()) };
    let held = DaemonView { containment: Containment::Pidns, containment_missing: Vec::new(), sleep: awake, ..view() };
    insta::assert_snapshot!(table(vec![
        ("walk", containment(&view())),
        ("pidns", containment(&held)),
        ("may sleep while idle", sleep(&DaemonView { running: 0, ..view() })),
        ("may sleep", sleep(&held)),
        ("no systemd", service(None)),
        ("no service", service(Some(&ServiceStatus { unit: None, lingers: true }))),
        ("ends with the login", service(Some(&unit(false)))),
        ("lingers", service(Some(&unit(true)))),
        ("room", disk("disk", Path::new("/d"), Some(35_000_000_000))),
        ("little room", disk("disk", Path::new("/d"), Some(1_900_000_000))),
        ("full", disk("disk", Path::new("/d"), Some(99_999_999))),
        ("unknown", disk("disk", Path::new("/d"), None)),
        ("synchronised", clock(shows("2026-01-01T12:00:00Z", Some(true)), None)),
        ("free-running", clock(shows("2026-01-01T12:00:00Z", Some(false)), None)),
        ("not told", clock(shows("2026-01-01T12:00:00Z", None), Some(time("2026-01-01T11:00:00Z")))),
        ("set back", clock(shows("2026-01-01T12:00:00Z", None), Some(time("2026-01-01T13:00:00Z")))),
        ("never set", clock(shows("1970-01-01T00:01:00Z", Some(true)), None)),
    ]));
}

#[test]
fn a_repository_is_judged() {
    let setting = |key: &str, place: Option<&str>| SettingView {
        choices: Vec::new(),
        key: key.to_owned(),
        value: Some("\"dummy-secret\"".into()),
        origin: if place.is_some() { SettingOrigin::File } else { SettingOrigin::Default },
        place: place.map(str::to_owned),
    };
    let shown = Ok(ConfigShowReply {
        file: WirePath("/p/c.toml".into()),
        settings: vec![setting("executor.extra_args", Some("/p/c.toml:3")), setting("stall_after", None)],
        daemon_file: WirePath("/d.toml".into()),
        daemon_settings: vec![setting("max_repositories", Some("/d.toml:1"))],
    });
    let hint = Some("fix the file, then: runnerctl validate".to_owned());
    let wrong = Err(QueryError::Refused(
        "/p/c.toml:2:1: unknown key `modle` in [executor]; did you mean `model`?".into(),
        hint,
    ));
    let locked = RepositoryFacts { locks: vec![WirePath("/p/.git/index.lock".into())], ..facts() };
    let by_git = RepositoryFacts { by_program: words(&["core.sparseCheckout or index.sparse is set"]), ..facts() };
    let merging = RepositoryFacts { operation: Some("merge".into()), ..facts() };
    let cloned = RepositoryFacts { confirmed: Some(false), ..facts() };
    let of = |fitness| AgentFacts { section: "executor".into(), kind: "codex".into(), fitness };
    let fit = |login| of(AgentFitness::Fit { version: Some("0.151.0".into()), login });
    insta::assert_snapshot!(table(vec![
        ("library", engine(&facts())),
        ("git program", engine(&by_git)),
        ("clean", git_state(&facts())),
        ("locked", git_state(&locked)),
        ("merging", git_state(&merging)),
        ("configured", configuration(&shown, &facts())),
        ("not confirmed", configuration(&shown, &cloned)),
        ("misspelt", configuration(&wrong, &facts())),
        ("too slow", configuration(&Err(QueryError::TimedOut(Duration::from_secs(5))), &facts())),
        ("logged in", agent(&fit(Some(true)))),
        ("login not seen", agent(&fit(None))),
        ("own command", agent(&of(AgentFitness::Fit { version: None, login: None }))),
        ("unfit", agent(&of(AgentFitness::Unfit { what: "codex has no login".into(), fix: "codex login".into() }))),
        ("unknown", agent(&of(AgentFitness::Unknown { why: "the disk is full".into() }))),
    ]));
}

#[test]
fn files_that_are_wrong_have_a_check_each() {
    let check =
        |name: &str, faults: &[&str]| CheckView { name: name.into(), ok: faults.is_empty(), faults: words(faults) };
    let reply = |checks| Ok(ValidateReply { path: WirePath("/p".into()), ok: false, checks });
    let wrong = vec![
        check("layout", &[]),
        check("programs", &["executor.kind: cannot find the program `codex`; npm install -g @openai/codex"]),
        check("tree", &["/root/x: unknown field", "/root/id: empty"]),
    ];
    let fresh = RepositoryFacts { has_layout: false, ..facts() };
    let rows = |checks: Vec<DoctorCheck>| table(checks.into_iter().map(|check| ("-", check)).collect());
    insta::assert_snapshot!(
        [
            rows(files(&reply(wrong.clone()), &facts())),
            rows(files(&reply(wrong.clone()), &fresh)),
            rows(files(&reply(Vec::new()), &facts())),
        ]
        .join("\n")
    );
    let agent = DoctorCheck::fail("agent", "cannot find codex", "install it");
    let told = without_repeats([vec![agent], files(&reply(wrong), &facts())].concat());
    assert!(!told.iter().any(|check| check.name == "programs"), "{told:?}");
}

#[test]
fn warnings_are_no_failure() {
    assert!(!has_failed(&[DoctorCheck::ok("a", ""), DoctorCheck::skipped("b", ""), DoctorCheck::warn("c", "", "")]));
    assert!(has_failed(&[DoctorCheck::ok("a", ""), DoctorCheck::fail("b", "", "")]));
}
