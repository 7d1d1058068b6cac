//! A repository whose run has landed on `deliver/port`, its remote, and its forge.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake::{FakeDaemon, run_json};

/// Plays `gh`: stores its arguments, and answers from files next to it.
const GH: &str = r#"#!/bin/sh
case "$1 $2" in "--version "*|"auth status") ;; *) { echo "gh"; printf '  %s\n' "$@"; } >> "$FORGE/told" ;; esac
for word; do case $word in --body-file=*) cp "${word#--body-file=}" "$FORGE/body" ;; --field=body=@*) cp "${word#--field=body=@}" "$FORGE/body" ;; esac; done
case "$1 $2" in
"auth status") test ! -e "$FORGE/no-login" ;;
"pr list") cat "$FORGE/list" ;;
"pr view") cat "$FORGE/view" ;;
"run view") cat "$FORGE/log" ;;
"pr create") test ! -e "$FORGE/gate" || { echo here > "$FORGE/gate"; exec sleep 600; }; echo https://github.com/o/r/pull/5 ;;
"api "*) case "$*" in *comments*) cat "$FORGE/comments" ;; esac ;;
esac
"#;
/// Plays `ssh`: every host is this one, and every repository the bare one.
pub(crate) const SSH: &str = "#!/bin/sh\nfor last; do :; done\nexec ${last%% *} \"$REMOTE\"\n";

/// A repository whose run has landed on `deliver/port`, its remote, and its forge.
pub(crate) struct DeliveryStage {
    pub(crate) folder: TempDir,
    pub(crate) daemon: FakeDaemon,
}

impl DeliveryStage {
    pub(crate) fn new() -> Self {
        Self::with_replies(describe_reply(), land_reply("landed"))
    }

    pub(crate) fn with_replies(described: Value, landed: Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["repo", "bin", "forge"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let daemon = FakeDaemon::start()
            .with_reply("run.list", json!([run_json("port", "completed")]))
            .with_reply("delivery.describe", described)
            .with_reply("land.run", landed);
        let stage = Self { folder, daemon };
        stage.write_program("gh", GH);
        stage.write_program("ssh", SSH);
        stage.write_reply("list", "[]");
        stage.run_git(&["init", "-q", "-b", "main", "."]);
        stage.commit("a", "Begin");
        stage.run_git(&["clone", "-q", "--bare", ".", "../remote.git"]);
        stage.run_git(&["remote", "add", "origin", "ssh://git@github.com/o/r.git"]);
        stage.run_git(&["switch", "-q", "-c", "deliver/port"]);
        stage.commit("b", "The schema");
        stage.run_git(&["switch", "-q", "main"]);
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write_program(&self, name: &str, text: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, text).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }

    pub(crate) fn write_reply(&self, file: &str, text: &str) {
        fs::write(self.path("forge").join(file), text).expect("an answer");
    }

    pub(crate) fn requests_made(&self) -> String {
        fs::read_to_string(self.path("forge/told")).unwrap_or_default()
    }

    /// Returns the options passed to `gh`, without the folder of a description.
    pub(crate) fn options(&self) -> String {
        let folder = env::temp_dir().display().to_string();
        let cut = |line: &str| match line.find(&folder).filter(|_| line.contains("body")) {
            Some(at) => format!("{}…/description.md", &line[..at]),
            None => line.to_owned(),
        };
        self.requests_made().lines().map(cut).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn run_git_in(&self, folder: &str, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(args).current_dir(self.path(folder));
        let output = self.with_environment(&mut command).output().expect("git runs");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) fn run_git(&self, args: &[&str]) -> String {
        self.run_git_in("repo", args)
    }

    pub(crate) fn commit(&self, file: &str, message: &str) {
        fs::write(self.path("repo").join(file), message).expect("a file");
        self.run_git(&["add", "."]);
        self.run_git(&["commit", "-q", "-m", message]);
    }

    /// Gives a program only the environment of this stage.
    pub(crate) fn with_environment<'c>(&self, command: &'c mut Command) -> &'c mut Command {
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

    pub(crate) fn client(&self, args: &[&str]) -> Command {
        let repo = self.path("repo").display().to_string();
        let mut command = self.daemon.client(&[&["-C", &repo, "deliver", "port"], args].concat());
        self.with_environment(&mut command);
        command
    }

    pub(crate) fn deliver(&self, args: &[&str]) -> Output {
        self.client(args).output().expect("runs")
    }

    pub(crate) fn remote_tip(&self) -> String {
        self.run_git_in("remote.git", &["for-each-ref", "--format=%(objectname)", "refs/heads/deliver"])
    }

    pub(crate) fn local_tip(&self) -> String {
        self.run_git(&["rev-parse", "deliver/port"])
    }
}

pub(crate) fn describe_reply() -> Value {
    json!({
        "run": "port", "tip": "1".repeat(40), "branch": "deliver/port", "at_work": null, "leaves_passed": 1,
        "leaves_total": 1, "title": "Port the store", "body": own_part("What was asked"), "remote": "origin", "base": null,
        "command": [], "on_complete": false,
    })
}

pub(crate) fn own_part(text: &str) -> String {
    format!("<!-- runnerd: begin -->\n{text}\n<!-- runnerd: end -->\n")
}

pub(crate) fn land_reply(outcome: &str) -> Value {
    let commit = json!({"commit": "2".repeat(40), "subject": "The schema", "node": "root", "of": "1".repeat(40)});
    let run = json!({"run": "port", "outcome": outcome, "commits": [commit], "refusal": null, "notes": []});
    json!({
        "onto": "deliver/port", "before": null, "after": "2".repeat(40), "preview": false, "work_tree": null,
        "runs": [run],
    })
}

pub(crate) fn open_pr_json(body: &str) -> String {
    let request = json!({
        "number": 5, "url": "https://github.com/o/r/pull/5", "state": "OPEN", "isDraft": true, "title": "Mine",
        "body": body, "isCrossRepository": false,
    });
    json!([request]).to_string()
}
