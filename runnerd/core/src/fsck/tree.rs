//! Parses the entries of one tree, and reports what git's check says about them.

use std::collections::BTreeSet;

use super::name::{is_dot_git, is_dot_gitmodules};

/// The id of a tree, as bytes.
pub type TreeId = Vec<u8>;

/// The bits of a mode that give the type of an entry.
const KIND_MASK: u32 = 0o170_000;
const FOLDER_MODE: u32 = 0o040_000;
const LINK_MODE: u32 = 0o120_000;
/// The modes that git writes.
const VALID_MODES: [u32; 5] = [0o100_644, 0o100_755, LINK_MODE, FOLDER_MODE, 0o160_000];

/// One entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawEntry<'a> {
    /// The mode as spelled in the tree.
    raw_mode: &'a [u8],
    mode: u32,
    /// The name.
    pub name: &'a [u8],
    /// The object's id, as bytes.
    pub id: &'a [u8],
}

/// What is wrong with a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum GitTreeFault {
    /// The remaining bytes are not an entry.
    #[error("a tree that ends in what is no entry")]
    Truncated,
    /// Two entries have the same name, whatever their types.
    #[error("two entries of this name")]
    DuplicateName,
    /// An entry comes after one that it should precede.
    #[error("an entry that is out of order")]
    Unsorted,
    /// An invalid name: `.`, `..`, or one that contains a slash.
    #[error("an entry whose name is no name of a file")]
    InvalidName,
    /// Deeper than git descends.
    #[error("a folder that is deeper than git goes")]
    TooDeep,
    /// `.gitmodules` is a link.
    #[error("a link in the place of .gitmodules")]
    GitmodulesLink,
    /// A name that is `.git` on some file system.
    #[error("a name that is .git to some file system")]
    DotGit,
    /// A mode that git does not write, or one with leading zeros.
    #[error("a mode that git does not write")]
    InvalidMode,
    /// The null id.
    #[error("the id of no object")]
    NullId,
}

/// Whose trees a fault invalidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultTarget {
    /// Anyone's: git's check calls it an error, or a path is ambiguous.
    Anyone,
    /// Only the runner's: git merely warns, because old tools wrote such trees, but the runner never does.
    Runner,
}

impl GitTreeFault {
    /// Returns whose trees the fault invalidates.
    pub fn blames(self) -> FaultTarget {
        match self {
            Self::Truncated
            | Self::DuplicateName
            | Self::Unsorted
            | Self::InvalidName
            | Self::TooDeep
            | Self::GitmodulesLink => FaultTarget::Anyone,
            Self::DotGit | Self::InvalidMode | Self::NullId => FaultTarget::Runner,
        }
    }

    /// Whether the fault concerns a single entry, which may have existed before.
    fn concerns_entry(self) -> bool {
        match self {
            Self::Truncated | Self::DuplicateName | Self::Unsorted | Self::InvalidName | Self::TooDeep => false,
            Self::GitmodulesLink | Self::DotGit | Self::InvalidMode | Self::NullId => true,
        }
    }
}

impl<'a> RawEntry<'a> {
    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.mode & KIND_MASK == FOLDER_MODE
    }

    /// Parses the first entry, and returns the bytes after it; like git, it treats an entry without a name as invalid.
    fn parse_first(bytes: &'a [u8], id_len: usize) -> Option<(Self, &'a [u8])> {
        let space = bytes.iter().position(|byte| *byte == b' ').filter(|at| *at > 0)?;
        let spelled = &bytes[..space];
        let rest = &bytes[space + 1..];
        let mode = u32::from_str_radix(str::from_utf8(spelled).ok()?, 8).ok().filter(|_| spelled[0] != b'+')?;
        let end = rest.iter().position(|byte| *byte == 0).filter(|at| *at > 0)?;
        let name = &rest[..end];
        let rest = &rest[end + 1..];
        let (id, rest) = rest.split_at_checked(id_len)?;
        Some((Self { raw_mode: spelled, mode, name, id }, rest))
    }

    /// Returns the faults of the entry that do not depend on its position.
    fn find_faults(&self) -> impl Iterator<Item = GitTreeFault> {
        let is_plain = VALID_MODES.contains(&self.mode) && self.raw_mode[0] != b'0';
        let is_link = self.mode & KIND_MASK == LINK_MODE;
        let all = [
            (GitTreeFault::InvalidName, matches!(self.name, b"." | b"..") || self.name.contains(&b'/')),
            (GitTreeFault::GitmodulesLink, is_link && is_dot_gitmodules(self.name)),
            (GitTreeFault::DotGit, is_dot_git(self.name)),
            (GitTreeFault::InvalidMode, !is_plain),
            (GitTreeFault::NullId, self.id.iter().all(|byte| *byte == 0)),
        ];
        all.into_iter().filter_map(|(fault, is_present)| is_present.then_some(fault))
    }

    /// Returns the sort key of the entry: a folder's name ends in a slash.
    fn sort_key(&self) -> impl Iterator<Item = u8> {
        self.name.iter().copied().chain(self.is_folder().then_some(b'/'))
    }
}

/// Returns the entries of a tree, and whether they make up all of it.
pub(super) fn parse_entries(bytes: &[u8], id_len: usize) -> (Vec<RawEntry<'_>>, bool) {
    let mut entries = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some((entry, after)) = RawEntry::parse_first(rest, id_len) else { return (entries, false) };
        entries.push(entry);
        rest = after;
    }
    (entries, true)
}

/// Returns the faults of a tree, each with the name of its entry, or with an empty name for the tree itself. Faults
/// that an entry of the same name already had `before` are omitted.
pub(super) fn find_tree_faults<'a>(
    before: &'a [RawEntry<'a>],
    bytes: &'a [u8],
    id_len: usize,
) -> impl Iterator<Item = (Vec<u8>, GitTreeFault)> {
    let (entries, is_all) = parse_entries(bytes, id_len);
    let mut found = BTreeSet::new();
    if !is_all {
        found.insert((Vec::new(), GitTreeFault::Truncated));
    }
    let mut names = BTreeSet::new();
    for entry in &entries {
        let of_entry = entry.find_faults().chain((!names.insert(entry.name)).then_some(GitTreeFault::DuplicateName));
        found.extend(of_entry.map(|fault| (entry.name.to_vec(), fault)));
    }
    let unsorted =
        entries.windows(2).filter(|two| two[0].name != two[1].name && two[0].sort_key().gt(two[1].sort_key()));
    found.extend(unsorted.map(|two| (two[1].name.to_vec(), GitTreeFault::Unsorted)));
    let stood = move |(name, fault): &(Vec<u8>, GitTreeFault)| {
        let same = before.iter().filter(|entry| entry.name == name);
        fault.concerns_entry() && same.flat_map(RawEntry::find_faults).any(|known| known == *fault)
    };
    found.into_iter().filter(move |path_fault| !stood(path_fault))
}
