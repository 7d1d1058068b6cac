//! What of a branch is not here, why, and whether that is nobody's fault: a clone may leave things with a remote; what else
//! is missing is a violation.

/// Why something is not here in a clone that leaves objects with a remote.
const PARTIAL: &str = "this clone is partial, and `git fetch --refetch --no-filter` brings it";
/// Why something is not here that should be.
const MISSING: &str = "an object is missing or damaged, and `git fsck` tells which";

/// Why the commits of a branch end where they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchEnd {
    /// With a commit that has no parents.
    Root,
    /// The clone was made or deepened to there.
    Shallow,
    /// The clone leaves objects with a remote.
    Partial,
    /// A parent is missing or damaged.
    Missing,
    /// There are too many.
    TooLong,
}

impl BranchEnd {
    /// Whether nothing says that there is more: what is not among the commits is nowhere.
    pub(super) fn is_complete(self) -> bool {
        !matches!(self, Self::Shallow | Self::Partial)
    }

    /// Says what of the branch is not here that came before its `oldest` commit.
    pub(super) fn describe(self, oldest: &str) -> Option<String> {
        let why = match self {
            Self::Root => return None,
            Self::Shallow => "this clone is shallow, and `git fetch --unshallow` brings it",
            Self::Partial => PARTIAL,
            Self::Missing => MISSING,
            Self::TooLong => "the branch has more commits than are looked at",
        };
        Some(format!("what came before commit {oldest}: {why}"))
    }
}

/// Files that commits add and that are not here. Nothing is decided from most of them, but a branch without them is not all
/// there.
#[derive(Debug, Default)]
pub(super) struct MissingFiles {
    /// Commit and path of the first.
    first: Option<(String, String)>,
    count: usize,
}

impl MissingFiles {
    pub(super) fn add(&mut self, commit: &str, paths: &[String]) {
        self.count += paths.len();
        self.first = self.first.take().or_else(|| paths.first().map(|path| (commit.to_owned(), path.clone())));
    }

    /// Says that there are some, and what brings them.
    pub(super) fn describe(&self) -> Option<String> {
        let (commit, path) = self.first.as_ref()?;
        let more = match self.count {
            1 => String::new(),
            count => format!(" and {} more that commits add", count - 1),
        };
        let why =
            "not here; `git fsck` tells which, and in a partial clone `git fetch --refetch --no-filter` brings them";
        Some(format!("file {path} of commit {commit}{more}: {why}"))
    }
}

/// Why something of a commit cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnreadableObject {
    /// It is not here, or damaged.
    Missing,
    /// Another object stands in the place of this one.
    Replaced(String),
}

impl UnreadableObject {
    /// Says why, in a clone that leaves objects with a remote or in one that has them all.
    pub(super) fn describe(&self, is_partial: bool) -> String {
        match self {
            Self::Missing if is_partial => PARTIAL.to_owned(),
            Self::Missing => MISSING.to_owned(),
            Self::Replaced(object) => format!("object {object} is not what its name says, as `git fsck` tells too"),
        }
    }

    /// Whether it is nobody's fault.
    pub(super) fn is_promised(&self, is_partial: bool) -> bool {
        is_partial && *self == Self::Missing
    }
}
