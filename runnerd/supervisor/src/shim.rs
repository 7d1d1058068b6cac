//! The shim: a process that starts one program, watches it, and ends it with all its descendants.
//!
//! This file is its entry: it takes its channels, hardens itself, and starts the leader. The watch itself is in
//! `watch`. A shim has one thread, no runtime, and no state that could be lost.

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
    cgroup::ControlGroup,
    descriptors,
    init::{self, InitProcess},
    leader::{self, LeaderPlan},
    mark::Mark,
    namespace,
    shield::{self, OomScore},
    watch::ProgramWatch,
    wire::{self, ShimMessage, ShimOrder, StartStep},
};

/// Runs the calling process as a shim: all of `main` if the first argument is [`SHIM_COMMAND`](crate::SHIM_COMMAND).
///
/// Standard input is the line to the daemon; standard output and standard error are the program's.
pub(crate) fn shim_main() -> ExitCode {
    match run_shim() {
        Ok(()) => ExitCode::SUCCESS,
        // Without channels there is no one to tell; the daemon sees them close.
        Err(_) => ExitCode::FAILURE,
    }
}

fn run_shim() -> io::Result<()> {
    // The name of a file in memory would be meaningless.
    let _ = prctl::set_name(c"runnerd-shim");
    // Descriptors that the daemon inherited unknowingly must not reach the program.
    close_all_but(&[0, 1, 2])?;
    let mut channels = ShimChannels::take_channels()?;
    let order: ShimOrder = wire::read_line(&mut BufReader::new(&channels.line))?;
    match start_program(order, &channels) {
        Ok((watch, lock)) => {
            // A copy kept here would keep the output open after its last writer.
            drop(channels.outputs.take());
            wire::send_message(&channels.line, &ShimMessage::Started)?;
            let over = watch.watch_until_gone(&channels.line);
            // Before the last message, so that its receiver finds the lock free.
            drop(lock);
            wire::send_message(&channels.line, &ShimMessage::Over(over))
        }
        Err((step, error)) => {
            let errno = error.raw_os_error().unwrap_or(Errno::EINVAL as i32);
            wire::send_message(&channels.line, &ShimMessage::Refused { step, errno })
        }
    }
}

fn start_program(order: ShimOrder, channels: &ShimChannels) -> Result<(ProgramWatch, File), (StartStep, io::Error)> {
    let signals = shield::shield_shim().map_err(|error| (StartStep::SetUp, error.into()))?;
    let lock =
        File::options().create(true).append(true).open(&order.lock).map_err(|error| (StartStep::LockFile, error))?;
    lock.try_lock().map_err(|error| (StartStep::Lock, error.into()))?;
    env::set_current_dir(&order.cwd).map_err(|error| (StartStep::Folder, error))?;
    let group = order.cgroup.as_deref().map(|folder| ControlGroup::create(Path::new(folder)));
    let group = group.transpose().map_err(|error| (StartStep::Cgroup, error))?;
    match start_leader_in(group.as_ref(), &order, channels) {
        Ok(leader) => Ok((ProgramWatch::new(WatchTarget { leader, group, signals }, order), lock)),
        Err(error) => {
            if let Some(group) = group {
                group.remove();
            }
            Err(error)
        }
    }
}

/// Starts the leader inside the group and the namespaces of the order.
fn start_leader_in(
    group: Option<&ControlGroup>,
    order: &ShimOrder,
    channels: &ShimChannels,
) -> Result<LeaderProcess, (StartStep, io::Error)> {
    refuse_extra_threads().map_err(|error| (StartStep::Threads, error))?;
    let in_set_up = |error: io::Error| (StartStep::SetUp, error);
    // Before the shim becomes non-dumpable, after which it cannot open its own files in /proc either.
    order.namespaces.map_or(Ok(()), namespace::unshare_for_child).map_err(|error| (StartStep::Namespace, error))?;
    let oom = OomScore::open();
    harden_process(order).map_err(in_set_up)?;
    let (stdin, feed) = unistd::pipe2(OFlag::O_CLOEXEC).map_err(|errno| in_set_up(errno.into()))?;
    shield::set_nonblocking(&feed).map_err(|errno| in_set_up(errno.into()))?;
    let outputs = channels.outputs.as_ref().expect("BUG: the outputs are given away after the start");
    let plan = LeaderPlan { order, stdin, outputs: outputs.each_ref().map(AsFd::as_fd), group };
    oom.raise();
    let leader = match order.namespaces {
        Some(_) => {
            init::start_init(plan).map(|(init, pid)| LeaderProcess { pid, init: Some(init), stdin: feed.into() })
        }
        None => leader::start_leader(plan)
            .map(|pid| LeaderProcess { pid: Some(pid), init: None, stdin: feed.into() })
            .map_err(|error| (StartStep::Exec, error)),
    };
    oom.restore();
    leader
}

/// Refuses to continue in a process with more than one thread.
///
/// The code after this forks, here and in the first process of a namespace, and the child does more than a child of a
/// multi-threaded process may: a lock held by another thread would stay locked in it forever. A forked child has one
/// thread itself.
fn refuse_extra_threads() -> io::Result<()> {
    match fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        _ => Err(Errno::EBUSY.into()),
    }
}

/// A running program, as seen by its shim.
pub(crate) struct LeaderProcess {
    /// Its process id; `None` if it ended inside its namespace before it could be looked up.
    pub pid: Option<Pid>,
    /// The first process of its namespace, if it has one; otherwise the leader is a child of the shim.
    pub init: Option<InitProcess>,
    /// The writing end of its standard input, which never blocks.
    pub stdin: File,
}

/// What a shim watches, and its means of watching.
pub(crate) struct WatchTarget {
    pub leader: LeaderProcess,
    pub group: Option<ControlGroup>,
    pub signals: SignalFd,
}

/// Closes every descriptor except these.
pub(crate) fn close_all_but(exceptions: &[RawFd]) -> io::Result<()> {
    let mut open = Vec::new();
    for item in fs::read_dir("/proc/self/fd")? {
        open.extend(item?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    for fd in open.into_iter().filter(|fd| !exceptions.contains(fd)) {
        // One of them was the listing itself, which is closed by now.
        let _ = unistd::close(fd);
    }
    Ok(())
}

/// Hardens the shim. Must come before the leader exists, which inherits the mark and the denial of privileges.
fn harden_process(order: &ShimOrder) -> io::Result<()> {
    unistd::setsid()?;
    prctl::set_child_subreaper(true)?;
    // Denies the program access to /proc/<shim>/fd, through which it could speak for the shim.
    prctl::set_dumpable(false)?;
    if order.no_new_privs {
        prctl::set_no_new_privs()?;
    }
    if let Some(limit) = order.descriptors {
        descriptors::set_child_limit(limit);
    }
    // Refused if a lower limit was inherited; the variable remains.
    let _ = Mark::new(order.mark.as_str()).apply_to_self();
    Ok(())
}

/// What connects a shim to its daemon, moved off the standard descriptors.
struct ShimChannels {
    /// Carries commands in and messages out.
    line: File,
    /// The program's standard output and standard error.
    outputs: Option<[OwnedFd; 2]>,
}

impl ShimChannels {
    fn take_channels() -> io::Result<Self> {
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
        let refused = refuse_extra_threads().unwrap_err();
        drop(end);
        other.join().unwrap().unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(Errno::EBUSY as i32));
    }
}
