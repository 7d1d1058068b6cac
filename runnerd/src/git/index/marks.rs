//! What an entry of an index says of its file besides the content: how it looked, and marks.

use gix::index::entry::stat::Time;
use gix::index::entry::{Flags, Stat};

/// What no file looks like: who compares it with one has to read it. The length is 0, as a known other one would be
/// taken by git for a change of content.
pub(in crate::git) const UNKNOWN_STAT: Stat = Stat { mtime: NEVER, ctime: NEVER, dev: 0, ino: 0, uid: 0, gid: 0, size: 0 };
const NEVER: Time = Time { secs: u32::MAX, nsecs: u32::MAX };

/// Marks of files that git takes for unchanged without looking.
pub(in crate::git) const HIDING_FLAGS: Flags = Flags::ASSUME_VALID.union(Flags::SKIP_WORKTREE);
