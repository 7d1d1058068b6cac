//! Lines sorted into failures that a runner reports and all the rest, in one pass.

use std::mem::take;

use super::failures::{Failure, Failures};
use super::fold::{Key, ShownLine};
use super::runner::{self, Next, Runner, Sign};
use super::shortlist::Shortlist;

/// An output that is being sorted.
#[derive(Debug)]
pub(super) struct Sorter {
    open: Option<Open>,
    taken: Taken,
    /// What runners report.
    pub(super) failures: Failures,
    /// Everything else.
    pub(super) rest: Shortlist,
}

/// A failure that may go on.
#[derive(Debug)]
struct Open {
    failure: Failure,
    /// Lines that say nothing about it and were left out.
    noise: usize,
    is_proven: bool,
}

/// What was taken out of the rest since its last line.
#[derive(Debug, Default)]
struct Taken {
    lines: usize,
    failures: usize,
}

impl Taken {
    fn mark(&self) -> ShownLine {
        let count = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let text = format!("[… {} of {} …]", count(self.lines, "line"), count(self.failures, "failure"));
        ShownLine::mark(text, self.lines)
    }
}

impl Sorter {
    /// Sorts all lines of an output of which at most `limit` bytes are kept.
    pub(super) fn of(lines: impl Iterator<Item = String>, limit: usize) -> Self {
        let (failures, rest) = (Failures::new(limit), Shortlist::new(limit));
        let mut sorter = Self { open: None, taken: Taken::default(), failures, rest };
        lines.for_each(|line| sorter.take(line));
        sorter.close();
        sorter.mark();
        sorter.failures.settle();
        sorter
    }

    fn take(&mut self, line: String) {
        match self.open.as_ref().map(|open| (open.failure.runner.next)(&line)) {
            Some(Next::Over) => self.close(),
            Some(Next::Last) => {
                self.push(line);
                return self.close();
            }
            Some(Next::Continues) | None => {}
        }
        match runner::read(&line, self.open.as_ref().map(|open| open.failure.runner.level)) {
            Some((runner, Sign::Begins(name))) if !self.is_open(runner, Some(name)) => {
                let failure = Failure::new(runner, name, line.clone());
                self.close();
                self.open = Some(Open { failure, noise: 0, is_proven: (runner.proves)(&line) });
            }
            Some((runner, sign)) if self.open.is_none() => self.leave_known(runner, sign, &line),
            Some((runner, sign @ (Sign::Routine | Sign::Ends))) if self.is_open(runner, None) => {
                self.close();
                self.leave_known(runner, sign, &line);
            }
            _ if self.open.is_some() => self.push(line),
            _ => self.leave(line),
        }
    }

    fn is_open(&self, runner: &Runner, name: Option<&str>) -> bool {
        let open = self.open.as_ref().map(|open| &open.failure);
        open.is_some_and(|open| open.runner.name == runner.name && name.is_none_or(|name| open.name == name))
    }

    fn push(&mut self, line: String) {
        let Some(open) = &mut self.open else { return };
        open.is_proven |= (open.failure.runner.proves)(&line);
        if (open.failure.runner.is_noise)(&line) {
            open.noise += 1;
        } else if open.failure.is_full() {
            self.close();
            self.leave(line);
        } else {
            open.failure.lines.push(line);
        }
    }

    /// Puts a line to the rest of which a runner says no more than a name or nothing.
    fn leave_known(&mut self, runner: &'static Runner, sign: Sign<'_>, line: &str) {
        if let Sign::Names(name) | Sign::Sums(name) = sign {
            self.failures.add_name(runner.name, name);
        }
        let key = match sign {
            Sign::Names(_) | Sign::Routine => Key::Kind(runner.name),
            Sign::Sums(_) => Key::Own,
            Sign::Begins(_) | Sign::Ends => Key::of(line),
        };
        self.mark();
        self.rest.take(ShownLine::new(line.to_owned()), key);
    }

    /// Puts a line to the rest.
    fn leave(&mut self, line: String) {
        self.mark();
        let key = Key::of(&line);
        self.rest.take(ShownLine::new(line), key);
    }

    /// Marks in the rest what was taken out of it.
    fn mark(&mut self) {
        if self.taken.lines > 0 {
            self.rest.take(take(&mut self.taken).mark(), Key::Own);
        }
    }

    /// Ends the open failure: one that was not proven was none.
    fn close(&mut self) {
        let Some(Open { mut failure, noise, is_proven }) = self.open.take() else { return };
        if !is_proven {
            return failure.lines.into_iter().for_each(|line| self.leave(line));
        }
        self.taken.lines += failure.lines.len() + noise;
        self.taken.failures += 1;
        failure.trim();
        self.failures.add(failure);
    }
}
