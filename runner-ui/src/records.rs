//! Reads what a work tree contains itself, for when no daemon has answered: committed state and records, never written.
//!
//! Only regular files below `.runner/` are opened, and symbolic links are not followed: an agent may have created one.

mod open_dir;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::id_lookup::find_by_id;
use protocol::meta::IterationMeta;
use protocol::path::WirePath;
use protocol::reply::{IterationReply, MemoryFile, MemoryReply, TreeReply};
use protocol::request::LogStream;
use protocol::state::RunState;
use protocol::test_record::{TestRecord, TestsView};
use protocol::tree::TaskTree;
use protocol::view::{IterationView, RepoView, RunSummary, RunView, StatusView, StopReason};
use protocol::words::{Containment, RunStatus};
use serde::de::DeserializeOwned;

use self::open_dir::OpenDir;
use crate::problem::ApiProblem;
use crate::target::{IterationId, parse_id};
use crate::text::RecordText;

/// Maximum size of a file that is read as a whole, in bytes.
const MAX_FILE: u64 = 16 << 20;
/// Placeholder for the repository id, which only a daemon assigns.
const RECORDS_ID: &str = "records";
/// Number of iterations included in a run's status.
const RECENT_ITERATIONS: usize = 5;
const MEMORY_FILES: [&str; 6] =
    ["progress.md", "notes.md", "assumptions.md", "questions.md", "guardrails.md", "improvements.md"];

/// The records of one work tree.
#[derive(Debug, Clone)]
pub(crate) struct WorkTreeRecords {
    root: Arc<PathBuf>,
}

impl WorkTreeRecords {
    /// Finds the work tree that contains a path by its `.runner` folder.
    pub(crate) fn find_around(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let root = path.ancestors().find(|folder| folder.join(".runner").is_dir())?;
        Some(Self { root: Arc::new(root.to_owned()) })
    }

    /// Describes the repository and its run; broken state is shown as held.
    pub(crate) fn status(&self) -> StatusView {
        let run_of_state = |state: RunState| state.run_id.as_ref().map(|run| self.run_view(run, &state)).transpose();
        let read = self.read_run_state().and_then(run_of_state);
        let (run, held) = match read {
            Ok(run) => (run, None),
            Err(problem) => (None, Some(StopReason::new(problem.to_string(), ""))),
        };
        let repo = RepoView {
            id: RECORDS_ID.into(),
            path: self.root_path(),
            held,
            queue: Vec::new(),
            source: None,
            source_id: None,
        };
        StatusView { repo, run, isolated: Vec::new(), on_run: None }
    }

    /// Reads the task tree.
    pub(crate) fn tree(&self) -> Result<TreeReply, ApiProblem> {
        let tree = self.read_json(&["state", "tree.json"])?;
        Ok(TreeReply { tree, digest: String::new(), current: None, state: None })
    }

    /// Reads the texts that go into prompts.
    pub(crate) fn memory(&self) -> Result<MemoryReply, ApiProblem> {
        let paths = std::iter::once(vec!["GOAL.md"]).chain(MEMORY_FILES.map(|name| vec!["state", name]));
        let mut files = Vec::new();
        for path in paths {
            match self.read_bytes(&path) {
                Ok(bytes) => {
                    let name = path[path.len() - 1].to_owned();
                    files.push(MemoryFile { name, text: String::from_utf8_lossy(&bytes).into_owned() });
                }
                Err(problem) if problem.is_not_found() => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(MemoryReply { commit: None, files })
    }

    /// Lists the iterations of a run, oldest first.
    pub(crate) fn iterations(&self, run: Option<&str>) -> Result<Vec<IterationView>, ApiProblem> {
        let run = self.resolve_run_id(run)?;
        let folder = match self.folder(&["iterations", &run]) {
            Ok(folder) => folder,
            Err(problem) if problem.is_not_found() => return Ok(Vec::new()),
            Err(problem) => return Err(problem),
        };
        let mut views: Vec<IterationView> = folder
            .names()
            .iter()
            .filter_map(|name| self.iteration_view(&run, IterationId::from_record_name(name)?).ok())
            .collect();
        views.sort_by_key(|view| (view.iter, view.wait.is_none(), view.wait));
        Ok(views)
    }

    /// Describes one iteration.
    pub(crate) fn iteration(&self, run: Option<&str>, iter: IterationId) -> Result<IterationReply, ApiProblem> {
        let run = self.resolve_run_id(run)?;
        let meta = self.read_meta(&run, iter)?;
        let record = self.root.join(".runner/iterations").join(&run).join(iter.record_name());
        Ok(IterationReply {
            iteration: to_iteration_view(&meta, iter),
            record: WirePath(record),
            meta: Some(meta),
            failures: Vec::new(),
        })
    }

    /// Opens a text of a record.
    pub(crate) fn text(
        &self,
        run: Option<&str>,
        iter: Option<IterationId>,
        stream: LogStream,
    ) -> Result<RecordText, ApiProblem> {
        let run = self.resolve_run_id(run)?;
        let record = iter.map(IterationId::record_name);
        let path = match &record {
            None => vec!["iterations", &run, stream.file_name()],
            Some(record) => vec!["iterations", &run, record, stream.file_name()],
        };
        let file = self.open_file(&path)?;
        RecordText::from_file(file).map_err(|error| self.to_problem(&path, &error))
    }

    fn root_path(&self) -> WirePath {
        WirePath(self.root.to_path_buf())
    }

    fn read_run_state(&self) -> Result<RunState, ApiProblem> {
        self.read_json(&["state", "run_state.json"])
    }

    /// Completes a run id from its prefix; without one, returns the run of the current state.
    fn resolve_run_id(&self, run: Option<&str>) -> Result<String, ApiProblem> {
        let Some(run) = run else {
            return self
                .read_run_state()?
                .run_id
                .ok_or_else(|| ApiProblem::not_found("there is no run"))
                .and_then(|run| parse_id(&run));
        };
        let names = self.folder(&["iterations"])?.names();
        match find_by_id(&names, |name| name, run).map_err(|error| ApiProblem::invalid(error.to_string()))? {
            Some(name) => parse_id(name),
            None => Err(ApiProblem::not_found(format!("there is no record of run {run}"))),
        }
    }

    fn run_view(&self, run: &str, state: &RunState) -> Result<RunView, ApiProblem> {
        let tree: TaskTree = self.read_json(&["state", "tree.json"])?;
        let (leaves_passed, leaves_total) = tree.root.leaves();
        let iterations = self.iterations(Some(run)).unwrap_or_default();
        Ok(RunView {
            summary: self.run_summary(run, tree.root.passes, &iterations),
            wait_until: None,
            outages: Vec::new(),
            phase: None,
            node: None,
            leaves_passed,
            leaves_total,
            iteration: state.next_iter,
            usage: state.usage.clone(),
            list_price: None,
            elapsed_ms: state.elapsed_ms,
            baseline: None,
            recent: iterations.into_iter().rev().take(RECENT_ITERATIONS).collect(),
            questions: 0,
            held_back: state.held_back.clone(),
            reverted: state.reverted.clone(),
            guard: None,
            guard_changed: Vec::new(),
            flakes: state.flakes.clone(),
            tests: TestsView::from(&self.read_json::<TestRecord>(&["state", "tests.json"]).unwrap_or_default()),
            secrets: Vec::new(),
            notices: Vec::new(),
            containment: Containment::Walk,
            pending: None,
            notes: Vec::new(),
            changes: Vec::new(),
            git_wait: None,
        })
    }

    /// Summarizes a run as far as its files tell: whether it is done, but not what keeps it from continuing.
    fn run_summary(&self, run: &str, is_done: bool, iterations: &[IterationView]) -> RunSummary {
        let last = iterations.iter().filter_map(|iteration| iteration.ended_at).max();
        let reason =
            StopReason::new("no daemon has told: this is what the files of the working tree say", "runnerctl status");
        RunSummary {
            id: run.to_owned(),
            branch: format!("runner/{run}"),
            path: self.root_path(),
            goal: None,
            state: if is_done { RunStatus::Completed } else { RunStatus::Paused },
            needs_you: false,
            reason: (!is_done).then_some(reason),
            queued_at: iterations.first().and_then(|first| first.ended_at).unwrap_or_default(),
            ended_at: last.filter(|_| is_done),
            published: None,
        }
    }

    fn iteration_view(&self, run: &str, iter: IterationId) -> Result<IterationView, ApiProblem> {
        Ok(to_iteration_view(&self.read_meta(run, iter)?, iter))
    }

    fn read_meta(&self, run: &str, iter: IterationId) -> Result<IterationMeta, ApiProblem> {
        self.read_json(&["iterations", run, &iter.record_name(), "meta.json"])
    }

    fn read_json<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, ApiProblem> {
        let bytes = self.read_bytes(path)?;
        serde_json::from_slice(&bytes)
            .map_err(|error| ApiProblem::invalid_file(format!("{}: {error}", self.full_path(path).display())))
    }

    fn read_bytes(&self, path: &[&str]) -> Result<Vec<u8>, ApiProblem> {
        let file = self.open_file(path)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(|error| self.to_problem(path, &error))?;
        Ok(bytes)
    }

    fn open_file(&self, path: &[&str]) -> Result<File, ApiProblem> {
        let (name, folders) = path.split_last().expect("BUG: a path has a name");
        self.folder(folders)?.open_file(name).map_err(|error| self.to_problem(path, &error))
    }

    fn folder(&self, path: &[&str]) -> Result<OpenDir, ApiProblem> {
        let root = OpenDir::open(&self.root).and_then(|root| root.open_dir(".runner"));
        let dir = path.iter().fold(root, |folder, name| folder.and_then(|folder| folder.open_dir(name)));
        dir.map_err(|error| self.to_problem(path, &error))
    }

    fn full_path(&self, path: &[&str]) -> PathBuf {
        path.iter().fold(self.root.join(".runner"), |folder, name| folder.join(name))
    }

    fn to_problem(&self, path: &[&str], error: &io::Error) -> ApiProblem {
        let path_shown = self.full_path(path);
        match error.kind() {
            io::ErrorKind::NotFound => ApiProblem::not_found(format!("there is no {}", path_shown.display())),
            // A symbolic link, or not the kind of file that belongs there.
            _ => ApiProblem::not_found(format!("{} cannot be read: {error}", path_shown.display())),
        }
    }
}

fn to_iteration_view(meta: &IterationMeta, iter: IterationId) -> IterationView {
    IterationView { iter: iter.number, wait: iter.wait, ..meta.into() }
}
