//! One worker per repository: its queue is worked off one run at a time, one iteration after another.
//!
//! ```text
//!   rpc ──Message──▶ requests ──▶ queue ──Turn──▶ run ──Phase──▶ iteration ◀──Event── world ──▶ agent, guard, git, repo
//!                                   │                               │
//!                                   └───────── StatusView ◀─────────┘ (journal before every step)
//! ```
//!
//! The worker owns the repository's durable state alone; others send messages and read snapshots. It
//! knows nothing of JSON-RPC and sockets.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use protocol::error::{ErrorData, ErrorKind};
use protocol::hook::HookEvent;
use protocol::reply::{ChangeReply, ControlReply, ReviewReply, StartReply, StepReply};
use protocol::review::PendingReview;
use protocol::view::{GitWaitView, PendingControl, RunSummary, StatusView};
use protocol::words::RunStatus;
use runner_core::approval::Decision;
use runner_core::change::ChangeRequest;
use runner_core::message::ReviewSignature;
use runner_core::run::{RequestRefusal, StartRequest};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::git::{self, Ender};
use crate::store::{SourceRepo, repo_id};

mod caches;
mod claim;
mod clear;
mod context;
mod failure;
mod hook_calls;
mod integrity;
mod iteration;
mod journal;
mod load;
mod people;
#[cfg(test)]
#[path = "tests/power.rs"]
mod power;
mod publication;
mod queue;
mod receipt;
mod record;
mod requests;
mod run;
#[cfg(test)]
#[path = "tests/simulation.rs"]
mod simulation;
mod slots;
mod trusted;
mod unready;
mod view;

pub use self::claim::is_claimed_by_another;
pub use self::integrity::definition::is_in_definition;
pub(crate) use self::integrity::definition::{changed_files, checkout_files_at};
pub(crate) use self::integrity::watched::{guard_files_at_head, watched_at_commit, watched_from_start};
pub use self::iteration::brief::MAX_REVIEWED_BYTES;
pub use self::iteration::tools::find_faults as tool_faults;
pub use self::load::{LoadError, CommittedState, last_runner_commit, load_state, load_config, policy_from_config};
pub(crate) use self::receipt::runner_version;
pub use self::requests::setting::{text_change as edited_config, set_config_key as set_key};
pub use self::run::begin::{create_layout, propose_workspace};
pub use self::run::{WorkerDeps, spawn, spawn_after_bug, spawn_held};
pub use self::slots::RunSlots;
pub use self::trusted::PinnedRepo;
pub(crate) use self::view::iterations::RunnerChain;
pub use self::view::iterations::{add_durations, session_base, list_iterations, read_meta_in, list_receipts};
pub use self::view::snapshot::{node_ref, run_summary};

/// How often somebody who waits for the answer to a request looks at what it waits for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Answers a request.
pub type ReplySender<T> = oneshot::Sender<Result<T, ErrorData>>;

/// A request to the worker of a repository; all checks that need the repository have been made.
#[derive(Debug)]
pub enum WorkerMessage {
    /// Start or resume a run.
    Start(Box<StartOrder>, ReplySender<StartReply>),
    /// Run one iteration.
    Step {
        /// Which run.
        run: Option<String>,
        /// Who waits.
        reply: ReplySender<StepReply>,
    },
    /// Stop after the iteration, or now.
    Pause {
        /// Which run.
        run: Option<String>,
        /// Whether the session is ended.
        now: bool,
        /// Who waits.
        reply: ReplySender<ControlReply>,
    },
    /// Go on.
    Resume {
        /// Which run.
        run: Option<String>,
        /// Whether a wait is cut short.
        now: bool,
        /// Iterations to grant.
        more: Option<u32>,
        /// Who waits.
        reply: ReplySender<ControlReply>,
    },
    /// End a run.
    Cancel {
        /// Which run.
        run: Option<String>,
        /// Who waits.
        reply: ReplySender<ControlReply>,
    },
    /// Change files of a run for a person.
    Change(Box<ChangeOrder>, ReplySender<ChangeReply>),
    /// Say a person's word on the node that waits for it.
    Review {
        /// Which run.
        run: Option<String>,
        /// What was decided.
        decision: Decision,
        /// That person's signature.
        signature: Option<ReviewSignature>,
        /// Who waits.
        reply: ReplySender<ReviewReply>,
    },
    /// Tell what waits for a person's word.
    PendingReview {
        /// Which run.
        run: Option<String>,
        /// Who waits.
        reply: ReplySender<PendingReview>,
    },
    /// Do something to the repository while no run of it begins.
    RunExclusive(ExclusiveWork, ReplySender<()>),
    /// A hook has ended.
    HookEnded {
        /// What it was told.
        event: Box<HookEvent>,
        /// Why it failed, if it did.
        failure: Option<String>,
    },
    /// Remember that this user has confirmed commands.
    Confirm {
        /// Digest of the commands.
        digest: String,
        /// Who waits.
        reply: ReplySender<()>,
    },
    /// Describe one run.
    Describe {
        /// Its id or a unique prefix.
        run: String,
        /// Who waits.
        reply: ReplySender<StatusView>,
    },
    /// List the runs, and the digests of confirmed commands.
    List {
        /// Who waits.
        reply: oneshot::Sender<(Vec<RunSummary>, Vec<String>)>,
    },
}

/// Work on a repository that must not meet the beginning of a run.
pub struct ExclusiveWork(Box<dyn FnOnce() -> Result<(), ErrorData> + Send>);

impl ExclusiveWork {
    /// Takes what is to be done; it may block.
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

/// What a person asks of a run's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeOrder {
    /// Which run.
    pub run: Option<String>,
    /// What is asked. The id of a note, the base of an edit and what files that are accepted are like are given
    /// by the worker.
    pub change: ChangeRequest,
    /// Digest of the tree that was opened for an edit.
    pub opened: Option<String>,
}

/// A run that may be put into the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartOrder {
    /// Its id.
    pub id: IdChoice,
    /// How it is to be started.
    pub start: StartRequest,
    /// Why it is not begun where it is not in the list: by its branch, it would end again at once.
    pub refusal: Option<RequestRefusal>,
}

/// The id of a run to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdChoice {
    /// This one.
    Given(String),
    /// The stem, or the first of `-2`, `-3`… that is free.
    Derived {
        /// The stem.
        stem: String,
        /// Ids that have a branch.
        taken: BTreeSet<String>,
    },
}

/// Talks to the worker of one repository.
#[derive(Debug, Clone)]
pub struct WorkerHandle {
    /// Id of the repository.
    pub id: String,
    /// Where its run comes from, if it is the workspace of an isolated one.
    pub source: Option<Arc<SourceRepo>>,
    mailbox: mpsc::Sender<WorkerMessage>,
    status: watch::Receiver<Arc<StatusView>>,
    /// Nothing new is to begin: a worker that is gone has left in order.
    drain: CancellationToken,
    shutdown: CancellationToken,
}

impl WorkerHandle {
    /// Returns what is seen of the repository now.
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

    /// Returns the command of git's that the worker has waited for, if it has done so for long.
    fn git_wait(&self) -> Option<GitWaitView> {
        let wait = git::waits(|common_dir| self.is_of(common_dir))?;
        Some(GitWaitView { command: wait.command, program: wait.program, since: wait.since })
    }

    /// Whether a git folder is the repository's, or that of the repository which its run is published to.
    fn is_of(&self, common_dir: &Path) -> bool {
        repo_id(common_dir) == self.id
            || self.source.as_ref().is_some_and(|source| source.common_dir.as_path() == common_dir)
    }

    /// Whether a run of the repository is being driven.
    pub fn is_driving(&self) -> bool {
        self.status().repo.queue.iter().any(|run| run.state == RunStatus::Running)
    }

    /// Waits until no run of the repository is being cancelled: what begins finds its end, and what it has committed.
    pub async fn wait_until_none_cancelling(&self) {
        let is_cancelled =
            |view: &Arc<StatusView>| view.run.as_ref().is_some_and(|run| run.pending == Some(PendingControl::Cancel));
        // An error means that the worker is gone, which whoever asks it next is told.
        let _ = self.status.clone().wait_for(|view| !is_cancelled(view)).await;
    }

    /// Waits until the worker has looked at its repository for the first time.
    pub async fn wait_until_recovered(&mut self) {
        // An error means that the worker is gone; there is nothing to wait for.
        let _ = self.status.changed().await;
    }

    /// Waits until something else is seen of the repository than at the last call; false if the worker is gone.
    pub async fn wait_for_change(&mut self) -> bool {
        self.status.changed().await.is_ok()
    }

    /// Sends a request and waits for the answer.
    pub async fn send_request<T>(&self, request: impl FnOnce(ReplySender<T>) -> WorkerMessage) -> Result<T, ErrorData> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(request(reply)).await.map_err(|_| self.worker_gone_error())?;
        answer.await.map_err(|_| self.worker_gone_error())?
    }

    /// Sends a request to cancel a run, and ends what git waits for there until the run has ended.
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
        git::end_waiting(|common_dir| self.is_of(common_dir), Ender::Cancel);
    }

    /// Sends a request, and says what the worker waits for where that keeps it from answering. The request stands all the
    /// same.
    pub async fn ask_or_tell<T>(&self, request: impl FnOnce(ReplySender<T>) -> WorkerMessage) -> Result<T, ErrorData> {
        let mut answer = std::pin::pin!(self.send_request(request));
        loop {
            tokio::select! {
                biased;
                answer = answer.as_mut() => return answer,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if let Some(wait) = self.git_wait() {
                let program = wait.program.map_or_else(String::new, |program| format!(", which waits for {program}"));
                let message = format!("asked for; the run waits for git {}{program}", wait.command);
                let hint = "it is heeded once that has ended; to end it and the run: runnerctl cancel";
                return Err(ErrorData::new(ErrorKind::Fault, message).hint(hint));
            }
        }
    }

    /// Says why there is no answer: the worker has left, or has met a bug.
    fn worker_gone_error(&self) -> ErrorData {
        if self.drain.is_cancelled() || self.shutdown.is_cancelled() {
            return ErrorData::new(ErrorKind::Draining, "the daemon is shutting down").hint("runnerctl daemon status");
        }
        let message = "a bug of the daemon ended the work on this repository before the request was answered";
        ErrorData::new(ErrorKind::Bug, message).hint("runnerctl status says what is held, and the daemon's log why")
    }

    /// Lists the runs, and the digests of confirmed commands.
    pub async fn list_runs(&self) -> (Vec<RunSummary>, Vec<String>) {
        let (reply, response) = oneshot::channel();
        if self.mailbox.send(WorkerMessage::List { reply }).await.is_err() {
            return Default::default();
        }
        response.await.unwrap_or_default()
    }
}
