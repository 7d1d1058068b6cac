//! The rules as a table: facts, severity, and suggested fix.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use protocol::doctor::{AgentFacts, AgentFitness, GuardSuggestion};
use protocol::path::WirePath;
use protocol::view::{CheckView, MissingLevel, SleepView};

use super::agents::check_agent;
use super::*;

fn render_table(rows: Vec<(&str, DoctorCheck)>) -> String {
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

fn success(line: &str) -> ProbeResult {
    ProbeResult::Success(line.to_owned())
}

fn failure(line: &str) -> ProbeResult {
    ProbeResult::Failed(line.to_owned())
}

fn to_strings(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn file_access(is_socket: bool) -> FileAccess {
    FileAccess { path: "/s".into(), is_own: true, mode: 0o600, is_socket, is_writable: true }
}

fn daemon_view() -> DaemonView {
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

fn holder(socket: Option<PathBuf>) -> LockHolder {
    LockHolder { pid: 4711, socket }
}

fn repository_facts() -> RepositoryFacts {
    RepositoryFacts {
        path: WirePath("/p".into()),
        has_layout: true,
        by_program: Vec::new(),
        attribute: None,
        locks: Vec::new(),
        operation: None,
        confirmed: Some(true),
        guard: Some(GuardFiles { watched: to_strings(&["justfile"]), is_blind: false, unknown: Vec::new() }),
        workspace: None,
        has_settings: true,
        guard_suggestion: None,
        ci_commands: Vec::new(),
        unborn: false,
        uncommitted: Vec::new(),
    }
}

#[test]
fn files_of_the_guard_that_are_not_watched_are_named_with_what_to_do() {
    let unknown = vec!["justfile: sh \"$(pick)\"".to_owned()];
    let check = check_guard_files(
        &GuardFiles { watched: to_strings(&["justfile"]), is_blind: false, unknown },
        &repository_facts(),
    );
    assert_eq!(check.level, CheckLevel::Warn);
    assert_eq!(check.found, "this guard runs files that are not watched: justfile: sh \"$(pick)\"");
    assert_eq!(check.details, ["watched for changes: justfile"]);
}

#[test]
fn what_a_workspace_would_lack_is_told_with_what_to_type() {
    let proposal = WorkspaceProposal {
        by: to_strings(&[".env", "package-lock.json"]),
        copy: to_strings(&[".env"]),
        setup: to_strings(&["npm", "ci"]),
    };
    let check = check_workspace(&proposal, &repository_facts());
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
    let guard = |there: bool, recipe: Option<(String, ProbeResult)>| {
        check_guard(&to_strings(&["just", "ci"]), there, recipe.as_ref(), &repository_facts())
    };
    insta::assert_snapshot!(render_table(vec![
        ("git", check_git(&success("git version 2.47.3"))),
        ("git with a vendor", check_git(&success("git version 2.39.5 (Apple Git-154)"))),
        ("git too old", check_git(&success("git version 2.30.9"))),
        ("git too old to land", check_git(&success("git version 2.34.1"))),
        ("no git", check_git(&ProbeResult::Missing)),
        ("slow git", check_git(&ProbeResult::TimedOut)),
        ("broken git", check_git(&failure("cannot open shared object"))),
        ("odd git", check_git(&success("hello"))),
        ("no agent", check_agents(&[("codex", ProbeResult::Missing), ("claude", ProbeResult::Missing)])),
        (
            "agents",
            check_agents(&[
                ("codex", success("codex-cli 0.151.0")),
                ("claude", failure("no node")),
                ("gemini", ProbeResult::Missing)
            ])
        ),
        ("broken agents", check_agents(&[("codex", ProbeResult::TimedOut), ("claude", failure("no node"))])),
        ("recipe", guard(true, just(success("ci:")))),
        ("no recipe", guard(true, just(failure("error: Justfile does not contain recipe `ci`")))),
        ("slow just", guard(true, just(ProbeResult::TimedOut))),
        ("no just", guard(false, just(ProbeResult::Missing))),
        ("no recipe to ask for", guard(true, None)),
        ("no configuration", super::check_guard(&[], false, None, &repository_facts())),
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
    let draining = DaemonView { draining: true, ..daemon_view() };
    let replaced = DaemonView { outdated: true, ..daemon_view() };
    let refused = ProbeResult::Failed("error: /c/config.toml:2:15: `containment` must be one of these".to_owned());
    let open = FileAccess { mode: 0o666, ..file_access(true) };
    let foreign = FileAccess { is_own: false, ..file_access(false) };
    let closed = FileAccess { is_writable: false, ..file_access(false) };
    let at = Path::new("/s");
    insta::assert_snapshot!(render_table(vec![
        ("runs", check_daemon(Ok(&daemon_view()), Some(&holder(None)), None)),
        ("goes down", check_daemon(Ok(&draining), None, None)),
        ("its program was replaced", check_daemon(Ok(&replaced), None, None)),
        ("none", check_daemon(Err(&none), None, None)),
        ("refused settings", check_daemon(Err(&none), None, Some(&refused))),
        ("silent", check_daemon(Err(&none), Some(&holder(None)), None)),
        ("on another socket", check_daemon(Err(&none), Some(&holder(Some("/own/r.sock".into()))), None)),
        ("another version", check_daemon(Err(&other), None, None)),
        ("no socket yet", check_socket(at, None)),
        ("socket", check_socket(at, Some(&file_access(true)))),
        ("no socket", check_socket(at, Some(&file_access(false)))),
        ("open socket", check_socket(at, Some(&open))),
        ("no folder yet", check_state_dir(at, None)),
        ("open folder", check_state_dir(at, Some(&open))),
        ("another's folder", check_state_dir(at, Some(&foreign))),
        ("closed folder", check_state_dir(at, Some(&closed))),
        ("another's socket", check_socket(at, Some(&FileAccess { is_own: false, ..file_access(true) }))),
        ("closed working tree", check_work_tree(at, Some(&closed))),
    ]));
}

#[test]
fn the_machine_is_judged() {
    let time = |text: &str| text.parse::<Timestamp>().expect("a time");
    let clock_at = |now: &str, is_synchronised| ClockState { now: time(now), is_synchronised };
    let unit = |lingers| ServiceStatus { unit: Some(PathBuf::from("/u/runnerd.service")), lingers };
    let awake = SleepView { inhibited: false, why: Some("no bus answers".into()) };
    let held =
        DaemonView { containment: Containment::Pidns, containment_missing: Vec::new(), sleep: awake, ..daemon_view() };
    insta::assert_snapshot!(render_table(vec![
        ("walk", check_containment(&daemon_view())),
        ("pidns", check_containment(&held)),
        ("may sleep while idle", check_sleep(&DaemonView { running: 0, ..daemon_view() })),
        ("may sleep", check_sleep(&held)),
        ("no systemd", check_service(None)),
        ("no service", check_service(Some(&ServiceStatus { unit: None, lingers: true }))),
        ("ends with the login", check_service(Some(&unit(false)))),
        ("lingers", check_service(Some(&unit(true)))),
        ("room", check_disk("disk", Path::new("/d"), Some(35_000_000_000))),
        ("little room", check_disk("disk", Path::new("/d"), Some(1_900_000_000))),
        ("full", check_disk("disk", Path::new("/d"), Some(99_999_999))),
        ("unknown", check_disk("disk", Path::new("/d"), None)),
        ("synchronised", check_clock(clock_at("2026-01-01T12:00:00Z", Some(true)), None)),
        ("free-running", check_clock(clock_at("2026-01-01T12:00:00Z", Some(false)), None)),
        ("not told", check_clock(clock_at("2026-01-01T12:00:00Z", None), Some(time("2026-01-01T11:00:00Z")))),
        ("set back", check_clock(clock_at("2026-01-01T12:00:00Z", None), Some(time("2026-01-01T13:00:00Z")))),
        ("never set", check_clock(clock_at("1970-01-01T00:01:00Z", Some(true)), None)),
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
    let settings = Ok(ConfigShowReply {
        file: WirePath("/p/c.toml".into()),
        settings: vec![setting("executor.extra_args", Some("/p/c.toml:3")), setting("stall_after", None)],
        daemon_file: WirePath("/d.toml".into()),
        daemon_settings: vec![setting("max_repositories", Some("/d.toml:1"))],
    });
    let hint = Some("fix the file, then: runnerctl validate".to_owned());
    let invalid = Err(QueryError::Refused(
        "/p/c.toml:2:1: unknown key `modle` in [executor]; did you mean `model`?".into(),
        hint,
    ));
    let locked = RepositoryFacts { locks: vec![WirePath("/p/.git/index.lock".into())], ..repository_facts() };
    let fault = AttributeFault { what: "info/attributes:1 gives x".to_owned(), fix: "add a line".to_owned() };
    let changed = check_git_state(&RepositoryFacts { attribute: Some(fault), ..repository_facts() });
    assert_eq!((changed.found.as_str(), changed.fix.as_deref()), ("info/attributes:1 gives x", Some("add a line")));
    let by_git = RepositoryFacts {
        by_program: to_strings(&["core.sparseCheckout or index.sparse is set"]),
        ..repository_facts()
    };
    let merging = RepositoryFacts { operation: Some("merge".into()), ..repository_facts() };
    let cloned = RepositoryFacts { confirmed: Some(false), ..repository_facts() };
    let agent_facts = |fitness| AgentFacts { section: "executor".into(), kind: "codex".into(), fitness };
    let fit = |login| agent_facts(AgentFitness::Fit { version: Some("0.151.0".into()), tested: None, login });
    let newer = AgentFitness::Fit { version: Some("0.172.0".into()), tested: Some("0.169.0".into()), login: None };
    let newer = agent_facts(newer);
    insta::assert_snapshot!(render_table(vec![
        ("library", check_git_engine(&repository_facts())),
        ("git program", check_git_engine(&by_git)),
        ("clean", check_git_state(&repository_facts())),
        ("locked", check_git_state(&locked)),
        ("merging", check_git_state(&merging)),
        ("unborn", check_git_state(&RepositoryFacts { unborn: true, ..repository_facts() })),
        ("dirty", check_git_state(&RepositoryFacts { uncommitted: to_strings(&["a.rs"]), ..repository_facts() })),
        ("configured", check_configuration(&settings, &repository_facts())),
        ("not confirmed", check_configuration(&settings, &cloned)),
        ("misspelt", check_configuration(&invalid, &repository_facts())),
        ("too slow", check_configuration(&Err(QueryError::TimedOut(Duration::from_secs(5))), &repository_facts())),
        ("logged in", check_agent(&fit(Some(true)))),
        ("login not seen", check_agent(&fit(None))),
        ("newer than tested", check_agent(&newer)),
        ("own command", check_agent(&agent_facts(AgentFitness::Fit { version: None, tested: None, login: None }))),
        (
            "unfit",
            check_agent(&agent_facts(AgentFitness::Unfit {
                what: "codex has no login".into(),
                fix: "codex login".into()
            }))
        ),
        ("unknown", check_agent(&agent_facts(AgentFitness::Unknown { why: "the disk is full".into() }))),
    ]));
}

#[test]
fn files_that_are_wrong_have_a_check_each() {
    let check = |name: &str, faults: &[&str]| CheckView {
        name: name.into(),
        ok: faults.is_empty(),
        faults: to_strings(faults),
    };
    let reply = |checks| Ok(ValidateReply { path: WirePath("/p".into()), ok: false, checks });
    let checks = vec![
        check("layout", &[]),
        check("programs", &["executor.kind: cannot find the program `codex`; npm install -g @openai/codex"]),
        check("tree", &["/root/x: unknown field", "/root/id: empty"]),
    ];
    let fresh = RepositoryFacts { has_layout: false, ..repository_facts() };
    let render_rows = |checks: Vec<DoctorCheck>| render_table(checks.into_iter().map(|check| ("-", check)).collect());
    insta::assert_snapshot!(
        [
            render_rows(check_files(&reply(checks.clone()), &repository_facts())),
            render_rows(check_files(&reply(checks.clone()), &fresh)),
            render_rows(check_files(&reply(Vec::new()), &repository_facts())),
        ]
        .join("\n")
    );
    let agent = DoctorCheck::fail("agent", "cannot find codex", "install it");
    let checks = drop_repeats([vec![agent], check_files(&reply(checks), &repository_facts())].concat());
    assert!(!checks.iter().any(|check| check.name == "programs"), "{checks:?}");
}

#[test]
fn what_is_advised_in_a_fresh_repository_creates_its_files_first_and_names_what_was_detected() {
    let command = to_strings(&["cargo", "test"]);
    let suggestion = GuardSuggestion { command, reason: "Cargo.toml".into() };
    let fresh = RepositoryFacts { has_layout: false, guard_suggestion: Some(suggestion), ..repository_facts() };
    let fix = check_guard(&to_strings(&["just", "ci"]), false, None, &fresh).fix;
    let expected = "install just; or: runnerctl init && runnerctl config set guard.command cargo test";
    assert_eq!(fix.as_deref(), Some(expected));
    let by_ci = RepositoryFacts { guard_suggestion: None, ci_commands: to_strings(&["./t.sh --all"]), ..fresh };
    let fix = check_guard(&to_strings(&["just", "ci"]), false, None, &by_ci).fix;
    let expected = "install just; or: runnerctl init && runnerctl config set guard.command ./t.sh --all";
    assert_eq!(fix.as_deref(), Some(expected));
    let agent = |kind: &str, fitness| AgentFacts { section: "executor".into(), kind: kind.into(), fitness };
    let codex = agent("codex", AgentFitness::Unfit { what: "codex has no login".into(), fix: "codex login".into() });
    let claude = agent("claude", AgentFitness::Fit { version: None, tested: None, login: Some(true) });
    let checks = check_configured_agents(&Ok(vec![codex]), &[claude], &by_ci);
    let expected = "codex login; or: runnerctl init && runnerctl config set executor.kind claude";
    assert_eq!(checks[0].fix.as_deref(), Some(expected));
}

#[test]
fn warnings_are_no_failure() {
    assert!(!has_failed(&[DoctorCheck::ok("a", ""), DoctorCheck::skipped("b", ""), DoctorCheck::warn("c", "", "")]));
    assert!(has_failed(&[DoctorCheck::ok("a", ""), DoctorCheck::fail("b", "", "")]));
}
