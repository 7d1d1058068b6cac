//! The daemon's end of a pipe that a program prints into.
//!
//! Reading blocks the writer, since both lock the pipe while they copy. Output is therefore first moved into a pipe of
//! our own, which moves pages without copying, and read from there.

use std::{
    io,
    os::fd::OwnedFd,
    task::{Context, Poll},
};

use nix::{
    fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice},
    unistd::{pipe2, read, write},
};
use tokio::net::unix::pipe::Receiver;

/// Size in bytes of both pipes, if the system allows it.
const PIPE: i32 = 1 << 20;
/// The same as an unsigned number.
pub(super) const PIPE_BYTES: usize = PIPE as usize;

/// The result of drawing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FillResult {
    /// Nothing is available now.
    Empty,
    /// The number of bytes drawn.
    Bytes(usize),
    /// The end: nothing more will come.
    End,
}

/// The reading end of a pipe that a program prints into.
pub(super) struct PipeReader {
    source: Receiver,
    /// Our own pipe: its writing and its reading end. Empty except for drawn bytes that are not read yet.
    buffer_writer: OwnedFd,
    buffer_reader: OwnedFd,
}

impl PipeReader {
    /// Creates a pipe, and also returns its writing end.
    ///
    /// # Errors
    ///
    /// Fails if there are no file descriptors left.
    pub(super) fn open_pipe() -> io::Result<(Self, OwnedFd)> {
        let (printed, writer) = create_pipe()?;
        let (drawn, filled) = create_pipe()?;
        Ok((Self { source: Receiver::from_owned_fd(printed)?, buffer_writer: filled, buffer_reader: drawn }, writer))
    }

    /// Waits until there is something to draw, or the end.
    pub(super) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
        self.source.poll_read_ready(context).map(|_| ())
    }

    /// Draws what the program has printed; the result must then be [read](Self::read_chunk).
    pub(super) fn fill(&self) -> FillResult {
        match self.fill_up_to(PIPE_BYTES) {
            FillResult::Empty => self.fill_byte(),
            other => other,
        }
    }

    /// Draws at most `most` bytes, asking the kernel: the runtime may not know yet that something is available.
    pub(super) fn fill_up_to(&self, most: usize) -> FillResult {
        let moved = splice(&self.source, None, &self.buffer_writer, None, most, SpliceFFlags::SPLICE_F_NONBLOCK);
        classify_fill(moved.map_err(io::Error::from))
    }

    /// Draws a byte through the runtime, which only thus learns that nothing is available.
    fn fill_byte(&self) -> FillResult {
        let mut byte = [0];
        classify_fill(self.source.try_read(&mut byte).and_then(|count| Ok(write(&self.buffer_writer, &byte[..count])?)))
    }

    /// Reads the next part of what was drawn; `None` if there is no more.
    pub(super) fn read_chunk<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        let count = read(&self.buffer_reader, buffer).ok().filter(|count| *count > 0)?;
        Some(&buffer[..count])
    }
}

fn classify_fill(moved: io::Result<usize>) -> FillResult {
    match moved {
        Ok(count) if count > 0 => FillResult::Bytes(count),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            FillResult::Empty
        }
        Ok(_) | Err(_) => FillResult::End,
    }
}

/// Creates a pipe whose reader never blocks.
fn create_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (output, writer) = pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    // Refused to a user with many pipes; the default size is only slower.
    let _ = fcntl(&output, FcntlArg::F_SETPIPE_SZ(PIPE));
    Ok((output, writer))
}

#[cfg(test)]
mod tests {
    use nix::unistd::write;

    use super::*;

    #[tokio::test]
    async fn what_was_printed_is_drawn_at_once_and_read_in_parts_until_the_end() {
        let (tap, writer) = PipeReader::open_pipe().unwrap();
        assert_eq!(tap.fill(), FillResult::Empty);
        write(&writer, b"one, ").unwrap();
        write(&writer, b"two").unwrap();
        std::future::poll_fn(|context| tap.poll_readable(context)).await;
        assert_eq!(tap.fill(), FillResult::Bytes(8));
        let mut buffer = [0; 6];
        assert_eq!(tap.read_chunk(&mut buffer).unwrap(), b"one, t");
        assert_eq!(tap.read_chunk(&mut buffer).unwrap(), b"wo");
        assert_eq!(tap.read_chunk(&mut buffer), None);
        write(&writer, b"three").unwrap();
        assert_eq!(tap.fill_up_to(2), FillResult::Bytes(2));
        assert_eq!(tap.read_chunk(&mut buffer).unwrap(), b"th");
        drop(writer);
        assert_eq!(tap.fill_up_to(9), FillResult::Bytes(3));
        assert_eq!(tap.fill_up_to(9), FillResult::End);
        assert_eq!(tap.read_chunk(&mut buffer).unwrap(), b"ree");
    }

    #[tokio::test]
    async fn a_writer_continues_while_earlier_output_is_unread() {
        let (tap, writer) = PipeReader::open_pipe().unwrap();
        fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let page = [7; 4096];
        let fill = || std::iter::from_fn(|| write(&writer, &page).ok()).sum::<usize>();
        let first = fill();
        assert_eq!(tap.fill_up_to(PIPE_BYTES), FillResult::Bytes(first));
        assert_eq!(fill(), first);
    }
}
