//! The entries of one tree, and what git's check says of them.

use std::collections::BTreeSet;

use super::name::{is_dot_git, is_dot_gitmodules};

/// The id of a tree, as bytes.
pub type TreeId = Vec<u8>;

/// What kind of thing a mode says an entry is.
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
/// The modes that git writes.
const WRITTEN: [u32; 5] = [0o100_644, 0o100_755, LINK, FOLDER, 0o160_000];

/// One entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawEntry<'a> {
    /// The mode as it is spelled.
    spelled: &'a [u8],
    mode: u32,
    /// The name.
    pub name: &'a [u8],
    /// The object's id, as bytes.
    pub id: &'a [u8],
}

/// What is wrong with a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum TreeFault {
    /// What is left is no entry.
    #[error("a tree that ends in what is no entry")]
    Cut,
    /// Two entries have one name, whatever they are.
    #[error("two entries of this name")]
    Twice,
    /// An entry stands behind one that comes after it.
    #[error("an entry that is out of order")]
    Unsorted,
    /// A name that is none: `.`, `..`, or with a slash in it.
    #[error("an entry whose name is no name of a file")]
    NoName,
    /// Deeper than git goes.
    #[error("a folder that is deeper than git goes")]
    Deep,
    /// `.gitmodules` is a link.
    #[error("a link in the place of .gitmodules")]
    ModulesLink,
    /// A name that is `.git` to some file system.
    #[error("a name that is .git to some file system")]
    DotGit,
    /// A mode that git does not write, or with zeros in front.
    #[error("a mode that git does not write")]
    Mode,
    /// The id of no object.
    #[error("the id of no object")]
    NullId,
}

/// Whom a fault tells against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// Whoever made the tree: git's check calls it an error, or what stands at a path is not one thing.
    Anyone,
    /// The runner, which writes no such tree; git only warns, for trees of old programs are so.
    Runner,
}

impl TreeFault {
    /// Returns whom it tells against.
    pub fn against(self) -> Against {
        match self {
            Self::Cut | Self::Twice | Self::Unsorted | Self::NoName | Self::Deep | Self::ModulesLink => Against::Anyone,
            Self::DotGit | Self::Mode | Self::NullId => Against::Runner,
        }
    }

    /// Whether it lies in one entry alone, which may have been there before.
    fn is_of_entry(self) -> bool {
        match self {
            Self::Cut | Self::Twice | Self::Unsorted | Self::NoName | Self::Deep => false,
            Self::ModulesLink | Self::DotGit | Self::Mode | Self::NullId => true,
        }
    }
}

impl<'a> RawEntry<'a> {
    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.mode & KIND == FOLDER
    }

    /// Reads the first entry, and returns what follows it; as git does, an entry without a name is none.
    fn first(bytes: &'a [u8], id_len: usize) -> Option<(Self, &'a [u8])> {
        let space = bytes.iter().position(|byte| *byte == b' ').filter(|at| *at > 0)?;
        let (spelled, rest) = (&bytes[..space], &bytes[space + 1..]);
        let mode = u32::from_str_radix(str::from_utf8(spelled).ok()?, 8).ok().filter(|_| spelled[0] != b'+')?;
        let end = rest.iter().position(|byte| *byte == 0).filter(|at| *at > 0)?;
        let (name, rest) = (&rest[..end], &rest[end + 1..]);
        let (id, rest) = rest.split_at_checked(id_len)?;
        Some((Self { spelled, mode, name, id }, rest))
    }

    /// What is wrong with it, wherever it stands.
    fn faults(&self) -> impl Iterator<Item = TreeFault> {
        let is_plain = WRITTEN.contains(&self.mode) && self.spelled[0] != b'0';
        let is_link = self.mode & KIND == LINK;
        let all = [
            (TreeFault::NoName, matches!(self.name, b"." | b"..") || self.name.contains(&b'/')),
            (TreeFault::ModulesLink, is_link && is_dot_gitmodules(self.name)),
            (TreeFault::DotGit, is_dot_git(self.name)),
            (TreeFault::Mode, !is_plain),
            (TreeFault::NullId, self.id.iter().all(|byte| *byte == 0)),
        ];
        all.into_iter().filter_map(|(fault, is_there)| is_there.then_some(fault))
    }

    /// What trees are sorted by: a folder's name ends in a slash.
    fn key(&self) -> impl Iterator<Item = u8> {
        self.name.iter().copied().chain(self.is_folder().then_some(b'/'))
    }
}

/// Returns the entries of a tree, and whether that is all of it.
pub(super) fn entries(bytes: &[u8], id_len: usize) -> (Vec<RawEntry<'_>>, bool) {
    let (mut entries, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let Some((entry, after)) = RawEntry::first(rest, id_len) else { return (entries, false) };
        entries.push(entry);
        rest = after;
    }
    (entries, true)
}

/// Returns what is wrong with a tree, each with the name of its entry; empty for the tree itself. What was wrong with an
/// entry of the same name `before` is left out.
pub(super) fn faults<'a>(
    before: &'a [RawEntry<'a>],
    (bytes, id_len): (&'a [u8], usize),
) -> impl Iterator<Item = (Vec<u8>, TreeFault)> {
    let (entries, is_all) = entries(bytes, id_len);
    let mut found = BTreeSet::new();
    if !is_all {
        found.insert((Vec::new(), TreeFault::Cut));
    }
    let mut names = BTreeSet::new();
    for entry in &entries {
        let of_entry = entry.faults().chain((!names.insert(entry.name)).then_some(TreeFault::Twice));
        found.extend(of_entry.map(|fault| (entry.name.to_vec(), fault)));
    }
    let unsorted = entries.windows(2).filter(|two| two[0].name != two[1].name && two[0].key().gt(two[1].key()));
    found.extend(unsorted.map(|two| (two[1].name.to_vec(), TreeFault::Unsorted)));
    let stood = move |(name, fault): &(Vec<u8>, TreeFault)| {
        let same = before.iter().filter(|entry| entry.name == name);
        fault.is_of_entry() && same.flat_map(RawEntry::faults).any(|known| known == *fault)
    };
    found.into_iter().filter(move |it| !stood(it))
}
