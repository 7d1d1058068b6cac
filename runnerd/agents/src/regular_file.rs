//! Opens files at paths where an agent can put anything: links, pipes and devices are not opened.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

/// Opens a regular file for reading; `None` if it does not exist.
pub(super) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let file = match OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(io::Error::other("it is no regular file")) }
}

/// Reads at most `limit` bytes from the beginning of a regular file; `None` if it does not exist.
pub(super) fn read_regular(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_regular(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read_regular(&at("file"), 3).unwrap(), Some(b"tex".to_vec()));
        assert_eq!(read_regular(&at("absent"), 3).unwrap(), None);
        for name in ["link", "pipe", "."] {
            assert!(read_regular(&at(name), 3).is_err(), "{name}");
        }
    }
}
