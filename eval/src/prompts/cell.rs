//! One session of the prompt trials: sets up a sandbox and a node, runs the iteration, and reads the decision.

use protocol::answer::{AgentAnswer, AnswerStatus, ReviewAnswer, SessionUsage};
use protocol::api::{IterationApiClient, TreeApiClient};
use protocol::client::Connection;
use protocol::explain::NextView;
use protocol::meta::IterationMeta;
use protocol::path::WirePath;
use protocol::reply::IterationReply;
use protocol::request::{AtIteration, AtRun, LogParams, LogStream};
use protocol::words::Role;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::input::{PriorWork, PromptInput};
use super::role::{Decision, LabRole};
use super::trial_setup;
use crate::error::EvalError;
use crate::sandbox::{
    HostEnv, RepositoryAccess, RepositorySeed, Sandbox, SandboxDaemon, SandboxRepository, TestedPrograms,
};

/// Id of the run in each sandbox.
const RUN_ID: &str = "prompt-trials";

/// Settings shared by all sessions.
#[derive(Debug)]
pub(super) struct PromptSession {
    pub(super) role: LabRole,
    pub(super) executor: String,
    /// Argv of the agent, for the kind `command`.
    pub(super) command: Vec<String>,
    pub(super) model: Option<String>,
    pub(super) programs: TestedPrograms,
    /// Digest of the daemon's program.
    pub(super) runner: String,
    pub(super) host_env: HostEnv,
    pub(super) stop: CancellationToken,
}

/// Result of a session.
#[derive(Debug)]
pub(super) struct SessionResult {
    pub(super) decision: Option<Decision>,
    /// The agent's summary.
    pub(super) summary: Option<String>,
    /// Titles of the resulting parts.
    pub(super) parts: Vec<String>,
    pub(super) verdict: String,
    /// Detail of the verdict.
    pub(super) detail: Option<String>,
    pub(super) usage: SessionUsage,
}

/// Runs a session in its own sandbox.
pub(super) async fn run_session(
    session: &PromptSession,
    template: Option<&str>,
    input: &PromptInput,
) -> Result<SessionResult, EvalError> {
    let sandbox = Sandbox::create()?;
    let result = run_session_in(&sandbox, session, template, input).await;
    sandbox.remove()?;
    result
}

async fn run_session_in(
    sandbox: &Sandbox,
    session: &PromptSession,
    template: Option<&str>,
    input: &PromptInput,
) -> Result<SessionResult, EvalError> {
    let prompts = template.map(|text| sandbox.write(&format!("prompts/{}.md", session.role.as_str()), text));
    prompts.transpose()?;
    let env = sandbox.env(&session.host_env);
    let daemon = SandboxDaemon::start(sandbox, &session.programs, &env).await?;
    let access = RepositoryAccess {
        programs: session.programs.clone(),
        env,
        client_env: session.host_env.client_env(sandbox),
        view_env: session.host_env.view_env(sandbox),
        stop: session.stop.clone(),
    };
    let result = match make_repository(sandbox, session, input, access).await {
        Ok(repository) => {
            PromptTrial { role: session.role, repository: &repository, connection: daemon.connection() }
                .run_trial(input)
                .await
        }
        Err(fault) => Err(fault),
    };
    daemon.stop().await;
    result
}

async fn make_repository(
    sandbox: &Sandbox,
    session: &PromptSession,
    input: &PromptInput,
    access: RepositoryAccess,
) -> Result<SandboxRepository, EvalError> {
    for (path, text) in input.prior_work.files() {
        sandbox.write(&format!("{}/{path}", trial_setup::LEFT_FOLDER), text)?;
    }
    let prompts = sandbox.path("prompts");
    let script = trial_setup::previous_script(&input.prior_work);
    let seed = RepositorySeed {
        name: RUN_ID,
        goal: &input.goal,
        template: None,
        files: &input.files,
        justfile: None,
        config: &trial_setup::build_config(session, input),
        tree: Some(&trial_setup::build_tree(session.role, input)),
        prompts: prompts.is_dir().then_some(prompts.as_path()),
        script: script.as_deref(),
    };
    SandboxRepository::create(sandbox, &seed, access).await
}

/// The repository in which a session runs.
struct PromptTrial<'a> {
    role: LabRole,
    repository: &'a SandboxRepository,
    connection: &'a Connection,
}

impl PromptTrial<'_> {
    /// Runs the session, after the previous one if the input has one, and reads the decision.
    async fn run_trial(&self, input: &PromptInput) -> Result<SessionResult, EvalError> {
        let goal = self.repository.goal().display().to_string();
        let start = ["--no-spawn", "start", "--yes", "--queue-only", "--keep-tree", "--id", RUN_ID, "--goal", &goal];
        self.repository.client(&start).await?;
        self.run_step().await?;
        match input.prior_work {
            PriorWork::Nothing => self.read_answer(1).await,
            PriorWork::Work(_) => self.read_review().await,
            PriorWork::Tree(_) => {
                self.check_needs_repair().await?;
                self.run_step().await?;
                self.read_answer(2).await
            }
        }
    }

    async fn run_step(&self) -> Result<(), EvalError> {
        self.repository.client(&["--no-spawn", "step"]).await.map(drop)
    }

    /// Fails unless the tree is invalid: a session after a valid tree would not be a repair.
    async fn check_needs_repair(&self) -> Result<(), EvalError> {
        match self.connection.client().explain(self.run_params()).await?.next {
            NextView::GoesOn { role: Role::Repair, .. } => Ok(()),
            _ => Err(EvalError::new("the task tree of the input is valid: there is nothing to repair")),
        }
    }

    /// Reads the answer of an iteration's session.
    async fn read_answer(&self, iter: u32) -> Result<SessionResult, EvalError> {
        let (facts, meta) = self.read_facts(iter).await?;
        let answer: Option<AgentAnswer> = self.read_log(iter, LogStream::Output).await;
        let parts = match &answer {
            Some(AgentAnswer { children: Some(children), .. }) => {
                children.iter().map(|part| part.title.clone()).collect()
            }
            Some(AgentAnswer { status: AnswerStatus::Decomposed, .. }) => self.read_parts().await?,
            _ => Vec::new(),
        };
        Ok(SessionResult {
            decision: answer.as_ref().map(|answer| answer.status.into()),
            summary: answer.map(|answer| answer.summary),
            parts,
            verdict: facts.iteration.verdict.to_string(),
            detail: meta.detail,
            usage: meta.usage,
        })
    }

    /// Reads the decision of the first iteration's review.
    async fn read_review(&self) -> Result<SessionResult, EvalError> {
        let (facts, meta) = self.read_facts(1).await?;
        let verdict = facts.iteration.verdict.to_string();
        let Some(review) = meta.review else {
            let why = meta.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            return Err(EvalError::new(format!("the work of the input was not reviewed: {verdict}{why}")));
        };
        let answer: Option<ReviewAnswer> = self.read_log(1, LogStream::ReviewAnswer).await;
        let usage = review.usage;
        Ok(SessionResult {
            decision: answer.as_ref().map(|answer| answer.verdict.into()),
            summary: answer.map(|answer| answer.reasons.join("\n")),
            parts: Vec::new(),
            verdict,
            detail: meta.detail,
            usage: SessionUsage {
                input_tokens: usage.input_tokens,
                cached_tokens: usage.cached_tokens,
                output_tokens: usage.output_tokens,
                cost_micro_usd: usage.cost_micro_usd,
            },
        })
    }

    async fn read_facts(&self, iter: u32) -> Result<(IterationReply, IterationMeta), EvalError> {
        let mut facts = IterationApiClient::get(self.connection.client(), self.iteration_params(iter)).await?;
        let meta = facts.meta.take();
        let meta = meta.ok_or_else(|| EvalError::new(format!("iteration {iter} has no record")))?;
        Ok((facts, meta))
    }

    /// Reads an answer, which may have a usage file next to it; `None` if the session left no answer.
    async fn read_log<T: DeserializeOwned>(&self, iter: u32, stream: LogStream) -> Option<T> {
        let params = LogParams { at: self.iteration_params(iter), stream, offset: 0, raw: false };
        let log = self.connection.client().log(params).await.ok()?;
        let mut fields: Map<String, Value> = serde_json::from_str(&log.text).ok()?;
        fields.remove("usage");
        serde_json::from_value(fields.into()).ok()
    }

    /// Returns the titles of the parts that the session wrote into the tree itself.
    async fn read_parts(&self) -> Result<Vec<String>, EvalError> {
        let tree = TreeApiClient::get(self.connection.client(), self.run_params()).await?.tree;
        let id = trial_setup::node_id(self.role);
        let node = std::iter::once(&tree.root).chain(&tree.root.children).find(|node| node.id == id);
        Ok(node.into_iter().flat_map(|node| &node.children).map(|part| part.title.clone()).collect())
    }

    fn iteration_params(&self, iter: u32) -> AtIteration {
        let AtRun { path, run } = self.run_params();
        AtIteration { path, run, iter: Some(iter), wait: None }
    }

    fn run_params(&self) -> AtRun {
        AtRun { path: WirePath::from(self.repository.folder()), run: Some(RUN_ID.into()) }
    }
}
