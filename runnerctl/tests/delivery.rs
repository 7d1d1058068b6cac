//! Deliveries with the real git, a bare repository for a remote and a stand-in for `gh`: what is pushed and said, what is
//! refused, and that a delivery which was interrupted is brought to its end by the next one.

mod fake;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use fake::{Chapter, FakeDaemon};
use protocol::error::{ErrorData, ErrorKind};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Takes part as `gh`: keeps what it is told, and answers from files beside it.
const GH: &str = r#"#!/bin/sh
case "$1 $2" in "--version "*|"auth status") ;; *) { echo "gh"; printf '  %s\n' "$@"; } >> "$FORGE/told" ;; esac
for word; do case $word in --body-file=*) cp "${word#--body-file=}" "$FORGE/body" ;; --field=body=@*) cp "${word#--field=body=@}" "$FORGE/body" ;; esac; done
case "$1 $2" in
"auth status") test ! -e "$FORGE/no-login" ;;
"pr list") cat "$FORGE/list" ;;
"pr view") cat "$FORGE/view" ;;
"pr create") test ! -e "$FORGE/gate" || { echo here > "$FORGE/gate"; exec sleep 600; }; echo https://github.com/o/r/pull/5 ;;
"api "*) case "$*" in *comments*) cat "$FORGE/comments" ;; esac ;;
esac
"#;
/// Takes part as `ssh`: every host is this one, and every repository the bare one.
const SSH: &str = "#!/bin/sh\nfor last; do :; done\nexec ${last%% *} \"$REMOTE\"\n";

/// A repository whose run has landed on `deliver/port`, its remote, and its forge.
struct Stage {
    folder: TempDir,
    daemon: FakeDaemon,
}

impl Stage {
    fn new() -> Self {
        Self::with(described(), landed("landed"))
    }

    fn with(described: Value, landed: Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["repo", "bin", "forge"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let daemon = FakeDaemon::start().answers("delivery.describe", described).answers("land.run", landed);
        let stage = Self { folder, daemon };
        stage.program("gh", GH);
        stage.program("ssh", SSH);
        stage.says("list", "[]");
        stage.git(&["init", "-q", "-b", "main", "."]);
        stage.commit("a", "Begin");
        stage.git(&["clone", "-q", "--bare", ".", "../remote.git"]);
        stage.git(&["remote", "add", "origin", "ssh://git@github.com/o/r.git"]);
        stage.git(&["switch", "-q", "-c", "deliver/port"]);
        stage.commit("b", "The schema");
        stage.git(&["switch", "-q", "main"]);
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, text).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }

    fn says(&self, file: &str, text: &str) {
        fs::write(self.path("forge").join(file), text).expect("an answer");
    }

    fn told(&self) -> String {
        fs::read_to_string(self.path("forge/told")).unwrap_or_default()
    }

    /// Returns the options that `gh` was given, without the folder of a description.
    fn options(&self) -> String {
        let cut = |line: &str| match line.find("/tmp").filter(|_| line.contains("body")) {
            Some(at) => format!("{}…/description.md", &line[..at]),
            None => line.to_owned(),
        };
        self.told().lines().map(cut).collect::<Vec<_>>().join("\n")
    }

    fn git_in(&self, folder: &str, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(args).current_dir(self.path(folder));
        let output = self.dressed(&mut command).output().expect("git runs");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn git(&self, args: &[&str]) -> String {
        self.git_in("repo", args)
    }

    fn commit(&self, file: &str, message: &str) {
        fs::write(self.path("repo").join(file), message).expect("a file");
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// Gives a program the environment of this stage and nothing else.
    fn dressed<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .env("LANG", "C.UTF-8")
            .env("TMPDIR", self.folder.path());
        command
            .env("GIT_SSH", self.path("bin/ssh"))
            .env("REMOTE", self.path("remote.git"))
            .env("FORGE", self.path("forge"));
        for who in ["GIT_AUTHOR", "GIT_COMMITTER"] {
            command.env(format!("{who}_NAME"), "Kit").env(format!("{who}_EMAIL"), "kit@localhost");
            command.env(format!("{who}_DATE"), "2026-01-01T00:00:00Z");
        }
        command
    }

    fn client(&self, args: &[&str]) -> Command {
        let repo = self.path("repo").display().to_string();
        let mut command = self.daemon.client(&[&["-C", &repo, "deliver", "port"], args].concat());
        self.dressed(&mut command);
        command
    }

    fn deliver(&self, args: &[&str]) -> Output {
        self.client(args).output().expect("runs")
    }

    fn at_remote(&self) -> String {
        self.git_in("remote.git", &["for-each-ref", "--format=%(objectname)", "refs/heads/deliver"])
    }

    fn tip(&self) -> String {
        self.git(&["rev-parse", "deliver/port"])
    }
}

fn described() -> Value {
    json!({
        "run": "port", "tip": "1".repeat(40), "branch": "deliver/port", "at_work": null, "leaves_passed": 1,
        "leaves_total": 1, "title": "Port the store", "body": own("What was asked"), "remote": "origin", "base": null,
        "command": [], "on_complete": false,
    })
}

fn own(text: &str) -> String {
    format!("<!-- runnerd: begin -->\n{text}\n<!-- runnerd: end -->\n")
}

fn landed(outcome: &str) -> Value {
    let commit = json!({"commit": "2".repeat(40), "subject": "The schema", "node": "root", "of": "1".repeat(40)});
    let run = json!({"run": "port", "outcome": outcome, "commits": [commit], "refusal": null, "notes": []});
    json!({
        "onto": "deliver/port", "before": null, "after": "2".repeat(40), "preview": false, "work_tree": null,
        "runs": [run],
    })
}

fn open_request(body: &str) -> String {
    let request = json!({
        "number": 5, "url": "https://github.com/o/r/pull/5", "state": "OPEN", "isDraft": true, "title": "Mine",
        "body": body, "isCrossRepository": false,
    });
    json!([request]).to_string()
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{out}--- stderr\n{err}--- exit {}\n", output.status.code().unwrap_or(-1))
}

#[test]
fn a_branch_is_pushed_and_offered_as_a_draft() {
    let stage = Stage::new();
    let output = stage.deliver(&[]);
    insta::assert_snapshot!(text(&output).replace(&stage.tip()[..8], "<tip>"), @r"
    run port is deliver/port at origin for main
      22222222 The schema
    pushed <tip>
    opened pull request: https://github.com/o/r/pull/5
    --- stderr
    --- exit 0
    ");
    insta::assert_snapshot!(stage.options(), @r"
    gh
      pr
      list
      --repo=github.com/o/r
      --head=deliver/port
      --state=all
      --limit=50
      --json=number,url,state,isDraft,title,body,isCrossRepository
    gh
      pr
      list
      --repo=github.com/o/r
      --head=deliver/port
      --state=all
      --limit=50
      --json=number,url,state,isDraft,title,body,isCrossRepository
    gh
      pr
      create
      --repo=github.com/o/r
      --head=deliver/port
      --base=main
      --title=Port the store
      --body-file=…/description.md
      --draft
    ");
    assert_eq!(stage.at_remote(), stage.tip());
    assert_eq!(fs::read_to_string(stage.path("forge/body")).expect("a description"), own("What was asked"));
    let land = &stage.daemon.asked("land.run")[0];
    let main = stage.git(&["rev-parse", "main"]);
    assert_eq!((&land["onto"], &land["from"], &land["form"]), (&json!("deliver/port"), &json!(main), &json!("leaves")));
    assert_eq!(stage.git_in("remote.git", &["for-each-ref", "--format=%(refname)"]).lines().count(), 2);
}

#[test]
fn the_same_command_again_pushes_what_is_new_and_keeps_what_people_wrote() {
    let stage = Stage::new();
    stage.deliver(&[]);
    stage.says("list", &open_request(&format!("Closes #4\n\n{}\nSeen by Bob.", own("old"))));
    let output = stage.deliver(&["--ready"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("nothing new to push"), "{}", text(&output));
    let body = fs::read_to_string(stage.path("forge/body")).expect("a description");
    assert_eq!(body, format!("Closes #4\n\n{}\n\nSeen by Bob.", own("What was asked").trim_end()));
    let told = stage.options();
    assert!(
        told.contains("--method=PATCH") && told.ends_with("gh\n  pr\n  ready\n  5\n  --repo=github.com/o/r"),
        "{told}"
    );
    assert!(!told.contains("Port the store\n  --body-file=…/description.md\n  --draft\ngh\n  pr\n  create"), "{told}");
    stage.git(&["switch", "-q", "deliver/port"]);
    stage.commit("c", "The queries");
    stage.deliver(&[]);
    assert_eq!(stage.at_remote(), stage.tip());
}

#[test]
fn row_110_a_delivery_that_was_killed_before_its_request_is_brought_to_its_end() {
    let stage = Stage::new();
    let gate = stage.path("forge/gate");
    let made = Command::new("mkfifo").arg(&gate).status().expect("mkfifo runs");
    assert!(made.success());
    let mut client = stage.client(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("runs");
    let mut line = String::new();
    BufReader::new(fs::File::open(&gate).expect("somebody writes")).read_line(&mut line).expect("it is told");
    client.kill().expect("is killed");
    client.wait().expect("is gone");
    assert_eq!(stage.at_remote(), stage.tip(), "the branch was pushed");
    fs::remove_file(&gate).expect("the gate goes");
    let output = stage.deliver(&[]);
    assert!(text(&output).contains("opened pull request: https://github.com/o/r/pull/5"), "{}", text(&output));
    assert_eq!(stage.at_remote(), stage.tip());
}

#[test]
fn commits_of_others_are_taken_in_and_never_overwritten() {
    let stage = Stage::new();
    stage.deliver(&[]);
    stage.git(&["clone", "-q", "-b", "deliver/port", "../remote.git", "../colleague"]);
    stage.git_in("colleague", &["commit", "-q", "--allow-empty", "-m", "Fix a typo"]);
    stage.git_in("colleague", &["push", "-q", "origin", "deliver/port"]);
    let theirs = stage.at_remote();
    let output = stage.deliver(&[]);
    assert!(text(&output).contains("took in what others have pushed to deliver/port"), "{}", text(&output));
    assert_eq!((stage.at_remote(), stage.tip()), (theirs.clone(), theirs.clone()));
    stage.git_in("colleague", &["commit", "-q", "--allow-empty", "-m", "Another"]);
    stage.git_in("colleague", &["push", "-q", "origin", "deliver/port"]);
    let theirs = stage.at_remote();
    stage.git(&["switch", "-q", "deliver/port"]);
    stage.commit("c", "The queries");
    stage.git(&["switch", "-q", "main"]);
    let output = stage.deliver(&[]);
    insta::assert_snapshot!(text(&output), @r"
    --- stderr
    error: deliver/port at origin has commits that yours has not, and yours has others, or is checked out; theirs are not overwritten, and nothing was pushed

    hint: git fetch origin deliver/port
      git switch deliver/port
      git merge FETCH_HEAD
    --- exit 6
    ");
    assert_eq!(stage.at_remote(), theirs);
}

#[test]
fn nothing_is_pushed_where_it_could_not_be_offered() {
    let stage = Stage::new();
    stage.says("no-login", "");
    insta::assert_snapshot!(text(&stage.deliver(&[])), @r"
    --- stderr
    error: gh has no login for github.com; nothing was pushed

    hint: gh auth login --hostname github.com
    --- exit 6
    ");
    fs::remove_file(stage.path("forge/no-login")).expect("there is a login");
    let closed = open_request("").replace("OPEN", "CLOSED");
    stage.says("list", &closed);
    insta::assert_snapshot!(text(&stage.deliver(&[])), @r"
    --- stderr
    error: somebody has closed pull request 5: https://github.com/o/r/pull/5; nothing was pushed

    hint: gh pr reopen 5 --repo github.com/o/r
      runnerctl deliver port
    --- exit 6
    ");
    insta::assert_snapshot!(text(&stage.deliver(&["--base", "no-such"])), @r"
    --- stderr
    error: origin has no branch no-such

    hint: runnerctl deliver port --base BRANCH
    --- exit 6
    ");
    assert_eq!(stage.at_remote(), "");
    assert!(stage.daemon.asked("land.run").is_empty());
}

#[test]
fn while_a_session_could_write_gits_configuration_nothing_is_pushed() {
    let mut described = described();
    described["at_work"] = json!("other");
    let stage = Stage::with(described, landed("landed"));
    insta::assert_snapshot!(text(&stage.deliver(&[])), @r"
    --- stderr
    error: run other is at work in this repository, and what its session writes could direct git elsewhere: nothing was pushed

    hint: runnerctl pause
    --- exit 6
    ");
    insta::assert_snapshot!(text(&stage.deliver(&["--feedback"])), @r"
    --- stderr
    error: run other is at work in this repository, and what its session writes could direct git elsewhere: nothing was pushed

    hint: runnerctl pause
    --- exit 6
    ");
    assert_eq!((stage.at_remote(), stage.told()), (String::new(), String::new()));
}

#[test]
fn without_a_program_it_is_told_what_to_open() {
    let stage = Stage::new();
    fs::remove_file(stage.path("bin/gh")).expect("gh is gone");
    let output = text(&stage.deliver(&[])).replace(&stage.tip()[..8], "<tip>");
    insta::assert_snapshot!(output, @r"
    run port is deliver/port at origin for main
      22222222 The schema
    pushed <tip>
    no request yet; open it by hand: https://github.com/o/r/compare/main...deliver/port?expand=1
    what to write there: runnerctl deliver port --dry-run
    note: gh is not on your PATH
    --- stderr
    --- exit 0
    ");
    assert_eq!(stage.at_remote(), stage.tip());
}

#[test]
fn a_program_of_the_persons_reads_what_is_offered_and_says_where() {
    let mut described = described();
    described["command"] = json!(["own", "two words"]);
    let stage = Stage::with(described, landed("landed"));
    stage.program(
        "own",
        "#!/bin/sh\necho \"$1\" > \"$FORGE/told\"; cat >> \"$FORGE/told\"; echo done; echo https://forge/5\n",
    );
    let output = text(&stage.deliver(&[]));
    assert!(output.contains("opened pull request: https://forge/5\n"), "{output}");
    let told = fs::read_to_string(stage.path("forge/told")).expect("it was told");
    let (argument, offered) = told.split_once('\n').expect("two lines");
    assert_eq!(argument, "two words");
    let offered: Value = serde_json::from_str(offered).expect("json");
    let expected = json!({"schema": "runner/delivery.v1", "head": "deliver/port", "base": "main", "title": "Port the store", "body": own("What was asked"), "draft": true});
    assert_eq!(offered, expected);
}

#[test]
fn a_run_that_was_taken_is_not_pushed_again() {
    let stage = Stage::with(described(), landed("already_landed"));
    stage.says("list", &open_request("").replace("OPEN", "MERGED"));
    let output = text(&stage.deliver(&[]));
    assert!(output.contains("the pull request was taken before: https://github.com/o/r/pull/5"), "{output}");
    assert_eq!(stage.at_remote(), "");
}

#[test]
fn what_does_not_fit_is_refused_in_the_words_of_landing() {
    let mut landed = landed("left_out");
    landed["runs"][0]["refusal"] =
        json!({"message": "leaf root.2 conflicts in a.txt", "hint": "runnerctl land port --resolve"});
    let stage = Stage::with(described(), landed);
    insta::assert_snapshot!(text(&stage.deliver(&[])), @r"
    --- stderr
    error: leaf root.2 conflicts in a.txt

    hint: runnerctl land port --resolve
    --- exit 6
    ");
    assert_eq!(stage.at_remote(), "");
}

#[test]
fn a_look_contacts_nobody() {
    let stage = Stage::new();
    insta::assert_snapshot!(text(&stage.deliver(&["--dry-run", "--base", "main"])), @r"
    run port would be deliver/port at origin for main
      22222222 The schema

    Port the store

    <!-- runnerd: begin -->
    What was asked
    <!-- runnerd: end -->
    --- stderr
    --- exit 0
    ");
    assert_eq!((stage.at_remote(), stage.told()), (String::new(), String::new()));
    assert_eq!(stage.daemon.asked("land.run")[0]["preview"], json!(true));
}

#[test]
fn failed_checks_and_comments_become_a_note() {
    let stage = Stage::new();
    stage.says("list", &open_request(""));
    stage.says("view", include_str!("forges/gh-pr-view.json"));
    stage.says("comments", include_str!("forges/gh-api-comments.json"));
    let reply = json!({"told": 6, "known": 0, "left": 0, "text": "Feedback on …\n", "change": null});
    let stage = Stage { daemon: stage.daemon.answers("delivery.feedback", reply), ..stage };
    insta::assert_snapshot!(text(&stage.deliver(&["--feedback"])), @r"
    6 new pieces of feedback
    2 pieces of feedback of people without a say in the repository left out; --anyone takes them
    --- stderr
    --- exit 0
    ");
    let asked = &stage.daemon.asked("delivery.feedback")[0];
    assert_eq!((&asked["run"], &asked["add"], &asked["dry_run"]), (&json!("port"), &json!(false), &json!(false)));
    assert_eq!(asked["request"], json!("pull request 5, https://github.com/o/r/pull/5"));
    assert_eq!(asked["items"].as_array().map(Vec::len), Some(6));
    let output = stage.deliver(&["--feedback", "--add", "--anyone", "--dry-run"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("Feedback on …"), "{}", text(&output));
    let asked = &stage.daemon.asked("delivery.feedback")[1];
    assert_eq!(
        (asked["items"].as_array().map(Vec::len), &asked["add"], &asked["dry_run"]),
        (Some(8), &json!(true), &json!(true))
    );
}

#[test]
fn where_no_session_would_read_a_note_feedback_becomes_the_next_goal() {
    let stage = Stage::new();
    stage.says("list", &open_request(""));
    stage.says("view", r#"{"comments": [], "reviews": [], "statusCheckRollup": null}"#);
    stage.says("comments", "[]");
    let over = ErrorData::new(ErrorKind::WrongState, "the run is completed: no session would read the note");
    let stage = Stage { daemon: stage.daemon.refuses("delivery.feedback", over), ..stage };
    insta::assert_snapshot!(text(&stage.deliver(&["--feedback"])), @r"
    --- stderr
    error: the run is completed: no session would read the note

    hint: runnerctl deliver port --feedback --dry-run > feedback.md
      runnerctl start --goal feedback.md
    --- exit 6
    ");
}

#[test]
fn a_completed_run_that_was_waited_for_is_delivered_where_the_configuration_asks() {
    for asked in [true, false] {
        let mut described = described();
        described["on_complete"] = json!(asked);
        let stage = Stage::with(described, landed("landed"));
        let chapter = Chapter { events: Vec::new(), status: status("completed"), dies: false };
        let daemon = stage.daemon.answers("run.start", json!({"run": run("queued"), "ahead": 0, "resumed": false}));
        let daemon = daemon.answers("run.status", status("running")).answers("config.get", json!({"value": asked}));
        let stage = Stage { daemon: daemon.tells(vec![chapter]), ..stage };
        let repo = stage.path("repo").display().to_string();
        let mut client = stage.daemon.client(&["-C", &repo, "start", "--wait", "-m", "goal"]);
        let output = stage.dressed(&mut client).output().expect("runs");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert_eq!(
            text(&output).contains("opened pull request: https://github.com/o/r/pull/5"),
            asked,
            "{}",
            text(&output)
        );
        assert_eq!(stage.at_remote() == stage.tip(), asked);
    }
}

fn run(state: &str) -> Value {
    json!({
        "id": "port", "branch": "runner/port", "path": "/p", "state": state, "reason": null,
        "queued_at": "2026-01-01T00:00:00Z", "ended_at": null,
    })
}

fn status(state: &str) -> Value {
    json!({
        "repo": {"id": "r", "path": "/p", "held": null, "queue": []},
        "run": {
            "summary": run(state), "wait_until": null, "phase": null, "node": null, "leaves_passed": 1,
            "leaves_total": 1, "iteration": 3, "elapsed_ms": 61_000, "baseline": "pass", "recent": [], "questions": 0,
            "usage": {"sessions": 2, "input_tokens": null, "cached_tokens": null, "output_tokens": null, "cost_micro_usd": null},
            "held_back": [], "reverted": [], "containment": "walk", "pending": null,
        },
    })
}
