//! The parts that a project uses in its CI: the script, and the steps of the action and the template, each run as the
//! plain shell script it is.
//!
//! The remote was pushed to, and checkouts of it are shallow. The tests supply the values that a CI service evaluates
//! before a step.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use runner_testkit::{ProgramOutput, binary};
use serde_json::Value;

use crate::audits::play_two;
use crate::play::{RUN, RunPlay};

const TREE: &str = ".runner/state/tree.json";

/// A run's branch at a remote, and a shallow checkout of its other branch.
struct PushedRun {
    play: RunPlay,
    branch: String,
}

impl PushedRun {
    fn new() -> Self {
        let play = play_two();
        play.repo.git(&["clone", "-q", "--bare", ".", "../../remote.git"]);
        let pushed = Self { play, branch: format!("runner/{RUN}") };
        pushed.checkout("checkout");
        pushed.add_traps();
        pushed
    }

    fn at(&self, name: &str) -> PathBuf {
        self.play.home.path().join(name)
    }

    fn checkout(&self, name: &str) {
        let url = format!("file://{}", self.at("remote.git").display());
        self.play.repo.git(&["clone", "-q", "--depth=1", "--branch=main", &url, &self.at(name).display().to_string()]);
    }

    /// Adds to the checkout what a branch may contain: hooks, a report that claims success, and a link to a file of the
    /// job.
    fn add_traps(&self) {
        let hooks = self.at("checkout/.husky");
        fs::create_dir(&hooks).expect("it can be made");
        for hook in ["reference-transaction", "post-checkout", "pre-auto-gc"] {
            let trap = format!("#!/bin/sh\necho {hook} >> '{}'\n", self.at("sprung").display());
            fs::write(hooks.join(hook), trap).expect("it can be written");
            fs::set_permissions(hooks.join(hook), Permissions::from_mode(0o755)).expect("it is ours");
        }
        self.play.repo.git(&["-C", "../../checkout", "config", "core.hooksPath", ".husky"]);
        fs::write(self.at("checkout/runner.md"), "# all is well\n").expect("it can be written");
        fs::write(self.at("of-the-job"), "").expect("it can be written");
        symlink(self.at("of-the-job"), self.at("checkout/runner.sarif")).expect("it can be made");
        fs::write(self.at("checkout/.git/info/exclude"), ".husky\nrunner.*\n").expect("it can be written");
    }

    /// Marks a leaf as passed at the remote, in a commit that looks like a person's; returns the commit.
    fn forge(&self) -> String {
        let git = |args: &[&str]| self.play.repo.git(&[&["-C", "../../forger"], args].concat());
        self.play.repo.git(&["clone", "-q", "--branch", &self.branch, "../../remote.git", "../../forger"]);
        let tree = self.at("forger").join(TREE);
        let text =
            fs::read_to_string(&tree).expect("the tree is there").replacen("\"passes\": false", "\"passes\": true", 1);
        fs::write(tree, text).expect("it can be written");
        git(&["commit", "-qam", "chore: tidy up"]);
        git(&["push", "-q", "origin", &self.branch]);
        git(&["rev-parse", "HEAD"])
    }

    /// Runs a step of a job in the checkout.
    fn step(&self, shell: &[&str], text: &str, env: &[(&str, &str)]) -> ProgramOutput {
        let home = &self.play.home;
        let programs = binary("runnerctl").parent().expect("it is in a folder").display().to_string();
        let path =
            home.env().iter().find(|(name, _)| name == "PATH").map(|(_, path)| format!("PATH={programs}:{path}"));
        let mut words = vec!["-c".to_owned(), "cd checkout && exec env \"$@\"".to_owned(), "sh".to_owned()];
        words.extend(path.into_iter().chain(env.iter().map(|(name, value)| format!("{name}={value}"))));
        words.extend(shell.iter().chain([&text]).map(|&word| word.to_owned()));
        home.run_program(Path::new("/bin/sh"), &words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn verify(&self, options: &str) -> ProgramOutput {
        self.step(&["sh", "-c"], &format!("exec '{}' {options}", ci("verify.sh").display()), &[])
    }

    /// Asserts that a checkout is unchanged, except for fetched objects, and that the script has left nothing.
    #[track_caller]
    fn assert_untouched(&self) {
        let git = |args: &[&str]| self.play.repo.git(&[&["-C", "../../checkout"], args].concat());
        assert_eq!(git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main\nrefs/remotes/origin/main");
        assert_eq!(git(&["status", "--porcelain"]), "");
        let left: Vec<_> =
            fs::read_dir(self.at("tmp")).expect("it is there").flatten().map(|entry| entry.path()).collect();
        assert_eq!(left, [""; 0].map(PathBuf::from));
        assert!(!self.at("sprung").exists(), "a hook of the checkout was run");
        assert_eq!(fs::read_to_string(self.at("of-the-job")).expect("it is there"), "", "a link was followed");
    }
}

fn ci(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ci").join(name).canonicalize().expect("the file is there")
}

fn yaml(name: &str) -> Value {
    let text = fs::read_to_string(ci(name)).expect("the file can be read");
    serde_saphyr::from_str(&text).expect("the file is YAML")
}

fn findings(sarif: &Path) -> usize {
    let log: Value = serde_json::from_slice(&fs::read(sarif).expect("it was written")).expect("it is JSON");
    log["runs"][0]["results"].as_array().expect("results").len()
}

/// Runs the steps of the action, for a pull request with this head.
fn action(pushed: &PushedRun, commit: &str) -> ProgramOutput {
    let folder = ci(".");
    let summary = pushed.at("summary.md");
    let sarif = pushed.at("action.sarif");
    let log = pushed.at("tips");
    let [folder, summary, sarif, log] = [&folder, &summary, &sarif, &log].map(|path| path.display().to_string());
    let own = [
        ("REF", "refs/pull/5/head"),
        ("COMMIT", commit),
        ("SINCE", ""),
        ("SIGNERS", ""),
        ("REVIEWERS", ""),
        ("TIP_LOG", &log),
        ("SARIF", &sarif),
    ];
    let given = [("GITHUB_ACTION_PATH", folder.as_str()), ("GITHUB_STEP_SUMMARY", &summary)];
    let action = yaml("action.yml");
    let steps = action["runs"]["steps"].as_array().expect("steps").clone();
    let [build, verify] = &steps[..] else { panic!("other steps: {steps:#?}") };
    let shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"];
    let text = |step: &Value| step["run"].as_str().expect("a step of shell").to_owned();
    assert!([build, verify].iter().all(|step| step["shell"] == "bash" && !text(step).contains("${{")), "{steps:#?}");
    pushed.step(&shell, &text(build), &given).exits(0);
    let named: BTreeSet<&str> = verify["env"].as_object().expect("variables").keys().map(String::as_str).collect();
    assert_eq!(named, own.iter().map(|(name, _)| *name).collect(), "each value comes by a variable");
    pushed.step(&shell, &text(verify), &[&own[..], &given].concat())
}

/// Runs the job of the template, for a branch that was pushed to.
fn template(pushed: &PushedRun, commit: &str) -> ProgramOutput {
    let job = yaml("gitlab.yml")["runner-verify"].clone();
    let script: Vec<&str> = job["script"].as_array().expect("a script").iter().filter_map(Value::as_str).collect();
    let verify = ci("verify.sh").display().to_string();
    let variables = job["variables"].as_object().expect("variables").keys().map(String::as_str);
    assert_eq!(
        variables.collect::<BTreeSet<_>>(),
        BTreeSet::from([
            "GIT_DEPTH",
            "RUNNER_REVIEWERS",
            "RUNNER_SIGNERS",
            "RUNNER_SINCE",
            "RUNNER_TIP_LOG",
            "RUNNER_VERIFY"
        ])
    );
    let env = [
        ("CI_COMMIT_BRANCH", pushed.branch.as_str()),
        ("CI_COMMIT_SHA", commit),
        ("RUNNER_SIGNERS", ""),
        ("RUNNER_REVIEWERS", ""),
        ("RUNNER_SINCE", "main"),
        ("RUNNER_TIP_LOG", ""),
        ("RUNNER_VERIFY", &verify),
    ];
    let output = pushed.step(&["sh", "-ec"], &script.join("\n"), &env);
    for file in ["runner.md", "runner.sarif"] {
        let path = pushed.at("checkout").join(file);
        assert!(job["artifacts"]["paths"].as_array().expect("paths").contains(&file.into()));
        fs::rename(path, pushed.at(file)).expect("the job has written it");
    }
    output
}

#[test]
fn the_steps_of_action_and_template_judge_what_was_pushed() {
    let pushed = PushedRun::new();
    let remote = |args: &[&str]| pushed.play.repo.git(&[&["--git-dir", "../../remote.git"], args].concat());
    let honest = remote(&["rev-parse", &pushed.branch]);
    remote(&["update-ref", "refs/pull/5/head", &honest]);
    fs::write(pushed.at("tips"), "").expect("it can be written");
    let output = action(&pushed, &honest);
    assert!(output.exits(0).stdout.contains("0 violations"), "{}", output.stdout);
    let (begins, ends) = output.stdout.trim_end().split_once('\n').expect("there are lines");
    let words = begins.strip_prefix("::stop-commands::").expect("no text of the branch is a command");
    assert!(words.len() == 32 && ends.ends_with(&format!("\n::{words}::")), "{}", output.stdout);
    assert_eq!(findings(&pushed.at("action.sarif")), 0);
    template(&pushed, &honest).exits(0);
    assert_eq!(findings(&pushed.at("runner.sarif")), 0);
    let report = fs::read_to_string(pushed.at("runner.md")).expect("it was written");
    assert!(report.starts_with("## Run `play`"), "{report}");
    let forged = pushed.forge();
    remote(&["update-ref", "refs/pull/5/head", &forged]);
    assert!(action(&pushed, &forged).exits(10).stdout.contains("valid"));
    let summary = fs::read_to_string(pushed.at("summary.md")).expect("it was written");
    assert_eq!(summary.matches("## Run `play`").count(), 2, "{summary}");
    assert!(summary.contains("| violation |"), "{summary}");
    assert!(findings(&pushed.at("action.sarif")) > 0);
    template(&pushed, &forged).exits(10);
    template(&pushed, &honest).exits(0);
    pushed.assert_untouched();
}

#[test]
fn a_branch_that_is_cut_off_falls_where_its_tips_are_kept() {
    let pushed = PushedRun::new();
    let remote = |args: &[&str]| pushed.play.repo.git(&[&["--git-dir", "../../remote.git"], args].concat());
    let branch = &pushed.branch;
    let log = pushed.at("tips");
    let judge = |options: &str| pushed.verify(&format!("--ref {branch} --tip-log '{}' {options}", log.display()));
    let unknown = judge("");
    assert!(unknown.exits(1).stderr.contains("touch "), "one that is gone is not taken for empty: {}", unknown.stderr);
    fs::write(&log, "").expect("it can be written");
    let last = remote(&["rev-parse", branch]);
    let before = remote(&["rev-parse", &format!("{branch}~1")]);
    judge("").exits(0);
    judge("").exits(0);
    assert_eq!(fs::read_to_string(&log).expect("it is there"), format!("play {last}\n"));
    let late = judge(&format!("--commit {before}"));
    assert!(late.exits(0).stderr.contains("has moved on"), "the job of a push before this one: {}", late.stderr);
    remote(&["update-ref", &format!("refs/heads/{branch}"), &before]);
    pushed.verify(&format!("--ref {branch}")).exits(0);
    let cut = judge("--sarif '../cut.sarif' --since main");
    assert!(
        cut.exits(10).stdout.contains(&format!("expected commit {last}, which was its last once")),
        "{}",
        cut.stdout
    );
    assert_eq!(findings(&pushed.at("cut.sarif")), 1);
    assert_eq!(fs::read_to_string(&log).expect("it is there"), format!("play {last}\n"), "nothing is learned of it");
    fs::write(&log, "play no-commit\n").expect("it can be written");
    assert!(judge("").exits(2).stderr.contains("line 1: expected"));
    pushed.assert_untouched();
}

#[test]
fn the_branch_that_is_judged_does_not_choose_what_is_looked_at() {
    let pushed = PushedRun::new();
    let branch = &pushed.branch;
    let forged = pushed.forge();
    pushed.verify(&format!("--ref {branch} --since main")).exits(10);
    for own in ["runner/play", "runner/other", "refs/heads/runner/play", &forged] {
        let refused = pushed.verify(&format!("--ref {branch} --since {own}"));
        assert_ne!((refused.code, refused.stdout.as_str()), (0, ""), "{own}");
        assert!([1, 2].contains(&refused.code), "{own}: {}", refused.stderr);
    }
    // A branch of the remote that was moved along hides nothing.
    pushed.play.repo.git(&["--git-dir", "../../remote.git", "branch", "copy", &forged]);
    let output = pushed.verify(&format!("--ref {branch} --since copy"));
    assert!(output.exits(10).stderr.contains("copy has all of it"), "{}", output.stderr);
    for wrong in ["", "--ref a:b", "--ref x --commit HEAD", "--ref", "--ref x --remote=y", "--ref x -v"] {
        assert!(pushed.verify(wrong).exits(2).stderr.contains("usage: verify.sh"), "{wrong}");
    }
    // The script takes neither a link nor a report in the checkout for its own.
    let link = pushed.verify("--ref runner/play --markdown runner.sarif");
    assert!(link.exits(2).stderr.contains("is a symbolic link"), "{}", link.stderr);
    pushed.verify("--ref runner/other --sarif runner.sarif").exits(1);
    assert!(fs::symlink_metadata(pushed.at("checkout/runner.sarif")).is_err());
    let gone = pushed.verify(&format!("--ref {branch} --commit {}", "0".repeat(40)));
    assert!(gone.exits(1).stderr.contains("was moved since"), "{}", gone.stderr);
    assert!(pushed.verify("--ref runner/other").exits(1).stderr.contains("cannot be fetched from origin"));
    pushed.assert_untouched();
}
