//! References: HEAD, branches and the runner's own. Reads and moves them; never touches the index or the work tree.
//!
//! The library handles references stored in files, the git program every other format.

pub(crate) mod branch;
pub(crate) mod branch_use;
pub(crate) mod listing;
mod ref_conflict;
mod reservations;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gix::bstr::ByteSlice as _;
use gix::date::parse::TimeBuf;
use gix::lock::acquire::Fail;
use gix::refs::store::WriteReflog;
use gix::refs::transaction::{PreviousValue, RefEdit};
use gix::refs::{FullName, Target};

use crate::durable;
use crate::objects::object_reader;
use crate::repository::engine::RefStore;
use crate::repository::identity::Identity;
use crate::repository::program::GitCommand;
use crate::repository::user_config::refuse_pipe_among;
use crate::{GitError, Id, Repository};

const HEADS: &str = "refs/heads/";
/// Where the references of the runner are.
const RUNNER_REFS: &str = "refs/runner/";
/// How long to wait for another git that moves the same reference, as git does.
pub(crate) const REF_LOCK_TIMEOUT: Fail = Fail::AfterDurationWithBackoff(Duration::from_millis(100));
/// How long to wait for another git that packs references, as git does.
pub(crate) const PACKED_REFS_LOCK_TIMEOUT: Fail = Fail::AfterDurationWithBackoff(Duration::from_secs(1));

/// What HEAD points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// A branch.
    Branch {
        /// Its short name, such as `runner/x`.
        name: String,
        /// Its tip; `None` before the first commit.
        commit: Option<Id>,
    },
    /// A commit, and no branch.
    Detached {
        /// The commit.
        commit: Id,
    },
}

impl Head {
    /// Returns the commit that HEAD resolves to; `None` before the first commit.
    pub fn commit(&self) -> Option<Id> {
        match self {
            Self::Branch { commit, .. } => *commit,
            Self::Detached { commit } => Some(*commit),
        }
    }

    /// Returns the short name of the branch, if HEAD is on one.
    pub fn branch(&self) -> Option<&str> {
        match self {
            Self::Branch { name, .. } => Some(name),
            Self::Detached { .. } => None,
        }
    }
}

/// Condition a reference must meet before it is moved.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ExpectedRef {
    Any,
    Missing,
    Exactly(Id),
}

/// One change of one reference.
pub(crate) struct RefMove<'a> {
    /// Full name, or `HEAD` for what HEAD points to.
    pub(crate) name: &'a str,
    pub(crate) to: Id,
    pub(crate) expected: ExpectedRef,
    /// Reflog message.
    pub(crate) message: &'a str,
    pub(crate) identity: &'a Identity,
}

impl RefMove<'_> {
    fn to_edit(&self, repository: &Repository, follows_symrefs: bool) -> Result<RefEdit, GitError> {
        let expected = match self.expected {
            ExpectedRef::Any => PreviousValue::Any,
            ExpectedRef::Missing => PreviousValue::MustNotExist,
            ExpectedRef::Exactly(id) => PreviousValue::MustExistAndMatch(Target::Object(id.object_id())),
        };
        let name = full_name(self.name, repository)?;
        Ok(RefEdit::update(name, self.to.object_id(), expected, self.message).with_deref(follows_symrefs))
    }
}

impl Repository {
    /// Returns what HEAD points to.
    pub fn head(&self) -> Result<Head, GitError> {
        let repo = self.open()?;
        match self.choose_ref_store(&repo) {
            RefStore::Files => self.read_head_file(&repo),
            RefStore::GitOnly => self.read_head_with_git(),
        }
    }

    fn read_head_file(&self, repo: &gix::Repository) -> Result<Head, GitError> {
        refuse_pipe_among([self.git_dir().join("HEAD")].into_iter())?;
        let head = repo.head().map_err(GitError::gix("reading HEAD", self.git_dir()))?;
        let commit = head.id().map(Id::from);
        match (head.referent_name(), commit) {
            (Some(name), commit) => {
                Ok(Head::Branch { name: short_branch_name(&name.as_bstr().to_str_lossy()), commit })
            }
            (None, Some(commit)) => Ok(Head::Detached { commit }),
            (None, None) => Err(ref_error("reading HEAD", self, "it is neither a branch nor a commit")),
        }
    }

    fn read_head_with_git(&self) -> Result<Head, GitError> {
        let commit = self.find_ref_with_git("HEAD")?;
        if let Some(name) = GitCommand::new(self, "symbolic-ref").args(["--quiet", "HEAD"]).run_optional()? {
            let name = String::from_utf8_lossy(&name).trim_end().to_owned();
            return Ok(Head::Branch { name: short_branch_name(&name), commit });
        }
        commit
            .map(|commit| Head::Detached { commit })
            .ok_or_else(|| ref_error("reading HEAD", self, "it is not a commit"))
    }

    /// Returns the tip of the branch `name`, or `None` if it does not exist.
    pub fn find_branch_tip(&self, name: &str) -> Result<Option<Id>, GitError> {
        self.find_ref(&format!("{HEADS}{name}"))
    }

    /// Returns the tip of the branch `name` as last fetched from `remote`.
    pub fn find_remote_branch(&self, remote: &str, name: &str) -> Result<Option<Id>, GitError> {
        self.find_ref(&format!("refs/remotes/{remote}/{name}"))
    }

    /// Returns short name and tip of each branch whose short name starts with `prefix`, sorted by name.
    pub fn list_branches(&self, prefix: &str) -> Result<Vec<(String, Id)>, GitError> {
        let refs = self.list_refs()?;
        let matching = |(name, target): (String, String)| {
            let name = name.strip_prefix(HEADS).filter(|name| name.starts_with(prefix))?;
            Some((name.to_owned(), target.parse().ok()?))
        };
        Ok(refs.into_iter().filter_map(matching).collect())
    }

    /// Returns all references by full name, HEAD included: an object id each, or `ref: ` and a name.
    pub fn list_refs(&self) -> Result<BTreeMap<String, String>, GitError> {
        let repo = self.open()?;
        match self.choose_ref_store(&repo) {
            RefStore::Files => read_file_refs(&repo, self).map_err(GitError::gix("listing references", self.git_dir())),
            RefStore::GitOnly => self.list_refs_with_git(),
        }
    }

    fn list_refs_with_git(&self) -> Result<BTreeMap<String, String>, GitError> {
        let listing = GitCommand::new(self, "for-each-ref").arg("--format=%(refname) %(objectname) %(symref)").run()?;
        let mut all = BTreeMap::new();
        for line in String::from_utf8_lossy(&listing).lines() {
            let mut words = line.split(' ');
            if let (Some(name), Some(id)) = (words.next(), words.next()) {
                let symbolic = words.next().filter(|target| !target.is_empty()).map(|target| format!("ref: {target}"));
                all.insert(name.to_owned(), symbolic.unwrap_or_else(|| id.to_owned()));
            }
        }
        let head = match self.read_head_with_git()? {
            Head::Branch { name, .. } => format!("ref: {HEADS}{name}"),
            Head::Detached { commit } => commit.to_string(),
        };
        all.insert("HEAD".to_owned(), head);
        Ok(all)
    }

    /// Points `ref_name`, a full name below `refs/runner/`, to `id`, so that `id` survives garbage collection.
    pub fn set_runner_ref(&self, ref_name: &str, id: &Id) -> Result<(), GitError> {
        self.move_ref(&RefMove {
            name: ref_name,
            to: *id,
            expected: ExpectedRef::Any,
            message: "runner: keep",
            identity: &Identity::runner(),
        })
    }

    /// Points `ref_name` to `id` as [`Self::set_runner_ref`] does, whatever its current value, and returns whether it differed.
    pub fn force_runner_ref(&self, ref_name: &str, id: &Id) -> Result<bool, GitError> {
        if matches!(self.find_ref(ref_name), Ok(Some(found)) if found == *id) {
            return Ok(false);
        }
        let result = self.set_runner_ref(ref_name, id);
        if matches!(result, Err(GitError::Corrupt { .. } | GitError::RefConflict { .. })) {
            durable::remove_path(&self.ref_dir(ref_name).join(ref_name))?;
            return self.set_runner_ref(ref_name, id).map(|()| true);
        }
        result.map(|()| true)
    }

    /// Resolves a reference by full name to an object id, peeling tags.
    pub(crate) fn find_ref(&self, name: &str) -> Result<Option<Id>, GitError> {
        let repo = self.open()?;
        if FullName::try_from(name).is_err() {
            return Ok(None);
        }
        if self.choose_ref_store(&repo) == RefStore::GitOnly {
            return self.find_ref_with_git(name);
        }
        let read = |error| GitError::gix("reading references", self.git_dir())(error);
        match repo.try_find_reference(name).map_err(read)? {
            Some(found) => found.into_fully_peeled_id().map(|id| Some(id.into())).map_err(read),
            None => Ok(None),
        }
    }

    fn find_ref_with_git(&self, name: &str) -> Result<Option<Id>, GitError> {
        if let Some(found) = self.parse_revision(&format!("{name}^{{}}"))? {
            return Ok(Some(found));
        }
        // git is as silent about an object it cannot read as about a missing reference.
        let Some(named) = self.parse_revision(name)? else { return Ok(None) };
        let read = object_reader::read_object(&self.open()?, named.object_id()).map(drop);
        read.map_err(GitError::gix("reading what a reference names", self.git_dir()))?;
        Err(ref_error("reading a reference", self, "what it names cannot be read"))
    }

    /// Resolves a revision with the git program; `None` if it names nothing.
    pub(crate) fn parse_revision(&self, revision: &str) -> Result<Option<Id>, GitError> {
        let git = GitCommand::new(self, "rev-parse").args(["--verify", "--quiet", "--end-of-options", revision]);
        let Some(output) = git.run_optional()? else { return Ok(None) };
        let id = String::from_utf8_lossy(&output).trim().parse();
        id.map(Some).map_err(|_| ref_error("reading a revision", self, "git names it by an id of another kind"))
    }

    /// Moves one reference if it has the value the caller expects, durably, with a reflog entry.
    pub(crate) fn move_ref(&self, request: &RefMove<'_>) -> Result<(), GitError> {
        let repo = self.open()?;
        if request.name.starts_with(RUNNER_REFS) && !self.ref_exists(request.name)? {
            self.make_room_for(request.name)?;
        }
        match self.choose_ref_store(&repo) {
            RefStore::Files => {
                if request.name != "HEAD" && !self.ref_exists(request.name)? {
                    self.check_ref_conflict(request.name)?;
                }
                self.with_stale_lock_retry(|| self.move_file_refs(&repo, std::slice::from_ref(request), true))
            }
            RefStore::GitOnly => self.move_ref_with_git(request),
        }
    }

    /// Moves references in one transaction; `follows_symrefs` follows symbolic references. The first request supplies what
    /// applies to all of them.
    fn move_file_refs(
        &self,
        repo: &gix::Repository,
        requests: &[RefMove<'_>],
        follows_symrefs: bool,
    ) -> Result<(), GitError> {
        let Some(first) = requests.first() else { return Ok(()) };
        let edits =
            requests.iter().map(|request| request.to_edit(self, follows_symrefs)).collect::<Result<Vec<_>, _>>()?;
        let moving =
            requests.iter().map(|request| self.resolve_moved_ref(request.name)).collect::<Result<Vec<_>, _>>()?;
        let mut refs = repo.refs.clone();
        // Losing a reflog entry is better than writing to someone else's file.
        let mut logged = requests.iter().map(|request| request.name).chain(moving.iter().map(String::as_str));
        if !logged.all(|name| self.has_private_log(name)) || !self.has_private_log("HEAD") {
            refs.write_reflog = WriteReflog::Disable;
        }
        let prepared = refs.transaction().prepare(edits, REF_LOCK_TIMEOUT, PACKED_REFS_LOCK_TIMEOUT);
        let prepared = prepared.map_err(|error| self.explain_move_error(requests, error))?;
        let is_known: Vec<bool> = moving.iter().map(|name| self.ref_dir(name).join(name).exists()).collect();
        // The bytes must be durable before they get the name: otherwise a power cut would leave an empty reference.
        moving.iter().try_for_each(|name| durable::sync_lock(self.ref_dir(name), name))?;
        let stamp = first.identity.signature();
        let mut time = TimeBuf::default();
        prepared.commit(Some(stamp.to_ref(&mut time))).map_err(|error| self.explain_move_error(requests, error))?;
        moving.iter().zip(is_known).try_for_each(|(name, is_known)| {
            let sync = if is_known { durable::sync_known_ref } else { durable::sync_ref };
            sync(self.ref_dir(name), name)
        })
    }

    /// Returns the reference that moves along with this one: the branch HEAD points to, if any.
    fn resolve_moved_ref(&self, name: &str) -> Result<String, GitError> {
        let branch = if name == "HEAD" { self.head()?.branch().map(|branch| format!("{HEADS}{branch}")) } else { None };
        Ok(branch.unwrap_or_else(|| name.to_owned()))
    }

    /// Flushes what HEAD points to: a process that moved it may have been killed before it flushed.
    pub fn sync_head(&self) -> Result<(), GitError> {
        let name = self.head()?.branch().map_or_else(|| "HEAD".to_owned(), |branch| format!("{HEADS}{branch}"));
        durable::sync_ref(self.ref_dir(&name), &name)
    }

    fn move_ref_with_git(&self, request: &RefMove<'_>) -> Result<(), GitError> {
        let before = match request.expected {
            ExpectedRef::Any => None,
            ExpectedRef::Missing => Some("0".repeat(request.to.to_string().len())),
            ExpectedRef::Exactly(id) => Some(id.to_string()),
        };
        let command =
            GitCommand::new(self, "update-ref").args(["--create-reflog", "-m", request.message, request.name]);
        let command = request.identity.apply_to(command).arg(request.to.to_string()).args(before);
        let outcome = command.output()?;
        if outcome.status.success() {
            return Ok(());
        }
        let error = outcome.into_error("update-ref".to_owned(), self.work_dir().to_owned());
        self.check_ref_conflict(request.name)?;
        Err(self.find_unexpected_move(request).unwrap_or(error))
    }

    fn explain_move_error(&self, requests: &[RefMove<'_>], error: gix::Error) -> GitError {
        let locks = || requests.iter().map(|request| self.find_blocking_lock(request.name));
        let lock = locks().find(|lock| lock.exists()).or_else(|| locks().next()).unwrap_or_default();
        match GitError::gix("moving a reference", &lock)(error) {
            GitError::Corrupt { doing, source, .. } => {
                let path = self.git_dir().to_owned();
                let moved = requests.iter().find_map(|request| self.find_unexpected_move(request));
                moved.unwrap_or(GitError::Corrupt { doing, path, source })
            }
            obstacle => obstacle,
        }
    }

    /// Returns the lock file that blocks moving a reference, or the branch HEAD points to.
    fn find_blocking_lock(&self, name: &str) -> PathBuf {
        let own = self.ref_dir(name).join(format!("{name}.lock"));
        if name != "HEAD" || own.exists() {
            return own;
        }
        let branch = self.head().ok().and_then(|head| head.branch().map(ToOwned::to_owned));
        branch.map_or(own, |branch| self.common_dir().join(format!("{HEADS}{branch}.lock")))
    }

    /// Explains a refused move by the reference's current value, if that is the reason.
    fn find_unexpected_move(&self, request: &RefMove<'_>) -> Option<GitError> {
        let found = match request.name {
            "HEAD" => self.head().ok()?.commit(),
            name => self.find_ref(name).ok()?,
        };
        let expected = match request.expected {
            ExpectedRef::Any => return None,
            ExpectedRef::Missing => None,
            ExpectedRef::Exactly(id) => Some(id),
        };
        (expected != found).then(|| GitError::RefMoved {
            name: request.name.to_owned(),
            path: self.work_dir().to_owned(),
            expected,
            found,
        })
    }

    pub(crate) fn ref_dir(&self, name: &str) -> &Path {
        if name.starts_with("refs/") { self.common_dir() } else { self.git_dir() }
    }
}

/// Reads the loose files before `packed-refs`: a reference packed in between is in at least one of them.
fn read_file_refs(repo: &gix::Repository, repository: &Repository) -> Result<BTreeMap<String, String>, gix::Error> {
    let describe = |target: gix::refs::TargetRef<'_>| match target {
        gix::refs::TargetRef::Object(id) => id.to_string(),
        gix::refs::TargetRef::Symbolic(name) => format!("ref: {}", name.as_bstr()),
    };
    let mut all = BTreeMap::new();
    let mut is_any_garbled = false;
    for reference in repo.refs.loose_iter().map_err(gix::Error::from_error)? {
        // An unreadable reference resolves to nothing, and does not affect the others.
        let Ok(reference) = reference else {
            is_any_garbled = true;
            continue;
        };
        all.insert(reference.name.as_bstr().to_string(), describe(reference.target.to_ref()));
    }
    if let Some(packed) = repo.refs.open_packed_buffer()? {
        for reference in packed.iter()?.flatten() {
            let name = reference.name.as_bstr().to_string();
            // An unreadable file still takes precedence as the reference.
            let is_hidden = is_any_garbled && repository.common_dir().join(&name).is_file();
            if !is_hidden || repo.try_find_reference(reference.name).is_ok() {
                all.entry(name).or_insert_with(|| reference.target().to_string());
            }
        }
    }
    if let Some(head) = repo.try_find_reference("HEAD")? {
        all.insert("HEAD".to_owned(), describe(head.target()));
    }
    Ok(all)
}

pub(crate) fn full_name(name: &str, repository: &Repository) -> Result<FullName, GitError> {
    FullName::try_from(name)
        .map_err(|_| ref_error("naming a reference", repository, &format!("{name:?} is no name for one")))
}

fn short_branch_name(name: &str) -> String {
    name.strip_prefix(HEADS).unwrap_or(name).to_owned()
}

fn ref_error(doing: &'static str, repository: &Repository, why: &str) -> GitError {
    GitError::Corrupt { doing, path: repository.git_dir().to_owned(), source: why.into() }
}
