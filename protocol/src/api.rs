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
use crate::landing::{LandParams, LandReply, LandedParams, LandedReport, ResolveParams};
use crate::reply::{
    ActivityReply, ChangeReply, ConfigEditReply, ConfigPathReply, ConfigReply, ConfigSetReply, ConfigShowReply,
    ConfigTextReply, ControlReply, ExportReply, GcReply, InitReply, IterationReply, MemoryReply, ReviewReply,
    SigningKeyReply, StartReply, StepReply, TreeReply, ValidateReply, VouchReply,
};
use crate::request::{
    AcceptParams, ActivityParams, AddParams, AnswerParams, AtIteration, AtPath, AtRun, ConfigEditParams, ConfigKey,
    ConfigSetParams, EditParams, ExportParams, ForkParams, GcParams, Handshake, InitParams, LogFilter, LogParams,
    NoteParams, PauseParams, QuestionsParams, RemoveParams, RerunParams, ResumeParams, RetryParams, SigningKeyParams,
    StartParams, StepParams, Subscription, ValidateParams, VerifyParams, VouchParams,
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
    /// Exchanges versions; the first request on every connection.
    #[method(name = "handshake")]
    async fn handshake(&self, params: Handshake) -> RpcResult<DaemonView>;

    /// Describes the daemon.
    #[method(name = "info")]
    async fn info(&self) -> RpcResult<DaemonView>;

    /// Lets the current iterations end, starts none, and then ends the daemon.
    #[method(name = "drain")]
    async fn drain(&self) -> RpcResult<DaemonView>;

    /// Ends live sessions after their grace and then the daemon; runs go on at the next start.
    #[method(name = "shutdown")]
    async fn shutdown(&self) -> RpcResult<DaemonView>;

    /// Changes what is logged.
    #[method(name = "log_filter")]
    async fn log_filter(&self, params: LogFilter) -> RpcResult<DaemonView>;

    /// Refuses what a client is to call for others, as it would be refused to them: a client that serves others asks this
    /// first.
    #[method(name = "vouch")]
    async fn vouch(&self, params: VouchParams) -> RpcResult<VouchReply>;

    /// Tells the key of the runner's own that commits can be signed with, or makes it.
    #[method(name = "signing_key")]
    async fn signing_key(&self, params: SigningKeyParams) -> RpcResult<SigningKeyReply>;
}

/// Registered repositories.
#[rpc(server, client, namespace = "repo", namespace_separator = ".")]
pub trait RepoApi {
    /// Lists the repositories.
    #[method(name = "list")]
    async fn list(&self) -> RpcResult<Vec<RepoView>>;

    /// Forgets a repository that has no run under way and no workspaces; its files stay. Where its folder is gone, its
    /// isolated runs can be forgotten with it; their workspaces stay.
    #[method(name = "remove")]
    async fn remove(&self, params: RemoveParams) -> RpcResult<RepoView>;

    /// Measures the workspaces of isolated runs.
    #[method(name = "disk")]
    async fn disk(&self) -> RpcResult<DiskView>;
}

/// Runs.
#[rpc(server, client, namespace = "run", namespace_separator = ".")]
pub trait RunApi {
    /// Makes `.runner/`.
    #[method(name = "init")]
    async fn init(&self, params: InitParams) -> RpcResult<InitReply>;

    /// Puts a run into the queue, or lets one go on. The workspace of an isolated run is made before the answer; nothing
    /// of it is left where the caller goes away before that.
    #[method(name = "start", with_extensions)]
    async fn start(&self, params: StartParams) -> RpcResult<StartReply>;

    /// Puts a new run into the queue that begins from an iteration's commit, with the tree and the state of that commit.
    #[method(name = "fork")]
    async fn fork(&self, params: ForkParams) -> RpcResult<StartReply>;

    /// Runs one iteration of a run that is not running, and waits for it.
    #[method(name = "step")]
    async fn step(&self, params: StepParams) -> RpcResult<StepReply>;

    /// Stops a run after its current iteration, or at once.
    #[method(name = "pause")]
    async fn pause(&self, params: PauseParams) -> RpcResult<ControlReply>;

    /// Lets a run go on.
    #[method(name = "resume")]
    async fn resume(&self, params: ResumeParams) -> RpcResult<ControlReply>;

    /// Ends a run; branch and commits stay.
    #[method(name = "cancel")]
    async fn cancel(&self, params: AtRun) -> RpcResult<ControlReply>;

    /// Describes one repository and its current run.
    #[method(name = "status")]
    async fn status(&self, params: AtRun) -> RpcResult<StatusView>;

    /// Describes every repository and its current run.
    #[method(name = "status_all")]
    async fn status_all(&self) -> RpcResult<Vec<StatusView>>;

    /// Lists the runs of a repository, those that are over included.
    #[method(name = "list")]
    async fn list(&self, params: AtPath) -> RpcResult<Vec<RunSummary>>;

    /// Describes runs by their branches alone, known to a daemon or not: those of a mirror of a remote, or of a clone. The one
    /// that moved last comes first.
    #[method(name = "branches")]
    async fn branches(&self, params: AtRun) -> RpcResult<Vec<BranchView>>;

    /// Tells which run is meant, and in which folder it works.
    #[method(name = "locate")]
    async fn locate(&self, params: AtRun) -> RpcResult<RunSummary>;

    /// Lists the runs of a repository that are not over, in order.
    #[method(name = "queue")]
    async fn queue(&self, params: AtPath) -> RpcResult<Vec<RunSummary>>;
}

/// The task tree.
#[rpc(server, client, namespace = "tree", namespace_separator = ".")]
pub trait TreeApi {
    /// Reads the task tree at HEAD.
    #[method(name = "get")]
    async fn get(&self, params: AtRun) -> RpcResult<TreeReply>;

    /// Tells the next leaf.
    #[method(name = "select")]
    async fn select(&self, params: AtRun) -> RpcResult<SelectView>;

    /// Tells why that leaf is next, and what each way in which its session can end would lead to.
    #[method(name = "explain", with_extensions)]
    async fn explain(&self, params: AtRun) -> RpcResult<ExplainReply>;

    /// Checks what the work tree holds against everything that a start would refuse.
    #[method(name = "validate")]
    async fn validate(&self, params: ValidateParams) -> RpcResult<ValidateReply>;

    /// Gives an exhausted node as many attempts as a new one has.
    #[method(name = "retry")]
    async fn retry(&self, params: RetryParams) -> RpcResult<ChangeReply>;

    /// Adds a node to the open part of the tree.
    #[method(name = "add")]
    async fn add_node(&self, params: AddParams) -> RpcResult<ChangeReply>;

    /// Puts another tree in the place of the one that was opened, as far as a person may change it.
    #[method(name = "edit")]
    async fn edit(&self, params: EditParams) -> RpcResult<ChangeReply>;
}

/// What sessions are told from besides the tree.
#[rpc(server, client, namespace = "memory", namespace_separator = ".")]
pub trait MemoryApi {
    /// Reads the texts at HEAD: goal, progress, notes, and what agents append to.
    #[method(name = "get")]
    async fn memory(&self, params: AtRun) -> RpcResult<MemoryReply>;
}

/// Questions of agents.
#[rpc(server, client, namespace = "question", namespace_separator = ".")]
pub trait QuestionApi {
    /// Lists the questions of the current run of each repository, those that are open first.
    #[method(name = "list")]
    async fn questions(&self, params: QuestionsParams) -> RpcResult<Vec<QuestionView>>;

    /// Puts an answer under its question; committed before the next session.
    #[method(name = "answer")]
    async fn answer(&self, params: AnswerParams) -> RpcResult<ChangeReply>;
}

/// Notes of a person to the sessions.
#[rpc(server, client, namespace = "note", namespace_separator = ".")]
pub trait NoteApi {
    /// Tells the next session that answers something; committed before it begins.
    #[method(name = "add")]
    async fn add_note(&self, params: NoteParams) -> RpcResult<ChangeReply>;
}

/// A person's reviews.
#[rpc(server, client, namespace = "review", namespace_separator = ".")]
pub trait ReviewApi {
    /// Tells what waits for a person's word, for whoever signs theirs.
    #[method(name = "pending")]
    async fn pending_review(&self, params: AtRun) -> RpcResult<PendingReview>;

    /// Passes the finished node that waits for a person.
    #[method(name = "approve")]
    async fn approve(&self, params: ApproveParams) -> RpcResult<ReviewReply>;

    /// Leaves the finished node that waits for a person open, and charges an attempt.
    #[method(name = "reject")]
    async fn reject(&self, params: RejectParams) -> RpcResult<ReviewReply>;
}

/// What a person says of the guard.
#[rpc(server, client, namespace = "guard", namespace_separator = ".")]
pub trait GuardApi {
    /// Accepts files of the guard's definition as they are committed; committed before the next session.
    #[method(name = "accept")]
    async fn accept_definition(&self, params: AcceptParams) -> RpcResult<ChangeReply>;
}

/// A repository's configuration.
#[rpc(server, client, namespace = "config", namespace_separator = ".")]
pub trait ConfigApi {
    /// Reads one value, or all.
    #[method(name = "get")]
    async fn get(&self, params: ConfigKey) -> RpcResult<ConfigReply>;

    /// Lists every key with its value and where that comes from.
    #[method(name = "show")]
    async fn show(&self, params: AtPath) -> RpcResult<ConfigShowReply>;

    /// Tells where the files are, be they valid or not.
    #[method(name = "path")]
    async fn path(&self, params: AtPath) -> RpcResult<ConfigPathReply>;

    /// Sets a key; committed before the next session where a run goes on, else written to the work tree.
    #[method(name = "set")]
    async fn set(&self, params: ConfigSetParams) -> RpcResult<ConfigSetReply>;

    /// Reads the text that an edit begins with: of the run that goes on, else of the work tree, else the defaults.
    #[method(name = "text")]
    async fn text(&self, params: AtRun) -> RpcResult<ConfigTextReply>;

    /// Puts a text in the place of the one that was opened; committed or written as a key is.
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

    /// Tells what the agent did, from at most 256 KiB of its output.
    #[method(name = "activity")]
    async fn activity(&self, params: ActivityParams) -> RpcResult<ActivityReply>;

    /// Copies one record, or what belongs to a run as a whole; a client that wants all asks for one after the other.
    #[method(name = "export")]
    async fn export(&self, params: ExportParams) -> RpcResult<ExportReply>;

    /// Removes the records of all runs that are over but the newest.
    #[method(name = "gc")]
    async fn gc(&self, params: GcParams) -> RpcResult<GcReply>;
}

/// Facts that `doctor` judges.
#[rpc(server, client, namespace = "doctor", namespace_separator = ".")]
pub trait DoctorApi {
    /// Tells how the daemon would work in a repository.
    #[method(name = "repository")]
    async fn repository_facts(&self, params: AtPath) -> RpcResult<RepositoryFacts>;

    /// Asks the agents of a configuration for their versions, with the caller's environment; refused until its commands
    /// are confirmed, since they are started.
    #[method(name = "agents")]
    async fn agent_facts(&self, params: ValidateParams) -> RpcResult<Vec<AgentFacts>>;
}

/// Audits.
#[rpc(server, client, namespace = "verify", namespace_separator = ".")]
pub trait VerifyApi {
    /// Audits the branch of a run from git alone; ends with its client.
    #[method(name = "run", with_extensions)]
    async fn verify(&self, params: VerifyParams) -> RpcResult<AuditReport>;

    /// Runs the guards of passing commits once more, each in a folder that is gone afterwards; ends with its client.
    #[method(name = "rerun", with_extensions)]
    async fn rerun_guards(&self, params: RerunParams) -> RpcResult<RerunReport>;

    /// Looks for commits that were once the last of a branch among its first parents; answers with those that are gone.
    /// Ends with its client.
    #[method(name = "tips", with_extensions)]
    async fn lost_tips(&self, params: TipsParams) -> RpcResult<Vec<AuditFinding>>;
}

/// Looks for what broke a command.
#[rpc(server, client, namespace = "bisect", namespace_separator = ".")]
pub trait BisectApi {
    /// Tells the states of a run's branch, and what receipts say of a command; ends with its client.
    #[method(name = "points", with_extensions)]
    async fn bisect_points(&self, params: PointsParams) -> RpcResult<PointsReply>;

    /// Runs a command in a folder with the files of a commit, which is gone afterwards; ends with its client.
    #[method(name = "try", with_extensions)]
    async fn bisect_try(&self, params: TryParams) -> RpcResult<TryReply>;
}

/// Bringing results home.
#[rpc(server, client, namespace = "land", namespace_separator = ".")]
pub trait LandApi {
    /// Brings the results of runs onto a branch, or tells what that would make; ends with its client, until the branch is
    /// moved.
    #[method(name = "run", with_extensions)]
    async fn land(&self, params: LandParams) -> RpcResult<LandReply>;

    /// Puts a run into the queue that brings in what does not fit by itself.
    #[method(name = "resolve", with_extensions)]
    async fn resolve(&self, params: ResolveParams) -> RpcResult<StartReply>;

    /// Makes the merges of a branch's landed commits again, and compares their files; ends with its client.
    #[method(name = "verify", with_extensions)]
    async fn verify_landed(&self, params: LandedParams) -> RpcResult<LandedReport>;
}

/// Results that are brought to others, and what comes back.
#[rpc(server, client, namespace = "delivery", namespace_separator = ".")]
pub trait DeliveryApi {
    /// Describes a run for those who are to take its result, from its branch alone; ends with its client.
    #[method(name = "describe", with_extensions)]
    async fn describe(&self, params: DescribeParams) -> RpcResult<DescribeReply>;

    /// Tells sessions what of some feedback is new, by a note or by a leaf; committed before the next session.
    #[method(name = "feedback")]
    async fn feedback(&self, params: FeedbackParams) -> RpcResult<FeedbackReply>;
}

/// The stream of events.
#[rpc(server, client, namespace = "events", namespace_separator = ".")]
pub trait EventApi {
    /// Sends events as they happen, from a number on where one is given.
    #[subscription(name = "subscribe" => "event", unsubscribe = "unsubscribe", item = Event)]
    async fn subscribe_events(&self, params: Subscription) -> SubscriptionResult;
}
