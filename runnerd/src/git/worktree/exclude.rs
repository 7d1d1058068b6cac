//! Hides from git what the runner does not commit: a marked block of anchored lines in `info/exclude`. The block is
//! also the memory of what is held back. Lines outside it are never touched.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString, ByteSlice as _};

use crate::git::durable::replace_file;
use crate::git::repository::exclude_block::{BEGIN, END};
use crate::git::{GitError, Repository};

/// Returns the paths in the block of this work tree; those of repositories end in a slash.
pub(in crate::git) fn read(paths: &Repository) -> Result<BTreeSet<BString>, GitError> {
    let text = text_of(&file_of(paths))?;
    let (_, block, _) = split(&text, paths);
    Ok(block.lines().filter_map(path_of).collect())
}

/// Writes the block of this work tree anew; without `hidden` there is none.
pub(in crate::git) fn write(paths: &Repository, hidden: &BTreeSet<BString>) -> Result<(), GitError> {
    // What counts for the runner may be a copy: the block is in both, and what is not the runner's stays in each.
    for file in [file_of(paths), paths.rules("info/exclude")] {
        let old = text_of(&file)?;
        let new = with_block(&old, paths, hidden);
        if old != new {
            replace_file(&file, &new, mode_of(&file)).map_err(GitError::io("writing", &file))?;
        }
    }
    Ok(())
}

fn with_block(old: &[u8], paths: &Repository, hidden: &BTreeSet<BString>) -> Vec<u8> {
    let (before, _, after) = split(old, paths);
    let mut new = before.to_vec();
    if !hidden.is_empty() {
        if !new.is_empty() && !new.ends_with(b"\n") {
            new.push(b'\n');
        }
        let (begin, end) = marks(paths);
        new.extend_from_slice(begin.as_bytes());
        for path in hidden {
            new.extend_from_slice(&line_of(path.as_ref()));
        }
        new.extend_from_slice(end.as_bytes());
    }
    new.extend_from_slice(after);
    new
}

/// Linked work trees share the file, so each has a block that names it.
fn marks(paths: &Repository) -> (String, String) {
    let tree = paths.git_dir().strip_prefix(paths.common_dir()).map(Path::to_string_lossy).unwrap_or_default();
    let of = if tree.is_empty() { "this repository".into() } else { tree };
    (format!("{BEGIN}{of}\n"), format!("{END}{of}\n"))
}

fn split<'t>(text: &'t [u8], paths: &Repository) -> (&'t [u8], &'t [u8], &'t [u8]) {
    let (begin, end) = marks(paths);
    let Some(from) = text.find(&begin) else {
        return (text, b"", b"");
    };
    let inside = from + begin.len();
    match text[inside..].find(&end) {
        Some(length) => (&text[..from], &text[inside..inside + length], &text[inside + length + end.len()..]),
        // Somebody cut the block short: what follows may be theirs.
        None => (&text[..from], b"", &text[inside..]),
    }
}

/// Writes a pattern that matches this path alone. Line breaks cannot be written, so any character stands for them.
fn line_of(path: &BStr) -> Vec<u8> {
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

fn path_of(line: &[u8]) -> Option<BString> {
    let mut path = Vec::with_capacity(line.len());
    let mut rest = line.strip_prefix(b"/")?.iter();
    while let Some(&byte) = rest.next() {
        path.push(if byte == b'\\' { *rest.next()? } else { byte });
    }
    Some(path.into())
}

fn file_of(paths: &Repository) -> PathBuf {
    let file = paths.common_dir().join("info/exclude");
    file.canonicalize().unwrap_or(file)
}

fn text_of(file: &Path) -> Result<Vec<u8>, GitError> {
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(GitError::io("reading", file)),
    }
}

fn mode_of(file: &Path) -> u32 {
    fs::metadata(file).map_or(0o644, |found| found.permissions().mode() & 0o7777)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_but_those_with_line_breaks_survives_its_line() {
        for path in [&b"a"[..], b"dir/b c", b"*?[x]\\", b"#hash", b"!bang", b" lead", b"trail ", b"\xff\xfe", b"nest/"]
        {
            let line = line_of(path.as_bstr());
            assert_eq!(path_of(line.trim_end_with(|c| c == '\n')), Some(path.into()));
        }
        assert_eq!(line_of(b"a\nb".as_bstr()), b"/a?b\n");
    }
}
