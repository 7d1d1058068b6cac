//! The shim's watch over a running program: deadline, commands, and the kill that leaves nothing.
//!
//! It ends only when the kernel says that no child is left, or when a kill has had its time; it never waits for output.

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
    Farewell,
    cgroup::Group,
    init::Init,
    shim::Under,
    table::ProcessEntry,
    walk,
    wire::{self, Cause, Command, Order, Over, Word},
};

/// Longest sleep between two looks at the clock: `poll` does not count a machine's sleep.
const SLICE: Duration = Duration::from_millis(500);
/// Time that the daemon has to drain the output after the leader's exit; more than it takes if it is well.
const DRAIN_LIMIT: Duration = Duration::from_secs(3);
/// Time that the rest of a program has whose leader has ended by itself: mostly it is gone before anybody has looked.
const GOING_LIMIT: Duration = Duration::from_millis(5);
/// Pause between two passes of a kill if no child ended meanwhile.
const KILL_PASS: Duration = Duration::from_millis(5);
/// After this a process that does not die is reported instead.
const KILL_LIMIT: Duration = Duration::from_secs(4);

/// A program under watch.
pub(crate) struct Watch {
    leader: Option<Pid>,
    init: Option<Init>,
    group: Option<Group>,
    leader_exit: Option<Cause>,
    signals: SignalFd,
    feed: Option<Feed>,
    deadline: Duration,
    grace: Duration,
    farewell: Farewell,
    phase: Phase,
    /// Whether it was asked to end.
    is_asked: bool,
}

#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// It was asked to end, or the leader is gone and the output is drained: what is left then is killed.
    Ending {
        cause: Cause,
        kill_at: Duration,
    },
}

enum Children {
    Some,
    None,
}

/// What the daemon says, besides nothing.
enum Heard {
    Nothing,
    Stop,
    Kill,
}

impl Watch {
    pub(crate) fn new(under: Under, order: Order) -> Self {
        let Under { leader, group, signals } = under;
        Self {
            leader: leader.pid,
            init: leader.init,
            group,
            leader_exit: None,
            signals,
            feed: Feed::new(leader.feed, order.stdin),
            deadline: order.deadline,
            grace: order.grace,
            farewell: order.farewell,
            phase: Phase::Running,
            is_asked: false,
        }
    }

    /// Watches until nothing that descends from the leader is alive.
    pub(crate) fn until_over(mut self, line: &File) -> Over {
        loop {
            if matches!(self.reap(), Children::None) {
                // Others may have come into the group that do not descend from the leader.
                return if self.is_group_empty() { self.over(HashSet::new(), Vec::new()) } else { self.kill_rest() };
            }
            self.see_leader_exit(line);
            let now = since_boot();
            let due = match self.phase {
                Phase::Running => self.deadline.saturating_sub(self.grace),
                Phase::Ending { kill_at, .. } => kill_at,
            };
            match (now >= due, self.phase) {
                (_, Phase::Ending { .. }) if self.has_left_unasked() => return self.kill_rest(),
                (true, Phase::Running) => self.end(Cause::Deadline, self.deadline),
                (true, Phase::Ending { .. }) => return self.kill_rest(),
                (false, _) => match self.wait(line, due.saturating_sub(now).min(SLICE)) {
                    Heard::Nothing => {}
                    Heard::Stop => self.stop(now),
                    Heard::Kill => return self.kill_rest(),
                },
            }
        }
    }

    fn stop(&mut self, now: Duration) {
        if matches!(self.phase, Phase::Running) {
            self.end(Cause::Asked, self.deadline.min(now + self.grace));
        }
    }

    /// Asks it to end; the leader is alive, or a zombie whose number is still its own.
    fn end(&mut self, cause: Cause, kill_at: Duration) {
        self.phase = Phase::Ending { cause, kill_at };
        self.is_asked = true;
        match (self.farewell, self.init_pid()) {
            (Farewell::Interrupt, _) => walk::interrupt(self.leader),
            (Farewell::Terminate, None) => walk::terminate(self.leader, None),
            // The leader is reaped by init, so the number of its group may be another's.
            (Farewell::Terminate, Some(init)) => walk::terminate(None, Some(init)),
        }
    }

    /// A leader that was asked alone is gone: it has ended what it wanted to end, and the rest knows of nothing.
    fn has_left_unasked(&self) -> bool {
        self.farewell == Farewell::Interrupt && self.is_asked && self.leader_exit.is_some()
    }

    fn init_pid(&self) -> Option<Pid> {
        self.init.as_ref().map(|init| init.pid)
    }

    fn is_group_empty(&self) -> bool {
        self.group.as_ref().is_none_or(Group::is_empty)
    }

    /// A leader that ends by itself takes its time with it; others may still be writing their last lines.
    fn see_leader_exit(&mut self, line: &File) {
        if let (Phase::Running, Some(cause)) = (self.phase, self.leader_exit) {
            self.phase = Phase::Ending { cause, kill_at: since_boot() + DRAIN_LIMIT };
            // A daemon that is gone is heard, too.
            let _ = wire::say(line, &Word::LeaderGone);
        }
    }

    /// Tells whether nothing is left of a program whose leader has ended by itself, in the moment that the kernel takes to
    /// end a namespace with its first process.
    fn is_gone(&mut self) -> bool {
        let give_up = since_boot() + if self.leader_exit.is_some() { GOING_LIMIT } else { Duration::ZERO };
        loop {
            if matches!(self.reap(), Children::None) {
                return self.is_group_empty();
            }
            let left = give_up.saturating_sub(since_boot());
            if left.is_zero() {
                return false;
            }
            self.wait_for_child(left);
        }
    }

    fn kill_rest(mut self) -> Over {
        if self.is_gone() {
            return self.over(HashSet::new(), Vec::new());
        }
        let id = |entry: &ProcessEntry| (entry.pid, entry.started);
        // Before the kill: what dies at once cannot be counted after it.
        let mut killed: HashSet<_> = walk::look().iter().map(id).collect();
        let give_up = since_boot() + KILL_LIMIT;
        loop {
            if let Some(group) = &self.group {
                group.kill();
            }
            let left = walk::kill();
            killed.extend(left.iter().map(id));
            if matches!(self.reap(), Children::None) && self.is_group_empty() {
                return self.over(killed, Vec::new());
            }
            if since_boot() >= give_up {
                return self.over(killed, self.still_alive(&left));
            }
            self.wait_for_child(KILL_PASS);
        }
    }

    /// Names what a kill has left. Where it could not see what the kernel says is there, it names the shim itself: whoever
    /// hears of one number looks by the mark.
    fn still_alive(&self, left: &[ProcessEntry]) -> Vec<i32> {
        let members = self.group.as_ref().map(Group::members).unwrap_or_default();
        let seen: Vec<i32> = left.iter().map(|entry| entry.pid).chain(members).collect();
        if seen.is_empty() { vec![getpid().as_raw()] } else { seen }
    }

    fn over(&self, mut killed: HashSet<(i32, u64)>, still_alive: Vec<i32>) -> Over {
        let own = [self.leader, self.init_pid()];
        killed.retain(|(pid, _)| !own.contains(&Some(Pid::from_raw(*pid))));
        if let Some(group) = &self.group {
            group.remove();
        }
        let cause = match self.phase {
            Phase::Ending { cause, .. } => cause,
            Phase::Running => self.leader_exit.unwrap_or(Cause::Asked),
        };
        Over { cause, survivors: u32::try_from(killed.len()).unwrap_or(u32::MAX), still_alive }
    }

    /// Collects all children that ended, orphans from any depth included.
    fn reap(&mut self) -> Children {
        self.hear_init();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid.as_raw_pid()) == self.child().map(Pid::as_raw) => {
                    // An init that is gone has said what it knew.
                    self.hear_init();
                    // Once reaped, its number may come back as another's.
                    self.leader_exit.get_or_insert(Cause::of(status));
                }
                Ok(Some(_)) => {}
                Err(Errno::CHILD) => return Children::None,
                Ok(None) | Err(_) => return Children::Some,
            }
        }
    }

    /// The child whose end is the leader's, if not its init has told of that before.
    fn child(&self) -> Option<Pid> {
        self.init_pid().or(self.leader)
    }

    fn hear_init(&mut self) {
        if self.leader_exit.is_none() {
            self.leader_exit = self.init.as_ref().and_then(Init::leader_exit);
        }
    }

    fn wait(&mut self, line: &File, timeout: Duration) -> Heard {
        let input = PollFlags::POLLIN;
        let mut fds = vec![PollFd::new(line.as_fd(), input), PollFd::new(self.signals.as_fd(), input)];
        fds.extend(self.feed.as_ref().map(|feed| PollFd::new(feed.pipe.as_fd(), PollFlags::POLLOUT)));
        // Once the exit is known, all that is left to hear is the end, which would be heard without pause.
        let init = self.init.as_ref().filter(|_| self.leader_exit.is_none());
        fds.extend(init.map(|init| PollFd::new(init.words().as_fd(), input)));
        let _ = poll(&mut fds, to_poll(timeout));
        let is_ready = |index: usize| fds.get(index).is_some_and(|fd| fd.any() == Some(true));
        let (line_ready, feed_ready) = (is_ready(0), self.feed.is_some() && is_ready(2));
        self.drain_signals();
        if feed_ready {
            self.feed = self.feed.take().and_then(Feed::write_some);
        }
        if line_ready { hear(line) } else { Heard::Nothing }
    }

    fn wait_for_child(&self, timeout: Duration) {
        let _ = poll(&mut [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)], to_poll(timeout));
        self.drain_signals();
    }

    fn drain_signals(&self) {
        while let Ok(Some(_)) = self.signals.read_signal() {}
    }
}

/// Reads one command; the end of the line, or a failure to read it, means that the daemon is gone.
fn hear(mut line: &File) -> Heard {
    let mut byte = [0];
    match line.read(&mut byte) {
        Ok(1) if Command::from_byte(byte[0]) == Command::Stop => Heard::Stop,
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Heard::Nothing,
        _ => Heard::Kill,
    }
}

/// Rounded up, so that the last slice does not spin.
fn to_poll(timeout: Duration) -> PollTimeout {
    PollTimeout::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX)
}

/// The bytes that the program has not yet taken from its standard input.
struct Feed {
    pipe: File,
    bytes: Vec<u8>,
    written: usize,
}

impl Feed {
    /// Nothing to write is an input that ends at once.
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
