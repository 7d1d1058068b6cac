//! One session of the prompt lab: a lab, a node, one iteration, and what was answered.

use protocol::answer::{AgentAnswer, SessionUsage};
use protocol::api::IterationApiClient as _;
use protocol::path::WirePath;
use protocol::request::{AtIteration, LogParams, LogStream};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::LabRole;
use super::input::Input;
use crate::fault::Fault;
use crate::lab::{Access, Daemon, Lab, Programs, Repository, Seed, Surroundings};

/// Id of the run in each lab.
const RUN: &str = "prompt-lab";

/// What all sessions share.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) role: LabRole,
    pub(super) executor: String,
    /// What a `command` is.
    pub(super) command: Vec<String>,
    pub(super) model: Option<String>,
    pub(super) programs: Programs,
    /// Digest of the daemon.
    pub(super) runner: String,
    pub(super) around: Surroundings,
    pub(super) stop: CancellationToken,
}

/// What came of a session.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) answer: Option<AgentAnswer>,
    pub(super) verdict: Option<String>,
    pub(super) usage: SessionUsage,
}

/// Has a session in a lab of its own.
pub(super) async fn ask(session: &Session, template: Option<&str>, input: &Input) -> Result<Asked, Fault> {
    let lab = Lab::make()?;
    let asked = ask_in(&lab, session, template, input).await;
    lab.remove()?;
    asked
}

async fn ask_in(lab: &Lab, session: &Session, template: Option<&str>, input: &Input) -> Result<Asked, Fault> {
    let prompts = template.map(|text| lab.write(&format!("prompts/{}.md", session.role.as_str()), text));
    prompts.transpose()?;
    let env = lab.env(&session.around);
    let daemon = Daemon::start(lab, &session.programs, &env).await?;
    let access = Access {
        programs: session.programs.clone(),
        env,
        client_env: session.around.of_client(lab),
        view_env: session.around.of_view(lab),
        stop: session.stop.clone(),
    };
    let asked = match repository(lab, session, input, access).await {
        Ok(repository) => step(&repository, &daemon).await,
        Err(fault) => Err(fault),
    };
    daemon.stop().await;
    asked
}

async fn repository(lab: &Lab, session: &Session, input: &Input, access: Access) -> Result<Repository, Fault> {
    let prompts = lab.at("prompts");
    let seed = Seed {
        name: RUN,
        goal: &input.goal,
        template: None,
        files: &input.files,
        justfile: None,
        config: &config(session),
        tree: Some(&tree(session.role, &input.goal)),
        prompts: prompts.is_dir().then_some(prompts.as_path()),
        script: None,
    };
    Repository::make(lab, &seed, access).await
}

/// Runs one iteration and reads what was answered.
async fn step(repository: &Repository, daemon: &Daemon) -> Result<Asked, Fault> {
    let goal = repository.goal().display().to_string();
    let start = ["--no-spawn", "start", "--yes", "--queue-only", "--keep-tree", "--id", RUN, "--goal", &goal];
    repository.client(&start).await?;
    repository.client(&["--no-spawn", "step"]).await?;
    let at =
        AtIteration { path: WirePath::from(repository.folder()), run: Some(RUN.into()), iter: Some(1), wait: None };
    let client = daemon.connection().client();
    let facts = client.get(at.clone()).await?;
    let output = LogParams { at, stream: LogStream::Output, offset: 0, raw: false };
    // A session without an answer has no output.
    let answer = client.log(output).await.ok().and_then(|output| serde_json::from_str(&output.text).ok());
    Ok(Asked {
        answer,
        verdict: Some(facts.iteration.verdict.to_string()),
        usage: facts.meta.map(|meta| meta.usage).unwrap_or_default(),
    })
}

/// The first session on a root is a planner's; a worker needs a leaf below it.
fn tree(role: LabRole, goal: &str) -> serde_json::Value {
    let node = |id: &str, title: &str, children: serde_json::Value| {
        json!({
            "id": id, "order": 1, "title": title, "goal": goal, "acceptance": [], "passes": false, "attempts": 0,
            "max_attempts": 3, "children": children,
        })
    };
    let children = match role {
        LabRole::Planner => json!([]),
        LabRole::Worker => json!([node("task", "The task", json!([]))]),
    };
    json!({"version": 1, "root": node("root", "The goal", children)})
}

/// Nothing is guarded: what counts is what was answered.
fn config(session: &Session) -> toml::Table {
    let mut executor = toml::Table::from_iter([("kind".to_owned(), session.executor.clone().into())]);
    if !session.command.is_empty() {
        executor.insert("command".into(), session.command.clone().into());
    }
    if let Some(model) = &session.model {
        executor.insert("model".into(), model.clone().into());
    }
    let guard = toml::Table::from_iter([
        ("command".to_owned(), toml::Value::from(vec!["true"])),
        ("baseline".to_owned(), false.into()),
    ]);
    toml::Table::from_iter([("executor".to_owned(), executor.into()), ("guard".to_owned(), guard.into())])
}
