//! `tree.*` and `config.*`: what is committed, read for a person.

use std::path::Path;

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::{ConfigApiServer, TreeApiServer};
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::reply::{ChangeReply, ConfigReply, TreeReply, ValidateReply};
use protocol::request::{AddParams, AtPath, AtRun, ConfigKey, EditParams, RetryParams};
use protocol::view::{CheckView, SelectView};
use runner_core::change::{Addition, Change};
use runner_core::digest::sha256_hex;
use runner_core::select::{Selection, select};
use runner_core::{tree, validate};

use super::iteration::full_id;
use super::{Api, blocking};
use crate::admit::{self, git_error};
use crate::agent;
use crate::causes::in_one_line;
use crate::config;
use crate::git::{Id, Repository};
use crate::repo::durable;
use crate::repo::goal::Goal;
use crate::repo::layout::Layout;
use crate::worker::{Loaded, load, node_ref};

#[async_trait]
impl TreeApiServer for Api {
    async fn get(&self, params: AtRun) -> RpcResult<TreeReply> {
        let repository = self.repository(params.path.as_path()).await?;
        let status = self.registry.find(repository.common_dir()).await.map(|worker| worker.status());
        let loaded = blocking(move || load_tip(&repository, params.run.as_deref())).await?;
        let run = status.as_ref().and_then(|status| status.run.as_ref());
        let run = run.filter(|run| loaded.run_state.run_id.as_ref() == Some(&run.summary.id));
        let state = run.map(|run| run.summary.state);
        let live = run.filter(|run| run.phase.is_some()).and_then(|run| run.node.as_ref()).map(|node| node.id.clone());
        let next = match select(&loaded.tree) {
            Selection::Open(leaf) | Selection::Exhausted(leaf) => Some(leaf.id.clone()),
            Selection::Complete => None,
        };
        let digest = sha256_hex(tree::canonical(&loaded.tree).as_bytes());
        Ok(TreeReply { current: live.or(next), state, tree: loaded.tree, digest })
    }

    async fn select(&self, params: AtRun) -> RpcResult<SelectView> {
        let repository = self.repository(params.path.as_path()).await?;
        let loaded = blocking(move || load_tip(&repository, params.run.as_deref())).await?;
        Ok(match select(&loaded.tree) {
            Selection::Open(leaf) => SelectView::Open { node: node_ref(&loaded, leaf) },
            Selection::Exhausted(leaf) => SelectView::Stuck { node: node_ref(&loaded, leaf) },
            Selection::Complete => SelectView::Complete,
        })
    }

    async fn validate(&self, params: AtPath) -> RpcResult<ValidateReply> {
        let repository = self.repository(params.path.as_path()).await?;
        Ok(blocking(move || validate_all(&repository)).await?)
    }

    async fn retry(&self, params: RetryParams) -> RpcResult<ChangeReply> {
        Ok(self.change(params.at, Change::Retry { node: params.node }, None).await?)
    }

    async fn add_node(&self, params: AddParams) -> RpcResult<ChangeReply> {
        let AddParams { at, parent, title, goal, acceptance, after, order } = params;
        let addition = Addition { parent, title, goal, acceptance, after, order };
        Ok(self.change(at, Change::Add(addition), None).await?)
    }

    async fn edit(&self, params: EditParams) -> RpcResult<ChangeReply> {
        let EditParams { at, file, opened } = params;
        let edited = blocking(move || left_in(file.as_path())).await?;
        Ok(self.change(at, Change::Edit { base: String::new(), edited }, opened).await?)
    }
}

#[async_trait]
impl ConfigApiServer for Api {
    async fn get(&self, params: ConfigKey) -> RpcResult<ConfigReply> {
        let repository = self.repository(params.path.as_path()).await?;
        Ok(blocking(move || get_config(&repository, params.key.as_deref())).await?)
    }
}

/// Reads the tree that a person has left in a file.
fn left_in(file: &Path) -> Result<String, ErrorData> {
    let bytes = durable::read(file)
        .map_err(|error| ErrorData::new(ErrorKind::InvalidRequest, error.to_string()).caused_by(&error))?
        .ok_or_else(|| ErrorData::new(ErrorKind::NotFound, format!("there is no file {}", file.display())))?;
    // Read and written again, a text has the bounds that the queue can rely on.
    let tree = validate::load_persons(&bytes).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        ErrorData::new(ErrorKind::InvalidRequest, format!("the tree is not valid:\n{}", faults.join("\n")))
    })?;
    Ok(tree::canonical(&tree))
}

/// Reads the state at the tip of a run's branch, else at HEAD.
fn load_tip(repository: &Repository, run: Option<&str>) -> Result<Loaded, ErrorData> {
    let run = run.map(|run| full_id(repository, run)).transpose()?;
    let tip = match &run {
        Some(run) => repository.branch(&format!("runner/{run}")).map_err(|error| git_error(&error))?,
        None => repository.head().map_err(|error| git_error(&error))?.commit(),
    };
    let no_run = || {
        let place = repository.work_dir().display();
        let (message, hint) = match &run {
            Some(run) => (format!("there is no branch runner/{run} in {place}"), "runnerctl queue --ended"),
            None => (format!("{place} has no commit yet"), "git commit --allow-empty -m 'Begin'"),
        };
        ErrorData::new(ErrorKind::NotFound, message).hint(hint)
    };
    load_at(repository, tip.ok_or_else(no_run)?)
}

fn load_at(repository: &Repository, commit: Id) -> Result<Loaded, ErrorData> {
    load(repository, commit).map_err(|error| {
        ErrorData::new(ErrorKind::InvalidFile, in_one_line(&error)).hint("runnerctl validate, or runnerctl start")
    })
}

fn validate_all(repository: &Repository) -> Result<ValidateReply, ErrorData> {
    let layout = Layout::new(repository.work_dir());
    let checks = vec![
        check("layout", layout_faults(&layout)),
        check("config", faults(admit::config_of_work_tree(&layout).err())),
        check("goal", goal_faults(&layout)),
        check("tree", tree_faults(&layout)),
        check("run_state", json_faults::<protocol::state::RunState>(&layout, Layout::RUN_STATE)),
        check("feedback", json_faults::<protocol::state::Feedback>(&layout, Layout::FEEDBACK)),
        check("identity", identity_faults(repository, &layout)?),
    ];
    let ok = checks.iter().all(|check| check.ok);
    Ok(ValidateReply { path: WirePath::from(layout.root()), ok, checks })
}

fn check(name: &str, faults: Vec<String>) -> CheckView {
    CheckView { name: name.to_owned(), ok: faults.is_empty(), faults }
}

fn faults(error: Option<ErrorData>) -> Vec<String> {
    error.into_iter().map(|error| error.message).collect()
}

fn layout_faults(layout: &Layout) -> Vec<String> {
    let files = [
        Layout::GOAL,
        Layout::GITIGNORE,
        Layout::TREE,
        Layout::SCHEMA,
        Layout::ANSWER_SCHEMA,
        Layout::CONFIG,
        Layout::RUN_STATE,
        Layout::FEEDBACK,
        Layout::PROGRESS,
        Layout::NOTES,
    ];
    let all = files.into_iter().chain(Layout::MEMORY);
    let missing = all.filter(|path| !layout.path(path).is_file());
    let mut faults: Vec<String> = missing.map(|path| format!("{path} is missing; runnerctl init makes it")).collect();
    let ignored = durable::read(&layout.path(Layout::GITIGNORE)).ok().flatten().unwrap_or_default();
    for line in ["context/", "iterations/"] {
        if !ignored.split(|&byte| byte == b'\n').any(|found| found.trim_ascii() == line.as_bytes()) {
            faults.push(format!("{} lacks the line {line}; runnerctl init adds it", Layout::GITIGNORE));
        }
    }
    faults
}

fn read(layout: &Layout, path: &str) -> Result<Vec<u8>, String> {
    let bytes = durable::read(&layout.path(path)).map_err(|error| in_one_line(&error))?;
    bytes.ok_or_else(|| format!("{path} is missing"))
}

fn goal_faults(layout: &Layout) -> Vec<String> {
    let parsed = read(layout, Layout::GOAL)
        .and_then(|bytes| Goal::parse(&bytes, &layout.goal()).map_err(|error| in_one_line(&error)));
    parsed.err().into_iter().collect()
}

fn tree_faults(layout: &Layout) -> Vec<String> {
    match read(layout, Layout::TREE) {
        Err(missing) => vec![missing],
        Ok(bytes) => {
            let faults = validate::load(&bytes).err().unwrap_or_default();
            faults.iter().map(ToString::to_string).collect()
        }
    }
}

fn json_faults<T: serde::de::DeserializeOwned>(layout: &Layout, path: &str) -> Vec<String> {
    let parsed = read(layout, path)
        .and_then(|bytes| serde_json::from_slice::<T>(&bytes).map_err(|error| format!("{path}: {error}")));
    parsed.err().into_iter().collect()
}

/// The three places of the id must agree once a run has begun.
fn identity_faults(repository: &Repository, layout: &Layout) -> Result<Vec<String>, ErrorData> {
    let goal = read(layout, Layout::GOAL).ok().and_then(|bytes| Goal::parse(&bytes, &layout.goal()).ok());
    let goal = goal.and_then(|goal| goal.id().map(str::to_owned));
    let state: Option<protocol::state::RunState> =
        read(layout, Layout::RUN_STATE).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
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

fn get_config(repository: &Repository, key: Option<&str>) -> Result<ConfigReply, ErrorData> {
    let layout = Layout::new(repository.work_dir());
    let config = admit::config_of_work_tree(&layout)?;
    let all = serde_json::to_value(&config)
        .map_err(|error| ErrorData::new(ErrorKind::Bug, format!("the configuration does not serialize: {error}")))?;
    let Some(key) = key else {
        return Ok(ConfigReply { value: all, variables: agent::wanted_of_caller(&config) });
    };
    let found = key.split('.').try_fold(&all, |value, part| value.get(part)).cloned();
    found.map(|value| ConfigReply { value, variables: Vec::new() }).ok_or_else(|| unknown_key(&layout, key))
}

fn unknown_key(layout: &Layout, key: &str) -> ErrorData {
    let bytes = durable::read(&layout.config()).ok().flatten().unwrap_or_default();
    let error = config::get(&String::from_utf8_lossy(&bytes), key).err();
    let message = error.map_or_else(|| format!("unknown key `{key}`"), |error| in_one_line(&error));
    ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl config get")
}
