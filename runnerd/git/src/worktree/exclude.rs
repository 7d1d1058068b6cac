//! Hides from git what the runner does not commit, with a marked block of anchored lines in `info/exclude`. The block
//! also records what is held back. Lines outside it are never touched.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString, ByteSlice as _};

use crate::durable::{read_regular_file, replace_file};
use crate::repository::exclude_block::{BEGIN, END};
use crate::{GitError, Repository};

/// Owner of the block with the runner's own folders.
const FOLDERS_OWNER: &str = "records of runs";

/// Returns the paths in this work tree's block; nested repositories end in a slash.
pub(crate) fn read_excluded_paths(repository: &Repository) -> Result<BTreeSet<BString>, GitError> {
    let text = read_text(&exclude_file(repository))?;
    let (_, block, _) = split_block(&text, &tree_owner(repository));
    Ok(block.lines().filter_map(parse_pattern).collect())
}

/// Whether a path is among these, or in a folder that is.
pub(crate) fn covers(excluded: &BTreeSet<BString>, path: &[u8]) -> bool {
    excluded.contains(path.as_bstr()) || path.find_iter(b"/").any(|slash| excluded.contains(path[..=slash].as_bstr()))
}

/// Rewrites this work tree's block; without `hidden` paths it is removed.
pub(crate) fn write_excluded_paths(repository: &Repository, hidden: &BTreeSet<BString>) -> Result<(), GitError> {
    write_block(repository, &tree_owner(repository), hidden)
}

impl Repository {
    /// Hides these folders of the runner in every work tree, also on branches without the runner's own ignore rules, and
    /// removes what an earlier attempt left that was killed.
    pub fn exclude_folders(&self, folders: &[&str]) -> Result<(), GitError> {
        self.clear_temporary_files(&[])?;
        write_block(self, FOLDERS_OWNER, &folders.iter().map(|folder| BString::from(*folder)).collect())
    }

    /// Hides the files that goals were read from, and no others. Those that exist are left to this block alone: what
    /// earlier commits held back of them is revealed with it.
    pub fn exclude_goals(&self, files: &[String]) -> Result<(), GitError> {
        let owner = format!("goals of {}", tree_owner(self));
        let text = read_text(&exclude_file(self))?;
        let (_, block, _) = split_block(&text, &owner);
        let earlier: BTreeSet<BString> = block.lines().filter_map(parse_pattern).collect();
        let mut goals: BTreeSet<BString> = files.iter().map(|file| BString::from(file.as_str())).collect();
        let mut held_back = read_excluded_paths(self)?;
        let before = held_back.len();
        held_back.retain(|path| !goals.contains(path) && !earlier.contains(path));
        goals.retain(|file| self.absolute_path(file.as_ref()).is_file());
        write_block(self, &owner, &goals)?;
        if held_back.len() == before { Ok(()) } else { write_excluded_paths(self, &held_back) }
    }
}

fn write_block(repository: &Repository, owner: &str, hidden: &BTreeSet<BString>) -> Result<(), GitError> {
    // The runner may use a copy: the block is in both files, and the other lines of each stay.
    for file in [exclude_file(repository), repository.rules_file("info/exclude")] {
        let old = read_text(&file)?;
        let new = with_block(&old, owner, hidden);
        if old != new {
            replace_file(&file, &new, file_mode(&file)).map_err(GitError::io("writing", &file))?;
        }
    }
    Ok(())
}

fn with_block(old: &[u8], owner: &str, hidden: &BTreeSet<BString>) -> Vec<u8> {
    let (before, _, after) = split_block(old, owner);
    let mut new = before.to_vec();
    if !hidden.is_empty() {
        if !new.is_empty() && !new.ends_with(b"\n") {
            new.push(b'\n');
        }
        let (begin, end) = block_markers(owner);
        new.extend_from_slice(begin.as_bytes());
        for path in hidden {
            new.extend_from_slice(&format_pattern(path.as_ref()));
        }
        new.extend_from_slice(end.as_bytes());
    }
    new.extend_from_slice(after);
    new
}

/// Linked work trees share the file, so each has its own block that names it.
fn tree_owner(repository: &Repository) -> String {
    let tree = repository.git_dir().strip_prefix(repository.common_dir()).map(Path::to_string_lossy);
    tree.ok().filter(|tree| !tree.is_empty()).map_or_else(|| "this repository".to_owned(), Into::into)
}

fn block_markers(owner: &str) -> (String, String) {
    (format!("{BEGIN}{owner}\n"), format!("{END}{owner}\n"))
}

fn split_block<'t>(text: &'t [u8], owner: &str) -> (&'t [u8], &'t [u8], &'t [u8]) {
    let (begin, end) = block_markers(owner);
    let Some(from) = text.find(&begin) else {
        return (text, b"", b"");
    };
    let inside = from + begin.len();
    match text[inside..].find(&end) {
        Some(length) => (&text[..from], &text[inside..inside + length], &text[inside + length + end.len()..]),
        // The block was cut short: what follows may be a person's.
        None => (&text[..from], b"", &text[inside..]),
    }
}

/// Writes a pattern that matches only this path. Line breaks cannot be written, so they become a wildcard.
fn format_pattern(path: &BStr) -> Vec<u8> {
    let mut line = vec![b'/'];
    for &byte in path.as_bytes() {
        match byte {
            b'*' | b'?' | b'[' | b'\\' | b' ' => line.extend_from_slice(&[b'\\', byte]),
            b'\n' | b'\r' => line.push(b'?'),
            _ => line.push(byte),
        }
    }
    line.push(b'\n');
    line
}

fn parse_pattern(line: &[u8]) -> Option<BString> {
    let mut path = Vec::with_capacity(line.len());
    let mut rest = line.strip_prefix(b"/")?.iter();
    while let Some(&byte) = rest.next() {
        path.push(if byte == b'\\' { *rest.next()? } else { byte });
    }
    Some(path.into())
}

fn exclude_file(repository: &Repository) -> PathBuf {
    let file = repository.common_dir().join("info/exclude");
    file.canonicalize().unwrap_or(file)
}

fn read_text(file: &Path) -> Result<Vec<u8>, GitError> {
    match read_regular_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(GitError::io("reading", file)),
    }
}

fn file_mode(file: &Path) -> u32 {
    fs::metadata(file).map_or(0o644, |found| found.permissions().mode() & 0o7777)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_but_those_with_line_breaks_survives_its_line() {
        for path in [&b"a"[..], b"dir/b c", b"*?[x]\\", b"#hash", b"!bang", b" lead", b"trail ", b"\xff\xfe", b"nest/"]
        {
            let line = format_pattern(path.as_bstr());
            assert_eq!(parse_pattern(line.trim_end_with(|c| c == '\n')), Some(path.into()));
        }
        assert_eq!(format_pattern(b"a\nb".as_bstr()), b"/a?b\n");
    }
}
