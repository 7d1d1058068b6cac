//! `import`: lists of tasks become cases, and no session sees the tests that decide.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use crate::kit::EvalKit;

/// A session that fixes the program.
const MENDS: &str = "printf 'echo 4\\n' >add.sh; cat tests/* >seen.txt 2>&1; answer done \"Mended.\"";
/// A session that replaces its tests, and links the place where they are to outside the work tree.
const CHEATS: &str = "rm -r tests; ln -s /tmp tests; answer done \"Mended.\"";

/// A home with a clone of a program that adds wrongly, and the later commit that fixed it.
struct ImportFixture {
    kit: EvalKit,
    base: String,
}

impl ImportFixture {
    fn new() -> Self {
        let tasks = Self { kit: EvalKit::new(), base: String::new() };
        let folder = tasks.repository_dir();
        fs::create_dir_all(folder.join("tests")).expect("a folder");
        fs::write(folder.join("add.sh"), "echo 5\n").expect("a file");
        symlink("add.sh", folder.join("alias.sh")).expect("a link");
        fs::write(folder.join("tests/t.sh"), "test \"$(sh add.sh)\" = 5\n").expect("a file");
        let git = |arguments: &[&str]| {
            assert!(tasks.kit.git(&[&["-C", "clones/acme__adder"], arguments].concat()), "{arguments:?}");
        };
        git(&["init", "--quiet"]);
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--message", "Add"]);
        git(&["tag", "base"]);
        fs::write(folder.join("add.sh"), "echo 4 # the solution\n").expect("a file");
        git(&["commit", "--quiet", "--all", "--message", "Mend"]);
        let base = fs::read_to_string(folder.join(".git/refs/tags/base")).expect("a tag").trim().to_owned();
        Self { base, ..tasks }
    }

    fn repository_dir(&self) -> PathBuf {
        self.kit.home.path().join("clones/acme__adder")
    }

    /// Writes a list of one line; the argument replaces some of its fields.
    fn write_list(&self, overrides: &[(&str, serde_json::Value)]) -> String {
        let patch = "diff --git a/tests/t.sh b/tests/t.sh\n--- a/tests/t.sh\n+++ b/tests/t.sh\n@@ -1 +1 @@\n\
                     -test \"$(sh add.sh)\" = 5\n+test \"$(sh add.sh)\" = 4\n\
                     diff --git a/tests/run b/tests/run\nnew file mode 100755\n--- /dev/null\n+++ b/tests/run\n@@ -0,0 +1,2 @@\n\
                     +#!/bin/sh\n+for each; do sh \"tests/$each\" || exit 1; done\n";
        let mut task = json!({
            "instance_id": "Acme__adder-1", "repo": "acme/adder", "base_commit": self.base,
            "problem_statement": "`add.sh` prints the sum of 2 and 2.", "patch": "the solution",
            "test_patch": patch, "FAIL_TO_PASS": "[\"t.sh\"]", "PASS_TO_PASS": "[]", "version": "1.0"
        });
        for (key, value) in overrides {
            task[*key] = value.clone();
        }
        let file = self.kit.home.path().join("list.jsonl");
        fs::write(&file, format!("\n{task}\n")).expect("a list can be written");
        file.display().to_string()
    }

    fn import_list(&self, list: &str) -> runner_testkit::ProgramOutput {
        let [cases, clones] = ["cases", "clones"].map(|name| self.kit.home.path().join(name).display().to_string());
        let test = "tests/run {tests}";
        self.kit.eval(&["import", list, &cases, "--repos", &clones, "--guard", "true", "--test", test, "--json"])
    }

    /// Makes a script play the agent.
    fn set_agent_script(&self, script: &str) {
        let file = self.kit.home.path().join("cases/acme__adder-1.toml");
        let text = fs::read_to_string(&file).expect("a case");
        fs::write(&file, format!("{text}\n[agent]\nscript = '''\n{script}\n'''\n")).expect("it can be written");
    }

    fn run_outcome(&self) -> String {
        let runs = self.kit.eval(&["run", "--json", "acme__adder-1"]).json();
        runs["runs"][0]["outcome"].as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn a_task_becomes_a_case_whose_tests_and_solution_no_session_sees() {
    let tasks = ImportFixture::new();
    let imported = tasks.import_list(&tasks.write_list(&[])).exits(0).json();
    EvalKit::assert_valid("eval-imported.v1", &imported);
    assert_eq!(imported["cases"], json!(["acme__adder-1"]));
    tasks.set_agent_script(MENDS);
    assert_eq!(tasks.run_outcome(), "success");
    let result = tasks.kit.results().join("acme__adder-1_latest");
    let cloned = tasks.kit.git(&[
        "clone",
        "--quiet",
        &result.join("branch.bundle").display().to_string(),
        "seen",
        "-b",
        "runner/acme__adder-1",
    ]);
    let seen = fs::read_to_string(tasks.kit.home.path().join("seen/seen.txt")).expect("what the session saw");
    assert!(cloned && seen == "test \"$(sh add.sh)\" = 5\n", "{seen}");
    let template = tasks.kit.home.path().join("cases/acme__adder-1/template");
    assert_eq!(fs::read_to_string(template.join("add.sh")).expect("a file"), "echo 5\n");
    for folder in [&template, &tasks.kit.home.path().join("seen")] {
        assert!(folder.join("alias.sh").is_symlink(), "{}", folder.display());
    }
    assert!(!template.join(".git").exists(), "the history has the solution");
    tasks.kit.assert_nothing_left();
}

#[test]
fn tests_are_laid_over_what_a_session_has_put_in_their_place() {
    let tasks = ImportFixture::new();
    tasks.import_list(&tasks.write_list(&[])).exits(0);
    tasks.set_agent_script(CHEATS);
    assert_eq!(tasks.run_outcome(), "fail");
    assert!(!fs::exists("/tmp/t.sh").expect("it can be looked for"), "a link was followed");
}

#[test]
fn a_line_that_makes_no_case_is_named_and_leaves_nothing() {
    let tasks = ImportFixture::new();
    let refused = |over: &[(&str, serde_json::Value)], words: &str| {
        let output = tasks.import_list(&tasks.write_list(over));
        assert!(
            output.exits(2).stderr.contains("list.jsonl:2: ") && output.stderr.contains(words),
            "{}",
            output.stderr
        );
        let count = fs::read_dir(tasks.kit.home.path().join("cases")).expect("a folder").count();
        assert_eq!(count, 0, "{words}");
    };
    refused(&[("repo", json!("acme/other"))], "no repository acme/other");
    refused(&[("base_commit", json!("no-such"))], "has no commit no-such");
    refused(&[("test_patch", json!("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"))], "does not apply");
    refused(&[("FAIL_TO_PASS", json!("[]"))], "neither `tests` nor");
    refused(&[("instance_id", json!("-"))], "makes no id");
    refused(&[("problem_statement", json!(""))], "the goal is empty");
    refused(&[("base_commit", json!(7))], "invalid type");
    tasks.import_list(&tasks.write_list(&[])).exits(0);
    assert!(tasks.import_list(&tasks.write_list(&[])).exits(2).stderr.contains("is there already"));
}
