//! One worker per repository: works off its queue one run at a time, one iteration after another.
//!
//! ```text
//!   rpc ──Message──▶ requests ──▶ queue ──Turn──▶ run ──Phase──▶ iteration ◀──Event── world ──▶ agent, guard, git, repo
//!                                   │                               │
//!                                   └───────── StatusView ◀─────────┘ (journal before every step)
//! ```
//!
//! The worker alone owns the repository's durable state; others send messages and read snapshots. It knows nothing of
//! JSON-RPC and sockets.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::error::{ErrorData, ErrorKind};
use protocol::hook::HookEvent;
use protocol::path::WirePath;
use protocol::reply::{ChangeReply, ControlReply, ReviewReply, StartReply, StepReply};
use protocol::review::PendingReview;
use protocol::view::{GitWaitView, PendingControl, RunSummary, StatusView};
use protocol::words::RunStatus;
use runner_core::files::change::ChangeRequest;
use runner_core::message::ReviewSignature;
use runner_core::run::approval::Decision;
use runner_core::run::{RequestRefusal, RunRecord, StartRequest};
use runner_git::Ender;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::store::{SourceRepo, repo_id};

mod caches;
mod claim;
mod cleanup;
mod context;
mod goal_files;
mod hook_queue;
mod integrity;
mod iteration;
mod journal;
mod load;
mod person_commits;
mod pinned_repo;
#[cfg(test)]
#[path = "tests/power.rs"]
mod power;
mod prepare_error;
mod publication;
mod queue;
mod queue_errors;
mod receipt;
mod record;
mod requests;
mod run;
mod run_error;
mod runner_chain;
#[cfg(test)]
#[path = "tests/simulation.rs"]
mod simulation;
mod slots;
mod tool_folders;
mod view;

pub use self::claim::is_claimed_by_another;
pub use self::goal_files::known_goal_files;
pub(crate) use self::integrity::definition::{changed_files, checkout_files_at};
pub use self::integrity::hold_back::hold_back_from;
pub(crate) use self::integrity::watched::{guard_files_at, guard_files_at_head, watched_at_commit, watched_from_start};
pub use self::iteration::brief::MAX_REVIEWED_BYTES;
pub use self::iteration::node_limits::find_faults as tool_faults;
pub(crate) use self::load::read_file_or_committed;
pub use self::load::{CommittedState, LoadError, last_runner_commit, load_config, load_state};
pub use self::pinned_repo::PinnedRepo;
pub(crate) use self::queue_errors::run_not_found;
pub use self::queue_errors::{no_run_error, unbegun_run_error};
pub(crate) use self::receipt::runner_version;
pub use self::requests::config_change::{set_config_key as set_key, text_change as edited_config};
pub(crate) use self::run::branch_checkout::{is_pending as is_checkout_pending, revert_unfinished as revert_checkout};
pub use self::run::create_layout::{create_layout, propose_workspace, read_committed_layout};
pub use self::run::prepare::used_run_ids;
pub use self::run::{WorkerDeps, spawn, spawn_after_bug, spawn_held};
pub(crate) use self::runner_chain::RunnerChain;
pub use self::slots::RunSlots;
pub use self::view::iterations::{add_recorded_facts, list_iterations, list_receipts, read_meta_in, session_base};
pub use self::view::snapshot::{node_ref, run_summary};

/// How often a caller waiting for an answer checks whether the worker is blocked on git.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The runs of a repository, and the digests of confirmed commands.
pub(crate) type KnownRuns = Arc<Mutex<(Vec<RunSummary>, Vec<String>)>>;

/// Channel for the answer to a request.
pub type ReplySender<T> = oneshot::Sender<Result<T, ErrorData>>;

/// A request to the worker of a repository; all checks that need the repository have been made.
#[derive(Debug)]
pub enum WorkerMessage {
    /// Start or resume a run.
    Start(Box<StartOrder>, ReplySender<StartReply>),
    /// Run one iteration.
    Step {
        /// Id or unique prefix of the run; `None` means the current one.
        run: Option<String>,
        /// Receives the answer.
        reply: ReplySender<StepReply>,
    },
    /// Stop after the iteration, or now.
    Pause {
        /// Id or unique prefix of the run; `None` means the current one.
        run: Option<String>,
        /// Whether the session is ended right away.
        now: bool,
        /// Receives the answer.
        reply: ReplySender<ControlReply>,
    },
    /// Continue a run.
    Resume {
        /// Id or unique prefix of the run; `None` means the current one.
        run: Option<String>,
        /// Whether a wait is cut short.
        now: bool,
        /// Number of iterations to grant.
        more: Option<u32>,
        /// Receives the answer.
        reply: ReplySender<ControlReply>,
    },
    /// End a run.
    Cancel {
        /// Id or unique prefix of the run; `None` means the current one.
        run: Option<String>,
        /// Receives the answer.
        reply: ReplySender<ControlReply>,
    },
    /// Change files of a run for a person.
    Change(Box<ChangeOrder>, ReplySender<ChangeReply>),
    /// Decide on the node that is pending review.
    Review {
        /// Id or unique prefix of the run; `None` means the current one.
        run: Option<String>,
        /// The person's decision.
        decision: Decision,
        /// The iteration that it is about.
        iter: u32,
        /// The person's signature of the decision.
        signature: Option<ReviewSignature>,
        /// Receives the answer.
        reply: ReplySender<ReviewReply>,
    },
    /// Describe what is pending review by a person.
    PendingReview {
        /// Id or unique prefix of the run; `None` means the current one.
        run: Option<String>,
        /// Receives the answer.
        reply: ReplySender<PendingReview>,
    },
    /// Keep the record of an isolated run that is over and whose workspace is about to be removed.
    Adopt(Box<RunRecord>, ReplySender<()>),
    /// Run a closure while no run of the repository can start.
    RunExclusive(ExclusiveWork, ReplySender<()>),
    /// A hook has ended.
    HookEnded {
        /// The event it was called with.
        event: Box<HookEvent>,
        /// Why it failed; `None` if it succeeded.
        failure: Option<String>,
    },
    /// Remember that this user has confirmed commands.
    Confirm {
        /// Digest of the commands.
        digest: String,
        /// The former and the present path of the work tree from which they ask, if it was moved.
        moved: Option<(WirePath, WirePath)>,
        /// Receives the answer.
        reply: ReplySender<()>,
    },
    /// Describe one run.
    Describe {
        /// Its id or a unique prefix.
        run: String,
        /// Receives the answer.
        reply: ReplySender<StatusView>,
    },
    /// List the runs, and the digests of confirmed commands.
    List {
        /// Receives the answer.
        reply: oneshot::Sender<(Vec<RunSummary>, Vec<String>)>,
    },
}

/// A closure that runs while no run can start in this repository.
pub struct ExclusiveWork(Box<dyn FnOnce() -> Result<(), ErrorData> + Send>);

impl ExclusiveWork {
    /// Wraps a closure, which may block.
    pub fn new(task: impl FnOnce() -> Result<(), ErrorData> + Send + 'static) -> Self {
        Self(Box::new(task))
    }

    pub(crate) fn run(self) -> Result<(), ErrorData> {
        tokio::task::block_in_place(self.0)
    }
}

impl std::fmt::Debug for ExclusiveWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Within")
    }
}

/// A person's request to change a run's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeOrder {
    /// Id or unique prefix of the run; `None` means the current one.
    pub run: Option<String>,
    /// The requested change. The worker fills in the id of a note, the base of an edit, and the content of accepted
    /// files.
    pub change: ChangeRequest,
    /// Digest of the tree that was opened for an edit.
    pub opened: Option<String>,
}

/// A request to put a run into the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartOrder {
    /// Which id the run gets.
    pub id: IdChoice,
    /// The start request, as sent by the client.
    pub start: StartRequest,
    /// Why the run is refused if it is not listed yet: given its branch, it would end again at once.
    pub refusal: Option<RequestRefusal>,
}

/// How the id of a new run is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdChoice {
    /// Exactly this id.
    Given(String),
    /// The stem, or the first of `-2`, `-3`… that is free.
    Derived {
        /// The stem to derive from.
        stem: String,
        /// Ids that already have a branch.
        taken: BTreeSet<String>,
    },
}

impl IdChoice {
    /// Returns the stem of an id that is made.
    pub fn stem(&self) -> Option<String> {
        if let Self::Derived { stem, .. } = self { Some(stem.clone()) } else { None }
    }
}

/// Handle to the worker of one repository.
#[derive(Debug, Clone)]
pub struct WorkerHandle {
    /// Id of the repository.
    pub id: String,
    /// The source repository, if this one is the workspace of an isolated run.
    pub source: Option<Arc<SourceRepo>>,
    mailbox: mpsc::Sender<WorkerMessage>,
    status: watch::Receiver<Arc<StatusView>>,
    /// The runs as they were listed last.
    known_runs: KnownRuns,
    /// Cancelled when nothing new may start: if the worker is gone by then, it exited in order.
    drain: CancellationToken,
    shutdown: CancellationToken,
}

impl WorkerHandle {
    /// Returns the current view of the repository.
    pub fn status(&self) -> Arc<StatusView> {
        let view = Arc::clone(&self.status.borrow());
        match (self.git_wait(), &view.run) {
            (Some(wait), Some(run)) if !run.summary.state.is_terminal() => {
                let mut view = (*view).clone();
                if let Some(run) = &mut view.run {
                    run.git_wait = Some(wait);
                }
                Arc::new(view)
            }
            _ => view,
        }
    }

    /// Returns the git command that the worker has been waiting for, if it has for long.
    fn git_wait(&self) -> Option<GitWaitView> {
        let wait = runner_git::waits(|common_dir| self.is_of(common_dir))?;
        Some(GitWaitView { command: wait.command, program: wait.program, since: wait.since })
    }

    /// Returns the same if it waits for another program, somewhat earlier.
    fn git_block(&self) -> Option<GitWaitView> {
        let wait = runner_git::blocks(|common_dir| self.is_of(common_dir))?;
        Some(GitWaitView { command: wait.command, program: wait.program, since: wait.since })
    }

    /// Whether a git folder belongs to the repository, or to the source that its run is published to.
    fn is_of(&self, common_dir: &Path) -> bool {
        repo_id(common_dir) == self.id
            || self.source.as_ref().is_some_and(|source| source.common_dir.as_path() == common_dir)
    }

    /// Whether a run of the repository is being driven.
    pub fn is_driving(&self) -> bool {
        self.status().repo.queue.iter().any(|run| run.state == RunStatus::Running)
    }

    /// Waits until no run of the repository is being cancelled, so that the next one sees its end and its commits.
    pub async fn wait_until_none_cancelling(&self) {
        let is_cancelled =
            |view: &Arc<StatusView>| view.run.as_ref().is_some_and(|run| run.pending == Some(PendingControl::Cancel));
        // An error means that the worker is gone, which the next request reports.
        let _ = self.status.clone().wait_for(|view| !is_cancelled(view)).await;
    }

    /// Waits until the worker has examined its repository for the first time.
    pub async fn wait_until_recovered(&mut self) {
        // An error means that the worker is gone; there is nothing to wait for.
        let _ = self.status.changed().await;
    }

    /// Waits until the view changes after the last call; false if the worker is gone.
    pub async fn wait_for_change(&mut self) -> bool {
        self.status.changed().await.is_ok()
    }

    /// Sends a request and waits for the answer.
    pub async fn send_request<T>(&self, request: impl FnOnce(ReplySender<T>) -> WorkerMessage) -> Result<T, ErrorData> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(request(reply)).await.map_err(|_| self.worker_gone_error())?;
        answer.await.map_err(|_| self.worker_gone_error())?
    }

    /// Sends a request to cancel a run, and kills programs that git waits for until the run has ended.
    pub async fn cancel(&self, run: Option<String>) -> Result<ControlReply, ErrorData> {
        let cancelled = async {
            let reply = self.send_request(|reply| WorkerMessage::Cancel { run, reply }).await;
            (reply, self.status().run.as_ref().is_some_and(|run| run.pending == Some(PendingControl::Cancel)))
        };
        let mut cancelled = std::pin::pin!(cancelled);
        let (reply, goes_on) = loop {
            tokio::select! {
                biased;
                answer = cancelled.as_mut() => break answer,
                () = tokio::time::sleep(LOOK_EVERY) => self.end_waiting_git(),
            }
        };
        if goes_on {
            let handle = self.clone();
            tokio::spawn(async move {
                let mut over = std::pin::pin!(handle.wait_until_none_cancelling());
                while tokio::time::timeout(LOOK_EVERY, over.as_mut()).await.is_err() {
                    handle.end_waiting_git();
                }
            });
        }
        reply
    }

    fn end_waiting_git(&self) {
        runner_git::end_waiting(|common_dir| self.is_of(common_dir), Ender::Cancel);
    }

    /// Sends a request, but returns an error if a blocked git command keeps the worker from answering. The request
    /// remains queued.
    pub async fn ask_or_tell<T>(&self, request: impl FnOnce(ReplySender<T>) -> WorkerMessage) -> Result<T, ErrorData> {
        let mut answer = std::pin::pin!(self.send_request(request));
        loop {
            tokio::select! {
                biased;
                answer = answer.as_mut() => return answer,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if let Some(wait) = self.git_wait().or_else(|| self.git_block()) {
                let hint = "it is heeded once that has ended; to end it and the run: runnerctl cancel";
                return Err(wait_error("asked for", wait).hint(hint));
            }
        }
    }

    /// Sends a request that only prepares another one, with the same limit.
    pub async fn ask_first<T>(&self, request: impl FnOnce(ReplySender<T>) -> WorkerMessage) -> Result<T, ErrorData> {
        self.ask_or_tell(request).await.map_err(|error| match self.git_block() {
            Some(wait) if error.kind == ErrorKind::Fault => wait_error("not asked for yet", wait)
                .hint("the same again once that has ended; to end it and the run: runnerctl cancel"),
            _ => error,
        })
    }

    /// Describes a run: as it was last seen, if a blocked git command keeps the worker from answering and it is the
    /// current one.
    pub async fn describe_run(&self, run: &str) -> Result<StatusView, ErrorData> {
        let id = run.to_owned();
        let described = self.ask_or_tell(|reply| WorkerMessage::Describe { run: id, reply }).await;
        let view = self.status();
        let is_current = view.run.as_ref().is_some_and(|current| current.summary.id.starts_with(run));
        match described {
            Err(error) if error.kind == ErrorKind::Fault && is_current => Ok((*view).clone()),
            described => described,
        }
    }

    /// Explains a missing answer: the worker has exited, or hit a bug.
    fn worker_gone_error(&self) -> ErrorData {
        if self.drain.is_cancelled() || self.shutdown.is_cancelled() {
            return ErrorData::new(ErrorKind::Draining, "the daemon is shutting down").hint("runnerctl daemon status");
        }
        let message = "a bug of the daemon ended the work on this repository before the request was answered";
        ErrorData::new(ErrorKind::Bug, message).hint("runnerctl status says what is held, and the daemon's log why")
    }

    /// Lists the runs, and the digests of confirmed commands: as they were last, if a blocked git command keeps the
    /// worker from answering.
    pub async fn list_runs(&self) -> (Vec<RunSummary>, Vec<String>) {
        let mut listed = std::pin::pin!(self.ask_for_runs());
        loop {
            tokio::select! {
                biased;
                runs = listed.as_mut() => return runs,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if self.git_block().is_some() {
                return self.known_runs.lock().unwrap_or_else(PoisonError::into_inner).clone();
            }
        }
    }

    /// Lists the same once the worker answers.
    pub async fn ask_for_runs(&self) -> (Vec<RunSummary>, Vec<String>) {
        let (reply, response) = oneshot::channel();
        if self.mailbox.send(WorkerMessage::List { reply }).await.is_err() {
            return Default::default();
        }
        response.await.unwrap_or_default()
    }
}

/// Describes a git command for which requests are not answered, after what has become of the request.
fn wait_error(request: &str, wait: GitWaitView) -> ErrorData {
    let program = wait.program.map_or_else(String::new, |program| format!(", which waits for {program}"));
    ErrorData::new(ErrorKind::Fault, format!("{request}; the run waits for git {}{program}", wait.command))
}
