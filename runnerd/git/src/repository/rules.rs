//! Rules that the library reads from files when it is called: attributes and ignore rules. The captured files are
//! restored just before, so the library reads what a person last accepted. `clippy.toml` refuses these calls elsewhere.

#![expect(clippy::disallowed_methods, reason = "the only place where the captured files are restored first")]

use std::sync::atomic::AtomicBool;

use gix::bstr::{BStr, BString};
use gix::dir::walk::Delegate;
use gix::index::State;
use gix::status::index_worktree::Options;
use gix::status::plumbing::index_as_worktree::traits::{HashEq, SubmoduleStatus};
use gix::status::plumbing::index_as_worktree_with_renames::VisitEntry;
use gix::worktree::stack::state::{attributes, ignore};
use gix::{AttributeStack, ObjectId};

use crate::Repository;

impl Repository {
    /// Reads the attributes in force; those of the work tree from where `source` says.
    pub(crate) fn read_attributes<'r>(
        &self,
        repo: &'r gix::Repository,
        index: &State,
        source: attributes::Source,
    ) -> gix::Result<AttributeStack<'r>> {
        self.write_pinned_files().map_err(gix::Error::from_error)?;
        repo.attributes_only(index, source)
    }

    /// Reads the ignore rules in force.
    pub(crate) fn read_ignore_rules<'r>(
        &self,
        repo: &'r gix::Repository,
        index: &State,
    ) -> gix::Result<AttributeStack<'r>> {
        self.write_pinned_files().map_err(gix::Error::from_error)?;
        repo.excludes(index, None, ignore::Source::WorktreeThenIdMappingIfNotSkipped)
    }

    /// Compares the files of an index with the work tree.
    pub(crate) fn compare_with_index<'i>(
        &self,
        repo: &gix::Repository,
        index: &'i State,
        delegate: &mut impl VisitEntry<'i, ContentChange = ObjectId, SubmoduleStatus = ()>,
        submodules: impl SubmoduleStatus<Output = ()> + Send + Clone,
    ) -> gix::Result<()> {
        self.write_pinned_files().map_err(gix::Error::from_error)?;
        // The library panics if the system refuses it one of several threads; for a required single one it returns an
        // error.
        let options = Options { thread_limit: Some(1), ..Options::default() };
        let mut progress = gix::progress::Discard;
        let no_interrupt = AtomicBool::new(false);
        repo.index_worktree_status(
            index,
            None::<&BStr>,
            delegate,
            HashEq,
            submodules,
            &mut progress,
            &no_interrupt,
            options,
        )
        .map(drop)
    }

    /// Walks what the index does not track, everywhere or within the patterns.
    pub(crate) fn walk_untracked(
        &self,
        repo: &gix::Repository,
        index: &State,
        patterns: &[BString],
        delegate: &mut dyn Delegate,
    ) -> gix::Result<()> {
        self.write_pinned_files().map_err(gix::Error::from_error)?;
        let options = repo.dirwalk_options()?.emit_untracked(gix::dir::walk::EmissionMode::Matching);
        repo.dirwalk(index, patterns, &AtomicBool::new(false), options, delegate).map(drop)
    }
}
