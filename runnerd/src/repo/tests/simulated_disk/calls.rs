//! The calls of [`Disk`] and [`DiskFile`] on the simulated disk; what a crash leaves of them is decided elsewhere.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::{DiskFailure, DiskNode, NameChange, SimulatedDisk};
use crate::repo::disk::{Disk, DiskFile, DiskMetadata, FileKind, OpenMode, TEMPORARY};

impl Disk for SimulatedDisk {
    type File = SimulatedFile;

    fn read_metadata(&self, path: &Path) -> io::Result<DiskMetadata> {
        let state = self.call(false)?;
        let node = state.find(path).ok_or(Errno::ENOENT)?;
        Ok(describe(&state.nodes[node]))
    }

    fn open(&self, path: &Path, how: OpenMode) -> io::Result<SimulatedFile> {
        let state = self.call(false)?;
        let node = state.find(path).ok_or(Errno::ENOENT)?;
        drop(state);
        Ok(SimulatedFile { disk: self.clone(), node, offset: 0, how })
    }

    fn create_temporary(&self, folder: &Path, prefix: &OsStr) -> io::Result<(SimulatedFile, PathBuf)> {
        let mut state = self.call(true)?;
        let unique = if state.flaws.fixed_temporary { 0 } else { state.nodes.len() };
        let mut name = prefix.to_owned();
        name.push(format!("{unique}{TEMPORARY}"));
        let path = folder.join(&name);
        let place = state.find(folder).ok_or(Errno::ENOENT)?;
        let node = match state.find(&path) {
            Some(node) => node,
            None => state.create(place, &name),
        };
        drop(state);
        Ok((SimulatedFile { disk: self.clone(), node, offset: 0, how: OpenMode::Read }, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.call(true)?;
        let node = state.find(from).ok_or(Errno::ENOENT)?;
        let (folder, old) = state.place(from)?;
        let (same, new) = state.place(to)?;
        assert_eq!(folder, same, "no file moves to another directory");
        state.change(NameChange { folder, removed: Some(old), added: Some((new, node)), is_flushed: false });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.call(true)?;
        state.find(path).ok_or(Errno::ENOENT)?;
        let (folder, name) = state.place(path)?;
        state.change(NameChange { folder, removed: Some(name), added: None, is_flushed: false });
        Ok(())
    }

    fn create_folder(&self, path: &Path, _: u32) -> io::Result<()> {
        let mut state = self.call(true)?;
        if state.find(path).is_some() {
            return Err(Errno::EEXIST.into());
        }
        let (folder, name) = state.place(path)?;
        state.add(folder, &name, DiskNode::Folder { seen: BTreeMap::new() });
        Ok(())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.call(true)?;
        let folder = state.find(path).ok_or(Errno::ENOENT)?;
        state.flush_names(folder);
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let state = self.call(false)?;
        match &state.nodes[state.find(path).ok_or(Errno::ENOENT)?] {
            DiskNode::Folder { seen } => Ok(seen.keys().cloned().collect()),
            DiskNode::File { .. } => Err(Errno::ENOTDIR.into()),
        }
    }
}

fn describe(node: &DiskNode) -> DiskMetadata {
    match node {
        DiskNode::File { seen, .. } => DiskMetadata { kind: FileKind::File, len: seen.len() as u64, mode: 0o600 },
        DiskNode::Folder { .. } => DiskMetadata { kind: FileKind::Folder, len: 0, mode: 0o700 },
    }
}

/// An open file.
#[derive(Debug)]
pub(crate) struct SimulatedFile {
    disk: SimulatedDisk,
    node: usize,
    offset: usize,
    how: OpenMode,
}

impl Read for SimulatedFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let state = self.disk.call(false)?;
        let DiskNode::File { seen, .. } = &state.nodes[self.node] else { return Err(Errno::EISDIR.into()) };
        let mut left = &seen[self.offset..];
        let count = left.read(into)?;
        self.offset += count;
        Ok(count)
    }
}

impl Write for SimulatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.call(true)?;
        let is_short = state.take_failure() == Some(DiskFailure::ShortWrite) && bytes.len() > 1;
        let count = if is_short { bytes.len() / 2 } else { bytes.len() };
        let DiskNode::File { seen, .. } = &state.nodes[self.node] else { return Err(Errno::EISDIR.into()) };
        let mut seen = seen.clone();
        let at = if self.how == OpenMode::Append { seen.len() } else { self.offset };
        seen.resize(seen.len().max(at + count), 0);
        seen[at..at + count].copy_from_slice(&bytes[..count]);
        state.write(self.node, seen);
        self.offset = at + count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for SimulatedFile {
    fn read_metadata(&self) -> io::Result<DiskMetadata> {
        Ok(describe(&self.disk.call(false)?.nodes[self.node]))
    }

    fn set_mode(&self, _: u32) -> io::Result<()> {
        self.disk.call(false).map(drop)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.call(true)?;
        let DiskNode::File { seen, .. } = &state.nodes[self.node] else { return Err(Errno::EISDIR.into()) };
        let mut seen = seen.clone();
        let len = usize::try_from(len).unwrap();
        if seen.len() != len {
            seen.resize(len, 0);
            state.write(self.node, seen);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let refused = self.disk.call(true).err();
        let mut state = self.disk.lock();
        match refused {
            None => state.flush(self.node),
            // The system forgets that the pages are dirty: they never reach the disk.
            Some(_) => {
                if let DiskNode::File { is_lost, .. } = &mut state.nodes[self.node] {
                    *is_lost = true;
                }
            }
        }
        drop(state);
        refused.map_or(Ok(()), Err)
    }
}
