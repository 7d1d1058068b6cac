//! The shim's watch over a running program: deadline, commands, and the kill that leaves nothing behind.
//!
//! It ends only when the kernel says that no child is left, or a kill has used up its time; it never waits for output.

use std::{
    collections::HashSet,
    fs::File,
    io::{Read as _, Write as _},
    os::fd::AsFd as _,
    time::Duration,
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signalfd::SignalFd,
    unistd::{Pid, getpid},
};
use rustix::{
    io::Errno,
    process::{WaitOptions, wait},
};

use crate::clock::since_boot;
use crate::{
    StopPolicy,
    cgroup::ControlGroup,
    init::InitProcess,
    shim::WatchTarget,
    table::ProcessEntry,
    walk,
    wire::{self, EndCause, FinalReport, ShimCommand, ShimMessage, ShimOrder},
};

/// Longest sleep between two checks of the clock: `poll` does not count the time that the machine sleeps.
const MAX_SLEEP: Duration = Duration::from_millis(500);
/// Time limit for the daemon to drain the output after the leader's exit; ample for a healthy daemon.
const DRAIN_LIMIT: Duration = Duration::from_secs(3);
/// Grace period for descendants after the leader exits; usually they are gone already.
const EXIT_GRACE: Duration = Duration::from_millis(5);
/// Pause between two passes of a kill if no child ended meanwhile.
const KILL_PAUSE: Duration = Duration::from_millis(5);
/// After this time a process that does not die is reported instead.
const KILL_LIMIT: Duration = Duration::from_secs(4);

/// A program under watch.
pub(crate) struct ProgramWatch {
    leader: Option<Pid>,
    init: Option<InitProcess>,
    group: Option<ControlGroup>,
    leader_exit: Option<EndCause>,
    signals: SignalFd,
    feed: Option<StdinFeed>,
    deadline: Duration,
    grace: Duration,
    stop_policy: StopPolicy,
    phase: WatchPhase,
    /// Whether the program was asked to exit.
    is_stop_sent: bool,
}

#[derive(Clone, Copy)]
enum WatchPhase {
    Running,
    /// The program was asked to exit, or the leader is gone and the output is drained: the rest is killed.
    Ending {
        cause: EndCause,
        kill_at: Duration,
    },
}

enum ChildrenLeft {
    Some,
    None,
}

/// The result of reading from the daemon, except nothing.
enum DaemonRequest {
    Nothing,
    Stop,
    Kill,
}

impl ProgramWatch {
    pub(crate) fn new(under: WatchTarget, order: ShimOrder) -> Self {
        let WatchTarget { leader, group, signals } = under;
        Self {
            leader: leader.pid,
            init: leader.init,
            group,
            leader_exit: None,
            signals,
            feed: StdinFeed::new(leader.stdin, order.stdin),
            deadline: order.deadline,
            grace: order.grace,
            stop_policy: order.farewell,
            phase: WatchPhase::Running,
            is_stop_sent: false,
        }
    }

    /// Watches until no descendant of the leader is alive.
    pub(crate) fn watch_until_gone(mut self, line: &File) -> FinalReport {
        loop {
            if matches!(self.reap(), ChildrenLeft::None) {
                // The group may contain processes that do not descend from the leader.
                return if self.is_group_empty() {
                    self.final_report(HashSet::new(), Vec::new())
                } else {
                    self.kill_rest()
                };
            }
            self.note_leader_exit(line);
            let now = since_boot();
            let due = match self.phase {
                WatchPhase::Running => self.deadline.saturating_sub(self.grace),
                WatchPhase::Ending { kill_at, .. } => kill_at,
            };
            match (now >= due, self.phase) {
                (_, WatchPhase::Ending { .. }) if self.has_exited_unasked() => return self.kill_rest(),
                (true, WatchPhase::Running) => self.begin_ending(EndCause::Deadline, self.deadline),
                (true, WatchPhase::Ending { .. }) => return self.kill_rest(),
                (false, _) => match self.wait_for_command(line, due.saturating_sub(now).min(MAX_SLEEP)) {
                    DaemonRequest::Nothing => {}
                    DaemonRequest::Stop => self.request_stop(now),
                    DaemonRequest::Kill => return self.kill_rest(),
                },
            }
        }
    }

    fn request_stop(&mut self, now: Duration) {
        if matches!(self.phase, WatchPhase::Running) {
            self.begin_ending(EndCause::Asked, self.deadline.min(now + self.grace));
        }
    }

    /// Asks the program to exit; the leader is alive, or a zombie whose id is not reused.
    fn begin_ending(&mut self, cause: EndCause, kill_at: Duration) {
        self.phase = WatchPhase::Ending { cause, kill_at };
        self.is_stop_sent = true;
        match (self.stop_policy, self.init_pid()) {
            (StopPolicy::Interrupt, _) => walk::interrupt(self.leader),
            (StopPolicy::Terminate, None) => walk::terminate(self.leader, None),
            // Init reaps the leader, so its group id may have been reused.
            (StopPolicy::Terminate, Some(init)) => walk::terminate(None, Some(init)),
        }
    }

    /// Whether a leader that alone was asked to exit is gone: it has ended what it wanted to end, and the rest was not
    /// asked.
    fn has_exited_unasked(&self) -> bool {
        self.stop_policy == StopPolicy::Interrupt && self.is_stop_sent && self.leader_exit.is_some()
    }

    fn init_pid(&self) -> Option<Pid> {
        self.init.as_ref().map(|init| init.pid)
    }

    fn is_group_empty(&self) -> bool {
        self.group.as_ref().is_none_or(ControlGroup::is_empty)
    }

    /// Reacts to a leader's exit on its own; others may still be writing their last lines.
    fn note_leader_exit(&mut self, line: &File) {
        if let (WatchPhase::Running, Some(cause)) = (self.phase, self.leader_exit) {
            self.phase = WatchPhase::Ending { cause, kill_at: since_boot() + DRAIN_LIMIT };
            // A closed line is noticed when it is read.
            let _ = wire::send_message(line, &ShimMessage::LeaderGone);
        }
    }

    /// Whether nothing is left of a program whose leader has exited on its own, given the moment that the kernel takes
    /// to end a namespace with its first process.
    fn is_everything_gone(&mut self) -> bool {
        let give_up = since_boot() + if self.leader_exit.is_some() { EXIT_GRACE } else { Duration::ZERO };
        loop {
            if matches!(self.reap(), ChildrenLeft::None) {
                return self.is_group_empty();
            }
            let left = give_up.saturating_sub(since_boot());
            if left.is_zero() {
                return false;
            }
            self.wait_for_child(left);
        }
    }

    fn kill_rest(mut self) -> FinalReport {
        if self.is_everything_gone() {
            return self.final_report(HashSet::new(), Vec::new());
        }
        let id = |entry: &ProcessEntry| (entry.pid, entry.started);
        // Before the kill: processes that die at once cannot be counted after it.
        let mut killed: HashSet<_> = walk::list_descendants().iter().map(id).collect();
        let give_up = since_boot() + KILL_LIMIT;
        loop {
            if let Some(group) = &self.group {
                group.kill();
            }
            let left = walk::kill_descendants();
            killed.extend(left.iter().map(id));
            if matches!(self.reap(), ChildrenLeft::None) && self.is_group_empty() {
                return self.final_report(killed, Vec::new());
            }
            if since_boot() >= give_up {
                return self.final_report(killed, self.surviving_pids(&left));
            }
            self.wait_for_child(KILL_PAUSE);
        }
    }

    /// Returns the ids of the processes that a kill has left. If it could not see what the kernel says exists, it names
    /// the shim itself: the daemon searches by mark as soon as there is one id.
    fn surviving_pids(&self, survivors: &[ProcessEntry]) -> Vec<i32> {
        let members = self.group.as_ref().map(ControlGroup::members).unwrap_or_default();
        let pids: Vec<i32> = survivors.iter().map(|entry| entry.pid).chain(members).collect();
        if pids.is_empty() { vec![getpid().as_raw()] } else { pids }
    }

    fn final_report(&self, mut killed: HashSet<(i32, u64)>, still_alive: Vec<i32>) -> FinalReport {
        let own = [self.leader, self.init_pid()];
        killed.retain(|(pid, _)| !own.contains(&Some(Pid::from_raw(*pid))));
        if let Some(group) = &self.group {
            group.remove();
        }
        let cause = match self.phase {
            WatchPhase::Ending { cause, .. } => cause,
            WatchPhase::Running => self.leader_exit.unwrap_or(EndCause::Asked),
        };
        FinalReport { cause, survivors: u32::try_from(killed.len()).unwrap_or(u32::MAX), still_alive }
    }

    /// Reaps all children that ended, including orphans from any depth.
    fn reap(&mut self) -> ChildrenLeft {
        self.read_init_message();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid.as_raw_pid()) == self.child().map(Pid::as_raw) => {
                    // The last message of an init that is gone is still in the socket.
                    self.read_init_message();
                    // Once reaped, its process id may be reused.
                    self.leader_exit.get_or_insert(EndCause::from_status(status));
                }
                Ok(Some(_)) => {}
                Err(Errno::CHILD) => return ChildrenLeft::None,
                Ok(None) | Err(_) => return ChildrenLeft::Some,
            }
        }
    }

    /// The child whose end is the leader's, unless its init has already reported that.
    fn child(&self) -> Option<Pid> {
        self.init_pid().or(self.leader)
    }

    fn read_init_message(&mut self) {
        if self.leader_exit.is_none() {
            self.leader_exit = self.init.as_ref().and_then(InitProcess::leader_exit);
        }
    }

    fn wait_for_command(&mut self, line: &File, timeout: Duration) -> DaemonRequest {
        let input = PollFlags::POLLIN;
        let mut fds = vec![PollFd::new(line.as_fd(), input), PollFd::new(self.signals.as_fd(), input)];
        fds.extend(self.feed.as_ref().map(|feed| PollFd::new(feed.pipe.as_fd(), PollFlags::POLLOUT)));
        // After the leader's exit only the end of the socket is left, which would make `poll` return continuously.
        let init = self.init.as_ref().filter(|_| self.leader_exit.is_none());
        fds.extend(init.map(|init| PollFd::new(init.messages().as_fd(), input)));
        let _ = poll(&mut fds, poll_timeout(timeout));
        let is_ready = |index: usize| fds.get(index).is_some_and(|fd| fd.any() == Some(true));
        let line_ready = is_ready(0);
        let feed_ready = self.feed.is_some() && is_ready(2);
        self.drain_signals();
        if feed_ready {
            self.feed = self.feed.take().and_then(StdinFeed::write_some);
        }
        if line_ready { read_command(line) } else { DaemonRequest::Nothing }
    }

    fn wait_for_child(&self, timeout: Duration) {
        let _ = poll(&mut [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)], poll_timeout(timeout));
        self.drain_signals();
    }

    fn drain_signals(&self) {
        while let Ok(Some(_)) = self.signals.read_signal() {}
    }
}

/// Reads one command; the end of the line, or a read error, means that the daemon is gone.
fn read_command(mut line: &File) -> DaemonRequest {
    let mut byte = [0];
    match line.read(&mut byte) {
        Ok(1) if ShimCommand::from_byte(byte[0]) == ShimCommand::Stop => DaemonRequest::Stop,
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => DaemonRequest::Nothing,
        _ => DaemonRequest::Kill,
    }
}

/// Rounds up, so that the last slice does not spin.
fn poll_timeout(timeout: Duration) -> PollTimeout {
    PollTimeout::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX)
}

/// The bytes that the program has not yet read from its standard input.
struct StdinFeed {
    pipe: File,
    bytes: Vec<u8>,
    written: usize,
}

impl StdinFeed {
    /// Returns `None` if there is nothing to write, which closes the input at once.
    fn new(pipe: File, bytes: Vec<u8>) -> Option<Self> {
        (!bytes.is_empty()).then_some(Self { pipe, bytes, written: 0 })
    }

    /// Writes what fits; `None` when all is written or the program has closed its input.
    fn write_some(mut self) -> Option<Self> {
        match self.pipe.write(&self.bytes[self.written..]) {
            Ok(count) => self.written += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Some(self),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Some(self),
            Err(_) => return None,
        }
        (self.written < self.bytes.len()).then_some(self)
    }
}
