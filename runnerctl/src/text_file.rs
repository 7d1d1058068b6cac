//! Reads text files that a person names.

use std::io::Read as _;
use std::path::Path;

pub(crate) use protocol::text_file::open_file;

use crate::failure::Failure;

/// Reads a text of at most so many kibibytes; `what` says what the file contains.
pub(crate) fn read_text(what: &str, path: &Path, limit_kib: u64) -> Result<String, Failure> {
    let mut text = String::new();
    let shown = path.display();
    let read = open_file(path).and_then(|file| file.take((limit_kib << 10) + 1).read_to_string(&mut text));
    read.map_err(|error| Failure::io(format!("reading the {what} {shown}"), &error))?;
    if text.len() as u64 > limit_kib << 10 {
        return Err(Failure::usage(format!("the file {shown} is larger than {limit_kib} KiB")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::{fs, io};

    use super::*;

    #[test]
    fn a_pipe_with_a_path_is_refused_and_one_of_a_shell_is_read() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let at = |name: &str| folder.path().join(name);
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe can be made");
        std::os::unix::fs::symlink(at("pipe"), at("link")).expect("a link can be made");
        assert!(open_file(&at("pipe")).is_err() && open_file(&at("link")).is_err());
        let (reader, _writer) = io::pipe().expect("a pipe can be made");
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert!(open_file(Path::new(&path)).is_ok());
        fs::write(at("file"), "x".repeat(1025)).expect("a file can be written");
        assert!(read_text("keys", &at("file"), 1).is_err() && read_text("keys", &at("file"), 2).is_ok());
    }
}
