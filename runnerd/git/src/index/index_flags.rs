//! What an index entry records about its file besides the content: stat data and flags.

use gix::index::entry::stat::Time;
use gix::index::entry::{Flags, Stat};

/// Stat data that matches no file, so a comparison always reads it. The size is 0 because git would take another known
/// size for a change of content.
pub(crate) const UNKNOWN_STAT: Stat = Stat { mtime: NEVER, ctime: NEVER, dev: 0, ino: 0, uid: 0, gid: 0, size: 0 };
const NEVER: Time = Time { secs: u32::MAX, nsecs: u32::MAX };

/// Flags of files that git assumes unchanged without looking.
pub(crate) const HIDING_FLAGS: Flags = Flags::ASSUME_VALID.union(Flags::SKIP_WORKTREE);
