//! Paths as git has them, bytes with slashes: how they are displayed, and which of them a tree may contain.

use gix::bstr::{BStr, ByteSlice as _};
use gix::index::entry::Mode;
use runner_core::fsck::{is_dot_git, is_dot_gitmodules, is_like_runner_path};

/// Formats a path for people.
pub(super) fn display_path(path: &[u8]) -> String {
    path.to_str_lossy().into_owned()
}

/// Whether git accepts each component of the path as a name in a tree.
pub(super) fn has_valid_name(path: &BStr, mode: Mode) -> bool {
    let rules = gix::validate::path::component::Options {
        // This would reject names that are legal everywhere else.
        protect_windows: false,
        protect_hfs: cfg!(target_os = "macos"),
        protect_ntfs: true,
    };
    let link = (mode == Mode::SYMLINK).then_some(gix::validate::path::component::Mode::Symlink);
    let last = path.rfind_byte(b'/').map_or(0, |at| at + 1);
    path.split(|byte| *byte == b'/').all(|part| gix::validate::path::component(part.as_bstr(), None, rules).is_ok())
        && gix::validate::path::component(path[last..].as_bstr(), link, rules).is_ok()
        && !(link.is_some() && is_dot_gitmodules(&path[last..]))
}

/// Whether a new file may have this path. The runner never commits a name that a file system of another machine would
/// take for `.git` or for the runner's folder, even if git here accepts it.
pub(super) fn has_safe_name(path: &BStr, mode: Mode) -> bool {
    has_valid_name(path, mode) && !is_like_runner_path(path) && !path.split(|byte| *byte == b'/').any(is_dot_git)
}
