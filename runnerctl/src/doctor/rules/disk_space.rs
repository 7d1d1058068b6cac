//! Checks whether the workspaces' disk has room for more of them: pure.

use std::collections::BTreeSet;

use protocol::doctor::SPARE_WORKSPACES;
use protocol::shell;
use protocol::view::{DiskView, WorkspaceDisk};

use super::{DISK_FULL, DISK_LOW};
use crate::doctor::{CheckLevel, DoctorCheck};
use crate::text::measure::format_bytes;

/// Checks the room for workspaces; `None` if there are no workspaces.
pub(crate) fn check_workspaces(disk: &DiskView) -> Option<DoctorCheck> {
    let largest = disk.workspaces.iter().map(|workspace| workspace.bytes).max()?;
    let total: u64 = disk.workspaces.iter().map(|workspace| workspace.bytes).sum();
    let count = disk.workspaces.len();
    let folder = &disk.folder;
    let used = format!("{} in {count} of isolated runs", format_bytes(total));
    let Some(free) = disk.free_bytes else {
        return Some(DoctorCheck::warn(
            "workspaces",
            format!("{used}; the free space at {folder} is unknown"),
            "df -h",
        ));
    };
    let found = format!("{used}, {} free at {folder}", format_bytes(free));
    let level = match free {
        0..DISK_FULL => CheckLevel::Fail,
        _ if free < DISK_LOW.max(largest.saturating_mul(SPARE_WORKSPACES)) => CheckLevel::Warn,
        _ => return Some(DoctorCheck::ok("workspaces", found)),
    };
    let details = disk.workspaces.iter().map(render_workspace).collect();
    Some(DoctorCheck {
        fix: Some(suggest_fix(disk)),
        ..DoctorCheck::new(level, "workspaces", found).with_details(details)
    })
}

fn render_workspace(workspace: &WorkspaceDisk) -> String {
    let suffix = if workspace.removable { ", over" } else { "" };
    format!("{} {}: {}{suffix}", workspace.source, workspace.run, format_bytes(workspace.bytes))
}

/// Returns the command that removes removable workspaces, or how else to make room.
fn suggest_fix(disk: &DiskView) -> String {
    let finished = disk.workspaces.iter().filter(|workspace| workspace.removable);
    let sources: BTreeSet<String> = finished.map(|workspace| shell::quote(&workspace.source.to_string())).collect();
    let commands: Vec<String> = sources.into_iter().map(|source| format!("runnerctl gc {source}")).collect();
    if commands.is_empty() {
        return format!(
            "make room on the disk of {}, or name a directory on another one: workspaces, in the daemon's settings",
            disk.folder
        );
    }
    commands.join(" && ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const GB: u64 = 1_000_000_000;

    fn disk_view(workspaces: &[(&str, u64, bool)], free_bytes: Option<u64>) -> DiskView {
        let workspace = |(source, bytes, removable): &(&str, u64, bool)| WorkspaceDisk {
            path: Path::new("/w/1/tidy").into(),
            source: Path::new(source).into(),
            run: "tidy".into(),
            removable: *removable,
            bytes: *bytes,
        };
        DiskView { folder: Path::new("/w").into(), workspaces: workspaces.iter().map(workspace).collect(), free_bytes }
    }

    fn check_level(workspaces: &[(&str, u64, bool)], free: Option<u64>) -> (CheckLevel, Option<String>) {
        let check = super::check_workspaces(&disk_view(workspaces, free)).expect("there are workspaces");
        (check.level, check.fix)
    }

    #[test]
    fn room_is_measured_by_the_largest_workspace_and_warned_of_before_there_is_none() {
        assert_eq!(super::check_workspaces(&disk_view(&[], Some(0))), None);
        let own = [("/home/me/my code", 4 * GB, true), ("/home/me/site", GB, false)];
        assert_eq!(check_level(&own, Some(13 * GB)).0, CheckLevel::Ok);
        let gc = Some("runnerctl gc '/home/me/my code'".to_owned());
        assert_eq!(check_level(&own, Some(11 * GB)), (CheckLevel::Warn, gc.clone()));
        assert_eq!(check_level(&own, Some(1)), (CheckLevel::Fail, gc));
        assert_eq!(check_level(&own[1..], Some(3 * GB)).0, CheckLevel::Ok);
        assert_eq!(check_level(&[("/a", 1, false)], Some(GB)).0, CheckLevel::Warn, "a disk is low whatever is on it");
    }

    #[test]
    fn where_no_run_is_over_there_is_nothing_to_remove() {
        let (level, fix) = check_level(&[("/home/me/site", GB, false)], Some(2 * GB));
        assert_eq!(level, CheckLevel::Warn);
        let fix = fix.expect("something can be done");
        assert!(fix.starts_with("make room on the disk of /w"), "{fix}");
        let both = [("/a", GB, true), ("/b", GB, true), ("/a", GB, true)];
        assert_eq!(check_level(&both, Some(GB)).1.as_deref(), Some("runnerctl gc /a && runnerctl gc /b"));
    }
}
