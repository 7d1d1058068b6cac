//! `stdio`: relays the bytes of a client on another machine, which then speaks to the daemon here as if it were local.
//!
//! The bytes are not interpreted. The daemon sees this process at the other end of its socket, so permission to steer
//! depends on where this process was started.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use clap::Args;
use protocol::client::{self, StdioGreeting};
use protocol::error::ExitStatus;

use crate::failure::Failure;
use crate::invocation::Invocation;

/// Number of bytes copied at once.
const BUFFER_SIZE: usize = 64 << 10;
const EXAMPLES: &str = "Examples:
  ssh HOST runnerctl stdio    the command that --host runs there";

/// Connect standard input and output to the daemon of this machine
///
/// `--host` on another machine starts this command over ssh. It prints a line that begins with `runnerctl-stdio`, then
/// copies bytes both ways until either side closes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StdioArgs {}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>) -> Result<ExitStatus, Failure> {
    let failed = |error| Failure::io("passing on a conversation", &error);
    let daemon = client::connect_stream(&invocation.default_options()).await?;
    let daemon = daemon.into_std().and_then(|stream| stream.set_nonblocking(false).map(|()| stream)).map_err(failed)?;
    let from = to_unbuffered_file(io::stdin().as_fd()).map_err(failed)?;
    let mut to = to_unbuffered_file(io::stdout().as_fd()).map_err(failed)?;
    let greeting = StdioGreeting::for_this_process();
    to.write_all(greeting.to_line().as_bytes()).map_err(failed)?;
    copy_both(&daemon, from, to).map_err(failed)?;
    Ok(ExitStatus::Success)
}

/// Returns an unbuffered handle: each byte is passed on at once.
fn to_unbuffered_file(end: BorrowedFd<'_>) -> io::Result<File> {
    end.try_clone_to_owned().map(File::from)
}

/// Copies both ways, and returns when the first direction has ended, without waiting for the other.
fn copy_both(daemon: &UnixStream, from: File, to: File) -> io::Result<()> {
    let out = daemon.try_clone()?;
    let back = daemon.try_clone()?;
    let (done_sender, done) = channel();
    spawn_copy(done_sender.clone(), move || copy_until_eof(from, out))?;
    spawn_copy(done_sender, move || copy_until_eof(back, to))?;
    let copied = done.recv().unwrap_or(Ok(()));
    // A daemon that has already closed the connection needs no shutdown.
    let _ = daemon.shutdown(Shutdown::Both);
    copied
}

/// Copies on a thread that the process does not wait for: a read from a terminal or pipe cannot be cancelled.
fn spawn_copy(
    done_sender: Sender<io::Result<()>>,
    copy: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let copy_and_report = move || {
        // The second thread to end has no receiver.
        let _ = done_sender.send(copy());
    };
    thread::Builder::new().spawn(copy_and_report).map(drop)
}

/// Copies until end of file.
///
/// Not `io::copy`, because it splices: the kernel locks the pipe while it waits for the socket, so that nothing already
/// in the pipe can be read.
fn copy_until_eof(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_SIZE];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => to.write_all(&buffer[..length])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    fn stream_pair() -> (UnixStream, File) {
        let (outer, inner) = UnixStream::pair().expect("a pair");
        (outer, File::from(OwnedFd::from(inner)))
    }

    #[test]
    fn bytes_go_both_ways_until_the_client_ends() {
        let (daemon, ours) = UnixStream::pair().expect("a pair");
        let ((mut client, from), (mut reader, to)) = (stream_pair(), stream_pair());
        let copying = thread::spawn(move || copy_both(&ours, from, to));
        let mut received_by_daemon = [0; 4];
        let mut received_by_client = [0; 4];
        client.write_all(b"ping").expect("writes");
        (&daemon).read_exact(&mut received_by_daemon).expect("reads");
        (&daemon).write_all(b"pong").expect("writes");
        reader.read_exact(&mut received_by_client).expect("reads");
        assert_eq!((&received_by_daemon, &received_by_client), (b"ping", b"pong"));
        drop(client);
        copying.join().expect("ends").expect("copies");
    }

    #[test]
    fn what_is_in_a_pipe_is_read_while_the_daemon_says_nothing() {
        let (_daemon, ours) = UnixStream::pair().expect("a pair");
        let ((_client, from), (reader, mut to)) = (stream_pair(), io::pipe().expect("a pipe"));
        to.write_all(b"hello").expect("writes");
        let to = File::from(OwnedFd::from(to));
        let (ended, first) = channel();
        thread::spawn(move || copy_both(&ours, from, to));
        thread::spawn(move || {
            let mut received = [0; 5];
            let read = (&reader).read_exact(&mut received);
            ended.send(read.map(|()| received))
        });
        let received =
            first.recv_timeout(std::time::Duration::from_secs(10)).expect("the other end reads").expect("reads");
        assert_eq!(&received, b"hello");
    }

    #[test]
    fn copying_ends_with_the_daemon_though_the_client_says_nothing() {
        let (daemon, ours) = UnixStream::pair().expect("a pair");
        let ((_client, from), (_reader, to)) = (stream_pair(), stream_pair());
        drop(daemon);
        copy_both(&ours, from, to).expect("ends in order");
    }
}
