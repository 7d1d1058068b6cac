//! The methods of the control socket, by noun.
//!
//! Each takes one struct and returns one; errors carry an [`crate::error::ErrorData`]. `docs/protocol.md` is generated
//! from these and from the examples in `tests/reference/`.

use jsonrpsee::core::{RpcResult, SubscriptionResult};
use jsonrpsee::proc_macros::rpc;

use crate::bisect::{PointsParams, PointsReply, TryParams, TryReply};
use crate::branch::BranchView;
use crate::delivery::{DescribeParams, DescribeReply, FeedbackParams, FeedbackReply};
use crate::doctor::{AgentFacts, RepositoryFacts};
use crate::event::Event;
use crate::explain::ExplainReply;
use crate::landing::{CandidatesParams, LandParams, LandReply, LandedParams, LandedReport, ResolveParams};
use crate::reply::{
    ActivityReply, ChangeReply, ConfigEditReply, ConfigPathReply, ConfigReply, ConfigSetReply, ConfigShowReply,
    ConfigTextReply, ControlReply, ExportReply, GcReply, InitReply, IterationReply, MemoryReply, ReviewReply,
    SigningKeyReply, StartReply, StepReply, TreeReply, ValidateReply, VouchReply,
};
use crate::request::{
    AcceptParams, ActivityParams, AddParams, AgentParams, AnswerParams, AtIteration, AtPath, AtRun, AtSettings,
    ConfigEditParams, ConfigKey, ConfigSetParams, ConfigTextParams, EditParams, ExportParams, ForkParams, GcParams,
    Handshake, InitParams, LogFilter, LogParams, NoteParams, PauseParams, QuestionsParams, RemoveParams, RerunParams,
    ResumeParams, RetryParams, SigningKeyParams, StartParams, StepParams, Subscription, ValidateParams, VerifyParams,
    VouchParams,
};
use crate::review::{ApproveParams, PendingReview, RejectParams};
use crate::verify::{AuditFinding, AuditReport, RerunReport, TipsParams};
use crate::view::{
    DaemonView, DiskView, IterationView, QuestionView, RepoView, RunSummary, SelectView, StatusView, TextView,
};

/// Version of the API: both sides must have the same.
pub const API_VERSION: u32 = 1;

/// The daemon.
#[rpc(server, client, namespace = "daemon", namespace_separator = ".")]
pub trait DaemonApi {
    /// Exchanges versions. It is the first request on every connection.
    #[method(name = "handshake")]
    async fn handshake(&self, params: Handshake) -> RpcResult<DaemonView>;

    /// Describes the daemon.
    #[method(name = "info")]
    async fn info(&self) -> RpcResult<DaemonView>;

    /// Stops the daemon after the current iterations; no further ones start.
    #[method(name = "drain")]
    async fn drain(&self) -> RpcResult<DaemonView>;

    /// Ends live sessions after their grace period, then stops the daemon. Runs continue when it starts again.
    #[method(name = "shutdown")]
    async fn shutdown(&self) -> RpcResult<DaemonView>;

    /// Changes the log filter.
    #[method(name = "log_filter")]
    async fn log_filter(&self, params: LogFilter) -> RpcResult<DaemonView>;

    /// Checks whether other processes may call a method, and returns the error that they would get. A client that acts
    /// for others calls this first.
    #[method(name = "vouch")]
    async fn vouch(&self, params: VouchParams) -> RpcResult<VouchReply>;

    /// Returns the runner's own key for signing commits, or creates it.
    #[method(name = "signing_key")]
    async fn signing_key(&self, params: SigningKeyParams) -> RpcResult<SigningKeyReply>;
}

/// Registered repositories.
#[rpc(server, client, namespace = "repo", namespace_separator = ".")]
pub trait RepoApi {
    /// Lists the repositories.
    #[method(name = "list")]
    async fn list(&self) -> RpcResult<Vec<RepoView>>;

    /// Forgets a repository without an active run and without workspaces; its files stay. If its directory is missing,
    /// its isolated runs can be forgotten too; their workspaces stay.
    #[method(name = "remove")]
    async fn remove(&self, params: RemoveParams) -> RpcResult<RepoView>;

    /// Returns the disk usage of the workspaces of isolated runs.
    #[method(name = "disk")]
    async fn disk(&self) -> RpcResult<DiskView>;
}

/// Runs.
#[rpc(server, client, namespace = "run", namespace_separator = ".")]
pub trait RunApi {
    /// Creates `.runner/`.
    #[method(name = "init")]
    async fn init(&self, params: InitParams) -> RpcResult<InitReply>;

    /// Queues a run, or continues one. The workspace of an isolated run is created before the reply, and removed again
    /// if the caller disconnects before that.
    #[method(name = "start", with_extensions)]
    async fn start(&self, params: StartParams) -> RpcResult<StartReply>;

    /// Queues a new run that starts from an iteration's commit, with the tree and the state of that commit.
    #[method(name = "fork")]
    async fn fork(&self, params: ForkParams) -> RpcResult<StartReply>;

    /// Runs one iteration of a run that is not running, and waits for it.
    #[method(name = "step")]
    async fn step(&self, params: StepParams) -> RpcResult<StepReply>;

    /// Stops a run after its current iteration, or at once.
    #[method(name = "pause")]
    async fn pause(&self, params: PauseParams) -> RpcResult<ControlReply>;

    /// Continues a run.
    #[method(name = "resume")]
    async fn resume(&self, params: ResumeParams) -> RpcResult<ControlReply>;

    /// Cancels a run; its branch and commits stay.
    #[method(name = "cancel")]
    async fn cancel(&self, params: AtRun) -> RpcResult<ControlReply>;

    /// Describes one repository and its current run.
    #[method(name = "status")]
    async fn status(&self, params: AtRun) -> RpcResult<StatusView>;

    /// Describes every repository and its current run.
    #[method(name = "status_all")]
    async fn status_all(&self) -> RpcResult<Vec<StatusView>>;

    /// Lists the runs of a repository, including those that have ended.
    #[method(name = "list")]
    async fn list(&self, params: AtPath) -> RpcResult<Vec<RunSummary>>;

    /// Describes runs from their branches only, whether a daemon knows them or not, for example in a mirror of a remote
    /// or in a clone. The run whose branch changed last comes first.
    #[method(name = "branches")]
    async fn branches(&self, params: AtRun) -> RpcResult<Vec<BranchView>>;

    /// Returns the run that the request names, and the directory in which it works.
    #[method(name = "locate")]
    async fn locate(&self, params: AtRun) -> RpcResult<RunSummary>;

    /// Lists the runs of a repository that have not ended, in order.
    #[method(name = "queue")]
    async fn queue(&self, params: AtPath) -> RpcResult<Vec<RunSummary>>;
}

/// The task tree.
#[rpc(server, client, namespace = "tree", namespace_separator = ".")]
pub trait TreeApi {
    /// Reads the task tree at HEAD.
    #[method(name = "get")]
    async fn get(&self, params: AtRun) -> RpcResult<TreeReply>;

    /// Returns the next task.
    #[method(name = "select")]
    async fn select(&self, params: AtRun) -> RpcResult<SelectView>;

    /// Explains why that task is next, and the effects of each end of its session.
    #[method(name = "explain", with_extensions)]
    async fn explain(&self, params: AtRun) -> RpcResult<ExplainReply>;

    /// Checks the working tree for everything that `run.start` would refuse.
    #[method(name = "validate")]
    async fn validate(&self, params: ValidateParams) -> RpcResult<ValidateReply>;

    /// Gives a task without remaining attempts a new set of attempts.
    #[method(name = "retry")]
    async fn retry(&self, params: RetryParams) -> RpcResult<ChangeReply>;

    /// Adds a task to the open part of the tree.
    #[method(name = "add")]
    async fn add_node(&self, params: AddParams) -> RpcResult<ChangeReply>;

    /// Replaces the tree that the caller opened, within the changes that a person may make.
    #[method(name = "edit")]
    async fn edit(&self, params: EditParams) -> RpcResult<ChangeReply>;
}

/// The texts, besides the tree, from which prompts are built.
#[rpc(server, client, namespace = "memory", namespace_separator = ".")]
pub trait MemoryApi {
    /// Reads the texts at HEAD: goal, progress, notes, and the files that agents append to.
    #[method(name = "get")]
    async fn memory(&self, params: AtRun) -> RpcResult<MemoryReply>;
}

/// Questions from agents.
#[rpc(server, client, namespace = "question", namespace_separator = ".")]
pub trait QuestionApi {
    /// Lists the questions of each repository's current run, open ones first.
    #[method(name = "list")]
    async fn questions(&self, params: QuestionsParams) -> RpcResult<Vec<QuestionView>>;

    /// Records the answer to a question. It is committed before the next session.
    #[method(name = "answer")]
    async fn answer(&self, params: AnswerParams) -> RpcResult<ChangeReply>;
}

/// A person's notes to the sessions.
#[rpc(server, client, namespace = "note", namespace_separator = ".")]
pub trait NoteApi {
    /// Adds a note to the next prompt, where it stays until a session returns an answer. It is committed before the
    /// next session.
    #[method(name = "add")]
    async fn add_note(&self, params: NoteParams) -> RpcResult<ChangeReply>;
}

/// A person's reviews.
#[rpc(server, client, namespace = "review", namespace_separator = ".")]
pub trait ReviewApi {
    /// Returns the task that waits for a person's review, so that a client can sign the decision.
    #[method(name = "pending")]
    async fn pending_review(&self, params: AtRun) -> RpcResult<PendingReview>;

    /// Approves the finished task that waits for a person's review: it passes.
    #[method(name = "approve")]
    async fn approve(&self, params: ApproveParams) -> RpcResult<ReviewReply>;

    /// Rejects the finished task that waits for a person's review: it stays open, and an attempt is charged.
    #[method(name = "reject")]
    async fn reject(&self, params: RejectParams) -> RpcResult<ReviewReply>;
}

/// A person's decisions about the guard.
#[rpc(server, client, namespace = "guard", namespace_separator = ".")]
pub trait GuardApi {
    /// Accepts the committed versions of files of the guard definition. The acceptance is committed before the next
    /// session.
    #[method(name = "accept")]
    async fn accept_definition(&self, params: AcceptParams) -> RpcResult<ChangeReply>;
}

/// A repository's configuration.
#[rpc(server, client, namespace = "config", namespace_separator = ".")]
pub trait ConfigApi {
    /// Reads one value, or all values.
    #[method(name = "get")]
    async fn get(&self, params: ConfigKey) -> RpcResult<ConfigReply>;

    /// Lists every key with its value and the origin of that value.
    #[method(name = "show")]
    async fn show(&self, params: AtSettings) -> RpcResult<ConfigShowReply>;

    /// Returns the paths of the configuration files, even if the files are missing or not valid.
    #[method(name = "path")]
    async fn path(&self, params: AtPath) -> RpcResult<ConfigPathReply>;

    /// Sets a key. If a run can continue, the change is committed before its next session; otherwise it is written to
    /// the working tree.
    #[method(name = "set")]
    async fn set(&self, params: ConfigSetParams) -> RpcResult<ConfigSetReply>;

    /// Reads the text to edit: the configuration of the run that can continue, else of the working tree, else the
    /// defaults.
    #[method(name = "text")]
    async fn text(&self, params: ConfigTextParams) -> RpcResult<ConfigTextReply>;

    /// Replaces the text that the caller opened. The change is committed or written as with `config.set`.
    #[method(name = "edit")]
    async fn edit_config(&self, params: ConfigEditParams) -> RpcResult<ConfigEditReply>;
}

/// Records of iterations.
#[rpc(server, client, namespace = "iteration", namespace_separator = ".")]
pub trait IterationApi {
    /// Lists the iterations of a run, oldest first.
    #[method(name = "list", with_extensions)]
    async fn list(&self, params: AtRun) -> RpcResult<Vec<IterationView>>;

    /// Describes one iteration.
    #[method(name = "get", with_extensions)]
    async fn get(&self, params: AtIteration) -> RpcResult<IterationReply>;

    /// Reads at most 256 KiB of a file of a record.
    #[method(name = "log")]
    async fn log(&self, params: LogParams) -> RpcResult<TextView>;

    /// Returns the steps of the agent's work, from at most 256 KiB of its output.
    #[method(name = "activity")]
    async fn activity(&self, params: ActivityParams) -> RpcResult<ActivityReply>;

    /// Copies one record, or the files of the run as a whole. A client that wants all records requests one after the
    /// other.
    #[method(name = "export")]
    async fn export(&self, params: ExportParams) -> RpcResult<ExportReply>;

    /// Removes the records of all ended runs except the newest.
    #[method(name = "gc")]
    async fn gc(&self, params: GcParams) -> RpcResult<GcReply>;
}

/// Facts that `doctor` judges.
#[rpc(server, client, namespace = "doctor", namespace_separator = ".")]
pub trait DoctorApi {
    /// Reports how the daemon would work in a repository.
    #[method(name = "repository")]
    async fn repository_facts(&self, params: AtSettings) -> RpcResult<RepositoryFacts>;

    /// Asks the configured agents for their versions, in the caller's environment. Refused until the configuration's
    /// commands are confirmed, because it starts them.
    #[method(name = "agents")]
    async fn agent_facts(&self, params: AgentParams) -> RpcResult<Vec<AgentFacts>>;

    /// Asks the known agents that the caller has installed for their versions, whatever the configuration names.
    #[method(name = "installed")]
    async fn installed_agents(&self, params: ValidateParams) -> RpcResult<Vec<AgentFacts>>;
}

/// Audits.
#[rpc(server, client, namespace = "verify", namespace_separator = ".")]
pub trait VerifyApi {
    /// Audits the branch of a run, using only git. Stops if the client disconnects.
    #[method(name = "run", with_extensions)]
    async fn verify(&self, params: VerifyParams) -> RpcResult<AuditReport>;

    /// Runs the guards of passing commits again, each in a temporary directory. Stops if the client disconnects.
    #[method(name = "rerun", with_extensions)]
    async fn rerun_guards(&self, params: RerunParams) -> RpcResult<RerunReport>;

    /// Checks whether commits that used to be the last one of a branch are still among its first parents, and returns
    /// the missing ones. Stops if the client disconnects.
    #[method(name = "tips", with_extensions)]
    async fn lost_tips(&self, params: TipsParams) -> RpcResult<Vec<AuditFinding>>;
}

/// The search for the change that broke a command.
#[rpc(server, client, namespace = "bisect", namespace_separator = ".")]
pub trait BisectApi {
    /// Returns the states of a run's branch, and the results of a command that receipts record. Stops if the client
    /// disconnects.
    #[method(name = "points", with_extensions)]
    async fn bisect_points(&self, params: PointsParams) -> RpcResult<PointsReply>;

    /// Runs a command in a temporary directory with the files of a commit. Stops if the client disconnects.
    #[method(name = "try", with_extensions)]
    async fn bisect_try(&self, params: TryParams) -> RpcResult<TryReply>;
}

/// Landing.
#[rpc(server, client, namespace = "land", namespace_separator = ".")]
pub trait LandApi {
    /// Lands runs on a branch, or previews the result. Stops if the client disconnects before the branch is moved.
    #[method(name = "run", with_extensions)]
    async fn land(&self, params: LandParams) -> RpcResult<LandReply>;

    /// Lists the runs that have something to land. Stops if the client disconnects.
    #[method(name = "candidates", with_extensions)]
    async fn candidates(&self, params: CandidatesParams) -> RpcResult<Vec<RunSummary>>;

    /// Queues a run that merges the work of a run that cannot be landed automatically.
    #[method(name = "resolve", with_extensions)]
    async fn resolve(&self, params: ResolveParams) -> RpcResult<StartReply>;

    /// Repeats the merges of a branch's landed commits, and compares the files. Stops if the client disconnects.
    #[method(name = "verify", with_extensions)]
    async fn verify_landed(&self, params: LandedParams) -> RpcResult<LandedReport>;
}

/// Delivery: a run's result for other people, and their feedback.
#[rpc(server, client, namespace = "delivery", namespace_separator = ".")]
pub trait DeliveryApi {
    /// Returns the title and the text for a run's pull request, from its branch only. Stops if the client disconnects.
    #[method(name = "describe", with_extensions)]
    async fn describe(&self, params: DescribeParams) -> RpcResult<DescribeReply>;

    /// Passes new feedback to the sessions, as a note or as a task. It is committed before the next session.
    #[method(name = "feedback")]
    async fn feedback(&self, params: FeedbackParams) -> RpcResult<FeedbackReply>;
}

/// The stream of events.
#[rpc(server, client, namespace = "events", namespace_separator = ".")]
pub trait EventApi {
    /// Sends events as they happen, starting from a given number if there is one.
    #[subscription(name = "subscribe" => "event", unsubscribe = "unsubscribe", item = Event)]
    async fn subscribe_events(&self, params: Subscription) -> SubscriptionResult;
}
