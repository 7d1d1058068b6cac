//! The scripted agent of the demo: reads its prompt, inspects the repository, and does the next piece of work.
//!
//! It plays fair: it gets only what every agent gets, and keeps nothing between sessions. It makes one mistake, and
//! learns of it from its prompt.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use protocol::answer::{AgentAnswer, AgentError, AgentErrorClass, AnswerStatus};
use protocol::error::ExitStatus;
use protocol::tree::{Node, TaskTree};
use serde::Serialize;

use super::script::{COMMAND, COMMAND_HALF, DECODE, DECODE_WRONG, DemoTask, ENCODE, REFUSE, ScriptFile};
use crate::failure::Failure;
use crate::text::sanitize::sanitize;
use crate::ui::print_stdout;

/// The answer that a session writes to the file named by `RUNNER_OUTPUT`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SessionOutput {
    Answer(AgentAnswer),
    Error { error: AgentError },
}

/// Runs one session in the current directory.
pub(crate) fn run() -> Result<ExitStatus, Failure> {
    let output = std::env::var_os("RUNNER_OUTPUT").map(PathBuf::from).ok_or_else(|| {
        Failure::usage("the demo's agent is started by the runner: RUNNER_OUTPUT is not set").hint("runnerctl demo")
    })?;
    let mut prompt = Vec::new();
    io::stdin().read_to_end(&mut prompt).map_err(|error| Failure::io("reading the prompt", &error))?;
    let session = DemoSession { work_tree: Path::new("."), prompt: &String::from_utf8_lossy(&prompt) };
    let answer = serde_json::to_vec(&session.run_session()?).expect("BUG: an answer is not JSON");
    fs::write(&output, answer).map_err(|error| Failure::io(format!("writing {}", output.display()), &error))?;
    Ok(ExitStatus::Success)
}

/// Information available to a session.
struct DemoSession<'a> {
    work_tree: &'a Path,
    prompt: &'a str,
}

impl DemoSession<'_> {
    fn run_session(&self) -> Result<SessionOutput, Failure> {
        let tree = self.read_tree()?;
        let Some(leaf) = next_leaf(&tree.root) else { return Ok(unknown_task("there is no open leaf")) };
        print_line(&format!("{} bytes of prompt; the task is {}", self.prompt.len(), leaf.title))?;
        if leaf.id == tree.root.id {
            return Ok(decompose_into(
                "Three parts: each direction alone, then the command around them.",
                &DemoTask::OF_GOAL,
            ));
        }
        let Some(part) = DemoTask::from_title(&leaf.title) else { return Ok(unknown_task(&leaf.title)) };
        self.work_on(part)
    }

    fn work_on(&self, part: DemoTask) -> Result<SessionOutput, Failure> {
        match part {
            DemoTask::Encode => {
                self.write_and_answer(ENCODE, AnswerStatus::Done, "Numbers become numerals, with checks.")
            }
            DemoTask::Decode if !self.has_file("lib/decode.sh") => self.write_and_answer(
                DECODE_WRONG,
                AnswerStatus::Done,
                "Numerals become numbers: the figures are added up.",
            ),
            DemoTask::Decode => {
                let quote =
                    self.find_failed_check().map(|line| format!(" The guard said: {line}.")).unwrap_or_default();
                let summary = format!("A smaller figure before a larger one is taken off.{quote}");
                self.write_and_answer(DECODE, AnswerStatus::Done, &summary)
            }
            DemoTask::Command => {
                Ok(decompose_into("Two steps: convert either way, then refuse the rest.", &DemoTask::OF_COMMAND))
            }
            DemoTask::BothWays if !self.file_contains("bin/roman", "encode.sh") => self.write_and_answer(
                COMMAND_HALF,
                AnswerStatus::Retry,
                "Numbers work; telling numerals apart is left.",
            ),
            DemoTask::BothWays => {
                self.write_and_answer(COMMAND, AnswerStatus::Done, "The command converts either way.")
            }
            DemoTask::Refuse => {
                self.write_and_answer(REFUSE, AnswerStatus::Done, "What is neither is refused with exit code 2.")
            }
        }
    }

    fn read_tree(&self) -> Result<TaskTree, Failure> {
        let path = self.work_tree.join(".runner/state/tree.json");
        let failed = |error: &io::Error| Failure::io(format!("reading {}", path.display()), error);
        let bytes = fs::read(&path).map_err(|error| failed(&error))?;
        serde_json::from_slice(&bytes).map_err(|error| failed(&error.into()))
    }

    /// Returns the first line of the prompt that reports a failed check.
    fn find_failed_check(&self) -> Option<&str> {
        self.prompt.lines().map(str::trim).find(|line| line.starts_with("FAIL ") && line.contains("expected"))
    }

    fn has_file(&self, file: &str) -> bool {
        self.work_tree.join(file).exists()
    }

    fn file_contains(&self, file: &str, text: &str) -> bool {
        fs::read_to_string(self.work_tree.join(file)).is_ok_and(|found| found.contains(text))
    }

    fn write_and_answer(
        &self,
        files: &[ScriptFile],
        status: AnswerStatus,
        summary: &str,
    ) -> Result<SessionOutput, Failure> {
        write_files(self.work_tree, files)?;
        for (path, _) in files {
            print_line(&format!("wrote {path}"))?;
        }
        print_line(summary)?;
        Ok(SessionOutput::Answer(AgentAnswer { status, summary: summary.into(), children: None }))
    }
}

/// Writes files into a work tree, creating parent folders as needed.
pub(super) fn write_files(work_tree: &Path, files: &[ScriptFile]) -> Result<(), Failure> {
    for (path, text) in files {
        let path = work_tree.join(path);
        let created = path.parent().map_or(Ok(()), fs::create_dir_all);
        created
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| Failure::io(format!("writing {}", path.display()), &error))?;
    }
    Ok(())
}

fn decompose_into(summary: &str, parts: &[DemoTask]) -> SessionOutput {
    let children = parts.iter().map(|part| part.to_child_spec()).collect();
    SessionOutput::Answer(AgentAnswer {
        status: AnswerStatus::Decomposed,
        summary: summary.into(),
        children: Some(children),
    })
}

fn unknown_task(what: &str) -> SessionOutput {
    let message = format!("the demo's agent knows the demo's tasks alone, and not: {what}");
    SessionOutput::Error { error: AgentError { class: AgentErrorClass::Misconfigured, until: None, message } }
}

/// Returns the leftmost leaf that does not pass: children in a committed tree are in order.
fn next_leaf(node: &Node) -> Option<&Node> {
    if node.is_leaf() {
        return (!node.passes).then_some(node);
    }
    node.children.iter().find_map(next_leaf)
}

fn print_line(text: &str) -> Result<(), Failure> {
    print_stdout(&format!("{}\n", sanitize(text)))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::process::Command;

    use protocol::tree::TREE_VERSION;

    use super::super::script::SCRATCH;
    use super::*;

    /// Drives a work tree as the runner does: the demo's own checks decide what passes.
    struct DemoHarness {
        folder: tempfile::TempDir,
        tree: TaskTree,
    }

    impl DemoHarness {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            write_files(folder.path(), SCRATCH).expect("writes");
            let root = node("root", "Roman numerals");
            Self { folder, tree: TaskTree { version: TREE_VERSION, root } }
        }

        /// Runs a session; returns its answer, and the output of the checks if it claims to be done.
        fn run_session(&mut self, prompt: &str) -> (AgentAnswer, Option<String>) {
            let json = serde_json::to_string(&self.tree).expect("serializes");
            write_file(self.folder.path(), ".runner/state/tree.json", &json);
            let session = DemoSession { work_tree: self.folder.path(), prompt };
            let SessionOutput::Answer(answer) = session.run_session().expect("answers") else { panic!("no answer") };
            let leaf = next_leaf_mut(&mut self.tree.root).expect("an open leaf");
            for (at, child) in answer.children.iter().flatten().enumerate() {
                leaf.children.push(node(&format!("{}.{}", leaf.id, at + 1), &child.title));
            }
            if answer.status != AnswerStatus::Done {
                return (answer, None);
            }
            let guard = Command::new("sh").arg("ci.sh").current_dir(self.folder.path()).output().expect("runs");
            leaf.passes = guard.status.success();
            (answer, Some(String::from_utf8_lossy(&guard.stdout).into_owned()))
        }
    }

    fn write_file(folder: &Path, path: &str, text: &str) {
        fs::create_dir_all(folder.join(path).parent().expect("a parent")).expect("makes a folder");
        fs::write(folder.join(path), text).expect("writes");
    }

    fn node(id: &str, title: &str) -> Node {
        Node {
            id: id.into(),
            order: 1,
            title: title.into(),
            goal: String::new(),
            acceptance: Vec::new(),
            passes: false,
            attempts: 0,
            max_attempts: 3,
            children: Vec::new(),
        }
    }

    fn next_leaf_mut(node: &mut Node) -> Option<&mut Node> {
        if node.is_leaf() {
            return (!node.passes).then_some(node);
        }
        node.children.iter_mut().find_map(next_leaf_mut)
    }

    #[test]
    fn the_sessions_bring_the_goal_about_with_one_red_guard_and_one_retry() {
        let mut harness = DemoHarness::new();
        let mut story = String::new();
        let mut prompt = String::new();
        while next_leaf(&harness.tree.root).is_some() {
            let (answer, guard) = harness.run_session(&prompt);
            let last = guard.as_deref().and_then(|text| text.lines().last()).unwrap_or("-").to_owned();
            let _ = writeln!(story, "{:?}  {}  {last}", answer.status, answer.summary);
            prompt = guard.unwrap_or_default();
            assert!(story.lines().count() < 20, "{story}");
        }
        insta::assert_snapshot!(story, @r"
        Decomposed  Three parts: each direction alone, then the command around them.  -
        Done  Numbers become numerals, with checks.  4 checks, 0 failed
        Done  Numerals become numbers: the figures are added up.  8 checks, 2 failed
        Done  A smaller figure before a larger one is taken off. The guard said: FAIL decode IV: expected 4, got 6.  8 checks, 0 failed
        Decomposed  Two steps: convert either way, then refuse the rest.  -
        Retry  Numbers work; telling numerals apart is left.  -
        Done  The command converts either way.  10 checks, 0 failed
        Done  What is neither is refused with exit code 2.  16 checks, 0 failed
        ");
        let roman = |arg| Command::new("sh").args(["bin/roman", arg]).current_dir(harness.folder.path()).output();
        assert_eq!(roman("MCMXCIV").expect("runs").stdout, b"1994\n");
        assert_eq!(roman("IIII").expect("runs").status.code(), Some(2));
    }

    #[test]
    fn a_task_of_another_goal_is_not_guessed_at() {
        let mut harness = DemoHarness::new();
        harness.tree.root.children.push(node("root.1", "Port the service"));
        write_file(
            harness.folder.path(),
            ".runner/state/tree.json",
            &serde_json::to_string(&harness.tree).expect("json"),
        );
        let answer = DemoSession { work_tree: harness.folder.path(), prompt: "" }.run_session().expect("answers");
        let json = serde_json::to_value(&answer).expect("serializes");
        assert_eq!(json["error"]["class"], "misconfigured");
    }
}
