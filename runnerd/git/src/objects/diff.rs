//! Differences between two commits, as paths or as a patch. A function of the two trees alone: no configuration,
//! attributes or program affect the output.

use std::ops::ControlFlow;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::diff::blob::unified_diff::{ConsumeHunk, ContextSize, DiffLineKind, HunkHeader};
use gix::diff::blob::{Algorithm, Diff, InternedInput, UnifiedDiff, sources::byte_lines};
use gix::diff::tree::recorder::Change;
use gix::diff::tree::{Recorder, Visit, visit};
use gix::error::ResultExt as _;
use gix::objs::TreeRefIter;
use gix::objs::tree::EntryMode;

use super::object_reader::{self, CheckedObjects, ENTRY_OVERHEAD, MAX_WALK_BYTES};
use crate::{GitError, Id, Repository};

/// Bytes checked for NUL, as git does: text has none near the beginning.
const BINARY_PROBE: usize = 8000;
/// Size limit in bytes: comparing larger files line by line takes more memory than a patch is worth.
const TEXT_LIMIT: usize = 8 * 1024 * 1024;

/// One side of a difference; `None` if the path does not exist there.
pub(crate) type DiffSide = Option<(EntryMode, ObjectId)>;

/// A path that differs.
pub(crate) struct PathDiff {
    pub(crate) path: BString,
    pub(crate) old: DiffSide,
    pub(crate) new: DiffSide,
}

impl Repository {
    /// Returns the paths of all files that differ between the trees of two commits, sorted.
    pub fn changed_paths(&self, from: &Id, to: &Id) -> Result<Vec<Vec<u8>>, GitError> {
        let repo = self.open()?;
        let compared = compare_commits(&repo, from, to).map_err(GitError::gix("comparing commits", self.git_dir()))?;
        let mut paths: Vec<Vec<u8>> = compared.into_iter().map(|difference| difference.path.into()).collect();
        paths.dedup();
        Ok(paths)
    }

    /// Returns the patch between two commits in git's format, with three lines of context and renames as removal and
    /// addition.
    ///
    /// Stops after `limit_bytes`; a patch of that length may have been cut anywhere.
    pub fn diff(&self, from: &Id, to: &Id, limit_bytes: usize) -> Result<Vec<u8>, GitError> {
        self.diff_paths(from, to, |_| true, limit_bytes)
    }

    /// Returns the patch between two commits for the paths that `includes_path` accepts, in the same form.
    pub fn diff_paths(
        &self,
        from: &Id,
        to: &Id,
        includes_path: impl Fn(&[u8]) -> bool,
        limit_bytes: usize,
    ) -> Result<Vec<u8>, GitError> {
        let repo = self.open()?;
        let write = || -> gix::Result<Vec<u8>> {
            let mut patch = Vec::new();
            for difference in
                compare_commits(&repo, from, to)?.into_iter().filter(|difference| includes_path(&difference.path))
            {
                if patch.len() >= limit_bytes {
                    break;
                }
                write_file_patch(&repo, &difference, &mut patch)?;
            }
            patch.truncate(limit_bytes);
            Ok(patch)
        };
        write().map_err(GitError::gix("comparing commits", self.git_dir()))
    }
}

pub(crate) fn compare_commits(repo: &gix::Repository, from: &Id, to: &Id) -> gix::Result<Vec<PathDiff>> {
    let tree = |commit: &Id| object_reader::read_commit_tree(repo, commit.object_id());
    compare_trees(repo, &tree(from)?, &tree(to)?)
}

/// Returns the differences between two trees, sorted by path.
pub(crate) fn compare_trees(
    repo: &gix::Repository,
    old: &gix::Tree<'_>,
    new: &gix::Tree<'_>,
) -> gix::Result<Vec<PathDiff>> {
    compare_trees_limited(repo, old, new, MAX_WALK_BYTES)
}

pub(crate) fn compare_trees_limited(
    repo: &gix::Repository,
    old: &gix::Tree<'_>,
    new: &gix::Tree<'_>,
    budget: usize,
) -> gix::Result<Vec<PathDiff>> {
    let mut bounded = BoundedRecorder { recorder: Recorder::default(), bytes_left: budget };
    gix::diff::tree(
        TreeRefIter::from_bytes(&old.data, repo.object_hash()),
        TreeRefIter::from_bytes(&new.data, repo.object_hash()),
        gix::diff::tree::State::default(),
        CheckedObjects(repo),
        &mut bounded,
    )
    .or_error()?;
    let mut changes: Vec<_> = bounded.recorder.records.into_iter().flat_map(split_change).filter(is_file).collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path).then(b.old.is_some().cmp(&a.old.is_some())));
    Ok(changes)
}

/// Aborts a comparison that uses more than its memory limit.
struct BoundedRecorder {
    recorder: Recorder,
    /// Bytes left.
    bytes_left: usize,
}

impl Visit for BoundedRecorder {
    fn pop_front_tracked_path_and_set_current(&mut self) {
        self.recorder.pop_front_tracked_path_and_set_current();
    }

    fn push_back_tracked_path_component(&mut self, component: &BStr) {
        self.recorder.push_back_tracked_path_component(component);
    }

    fn push_path_component(&mut self, component: &BStr) {
        self.recorder.push_path_component(component);
    }

    fn pop_path_component(&mut self) {
        self.recorder.pop_path_component();
    }

    fn visit(&mut self, change: visit::Change) -> visit::Action {
        let action = self.recorder.visit(change);
        let path = self.recorder.records.last().map_or(0, |record| change_path(record).len());
        match self.bytes_left.checked_sub(path + ENTRY_OVERHEAD) {
            Some(left) => self.bytes_left = left,
            None => return ControlFlow::Break(()),
        }
        action
    }
}

fn change_path(record: &Change) -> &BString {
    match record {
        Change::Addition { path, .. } | Change::Deletion { path, .. } | Change::Modification { path, .. } => path,
    }
}

/// A file that becomes a link or a submodule counts as removed and added, as in git.
fn split_change(change: Change) -> Vec<PathDiff> {
    match change {
        Change::Addition { entry_mode, oid, path, .. } => {
            vec![PathDiff { path, old: None, new: Some((entry_mode, oid)) }]
        }
        Change::Deletion { entry_mode, oid, path, .. } => {
            vec![PathDiff { path, old: Some((entry_mode, oid)), new: None }]
        }
        Change::Modification { previous_entry_mode, previous_oid, entry_mode, oid, path } => {
            let old = Some((previous_entry_mode, previous_oid));
            let new = Some((entry_mode, oid));
            if previous_entry_mode.is_blob() == entry_mode.is_blob() {
                vec![PathDiff { path, old, new }]
            } else {
                vec![PathDiff { path: path.clone(), old, new: None }, PathDiff { path, old: None, new }]
            }
        }
    }
}

fn is_file(PathDiff { old, new, .. }: &PathDiff) -> bool {
    let is_tree = |side: &DiffSide| side.is_some_and(|(mode, _)| mode.is_tree());
    !is_tree(old) && !is_tree(new)
}

fn write_file_patch(repo: &gix::Repository, difference: &PathDiff, patch: &mut Vec<u8>) -> gix::Result<()> {
    let &PathDiff { ref path, old, new } = difference;
    let a = quote_path("a/", path);
    let b = quote_path("b/", path);
    push_line(patch, &format!("diff --git {a} {b}"));
    match (old, new) {
        (None, Some((mode, _))) => push_line(patch, &format!("new file mode {}", format_mode(mode))),
        (Some((mode, _)), None) => push_line(patch, &format!("deleted file mode {}", format_mode(mode))),
        (Some((before, _)), Some((after, _))) if before != after => {
            push_line(patch, &format!("old mode {}", format_mode(before)));
            push_line(patch, &format!("new mode {}", format_mode(after)));
        }
        _ => {}
    }
    let id = |side: DiffSide| side.map_or_else(|| ObjectId::null(repo.object_hash()), |(_, id)| id);
    if id(old) == id(new) {
        return Ok(());
    }
    push_line(patch, &format!("index {}..{}", id(old), id(new)));
    let old_name = old.map_or("/dev/null".to_owned(), |_| a);
    let new_name = new.map_or("/dev/null".to_owned(), |_| b);
    match (read_text(repo, old)?, read_text(repo, new)?) {
        (Some(before), Some(after)) => write_hunks(&before, &after, &old_name, &new_name, patch),
        _ => push_line(patch, &format!("Binary files {old_name} and {new_name} differ")),
    }
    Ok(())
}

/// Returns the content as text; `None` if it is binary.
fn read_text(repo: &gix::Repository, side: DiffSide) -> gix::Result<Option<Vec<u8>>> {
    let Some((mode, id)) = side else {
        return Ok(Some(Vec::new()));
    };
    if mode.is_commit() {
        return Ok(Some(format!("Subproject commit {id}\n").into_bytes()));
    }
    if repo.find_header(id)?.size() > TEXT_LIMIT as u64 {
        return Ok(None);
    }
    let content = object_reader::read_blob(repo, id)?;
    let probe = &content[..content.len().min(BINARY_PROBE)];
    Ok((!probe.contains(&0)).then_some(content))
}

fn write_hunks(before: &[u8], after: &[u8], old_name: &str, new_name: &str, patch: &mut Vec<u8>) {
    let input = InternedInput::new(byte_lines(before), byte_lines(after));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_no_heuristic(&input);
    if diff.count_additions() + diff.count_removals() == 0 {
        return;
    }
    push_line(patch, &format!("--- {old_name}"));
    push_line(patch, &format!("+++ {new_name}"));
    UnifiedDiff::new(&diff, &input, HunkWriter(patch), ContextSize::symmetrical(3))
        .consume()
        .expect("BUG: writing to memory cannot fail");
}

struct HunkWriter<'a>(&'a mut Vec<u8>);

impl ConsumeHunk for HunkWriter<'_> {
    type Out = ();

    fn consume_hunk(&mut self, header: HunkHeader, lines: &[(DiffLineKind, &[u8])]) -> std::io::Result<()> {
        let old = format_range(header.before_hunk_start, header.before_hunk_len);
        let new = format_range(header.after_hunk_start, header.after_hunk_len);
        push_line(self.0, &format!("@@ -{old} +{new} @@"));
        for (kind, content) in lines {
            self.0.push(match kind {
                DiffLineKind::Context => b' ',
                DiffLineKind::Add => b'+',
                DiffLineKind::Remove => b'-',
            });
            self.0.extend_from_slice(content);
            if !content.ends_with(b"\n") {
                self.0.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
        Ok(())
    }

    fn finish(self) {}
}

/// git omits a length of one, and counts an empty side from the previous line.
fn format_range(start: u32, length: u32) -> String {
    match length {
        0 => format!("{},0", start.saturating_sub(1)),
        1 => start.to_string(),
        _ => format!("{start},{length}"),
    }
}

fn push_line(patch: &mut Vec<u8>, text: &str) {
    patch.extend_from_slice(text.as_bytes());
    patch.push(b'\n');
}

fn format_mode(mode: EntryMode) -> String {
    format!("{:06o}", mode.value())
}

/// Writes a name as git does with `core.quotePath`: quoted if it contains anything but plain ASCII characters.
fn quote_path(prefix: &str, path: &BString) -> String {
    let plain = |byte: &u8| (0x20..0x7f).contains(byte) && !matches!(byte, b'"' | b'\\');
    if path.iter().all(plain) {
        return format!("{prefix}{path}");
    }
    let mut quoted = format!("\"{prefix}");
    for byte in path.as_bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            b'\r' => quoted.push_str("\\r"),
            other if plain(other) => quoted.push(char::from(*other)),
            other => quoted.extend(format!("\\{other:03o}").chars()),
        }
    }
    quoted.push('"');
    quoted
}
