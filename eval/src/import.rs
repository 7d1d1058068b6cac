//! `import`: creates cases from a list of tasks, one JSON object per line, in the format of SWE-bench.
//!
//! The files of one commit of each repository become the template, without its history, which may contain the solution.
//! Tests become a folder that is copied over the work tree when the run is over.

mod entry;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::error::ExitStatus;
use protocol::shell;
use schemars::JsonSchema;
use serde::Serialize;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use self::entry::TaskEntry;
use crate::args::{GlobalOptions, ImportArgs};
use crate::case::{is_id, parse};
use crate::commands::{print_answer, watch_signals};
use crate::error::EvalError;
use crate::process::{ManagedProcess, ProcessEnd, ProcessSpec};
use crate::results::write_durably;

/// A git command that takes longer hangs.
const GIT_LIMIT: Duration = Duration::from_mins(10);

/// Maximum total bytes of file names: the middle of a longer output would be dropped.
const MAX_LIST_BYTES: usize = 32 * 1024;

/// The answer of `import`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EvalImported")]
pub(crate) struct ImportReply {
    /// `runner/eval-imported.v1`.
    pub(crate) schema: &'static str,
    /// The folder of cases.
    pub(crate) folder: String,
    /// Ids of the cases, in the order of the list.
    pub(crate) cases: Vec<String>,
}

/// Runs the command.
pub(crate) async fn run(global: &GlobalOptions, args: &ImportArgs) -> Result<ExitStatus, EvalError> {
    let text = fs::read_to_string(&args.list).map_err(|error| EvalError::file("reading", &args.list, &error))?;
    fs::create_dir_all(&args.to).map_err(|error| EvalError::file("making", &args.to, &error))?;
    let stop = CancellationToken::new();
    watch_signals(&stop)?;
    let importer = TaskImporter { args, stop };
    let mut cases = Vec::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let line_error = |why: String| EvalError::usage(format!("{}:{number}: {why}", args.list.display()));
        let entry: TaskEntry = serde_json::from_str(line).map_err(|error| line_error(error.to_string()))?;
        if !global.quiet {
            // Standard error may be closed; there is no one to report that to.
            let _ = writeln!(anstream::stderr().lock(), "{}", entry.case_id());
        }
        cases.push(importer.import_task(&entry).await.map_err(|failed| match failed {
            _ if importer.stop.is_cancelled() => EvalError::interrupted(),
            ImportFailure::InvalidLine(why) => line_error(why),
            ImportFailure::Other(fault) => fault,
        })?);
    }
    let folder = args.to.display().to_string();
    let count = if cases.len() == 1 { "1 case".to_owned() } else { format!("{} cases", cases.len()) };
    let text = format!("{count} in {folder}; next: runner-eval --cases {} list\n", shell::join_args([folder.as_str()]));
    print_answer(global, &ImportReply { schema: "runner/eval-imported.v1", folder, cases }, || text)?;
    Ok(ExitStatus::Success)
}

/// Why a case was not made.
enum ImportFailure {
    /// The line is invalid.
    InvalidLine(String),
    /// Any other fault.
    Other(EvalError),
}

impl From<EvalError> for ImportFailure {
    fn from(fault: EvalError) -> Self {
        Self::Other(fault)
    }
}

struct TaskImporter<'a> {
    args: &'a ImportArgs,
    stop: CancellationToken,
}

impl TaskImporter<'_> {
    /// Creates the case of a line, completely or not at all; returns its id.
    async fn import_task(&self, entry: &TaskEntry) -> Result<String, ImportFailure> {
        let id = entry.case_id();
        let file = self.args.to.join(format!("{id}.toml"));
        if !is_id(&id) {
            return Err(ImportFailure::InvalidLine(format!("`{}` makes no id of a case", entry.id)));
        }
        if file.exists() {
            return Err(ImportFailure::InvalidLine(format!("{} is there already", file.display())));
        }
        let unfinished = tempfile::Builder::new().prefix(".import-").tempdir_in(&self.args.to);
        let unfinished = unfinished.map_err(|error| EvalError::file("making a directory in", &self.args.to, &error))?;
        self.write_files(entry, &unfinished).await?;
        let has_tests = !entry.test_patch.trim().is_empty();
        let text = self.render_case(entry, &id, has_tests).map_err(ImportFailure::InvalidLine)?;
        let folder = self.args.to.join(&id);
        fs::rename(unfinished.path(), &folder).map_err(|error| EvalError::file("naming", &folder, &error))?;
        // A case that does not parse is not left behind.
        let result = parse(&text, &file).and_then(|_| write_durably(&file, text.as_bytes()));
        if result.is_err() {
            let _ = fs::remove_dir_all(&folder);
        }
        result.map_err(|fault| ImportFailure::InvalidLine(fault.to_string()))?;
        Ok(id)
    }

    /// Writes the files of the base commit into `template`, and the files changed by the test patch into `tests`.
    async fn write_files(&self, entry: &TaskEntry, into: &TempDir) -> Result<(), ImportFailure> {
        let [template, tests] = ["template", "tests"].map(|name| into.path().join(name));
        for folder in [&template, &tests] {
            fs::create_dir(folder).map_err(|error| EvalError::file("making", folder, &error))?;
        }
        let scratch = tempfile::tempdir().map_err(|error| EvalError::new("making a directory").caused_by(&error))?;
        let git = GitRunner {
            repository: self.find_repository(&entry.repo)?,
            index: scratch.path().join("index"),
            stop: &self.stop,
        };
        let base = format!("{}^{{commit}}", entry.base);
        let no_commit =
            |_| ImportFailure::InvalidLine(format!("{} has no commit {}", git.repository.display(), entry.base));
        let base = git
            .run_git(&template, &["rev-parse", "--verify", "--quiet", "--end-of-options", &base])
            .await
            .map_err(no_commit)?;
        let base = base.trim_end();
        git.run_git(&template, &["read-tree", base]).await?;
        git.run_git(&template, &["checkout-index", "--all", "--force"]).await?;
        if entry.test_patch.trim().is_empty() {
            return Ok(());
        }
        let patch = scratch.path().join("patch");
        fs::write(&patch, &entry.test_patch).map_err(|error| EvalError::file("writing", &patch, &error))?;
        let patch = patch.display().to_string();
        let applied = git.run_git(&tests, &["apply", "--cached", "--whitespace=nowarn", &patch]).await;
        applied.map_err(|fault| ImportFailure::InvalidLine(format!("its `test_patch` does not apply: {fault}")))?;
        let changed = git
            .run_git(&tests, &["diff", "--cached", "--no-renames", "--name-only", "-z", "--diff-filter=AM", base])
            .await?;
        if changed.len() > MAX_LIST_BYTES {
            return Err(ImportFailure::InvalidLine(
                "its `test_patch` changes more files than can be listed".to_owned(),
            ));
        }
        let changed: Vec<&str> = changed.split('\0').filter(|path| !path.is_empty()).collect();
        git.run_git(&tests, &[&["checkout-index", "--force", "--"][..], &changed].concat()).await?;
        Ok(())
    }

    /// Finds a repository: a path as given, or a name below the folder of repositories, laid out as by SWE-bench's
    /// tools.
    fn find_repository(&self, named: &str) -> Result<PathBuf, ImportFailure> {
        let candidate = |name: &str| self.args.repos.as_ref().map(|folder| folder.join(name));
        let flat = named.replace('/', "__");
        let last = named.rsplit('/').next().unwrap_or(named);
        let candidates = [
            Some(PathBuf::from(named)),
            candidate(named),
            candidate(&flat),
            candidate(last),
            candidate(&format!("{last}.git")),
        ];
        let repository = candidates.into_iter().flatten().find(|place| place.is_dir());
        repository.and_then(|place| place.canonicalize().ok()).ok_or_else(|| {
            ImportFailure::InvalidLine(format!(
                "there is no repository {named} here or in --repos: clone it first, nothing is fetched"
            ))
        })
    }

    /// Renders the text of the case file.
    fn render_case(&self, entry: &TaskEntry, id: &str, has_tests: bool) -> Result<String, String> {
        let guard = entry.guard.as_ref().or(self.args.guard.as_ref());
        let guard = guard.ok_or("it has no `guard`, and --guard does not say which checks the agent may know")?;
        let words = |words: &[String]| words.iter().cloned().map(toml::Value::from).collect::<Vec<_>>();
        let table = |pairs: Vec<(&str, toml::Value)>| {
            toml::Value::Table(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        };
        let check = |(name, cmd): (String, Vec<String>)| {
            let mut check = vec![
                ("type", "command_succeeds".into()),
                ("name", name.into()),
                ("cmd", words(&cmd).into()),
                ("seconds", self.args.seconds.into()),
            ];
            check.extend(has_tests.then(|| ("overlay", format!("{id}/tests").into())));
            table(check)
        };
        let checks: Vec<_> = entry.checks(self.args.test.as_deref())?.into_iter().map(check).collect();
        let head = vec![
            ("id", id.into()),
            ("goal", entry.goal.as_str().into()),
            ("template", format!("{id}/template").into()),
        ];
        let command = vec![("command", words(&["sh".into(), "-c".into(), guard.clone()]).into())];
        let case = table(vec![
            ("case", table(head)),
            ("config", table(vec![("guard", table(command))])),
            ("checks", checks.into()),
        ]);
        toml::to_string(&case).map_err(|error| error.to_string())
    }
}

/// Git on a repository that is only read: index and work tree are elsewhere.
struct GitRunner<'a> {
    repository: PathBuf,
    index: PathBuf,
    stop: &'a CancellationToken,
}

impl GitRunner<'_> {
    /// Runs git with a folder as the work tree; returns its output.
    async fn run_git(&self, tree: &Path, arguments: &[&str]) -> Result<String, EvalError> {
        let is_bare = !self.repository.join(".git").exists();
        let folder = if is_bare { self.repository.clone() } else { self.repository.join(".git") };
        let passed = ["PATH", "HOME"].into_iter().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
        let own = [("GIT_DIR", &*folder), ("GIT_INDEX_FILE", &*self.index), ("GIT_WORK_TREE", tree)];
        let own = own.map(|(name, path)| (name.to_owned(), path.display().to_string()));
        let env: BTreeMap<String, String> = passed.chain(own).collect();
        let settings = ["-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false", "-c", "core.fsmonitor=false"];
        let spec = ProcessSpec {
            program: "git".into(),
            arguments: settings.iter().chain(arguments).map(Into::into).collect(),
            folder: tree,
            env: &env,
            grace: Duration::ZERO,
            isolated: false,
        };
        let output = ManagedProcess::start(&spec)?.capture_output(GIT_LIMIT, self.stop).await;
        match output.ended {
            ProcessEnd::Exited(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            ProcessEnd::Stopped => Err(EvalError::interrupted()),
            _ => {
                let words = String::from_utf8_lossy(&output.stderr);
                Err(EvalError::new(format!("git {}: {}", arguments.first().unwrap_or(&""), words.trim())))
            }
        }
    }
}
