//! One session of the prompt lab: a lab, a node, the iteration, and what was decided in it.

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

use super::input::{Before, Input};
use super::role::{Decision, LabRole};
use super::stage;
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
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) decision: Option<Decision>,
    /// What was said of it.
    pub(super) summary: Option<String>,
    /// Titles of the parts that there are now.
    pub(super) parts: Vec<String>,
    pub(super) verdict: String,
    /// What led to the verdict.
    pub(super) detail: Option<String>,
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
        Ok(repository) => {
            Stage { role: session.role, repository: &repository, connection: daemon.connection() }.play(input).await
        }
        Err(fault) => Err(fault),
    };
    daemon.stop().await;
    asked
}

async fn repository(lab: &Lab, session: &Session, input: &Input, access: Access) -> Result<Repository, Fault> {
    for (path, text) in input.before.files() {
        lab.write(&format!("{}/{path}", stage::LEFT), text)?;
    }
    let prompts = lab.at("prompts");
    let script = stage::script(&input.before);
    let seed = Seed {
        name: RUN,
        goal: &input.goal,
        template: None,
        files: &input.files,
        justfile: None,
        config: &stage::config(session, input),
        tree: Some(&stage::tree(session.role, input)),
        prompts: prompts.is_dir().then_some(prompts.as_path()),
        script: script.as_deref(),
    };
    Repository::make(lab, &seed, access).await
}

/// A repository in which a session is had.
struct Stage<'a> {
    role: LabRole,
    repository: &'a Repository,
    connection: &'a Connection,
}

impl Stage<'_> {
    /// Has the session, after the one before it where there is one, and reads what was decided.
    async fn play(&self, input: &Input) -> Result<Asked, Fault> {
        let goal = self.repository.goal().display().to_string();
        let start = ["--no-spawn", "start", "--yes", "--queue-only", "--keep-tree", "--id", RUN, "--goal", &goal];
        self.repository.client(&start).await?;
        self.step().await?;
        match input.before {
            Before::Nothing => self.answered(1).await,
            Before::Work(_) => self.reviewed().await,
            Before::Tree(_) => {
                self.is_to_be_repaired().await?;
                self.step().await?;
                self.answered(2).await
            }
        }
    }

    async fn step(&self) -> Result<(), Fault> {
        self.repository.client(&["--no-spawn", "step"]).await.map(drop)
    }

    /// Whoever would be asked after a valid tree is no repair.
    async fn is_to_be_repaired(&self) -> Result<(), Fault> {
        match self.connection.client().explain(self.run()).await?.next {
            NextView::GoesOn { role: Role::Repair, .. } => Ok(()),
            _ => Err(Fault::new("the task tree of the input is valid: there is nothing to repair")),
        }
    }

    /// Reads what the session of an iteration answered.
    async fn answered(&self, iter: u32) -> Result<Asked, Fault> {
        let (facts, meta) = self.facts(iter).await?;
        let answer: Option<AgentAnswer> = self.said(iter, LogStream::Output).await;
        let parts = match &answer {
            Some(AgentAnswer { children: Some(children), .. }) => {
                children.iter().map(|part| part.title.clone()).collect()
            }
            Some(AgentAnswer { status: AnswerStatus::Decomposed, .. }) => self.parts().await?,
            _ => Vec::new(),
        };
        Ok(Asked {
            decision: answer.as_ref().map(|answer| answer.status.into()),
            summary: answer.map(|answer| answer.summary),
            parts,
            verdict: facts.iteration.verdict.to_string(),
            detail: meta.detail,
            usage: meta.usage,
        })
    }

    /// Reads what the review of the first iteration decided.
    async fn reviewed(&self) -> Result<Asked, Fault> {
        let (facts, meta) = self.facts(1).await?;
        let verdict = facts.iteration.verdict.to_string();
        let Some(review) = meta.review else {
            let why = meta.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            return Err(Fault::new(format!("the work of the input was not reviewed: {verdict}{why}")));
        };
        let answer: Option<ReviewAnswer> = self.said(1, LogStream::ReviewAnswer).await;
        let usage = review.usage;
        Ok(Asked {
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

    async fn facts(&self, iter: u32) -> Result<(IterationReply, IterationMeta), Fault> {
        let mut facts = IterationApiClient::get(self.connection.client(), self.at(iter)).await?;
        let meta = facts.meta.take();
        let meta = meta.ok_or_else(|| Fault::new(format!("iteration {iter} has no record")))?;
        Ok((facts, meta))
    }

    /// Reads an answer, beside which a file may tell the usage; a session without one has left none.
    async fn said<T: DeserializeOwned>(&self, iter: u32, stream: LogStream) -> Option<T> {
        let params = LogParams { at: self.at(iter), stream, offset: 0, raw: false };
        let said = self.connection.client().log(params).await.ok()?;
        let mut fields: Map<String, Value> = serde_json::from_str(&said.text).ok()?;
        fields.remove("usage");
        serde_json::from_value(fields.into()).ok()
    }

    /// Returns the parts that the session wrote into the tree itself.
    async fn parts(&self) -> Result<Vec<String>, Fault> {
        let tree = TreeApiClient::get(self.connection.client(), self.run()).await?.tree;
        let id = stage::node(self.role);
        let node = std::iter::once(&tree.root).chain(&tree.root.children).find(|node| node.id == id);
        Ok(node.into_iter().flat_map(|node| &node.children).map(|part| part.title.clone()).collect())
    }

    fn at(&self, iter: u32) -> AtIteration {
        let AtRun { path, run } = self.run();
        AtIteration { path, run, iter: Some(iter), wait: None }
    }

    fn run(&self) -> AtRun {
        AtRun { path: WirePath::from(self.repository.folder()), run: Some(RUN.into()) }
    }
}
