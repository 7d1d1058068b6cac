//! `iteration.*`: the records of iterations, and their files in parts.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jsonrpsee::Extensions;
use jsonrpsee::core::{RpcResult, async_trait};
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use protocol::api::IterationApiServer;
use protocol::command::Command;
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::reply::{ActivityReply, ExportReply, GcReply, IterationReply, ReportedFailure};
use protocol::request::{ActivityParams, AtIteration, AtRun, ExportParams, GcParams, LogParams, LogStream};
use protocol::view::{IterationView, RunView, TextView};
use protocol::words::{GuardOutcome, PhaseName, RunStatus};
use runner_core::feedback;
use runner_core::text::fence;
use runner_git::{Id, Repository};
use tokio_util::sync::CancellationToken;

use super::activity::OutputPart;
use super::missing_branch::missing_branch_error;
use super::{Api, activity, records, run_blocking};
use crate::admit::{git_error, no_run_error};
use crate::repo::layout::Layout;
use crate::store::{RepoStore, repo_id};
use crate::worker::{LoadError, add_recorded_facts, list_iterations, read_meta_in, session_base};

/// Maximum number of bytes of a file in one reply.
const MAX_PIECE_BYTES: u64 = 256 * 1024;
/// Maximum number of bytes of a guard's log that are searched for failures.
const MAX_SEARCHED_BYTES: u64 = 8 * 1024 * 1024;
/// Maximum number of commits searched for receipts.
const MAX_COMMITS: usize = 100_000;

#[async_trait]
impl IterationApiServer for Api {
    async fn list(&self, extensions: &Extensions, params: AtRun) -> RpcResult<Vec<IterationView>> {
        let target =
            self.locate_iteration(AtIteration { path: params.path, run: params.run, iter: None, wait: None }).await?;
        let repository = target.repository.clone();
        let query = format!("list {} {}", target.run, self.events.last_seq());
        let onto = self.find_target(&repository, &target.run);
        let read = move |_: &CancellationToken| {
            target.require_known()?;
            target.require_branch(onto.as_deref())?;
            list_views(&target)
        };
        Ok(self.read_shared(extensions, &repository, &query, read).await?)
    }

    async fn get(&self, extensions: &Extensions, params: AtIteration) -> RpcResult<IterationReply> {
        let target = self.locate_iteration(params).await?;
        // The answer about a live iteration changes with events.
        let query = format!("get {} {:?} {:?} {}", target.run, target.iter, target.wait, self.events.last_seq());
        let repository = target.repository.clone();
        Ok(self.read_shared(extensions, &repository, &query, move |_| describe_iteration(&target)).await?)
    }

    async fn log(&self, params: LogParams) -> RpcResult<TextView> {
        let target = self.locate_iteration(params.at).await?;
        let stream = params.stream;
        let offset = params.offset;
        let raw = params.raw;
        Ok(run_blocking(move || read_log_piece(&target, stream, offset, raw)).await?)
    }

    async fn activity(&self, params: ActivityParams) -> RpcResult<ActivityReply> {
        let target = self.locate_iteration(params.at).await?;
        Ok(run_blocking(move || read_steps(&target, params.offset)).await?)
    }

    async fn export(&self, params: ExportParams) -> RpcResult<ExportReply> {
        let AtRun { path, run } = params.at.clone();
        let target = self.locate_iteration(AtIteration { path, run, iter: None, wait: None }).await?;
        Ok(run_blocking(move || records::export_record(&target.layout(), &target.run, &params)).await?)
    }

    async fn gc(&self, params: GcParams) -> RpcResult<GcReply> {
        let repository = self.find_repository(params.path.as_path()).await?;
        let worker = self.registry.find(repository.common_dir()).await;
        let mut open = BTreeSet::new();
        if let Some(worker) = &worker {
            if let Some(held) = &worker.status().repo.held {
                // It is unknown which runs are over.
                return Err(ErrorData::new(ErrorKind::Held, held.message.clone()).hint("runnerctl status").into());
            }
            let runs = worker.list_runs().await.0;
            open.extend(runs.into_iter().filter(|run| !run.state.is_terminal()).map(|run| run.id));
        }
        let workspaces = self.sweep_workspaces(repository.work_dir(), &params).await?;
        let layout = Layout::new(repository.work_dir());
        let archive = self.archived_records(repository.common_dir());
        Ok(run_blocking(move || records::gc_all_records(&layout, &archive, &open, workspaces, &params)).await?)
    }
}

/// An iteration and the location of its record.
pub(super) struct IterationTarget {
    repository: Repository,
    /// Id of the run.
    pub(super) run: String,
    iter: Option<u32>,
    /// Number of the requested wait under that iteration number.
    wait: Option<u32>,
    /// The phase of the live iteration, if it belongs to this run.
    live: Option<(u32, PhaseName)>,
    /// The kind of agent that is working in it.
    agent: Option<String>,
    /// Whether the guard is running on the base.
    is_baseline: bool,
    /// The state of the run, if it is listed.
    state: Option<RunStatus>,
    /// The daemon's folder for the repository.
    store: RepoStore,
    /// The location of the records if the workspace is gone.
    archive: Layout,
}

impl IterationTarget {
    fn layout(&self) -> Layout {
        let layout = Layout::new(self.repository.work_dir());
        let is_kept = || self.archive.run_records(&self.run).is_dir();
        if layout.run_records(&self.run).is_dir() || !is_kept() { layout } else { self.archive.clone() }
    }

    /// Returns the kind of agent whose output is in an iteration's record, if known.
    pub(super) fn agent(&self) -> Option<String> {
        let iter = self.iter?;
        let recorded_agent = || Some(read_meta_in(&self.record_dir(iter))?.agent);
        let is_live = self.live.is_some_and(|(live, _)| live == iter) && self.wait.is_none();
        if is_live { self.agent.clone().or_else(recorded_agent) } else { recorded_agent() }
    }

    /// Returns the last commit that the runner has made in the run; `None` before the first.
    fn last_commit(&self) -> Result<Option<Id>, ErrorData> {
        let tip =
            self.repository.find_branch_tip(&format!("runner/{}", self.run)).map_err(|error| git_error(&error))?;
        Ok(session_base(&self.store, &self.run).or(tip))
    }

    /// Whether it has a branch or records.
    fn has_begun(&self) -> bool {
        self.layout().run_records(&self.run).is_dir()
            || self.repository.find_branch_tip(&format!("runner/{}", self.run)).is_ok_and(|tip| tip.is_some())
    }

    /// Fails if there is no such run.
    fn require_known(&self) -> Result<(), ErrorData> {
        if self.state.is_some() || self.has_begun() { Ok(()) } else { Err(self.not_begun_error()) }
    }

    /// Fails if it has ended and its branch is gone.
    fn require_branch(&self, onto: Option<&str>) -> Result<(), ErrorData> {
        let has_record = self.layout().iteration(&self.run, 1).is_dir();
        let has_ended = self.state.is_none_or(RunStatus::is_terminal);
        let has_iterations = has_record || self.state == Some(RunStatus::Completed);
        if !has_ended || !has_iterations || self.last_commit()?.is_some() {
            return Ok(());
        }
        Err(missing_branch_error(&self.repository, &self.run, onto, has_record.then_some("1"))?)
    }

    fn not_begun_error(&self) -> ErrorData {
        let (message, hint) = match self.state {
            Some(state) if !state.is_terminal() => {
                (format!("run {} has not begun its first iteration", self.run), "runnerctl status")
            }
            Some(state) => {
                let message = format!("run {} {}, and has no iterations here", self.run, state.predicate());
                (message, "runnerctl queue --ended")
            }
            None => {
                let place = self.repository.work_dir().display();
                (format!("there is no run {} in {place}", self.run), "runnerctl queue --ended")
            }
        };
        ErrorData::new(ErrorKind::NotFound, message).hint(hint)
    }

    fn iteration_number(&self) -> Result<u32, ErrorData> {
        self.iter.ok_or_else(|| {
            let message = format!("run {} has no iteration yet", self.run);
            ErrorData::new(ErrorKind::NotFound, message).hint("runnerctl status")
        })
    }

    /// Returns the record of an iteration, or of a wait under its number: the last one if nothing was committed.
    fn record_dir(&self, iter: u32) -> PathBuf {
        let layout = self.layout();
        let run = self.run.as_str();
        if let Some(wait) = self.wait {
            return layout.waited_iteration(run, iter, wait);
        }
        let folder = layout.iteration(run, iter);
        let last_wait = || list_waits(&layout, run).into_iter().rev().find(|(of, _)| *of == iter);
        let is_only_waits = !folder.is_dir();
        is_only_waits.then(last_wait).flatten().map_or(folder, |(_, wait)| layout.waited_iteration(run, iter, wait))
    }
}

/// Returns the iterations and waits whose records have no commit, in order.
fn list_waits(layout: &Layout, run: &str) -> Vec<(u32, u32)> {
    let Ok(folders) = std::fs::read_dir(layout.run_records(run)) else { return Vec::new() };
    let number = |name: &str| {
        let (iter, wait) = name.split_once(".w")?;
        Some((iter.parse().ok()?, wait.parse().ok()?))
    };
    let found = folders.flatten().filter_map(|folder| number(folder.file_name().to_str()?));
    let mut waits: Vec<(u32, u32)> = found.collect();
    waits.sort_unstable();
    waits
}

impl Api {
    /// Finds a run and one of its iterations.
    pub(super) async fn locate_iteration(&self, params: AtIteration) -> Result<IterationTarget, ErrorData> {
        let path = self.resolve_run_path(&params.path, params.run.as_deref(), "log").await?;
        let params = AtIteration { path, ..params };
        let repository = self.find_repository(params.path.as_path()).await?;
        let worker = self.registry.find(repository.common_dir()).await;
        let listed = match &worker {
            Some(worker) => worker.list_runs().await.0,
            None => Vec::new(),
        };
        let status = worker.map(|worker| worker.status());
        let store = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()));
        let archived = self.archived_records(repository.common_dir());
        run_blocking(move || {
            let run = status.as_ref().and_then(|status| status.run.as_ref());
            let target = find_iteration(repository, store, archived, params, run)?;
            Ok(IterationTarget { state: listed.iter().find(|run| run.id == target.run).map(|run| run.state), ..target })
        })
        .await
    }
}

fn find_iteration(
    repository: Repository,
    store: RepoStore,
    archive: Layout,
    params: AtIteration,
    current: Option<&RunView>,
) -> Result<IterationTarget, ErrorData> {
    let checked_out_run = || {
        let head = repository.head().ok()?;
        head.branch()?.strip_prefix("runner/").map(str::to_owned)
    };
    let requested = params.run.or_else(|| current.map(|run| run.summary.id.clone())).or_else(checked_out_run);
    let requested = requested.ok_or_else(|| no_run_error(repository.work_dir()))?;
    let run = complete_run_id(&repository, &requested)?;
    let current = current.filter(|current| current.summary.id == run);
    let live = current.filter(|current| current.summary.state == RunStatus::Running || current.phase.is_some());
    let is_baseline = live.and_then(|current| current.phase.as_ref()).is_some_and(|phase| phase.baseline);
    let live =
        live.filter(|_| !is_baseline).and_then(|current| Some((current.iteration, current.phase.as_ref()?.name)));
    let agent = current.and_then(|current| current.phase.as_ref()?.agent.clone());
    let has_record = |iter: u32| Layout::new(repository.work_dir()).iteration(&run, iter).is_dir();
    let iter = match params.iter.or(live.map(|(iter, _)| iter).filter(|iter| has_record(*iter))) {
        Some(iter) => Some(iter),
        None => find_last_iteration(&repository, &store, &run)?,
    };
    Ok(IterationTarget {
        iter,
        wait: params.wait,
        repository,
        run,
        live,
        agent,
        is_baseline,
        state: None,
        store,
        archive,
    })
}

/// Completes the unique prefix of a run's id from its branch.
pub(super) fn complete_run_id(repository: &Repository, prefix: &str) -> Result<String, ErrorData> {
    let branches = repository.list_branches(&format!("runner/{prefix}")).map_err(|error| git_error(&error))?;
    let ids: Vec<&str> = branches.iter().filter_map(|(name, _)| name.strip_prefix("runner/")).collect();
    match ids[..] {
        [one] => Ok(one.to_owned()),
        _ if ids.contains(&prefix) || ids.is_empty() => Ok(prefix.to_owned()),
        _ => {
            let message = format!("`{prefix}` matches more than one run: {}", ids.join(", "));
            let refused = ErrorData::new(ErrorKind::InvalidRequest, message).hint("runnerctl queue --ended");
            Err(refused.choice(Some(prefix), ids))
        }
    }
}

fn find_last_iteration(repository: &Repository, store: &RepoStore, run: &str) -> Result<Option<u32>, ErrorData> {
    let tip = repository.find_branch_tip(&format!("runner/{run}")).map_err(|error| git_error(&error))?;
    let Some(tip) = session_base(store, run).or(tip) else { return Ok(None) };
    let committed = list_iterations(repository, run, tip, 100).map_err(|error| load_error_data(&error))?;
    let waited = list_waits(&Layout::new(repository.work_dir()), run).last().map(|(iter, _)| *iter);
    Ok(committed.first().map(|iteration| iteration.iter).max(waited))
}

fn list_views(target: &IterationTarget) -> Result<Vec<IterationView>, ErrorData> {
    let Some(tip) = target.last_commit()? else { return Ok(Vec::new()) };
    let mut views =
        list_iterations(&target.repository, &target.run, tip, MAX_COMMITS).map_err(|error| load_error_data(&error))?;
    let layout = target.layout();
    add_recorded_facts(&layout, &mut views);
    views.extend(list_waits(&layout, &target.run).into_iter().filter_map(|(iter, wait)| {
        let meta = read_meta_in(&layout.waited_iteration(&target.run, iter, wait))?;
        Some(IterationView { iter, wait: Some(wait), ..IterationView::from(&meta) })
    }));
    // Attempts without a commit came before the one that was committed under the same number.
    views.sort_by_key(|view| (view.iter, view.wait.is_none(), view.wait));
    Ok(views)
}

fn describe_iteration(target: &IterationTarget) -> Result<IterationReply, ErrorData> {
    let iter = target.iteration_number()?;
    let record = target.record_dir(iter);
    let meta = read_meta_in(&record);
    let committed = if target.wait.is_none() { find_committed(target, iter)? } else { None };
    let iteration =
        committed.or_else(|| find_uncommitted(target, iter)).or_else(|| meta.as_ref().map(IterationView::from));
    let iteration = iteration.ok_or_else(|| unknown_iteration_error(target, iter))?;
    let failures = if iteration.guard == GuardOutcome::Fail { read_failures(&record) } else { Vec::new() };
    Ok(IterationReply { iteration, record: WirePath(record), meta, failures })
}

/// Finds an iteration among the commits of its run, and reads only that one's record.
fn find_committed(target: &IterationTarget, iter: u32) -> Result<Option<IterationView>, ErrorData> {
    let Some(tip) = target.last_commit()? else { return Ok(None) };
    let views =
        list_iterations(&target.repository, &target.run, tip, MAX_COMMITS).map_err(|error| load_error_data(&error))?;
    let mut found: Vec<IterationView> = views.into_iter().filter(|view| view.iter == iter).take(1).collect();
    add_recorded_facts(&target.layout(), &mut found);
    Ok(found.pop())
}

/// Finds the requested attempt among those without a commit; the last one by default.
fn find_uncommitted(target: &IterationTarget, iter: u32) -> Option<IterationView> {
    let layout = target.layout();
    let matches = |(number, wait): &(u32, u32)| *number == iter && target.wait.is_none_or(|index| index == *wait);
    let (_, wait) = list_waits(&layout, &target.run).into_iter().rev().find(matches)?;
    let meta = read_meta_in(&layout.waited_iteration(&target.run, iter, wait))?;
    Some(IterationView { iter, wait: Some(wait), ..IterationView::from(&meta) })
}

/// Parses the failures in the guard's log, up to the size limit.
fn read_failures(record: &Path) -> Vec<ReportedFailure> {
    let log = read_file_piece(&record.join(LogStream::Guard.file_name()), 0, MAX_SEARCHED_BYTES);
    // Read errors are reported when the log itself is requested.
    log.map(|(bytes, _)| feedback::list_failures(&bytes)).unwrap_or_default()
}

fn load_error_data(error: &LoadError) -> ErrorData {
    error.to_error_data("git fsck")
}

fn unknown_iteration_error(target: &IterationTarget, iter: u32) -> ErrorData {
    if !target.has_begun() {
        return target.not_begun_error();
    }
    let message = match target.wait {
        Some(wait) => format!("iteration {iter:04} of run {} has no wait {wait}", target.run),
        None => format!("run {} has no iteration {iter:04}", target.run),
    };
    ErrorData::new(ErrorKind::NotFound, message).hint(Command::list_iterations(&target.run))
}

/// A file of the records to read.
pub(super) struct RecordFile {
    path: PathBuf,
    /// Whether it may still be written, and therefore not exist yet.
    pub(super) may_grow: bool,
    /// The error if it does not exist.
    missing_error: ErrorData,
}

impl RecordFile {
    /// Reads a part of the file, and returns its size; a file that is yet to be written counts as empty.
    pub(super) fn read(&self, offset: u64, limit: u64) -> Result<(Vec<u8>, u64), ErrorData> {
        match read_file_piece(&self.path, offset, limit) {
            Ok(read) => Ok(read),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.may_grow => Ok((Vec::new(), 0)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(self.missing_error.clone()),
            Err(error) => Err(ErrorData::new(ErrorKind::Fault, format!("reading {}: {error}", self.path.display()))),
        }
    }
}

/// Finds a file of a record.
pub(super) fn find_record_file(target: &IterationTarget, stream: LogStream) -> Result<RecordFile, ErrorData> {
    let phase = match stream {
        LogStream::Baseline => return Ok(baseline_file(target)),
        LogStream::Agent => Some(PhaseName::Work),
        LogStream::Guard | LogStream::GuardAccepted | LogStream::GuardRerun => Some(PhaseName::Guard),
        LogStream::Review => Some(PhaseName::Review),
        LogStream::ReviewAnswer | LogStream::Prompt | LogStream::Diff | LogStream::Output | LogStream::Events => None,
    };
    let iter = target.iteration_number()?;
    let folder = target.record_dir(iter);
    let is_written = target.live.is_some_and(|(live, now)| live == iter && phase.is_some_and(|phase| now <= phase));
    let name = stream.file_name();
    Ok(RecordFile {
        path: folder.join(name),
        may_grow: is_written,
        missing_error: missing_file_error(target, iter, &folder, name),
    })
}

/// Returns the guard's log on the base, which belongs to no iteration.
fn baseline_file(target: &IterationTarget) -> RecordFile {
    let path = target.layout().run_records(&target.run).join(LogStream::Baseline.file_name());
    let message = format!("there is no record of the guard on the base of run {}", target.run);
    let missing_error = ErrorData::new(ErrorKind::NotFound, message).hint("runnerctl status");
    RecordFile { path, may_grow: target.is_baseline, missing_error }
}

/// Parses the agent's steps, starting at a byte offset of its output.
fn read_steps(target: &IterationTarget, offset: u64) -> Result<ActivityReply, ErrorData> {
    let log = find_record_file(target, LogStream::Agent)?;
    let (bytes, _) = log.read(offset, activity::MAX_OUTPUT)?;
    Ok(activity::read_steps(target.agent().as_deref(), &OutputPart { offset, bytes, may_grow: log.may_grow }))
}

fn read_log_piece(target: &IterationTarget, stream: LogStream, offset: u64, raw: bool) -> Result<TextView, ErrorData> {
    let file = find_record_file(target, stream)?;
    let (bytes, size) = file.read(offset, MAX_PIECE_BYTES)?;
    let complete_len =
        if bytes.len() as u64 == MAX_PIECE_BYTES { complete_characters_len(&bytes) } else { bytes.len() };
    let complete = !file.may_grow && (bytes.len() as u64) < MAX_PIECE_BYTES;
    let text = if raw { encode_base64(&bytes[..complete_len]) } else { sanitize_text(&bytes[..complete_len]) };
    Ok(TextView { text, next_offset: offset + complete_len as u64, complete, size: Some(size) })
}

fn read_file_piece(path: &Path, offset: u64, limit: u64) -> std::io::Result<(Vec<u8>, u64)> {
    // An agent may have put a link or a pipe there.
    let mut file = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path)?;
    let mut bytes = Vec::new();
    let size = file.metadata()?.len();
    // A file system refuses an offset beyond its maximum file size.
    if offset >= size {
        return Ok((bytes, size));
    }
    file.seek(SeekFrom::Start(offset))?;
    file.take(limit).read_to_end(&mut bytes)?;
    Ok((bytes, size))
}

/// Ends a part before a character that would be split.
fn complete_characters_len(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

fn missing_file_error(target: &IterationTarget, iter: u32, folder: &Path, name: &str) -> ErrorData {
    if !folder.is_dir() {
        let committed = if target.wait.is_none() { find_committed(target, iter) } else { Ok(None) };
        return match committed {
            Ok(Some(_)) => missing_record_error(target, iter),
            Ok(None) => unknown_iteration_error(target, iter),
            Err(error) => error,
        };
    }
    ErrorData::new(ErrorKind::NotFound, format!("iteration {iter:04} of run {} has no {name}", target.run))
        .hint(format!("runnerctl log {iter}"))
}

/// Says that only the commit of an iteration is left.
fn missing_record_error(target: &IterationTarget, iter: u32) -> ErrorData {
    let what = if target.state.is_some() { "was removed" } else { "is not on this machine" };
    let message = format!("the record of iteration {iter:04} of run {} {what}; its commit is there", target.run);
    ErrorData::new(ErrorKind::NotFound, message).hint(format!("runnerctl log {}/{iter}", target.run))
}

/// Makes text safe for a terminal: escape sequences are removed, other control characters spelled out.
fn sanitize_text(bytes: &[u8]) -> String {
    fence::clean(&String::from_utf8_lossy(bytes))
}

fn encode_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, &byte| group << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}
