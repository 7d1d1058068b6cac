//! Workspaces of runs that are over: measured, and removed once nothing in them is anywhere else missing.
//!
//! What is removed is removed in an order that a death leaves to the next try: records first, the workspace out of its place,
//! then what is known of it, the folder, and the id last. Where nothing is known of it any more, the next start goes on with an id
//! whose workspace is out of its place (`isolation`).

use std::fs;
use std::path::{Path, PathBuf};

use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::reply::WorkspaceSwept;
use protocol::view::{DiskView, RunSummary, StopReason, WorkspaceDisk};
use runner_core::publish;
use runner_core::shell;

use super::meant::summary;
use super::{Api, blocking};
use crate::admit::{self, git_error};
use crate::git::{Change, GitError, Repository};
use crate::isolation::{self, Reserved};
use crate::repo::layout::Layout;
use crate::repo::records::{Records, RecordsError};
use crate::store::{Source, Store, repo_id};
use crate::worker::{Handle, Trusted};
use crate::workspace::{self, Owner};

/// The folder of records whose workspaces are gone, in the state folder.
const RECORDS: &str = "records";
/// Paths that are named of those that keep a workspace.
const SHOWN: usize = 5;

/// A workspace that may go.
struct Old {
    summary: RunSummary,
    source: Source,
    store: Store,
    /// The daemon's folder for its source.
    of_source: Store,
    /// Where its records go.
    kept: Layout,
}

/// Why a workspace cannot be removed now.
enum Stays {
    /// It has something that is nowhere else.
    For(StopReason),
    /// Something failed.
    Failed(ErrorData),
}

impl From<GitError> for Stays {
    fn from(error: GitError) -> Self {
        Self::Failed(git_error(&error))
    }
}

impl From<RecordsError> for Stays {
    fn from(error: RecordsError) -> Self {
        Self::Failed(ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))
    }
}

impl Api {
    /// Returns where the records of a repository's isolated runs are whose workspaces are gone.
    pub(super) fn kept_records(&self, common_dir: &Path) -> Layout {
        Layout::new(self.paths.state.join(RECORDS).join(repo_id(common_dir)))
    }

    /// Measures all workspaces.
    pub(super) async fn measure(&self) -> Result<DiskView, ErrorData> {
        let workers = self.registry.list().await;
        let known: Vec<_> =
            workers.iter().filter_map(|worker| Some((summary(worker)?, worker.source.clone()?))).collect();
        let folder = self.workspaces.clone();
        blocking(move || {
            let disk = |(run, source): (RunSummary, std::sync::Arc<Source>)| WorkspaceDisk {
                bytes: isolation::bytes_below(run.path.as_path()),
                over: run.state.is_terminal(),
                source: source.path.clone(),
                path: run.path,
                run: run.id,
            };
            let mut workspaces: Vec<WorkspaceDisk> = known.into_iter().map(disk).collect();
            workspaces.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.run.cmp(&b.run)));
            Ok(DiskView { free_bytes: isolation::free_bytes(&folder), folder: WirePath(folder), workspaces })
        })
        .await
    }

    /// Removes the workspaces of those isolated runs of a repository that are over, and says what has become of each.
    pub(super) async fn sweep_workspaces(&self, path: &Path, dry_run: bool) -> Result<Vec<WorkspaceSwept>, ErrorData> {
        let Some((_, workers)) = self.runs_around(path).await else { return Ok(Vec::new()) };
        let mut swept = Vec::new();
        for worker in workers {
            let Some(summary) = summary(&worker).filter(|run| run.state.is_terminal()) else { continue };
            let (run, path) = (summary.id.clone(), summary.path.clone());
            let (bytes, gone) = self.sweep(&worker, summary, dry_run).await?;
            let kept = match gone {
                Ok(()) => None,
                Err(Stays::For(why)) => Some(why),
                Err(Stays::Failed(ErrorData { message, hint: Some(hint), .. })) => Some(StopReason::new(message, hint)),
                Err(Stays::Failed(ErrorData { message, .. })) => Some(StopReason::new(message, "runnerctl gc")),
            };
            swept.push(WorkspaceSwept { run, path, bytes, kept });
        }
        Ok(swept)
    }

    async fn sweep(
        &self,
        worker: &Handle,
        summary: RunSummary,
        dry_run: bool,
    ) -> Result<(u64, Result<(), Stays>), ErrorData> {
        let Some(source) = worker.source.clone() else { return Ok((0, Ok(()))) };
        let common_dir = source.common_dir.as_path();
        let old = Old {
            summary,
            store: Store::new(&self.vault, &worker.id),
            of_source: Store::new(&self.vault, &repo_id(common_dir)),
            kept: self.kept_records(common_dir),
            source: (*source).clone(),
        };
        let (bytes, old, checked) = blocking(move || {
            let bytes = isolation::bytes_below(old.summary.path.as_path());
            let checked = old.check().and_then(|()| if dry_run { Ok(()) } else { old.put_aside() });
            Ok((bytes, old, checked))
        })
        .await?;
        if checked.is_err() || dry_run {
            return Ok((bytes, checked));
        }
        // The run is over, and nobody lets it go on in a folder that is gone.
        if let Err(error) = self.registry.remove(&worker.id).await {
            return Ok((bytes, Err(Stays::Failed(error))));
        }
        blocking(move || Ok((bytes, old.forget()))).await
    }
}

impl Old {
    fn place(&self) -> &Path {
        self.summary.path.as_path()
    }

    fn source(&self) -> Result<Repository, Stays> {
        let path = self.source.path.as_path();
        match Trusted::of(&self.of_source, path).repository()? {
            Some(repository) => Ok(repository),
            None => admit::present(path).map_err(Stays::Failed),
        }
    }

    /// Fails where something of the workspace is nowhere else. One whose folder is gone has nothing.
    fn check(&self) -> Result<(), Stays> {
        if self.place().symlink_metadata().is_err() {
            if self.place().parent().is_none_or(|around| around.symlink_metadata().is_err()) {
                let message =
                    format!("the folder of {} is not there, nor is the one around it", self.place().display());
                return Err(Stays::Failed(ErrorData::new(ErrorKind::Fault, message).hint("df -h")));
            }
            return Ok(());
        }
        let workspace = Trusted::of(&self.store, self.place()).bound()?;
        self.refuse_unpublished(&workspace)?;
        self.refuse_submodules(&workspace)?;
        let note =
            self.store.workspace().read().map_err(|error| {
                Stays::Failed(ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))
            })?;
        // Nobody has worked in one that was never made ready: what git ignores there was copied, or is the setup's.
        let mut files = match note {
            Some(note) => workspace::foreign(&workspace, &note.made)?,
            None => Vec::new(),
        };
        let changed = workspace.changes()?.iter().map(Change::display_path).collect::<Vec<_>>();
        files.extend(changed.into_iter().filter(|path| !path.starts_with(".runner/")));
        files.sort();
        files.dedup();
        if files.is_empty() {
            return Ok(());
        }
        let shown = files.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        let more = files.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let place = shell::quoted(&self.place().display().to_string());
        Err(Stays::For(StopReason::new(
            format!("it holds files that no commit has: {shown}{more}"),
            format!("git -C {place} status --ignored; take what you need, remove the rest, then: runnerctl gc"),
        )))
    }

    /// Fails where there are submodules: what was committed in them is published nowhere.
    fn refuse_submodules(&self, workspace: &Repository) -> Result<(), Stays> {
        let folder = workspace.common_dir().join("modules");
        let has_some = match fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(error) => return Err(Stays::Failed(ErrorData::new(ErrorKind::Fault, error.to_string()))),
            Ok(mut entries) => entries.next().is_some(),
        };
        if !has_some {
            return Ok(());
        }
        let place = shell::quoted(&self.place().display().to_string());
        Err(Stays::For(StopReason::new(
            "it has submodules, whose commits are not published",
            format!(
                "git -C {place} submodule foreach git log --oneline -5; take what you need, then remove the folder"
            ),
        )))
    }

    /// Fails where a reference of the workspace leads to what its source does not have.
    fn refuse_unpublished(&self, workspace: &Repository) -> Result<(), Stays> {
        let (source, run) = (self.source()?, &self.source.run);
        let there = source.refs()?;
        let branch = format!("refs/heads/runner/{run}");
        for (name, id) in workspace.refs()? {
            let Ok(id) = id.parse() else { continue };
            if name == publish::guarded(run) {
                continue;
            }
            if !source.holds(&id)? {
                let why = format!("{name} in it has commits that {} does not have", self.source.path);
                let place = shell::quoted(&self.place().display().to_string());
                return Err(Stays::For(StopReason::new(why, format!("git -C {place} log --oneline {name}"))));
            }
            let at = there.get(&branch).or_else(|| there.get(&format!("refs/runner/at/{run}")));
            let at = at.and_then(|at| at.parse().ok());
            let is_reached = || at.map_or(Ok(false), |at| source.is_ancestor(&id, &at));
            if name == branch && !is_reached()? {
                let why = self.summary.published.as_ref().and_then(|published| published.why.clone());
                let behind = || StopReason::new("it is not published", format!("runnerctl status --run {run}"));
                return Err(Stays::For(why.unwrap_or_else(behind)));
            }
        }
        Ok(())
    }

    /// Moves the records away and takes the workspace out of its place.
    fn put_aside(&self) -> Result<(), Stays> {
        let run = &self.source.run;
        if let Some(records) = Records::of(&Layout::new(self.place())) {
            records.move_to(run, &self.kept)?;
        }
        match fs::rename(self.place(), self.going()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("removing {}: {error}", self.place().display());
                Err(Stays::Failed(ErrorData::new(ErrorKind::Fault, message)))
            }
            _ => Ok(()),
        }
    }

    fn owner(&self) -> Owner {
        Owner::of(self.store.key())
    }

    /// Returns where it is while it is removed: what stays there is removed at the next start.
    fn going(&self) -> PathBuf {
        self.owner().unfinished(self.place())
    }

    /// Removes it, and gives its id back.
    fn forget(&self) -> Result<(), Stays> {
        let reserved = Reserved { run: self.source.run.clone(), nonce: self.source.nonce.clone() };
        let source = self.source()?;
        let forgotten = isolation::forget(&source, &reserved, (self.place(), &self.owner()));
        forgotten.map_err(|error| Stays::Failed(ErrorData::new(ErrorKind::Fault, error)))
    }
}
