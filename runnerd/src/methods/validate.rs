//! `tree.validate`: checks the work tree for everything that a start would refuse, each check under its name.
//!
//! Nothing is changed, and no program is started: whether an agent is logged in shows at the start.

use protocol::error::ErrorData;
use protocol::path::WirePath;
use protocol::reply::ValidateReply;
use protocol::view::CheckView;
use runner_config::goal::Goal;
use runner_core::prompt;
use runner_core::tree::validate;
use runner_git::Repository;
use runner_os::error_chain::display_chain;

use crate::admit::{self, ProgramInputs, git_error};
use crate::repo::durable::{self, DurableError};
use crate::repo::layout::Layout;
use crate::worker::tool_faults;

/// Runs all checks.
pub(super) fn run_checks(repository: &Repository, inputs: ProgramInputs<'_>) -> Result<ValidateReply, ErrorData> {
    let layout = Layout::new(repository.work_dir());
    if !layout.path(".runner").is_dir() && admit::has_config_at_head(repository)? {
        let config = admit::read_usable_config(repository, inputs.capabilities);
        let checks = vec![check_view("config", error_faults(config.err()))];
        return Ok(ValidateReply { path: WirePath::from(layout.root()), ok: checks[0].ok, checks });
    }
    if !layout.path(".runner").is_dir() {
        let checks = vec![check_view("layout", vec![".runner/ is missing; runnerctl init makes it".to_owned()])];
        return Ok(ValidateReply { path: WirePath::from(layout.root()), ok: false, checks });
    }
    let config = admit::read_usable_config(repository, inputs.capabilities);
    // If the configuration cannot be read, its programs are unknown.
    let programs = config.as_ref().ok().and_then(|config| admit::find_programs(repository, config, inputs.env).err());
    let checks = vec![
        check_view("layout", layout_faults(&layout)),
        check_view("config", error_faults(config.err())),
        check_view("programs", error_faults(programs)),
        check_view("prompts", prompt_faults(&layout)),
        check_view("nodes", tool_faults(&layout)),
        check_view("goal", goal_faults(&layout)),
        check_view("tree", tree_faults(&layout)),
        check_view("run_state", json_faults::<protocol::state::RunState>(&layout, Layout::RUN_STATE)),
        check_view("feedback", json_faults::<protocol::state::Feedback>(&layout, Layout::FEEDBACK)),
        check_view("tests", json_faults::<protocol::test_record::TestRecord>(&layout, Layout::TESTS)),
        check_view("identity", identity_faults(repository, &layout)?),
    ];
    let ok = checks.iter().all(|check| check.ok);
    Ok(ValidateReply { path: WirePath::from(layout.root()), ok, checks })
}

fn check_view(name: &str, faults: Vec<String>) -> CheckView {
    CheckView { name: name.to_owned(), ok: faults.is_empty(), faults }
}

fn error_faults(error: Option<ErrorData>) -> Vec<String> {
    let describe_error =
        |error: ErrorData| error.hint.iter().fold(error.message, |text, hint| format!("{text}; {hint}"));
    error.into_iter().map(describe_error).collect()
}

fn prompt_faults(layout: &Layout) -> Vec<String> {
    let names = std::fs::read_dir(layout.prompts()).into_iter().flatten().flatten();
    let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    prompt::find_template_faults(|path| durable::read(&layout.path(path)))
        .into_iter()
        .chain(prompt::find_unknown_templates(names))
        .collect()
}

fn layout_faults(layout: &Layout) -> Vec<String> {
    let files = [
        Layout::GOAL,
        Layout::GITIGNORE,
        Layout::GITATTRIBUTES,
        Layout::TREE,
        Layout::SCHEMA,
        Layout::ANSWER_SCHEMA,
        Layout::CONFIG,
        Layout::RUN_STATE,
        Layout::FEEDBACK,
        Layout::TESTS,
        Layout::PROGRESS,
        Layout::NOTES,
    ];
    let all = files.into_iter().chain(Layout::MEMORY);
    let describe_fault = |path: &str| match layout.path(path).metadata() {
        Ok(found) if found.is_file() => None,
        Ok(_) => Some(format!("{path} is no regular file; remove it, then: runnerctl init")),
        Err(_) => Some(format!("{path} is missing; runnerctl init makes it")),
    };
    let mut faults: Vec<String> = all.filter_map(describe_fault).collect();
    let ignored = durable::read(&layout.path(Layout::GITIGNORE)).ok().flatten().unwrap_or_default();
    for line in ["context/", "iterations/"] {
        if !ignored.split(|&byte| byte == b'\n').any(|found| found.trim_ascii() == line.as_bytes()) {
            faults.push(format!("{} lacks the line {line}; runnerctl init adds it", Layout::GITIGNORE));
        }
    }
    faults
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
enum RequiredFileError {
    /// Reading failed.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// It does not exist.
    #[error("{0} is missing")]
    Missing(String),
}

fn read_required(layout: &Layout, path: &str) -> Result<Vec<u8>, RequiredFileError> {
    durable::read(&layout.path(path))?.ok_or_else(|| RequiredFileError::Missing(path.to_owned()))
}

fn goal_faults(layout: &Layout) -> Vec<String> {
    let fault = match read_required(layout, Layout::GOAL) {
        Err(error) => Some(display_chain(&error)),
        Ok(bytes) => Goal::parse(&bytes, &layout.goal()).err().map(|error| display_chain(&error)),
    };
    fault.into_iter().collect()
}

fn tree_faults(layout: &Layout) -> Vec<String> {
    match read_required(layout, Layout::TREE) {
        Err(error) => vec![display_chain(&error)],
        Ok(bytes) => {
            let faults = validate::load(&bytes).err().unwrap_or_default();
            faults.iter().map(ToString::to_string).collect()
        }
    }
}

fn json_faults<T: serde::de::DeserializeOwned>(layout: &Layout, path: &str) -> Vec<String> {
    let fault = match read_required(layout, path) {
        Err(error) => Some(display_chain(&error)),
        Ok(bytes) => serde_json::from_slice::<T>(&bytes).err().map(|error| format!("{path}: {error}")),
    };
    fault.into_iter().collect()
}

/// Checks that the three places of the id agree once a run has begun.
fn identity_faults(repository: &Repository, layout: &Layout) -> Result<Vec<String>, ErrorData> {
    let goal = read_required(layout, Layout::GOAL).ok().and_then(|bytes| Goal::parse(&bytes, &layout.goal()).ok());
    let goal = goal.and_then(|goal| goal.id().map(str::to_owned));
    let state: Option<protocol::state::RunState> =
        read_required(layout, Layout::RUN_STATE).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let state = state.and_then(|state| state.run_id);
    let head = repository.head().map_err(|error| git_error(&error))?;
    let branch = head.branch().and_then(|branch| branch.strip_prefix("runner/")).map(str::to_owned);
    if state.is_none() && branch.is_none() {
        return Ok(Vec::new());
    }
    let shown = |id: &Option<String>| id.clone().unwrap_or_else(|| "none".to_owned());
    let agree = goal == state && state == branch;
    let fault = format!(
        "GOAL.md names run {}, run_state.json {}, the branch {}; all three must be the same",
        shown(&goal),
        shown(&state),
        shown(&branch)
    );
    Ok(if agree { Vec::new() } else { vec![fault] })
}
