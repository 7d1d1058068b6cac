//! The prompt trials: run every template with every input through one real session each, caches answers by digest, and
//! shows them as a grid.

mod cell;
mod input;
mod role;
mod show;
mod trial_setup;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::answer::SessionUsage;
use protocol::error::ExitStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::cell::{PromptSession, SessionResult, run_session};
use self::input::PromptInput;
pub(crate) use self::role::{Decision, LabRole};
use crate::args::{GlobalOptions, PromptsArgs};
use crate::case::find::EvalDirs;
use crate::commands::{digest_programs, print_answer, watch_signals, write_page};
use crate::digest::InputDigest;
use crate::error::EvalError;
use crate::progress::RunProgress;
use crate::results::write_durably;
use crate::sandbox::{HostEnv, Sandbox, TestedPrograms};

/// Name of the runner's built-in template.
const BUILT_IN: &str = "built-in";
/// Subfolder of the results folder that caches answers; no case can have this name.
const ANSWERS_DIR: &str = "_prompts";

/// The answer of `prompts`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EvalPrompts")]
pub(crate) struct PromptGrid {
    /// `runner/eval-prompts.v1`.
    pub(crate) schema: &'static str,
    /// The role that was tried.
    pub(crate) role: LabRole,
    /// Kind of the agent.
    pub(crate) executor: String,
    /// Its model, where one was named.
    pub(crate) model: Option<String>,
    /// Rows: names of templates.
    pub(crate) templates: Vec<String>,
    /// Columns: names of inputs.
    pub(crate) inputs: Vec<String>,
    /// Row by row.
    pub(crate) cells: Vec<Cell>,
}

/// One template with one input.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Cell {
    /// Name of the template.
    pub(crate) template: String,
    /// Name of the input.
    pub(crate) input: String,
    /// SHA-256 of all that the answer depends on.
    pub(crate) digest: String,
    /// What was decided: the status of an answer, or the verdict of a review; null where there was no answer.
    pub(crate) decision: Option<Decision>,
    /// What the input expects.
    pub(crate) expected: Option<Decision>,
    /// Whether both are the same; null where nothing is expected.
    pub(crate) matches: Option<bool>,
    /// Verdict of the iteration.
    pub(crate) verdict: Option<String>,
    /// What the agent said of it; the reasons of a reviewer, a line each.
    pub(crate) summary: Option<String>,
    /// Titles of the parts that there are then, in its answer or in the task tree.
    pub(crate) children: Vec<String>,
    /// What the session consumed, and none before it; what a reviewer was asked again counts.
    pub(crate) usage: SessionUsage,
    /// Why there is no answer.
    pub(crate) fault: Option<String>,
    /// Whether it was kept from an earlier session.
    #[serde(default)]
    pub(crate) kept: bool,
}

/// A template, one row of the grid.
#[derive(Debug, Clone)]
struct PromptTemplate {
    name: String,
    /// Text of the template; `None` is the runner's own.
    text: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(global: &GlobalOptions, places: &EvalDirs, args: PromptsArgs) -> Result<ExitStatus, EvalError> {
    let host_env = HostEnv::from_env();
    let executor = if args.command.is_empty() { args.executor } else { "command".into() };
    let program = args.command.first().unwrap_or(&executor);
    if !program.contains('/') && host_env.find_program(program).is_none() {
        return Err(EvalError::usage(format!("the agent {program} is not in PATH")));
    }
    let programs = TestedPrograms::find(global.bin_dir.as_deref(), &host_env)?;
    let templates = read_templates(&args.templates)?;
    let inputs = PromptInput::load_all(&inputs_dir(places, args.inputs.as_deref())?, args.role)?;
    let session = Arc::new(PromptSession {
        role: args.role,
        executor: executor.clone(),
        command: args.command,
        model: args.model.clone(),
        runner: digest_programs(&programs)?.runnerd.unwrap_or_default(),
        programs,
        host_env,
        stop: CancellationToken::new(),
    });
    Sandbox::sweep_dead();
    watch_signals(&session.stop)?;
    let answers_dir = places.results.join(ANSWERS_DIR);
    fs::create_dir_all(&answers_dir).map_err(|error| EvalError::file("making the directory", &answers_dir, &error))?;
    let runner = GridRunner { session: Arc::clone(&session), answers_dir, force: args.force, is_quiet: global.quiet };
    let cells = runner.run_all(&templates, &inputs, args.jobs.into()).await?;
    if session.stop.is_cancelled() {
        return Err(EvalError::interrupted().hint("the same command continues: answers that there are were kept"));
    }
    let grid = PromptGrid {
        schema: "runner/eval-prompts.v1",
        role: args.role,
        executor,
        model: args.model,
        templates: templates.into_iter().map(|template| template.name).collect(),
        inputs: inputs.into_iter().map(|input| input.name).collect(),
        cells,
    };
    write_page(args.html.as_deref(), || show::render_html(&grid))?;
    print_answer(global, &grid, || show::render_text(&grid))?;
    let is_fine = grid.cells.iter().all(|cell| cell.fault.is_none());
    Ok(if is_fine { ExitStatus::Success } else { ExitStatus::RunEnded })
}

fn inputs_dir(places: &EvalDirs, dir: Option<&Path>) -> Result<PathBuf, EvalError> {
    let default_dir = || places.cases.as_deref().and_then(Path::parent).map(|folder| folder.join("prompts"));
    let missing = || EvalError::usage("there is no directory of inputs").hint("runner-eval prompts ROLE --inputs DIR");
    dir.map(Path::to_owned).or_else(default_dir).filter(|folder| folder.is_dir()).ok_or_else(missing)
}

fn read_templates(names: &[String]) -> Result<Vec<PromptTemplate>, EvalError> {
    if names.is_empty() {
        return Ok(vec![PromptTemplate { name: BUILT_IN.into(), text: None }]);
    }
    let read_template = |name: &String| {
        let read_file = |path: &String| {
            fs::read_to_string(path).map_err(|error| EvalError::file("reading the template", Path::new(path), &error))
        };
        let text = if name == BUILT_IN { None } else { Some(read_file(name)?) };
        Ok(PromptTemplate { name: name.clone(), text })
    };
    names.iter().map(read_template).collect()
}

/// The work behind all cells of a grid.
struct GridRunner {
    session: Arc<PromptSession>,
    answers_dir: PathBuf,
    force: bool,
    is_quiet: bool,
}

impl GridRunner {
    async fn run_all(
        &self,
        templates: &[PromptTemplate],
        inputs: &[PromptInput],
        jobs: usize,
    ) -> Result<Vec<Cell>, EvalError> {
        let slots = Arc::new(Semaphore::new(jobs));
        let mut set: JoinSet<Result<(usize, Cell), EvalError>> = JoinSet::new();
        let pairs = templates.iter().flat_map(|template| inputs.iter().map(move |input| (template, input)));
        for (index, (template, input)) in pairs.enumerate() {
            let digest = self.digest_cell(template, input);
            let file = self.answers_dir.join(format!("{digest}.json"));
            if let Some(cell) = (!self.force).then(|| load_answer(&file)).flatten() {
                set.spawn(async move { Ok((index, cell)) });
                continue;
            }
            let session = Arc::clone(&self.session);
            let places = Arc::clone(&slots);
            let template = template.clone();
            let input = input.clone();
            let progress = RunProgress::new(format!("{} × {}", template.name, input.name), self.is_quiet);
            set.spawn(async move {
                let _place = places.acquire_owned().await;
                progress.print_line("asked");
                let result = if session.stop.is_cancelled() {
                    Err(EvalError::interrupted())
                } else {
                    run_session(&session, template.text.as_deref(), &input).await
                };
                let cell = build_cell(&template, &input, digest, result);
                progress.print_line(cell.fault.as_deref().or(cell.summary.as_deref()).unwrap_or("no answer"));
                if cell.decision.is_some() {
                    let text = serde_json::to_string_pretty(&cell).expect("BUG: a cell is plain data");
                    write_durably(&file, text.as_bytes())?;
                }
                Ok((index, cell))
            });
        }
        let mut cells = Vec::new();
        while let Some(joined) = set.join_next().await {
            cells.push(
                joined
                    .map_err(|error| EvalError::new("a session ended in a bug of the harness").caused_by(&error))??,
            );
        }
        cells.sort_by_key(|(at, _): &(usize, Cell)| *at);
        Ok(cells.into_iter().map(|(_, cell)| cell).collect())
    }

    /// Returns a digest of everything an answer depends on, except chance.
    fn digest_cell(&self, template: &PromptTemplate, input: &PromptInput) -> String {
        let session = &self.session;
        let mut digest = InputDigest::new();
        digest.add("role", session.role.as_str().as_bytes());
        digest.add("executor", session.executor.as_bytes());
        for word in &session.command {
            digest.add("command", word.as_bytes());
        }
        digest.add("model", session.model.as_deref().unwrap_or_default().as_bytes());
        digest.add("runner", session.runner.as_bytes());
        digest.add("template", template.text.as_deref().unwrap_or_default().as_bytes());
        digest.add("input", input.text.as_bytes());
        digest.finish()
    }
}

fn load_answer(file: &Path) -> Option<Cell> {
    let cell: Cell = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    Some(Cell { kept: true, ..cell })
}

fn build_cell(
    template: &PromptTemplate,
    input: &PromptInput,
    digest: String,
    result: Result<SessionResult, EvalError>,
) -> Cell {
    let cell = Cell {
        template: template.name.clone(),
        input: input.name.clone(),
        digest,
        decision: None,
        expected: input.expect,
        matches: None,
        verdict: None,
        summary: None,
        children: Vec::new(),
        usage: SessionUsage::default(),
        fault: None,
        kept: false,
    };
    let SessionResult { decision, summary, parts, verdict, detail, usage } = match result {
        Ok(asked) => asked,
        Err(fault) => return Cell { fault: Some(fault.to_string()), ..cell },
    };
    let why = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
    Cell {
        decision,
        matches: input.expect.zip(decision).map(|(expected, found)| expected == found),
        fault: decision.is_none().then(|| format!("no answer: {verdict}{why}")),
        summary,
        children: parts,
        verdict: Some(verdict),
        usage,
        ..cell
    }
}
