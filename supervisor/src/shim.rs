//! The shim: a process that starts one program, watches it, and ends it with all that descends from it.
//!
//! This file is its way in: it takes its channels, makes itself hard to harm, and starts the leader. The watch itself
//! is in `watch`. A shim has one thread, no runtime, and nothing that it could lose.

use std::{
    env,
    fs::{self, File},
    io::{self, BufReader},
    os::fd::{AsFd, OwnedFd, RawFd},
    path::Path,
    process::ExitCode,
};

use nix::{
    errno::Errno,
    fcntl::OFlag,
    sys::{prctl, signalfd::SignalFd},
    unistd::{self, Pid},
};

use crate::{
    cgroup::Group,
    descriptors,
    init::{self, Init},
    leader::{self, Plan},
    mark::Mark,
    namespace,
    shield::{self, OomScore},
    watch::Watch,
    wire::{self, Order, Step, Word},
};

/// Runs the calling process as a shim: all of `main` when the first argument is [`SHIM_COMMAND`](crate::SHIM_COMMAND).
///
/// Standard input is the line to the daemon; standard output and standard error are the program's.
pub(crate) fn shim_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // Without channels there is nobody to tell; the daemon sees them close.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    // The name of a file in memory would say nothing.
    let _ = prctl::set_name(c"runnerd-shim");
    // What the daemon inherited without knowing must not reach the program.
    close_all_but(&[0, 1, 2])?;
    let mut channels = Channels::take()?;
    let order: Order = wire::read_line(&mut BufReader::new(&channels.line))?;
    match start(order, &channels) {
        Ok((watch, lock)) => {
            // A copy that stayed here would keep the output open after its last writer.
            drop(channels.outputs.take());
            wire::say(&channels.line, &Word::Started)?;
            let over = watch.until_over(&channels.line);
            // Before the last word, so that whoever has heard it finds the lock free.
            drop(lock);
            wire::say(&channels.line, &Word::Over(over))
        }
        Err((step, error)) => {
            let errno = error.raw_os_error().unwrap_or(Errno::EINVAL as i32);
            wire::say(&channels.line, &Word::Refused { step, errno })
        }
    }
}

fn start(order: Order, channels: &Channels) -> Result<(Watch, File), (Step, io::Error)> {
    let signals = shield::shield_shim().map_err(|error| (Step::SetUp, error.into()))?;
    let lock = File::options().create(true).append(true).open(&order.lock).map_err(|error| (Step::LockFile, error))?;
    lock.try_lock().map_err(|error| (Step::Lock, error.into()))?;
    env::set_current_dir(&order.cwd).map_err(|error| (Step::Folder, error))?;
    let group = order.cgroup.as_deref().map(|folder| Group::create(Path::new(folder)));
    let group = group.transpose().map_err(|error| (Step::Cgroup, error))?;
    match start_in(group.as_ref(), &order, channels) {
        Ok(leader) => Ok((Watch::new(Under { leader, group, signals }, order), lock)),
        Err(error) => {
            if let Some(group) = group {
                group.remove();
            }
            Err(error)
        }
    }
}

/// Starts the leader inside of what the order puts around it.
fn start_in(group: Option<&Group>, order: &Order, channels: &Channels) -> Result<Leader, (Step, io::Error)> {
    refuse_threads().map_err(|error| (Step::Threads, error))?;
    let in_set_up = |error: io::Error| (Step::SetUp, error);
    // Before the shim is closed to others, which also takes its own files in /proc from it.
    order.namespaces.map_or(Ok(()), namespace::unshare_for_child).map_err(|error| (Step::Namespace, error))?;
    let oom = OomScore::open();
    harden(order).map_err(in_set_up)?;
    let (stdin, feed) = unistd::pipe2(OFlag::O_CLOEXEC).map_err(|errno| in_set_up(errno.into()))?;
    shield::set_nonblocking(&feed).map_err(|errno| in_set_up(errno.into()))?;
    let outputs = channels.outputs.as_ref().expect("BUG: the outputs are given away after the start");
    let plan = Plan { order, stdin, outputs: outputs.each_ref().map(AsFd::as_fd), group };
    oom.raise();
    let leader = match order.namespaces {
        Some(_) => init::start(plan).map(|(init, pid)| Leader { pid, init: Some(init), feed: feed.into() }),
        None => leader::start(plan)
            .map(|pid| Leader { pid: Some(pid), init: None, feed: feed.into() })
            .map_err(|error| (Step::Exec, error)),
    };
    oom.restore();
    leader
}

/// Refuses to go on in a process with more threads than one.
///
/// What follows forks, here and in the first process of a namespace, and the child does more than a child of many threads
/// may: a lock that another thread held would stay locked in it for ever. A child of a fork has one thread itself.
fn refuse_threads() -> io::Result<()> {
    match fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        _ => Err(Errno::EBUSY.into()),
    }
}

/// A program that runs, seen from its shim.
pub(crate) struct Leader {
    /// Its number; `None` if it ended inside its namespace before it could be looked up.
    pub pid: Option<Pid>,
    /// The first process of its namespace, where it has one; else it is a child of the shim.
    pub init: Option<Init>,
    /// The writing end of its standard input, which never blocks.
    pub feed: File,
}

/// What a shim has under its watch, and watches with.
pub(crate) struct Under {
    pub leader: Leader,
    pub group: Option<Group>,
    pub signals: SignalFd,
}

/// Closes every descriptor but these.
pub(crate) fn close_all_but(kept: &[RawFd]) -> io::Result<()> {
    let mut open = Vec::new();
    for item in fs::read_dir("/proc/self/fd")? {
        open.extend(item?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    for fd in open.into_iter().filter(|fd| !kept.contains(fd)) {
        // One of them was the listing itself, which is closed by now.
        let _ = unistd::close(fd);
    }
    Ok(())
}

/// All of it comes before the leader exists, which inherits the mark and the denial of privileges.
fn harden(order: &Order) -> io::Result<()> {
    unistd::setsid()?;
    prctl::set_child_subreaper(true)?;
    // Closes /proc/<shim>/fd to the program, through which it could speak for the shim.
    prctl::set_dumpable(false)?;
    if order.no_new_privs {
        prctl::set_no_new_privs()?;
    }
    if let Some(limit) = order.descriptors {
        descriptors::give(limit);
    }
    // Refused where a lower limit is inherited; the variable remains.
    let _ = Mark::new(order.mark.as_str()).put_on_this_process();
    Ok(())
}

/// What ties a shim to its daemon, moved off the standard descriptors.
struct Channels {
    /// Commands come in, words go out.
    line: File,
    /// The program's standard output and standard error.
    outputs: Option<[OwnedFd; 2]>,
}

impl Channels {
    fn take() -> io::Result<Self> {
        let channels = Self {
            line: io::stdin().as_fd().try_clone_to_owned()?.into(),
            outputs: Some([io::stdout().as_fd().try_clone_to_owned()?, io::stderr().as_fd().try_clone_to_owned()?]),
        };
        let null = File::options().read(true).write(true).open("/dev/null")?;
        unistd::dup2_stdin(&null)?;
        unistd::dup2_stdout(&null)?;
        unistd::dup2_stderr(&null)?;
        Ok(channels)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn shim_with_a_second_thread_starts_nothing() {
        let (end, ended) = mpsc::channel::<()>();
        let other = thread::spawn(move || ended.recv());
        let refused = refuse_threads().unwrap_err();
        drop(end);
        other.join().unwrap().unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(Errno::EBUSY as i32));
    }
}
