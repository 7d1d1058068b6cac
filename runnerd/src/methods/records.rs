//! Records for people: exports them, and removes old ones.

use std::collections::BTreeSet;

use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::reply::{ExportReply, GcReply, RunRecords as RunRecordsView, WorkspaceSwept};
use protocol::request::{ExportParams, GcParams};

use crate::repo::layout::Layout;
use crate::repo::records::{RecordsDir, RecordsError, RunRecords};

/// Copies one record of `run`, or what belongs to the run as a whole.
pub(super) fn export_record(layout: &Layout, run: &str, params: &ExportParams) -> Result<ExportReply, ErrorData> {
    let not_found = |what: &str| {
        ErrorData::new(ErrorKind::NotFound, format!("there is no {what} in {}", layout.root().display()))
            .hint("runnerctl log, and runnerctl queue --ended")
    };
    let records = RecordsDir::find(layout).ok_or_else(|| not_found("record"))?;
    let known = records.describe_run(run).ok_or_else(|| not_found(&format!("record of run {run}")))?;
    let to = params.to.as_path();
    if to.starts_with(layout.folder()) {
        let message = format!("{} is in the directory of the runner itself", to.display());
        return Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint("name a directory outside of .runner"));
    }
    if let Some(name) = params.record.as_ref().filter(|name| !known.records.contains(name)) {
        return Err(not_found(&format!("record {name} of run {run}")));
    }
    let copied = records.copy_record(run, params.record.as_deref(), to).map_err(|error| records_error(&error))?;
    Ok(ExportReply {
        run: run.to_owned(),
        to: params.to.clone(),
        files: copied.files,
        bytes: copied.bytes,
        left_out: copied.skipped.into_iter().map(WirePath).collect(),
        records: if params.record.is_none() { known.records } else { Vec::new() },
    })
}

/// Removes records as [`gc_records`] does, both of a work tree and of isolated runs whose workspaces are gone. The newest of
/// each are kept.
pub(super) fn gc_all_records(
    here: &Layout,
    archive: &Layout,
    open: &BTreeSet<String>,
    workspaces: Vec<WorkspaceSwept>,
    params: &GcParams,
) -> Result<GcReply, ErrorData> {
    let mut reply = gc_records(here, open, params)?;
    let archived = gc_records(archive, open, params)?;
    reply.freed_bytes += archived.freed_bytes;
    reply.freed_bytes += workspaces.iter().filter(|swept| swept.kept.is_none()).map(|swept| swept.bytes).sum::<u64>();
    reply.removed.extend(archived.removed);
    reply.kept.extend(archived.kept);
    Ok(GcReply { workspaces, ..reply })
}

/// Removes the records of all runs except the newest; those of `open` runs are kept and do not count.
pub(super) fn gc_records(layout: &Layout, open: &BTreeSet<String>, params: &GcParams) -> Result<GcReply, ErrorData> {
    let path = WirePath::from(layout.root());
    let Some(records) = RecordsDir::find(layout) else {
        let removed = Vec::new();
        let kept = Vec::new();
        let workspaces = Vec::new();
        return Ok(GcReply { path, removed, kept, workspaces, freed_bytes: 0, dry_run: params.dry_run });
    };
    let (mut kept, ended): (Vec<_>, Vec<_>) = records
        .list_runs()
        .map_err(|error| records_error(&error))?
        .into_iter()
        .partition(|run| open.contains(&run.run));
    let mut ended = ended.into_iter();
    kept.extend(ended.by_ref().take(usize::try_from(params.keep).unwrap_or(usize::MAX)));
    let removed: Vec<RunRecords> = ended.collect();
    if !params.dry_run {
        records.remove_leftovers().map_err(|error| records_error(&error))?;
        for run in &removed {
            records.remove(&run.run).map_err(|error| records_error(&error))?;
        }
    }
    Ok(GcReply {
        path,
        freed_bytes: removed.iter().map(|run| run.bytes).sum(),
        removed: removed.into_iter().map(to_run_records).collect(),
        kept: kept.into_iter().map(to_run_records).collect(),
        workspaces: Vec::new(),
        dry_run: params.dry_run,
    })
}

fn to_run_records(run: RunRecords) -> RunRecordsView {
    let records = u32::try_from(run.records.len()).unwrap_or(u32::MAX);
    RunRecordsView { run: run.run, records, bytes: run.bytes }
}

fn records_error(error: &RecordsError) -> ErrorData {
    if error.source.kind() == std::io::ErrorKind::AlreadyExists {
        let message = format!("{} already exists, and nothing is overwritten", error.path.display());
        return ErrorData::new(ErrorKind::InvalidRequest, message)
            .hint("name a directory that is not there yet, or empty");
    }
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}
