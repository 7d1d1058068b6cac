//! Who drives a run that several machines may drive: the driver that a commit names, and who may take over from it.
//!
//! A claim only announces early who continues. What keeps two drivers from writing to one branch is that a push must be
//! a fast-forward, which the remote enforces.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use protocol::branch::BranchState;

use crate::message::{MalformedValue, RunnerCommit};
use crate::tree::select::LeafSelection;

/// Longest word of a driver, in bytes.
const MAX_WORD_BYTES: usize = 200;
/// How long a tip must have been unchanged, on top of the longest iteration, before another driver takes over.
const GRACE: SignedDuration = SignedDuration::from_mins(5);

/// The driver of a run: `<engine>/<job>.<attempt>@<host> nonce=<hexadecimal>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The engine that started it, such as `slurm`; `host` if no engine did.
    pub engine: String,
    /// The engine's id of the job.
    pub job: String,
    /// How often the engine has started the job before.
    pub attempt: u32,
    /// Name of the machine.
    pub host: String,
    /// A value unique to this driver, in hexadecimal.
    pub nonce: String,
}

impl Driver {
    /// Returns a driver whose words can be written: characters that a word cannot hold become `-`.
    pub fn new(engine: &str, job: &str, attempt: u32, host: &str, nonce: &str) -> Self {
        let word = |text: &str| {
            let clean = text.chars().map(|c| if is_word_char(c) { c } else { '-' }).take(MAX_WORD_BYTES);
            let clean: String = clean.collect();
            if clean.is_empty() { "unknown".to_owned() } else { clean }
        };
        Self { engine: word(engine), job: word(job), attempt, host: word(host), nonce: nonce.to_owned() }
    }

    /// Returns the name of the job and the attempt, as part of a reference.
    pub fn name(&self) -> String {
        format!("{}.{}", self.job, self.attempt)
    }

    /// Returns who the driver is and where it runs, for people.
    pub fn location(&self) -> String {
        let Self { engine, job, attempt, host, nonce: _ } = self;
        format!("{engine}/{job}.{attempt}@{host}")
    }

    fn is_same_job(&self, other: &Self) -> bool {
        (&self.engine, &self.job) == (&other.engine, &other.job)
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} nonce={}", self.location(), self.nonce)
    }
}

impl FromStr for Driver {
    type Err = MalformedValue;

    fn from_str(text: &str) -> Result<Self, MalformedValue> {
        const FORM: MalformedValue = MalformedValue::new("`<engine>/<job>.<attempt>@<host> nonce=<hexadecimal>`");
        let (place, nonce) = text.split_once(" nonce=").ok_or(FORM)?;
        let (engine, rest) = place.split_once('/').ok_or(FORM)?;
        let (rest, host) = rest.split_once('@').ok_or(FORM)?;
        let (job, attempt) = rest.rsplit_once('.').ok_or(FORM)?;
        let are_words = [engine, job, host].iter().all(|word| is_word(word));
        let is_nonce = !nonce.is_empty() && nonce.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number: u32 = attempt.parse().map_err(|_| FORM)?;
        if !are_words || !is_nonce || number.to_string() != attempt {
            return Err(FORM);
        }
        let owned = |word: &str| word.to_owned();
        Ok(Self { engine: owned(engine), job: owned(job), attempt: number, host: owned(host), nonce: owned(nonce) })
    }
}

fn is_word(text: &str) -> bool {
    (1..=MAX_WORD_BYTES).contains(&text.len()) && text.chars().all(is_word_char)
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// Who has claimed a run, according to its branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimState {
    /// The run is unclaimed, or its last driver has released it.
    Unclaimed,
    /// This driver, which has not said that it has ended.
    By(Driver),
}

impl ClaimState {
    /// Determines the claim from the messages of a branch, newest first. Later commits by people do not affect it.
    pub fn from_messages<'m>(messages: impl IntoIterator<Item = &'m [u8]>) -> Self {
        let text = |message| str::from_utf8(message).ok();
        let mut commits = messages.into_iter().filter_map(|message| RunnerCommit::parse(text(message)?).ok());
        commits.find_map(Self::from_commit).unwrap_or(Self::Unclaimed)
    }

    /// Returns the claim according to one commit; `None` if older commits decide.
    pub fn from_commit(commit: RunnerCommit) -> Option<Self> {
        match commit {
            RunnerCommit::Release(_) => Some(Self::Unclaimed),
            RunnerCommit::Claim(milestone) | RunnerCommit::Start(milestone) => {
                Some(milestone.driver.map_or(Self::Unclaimed, Self::By))
            }
            RunnerCommit::Iteration(_) | RunnerCommit::Baseline(..) | RunnerCommit::Resume(_) => None,
        }
    }
}

/// Returns the progress of a run, from the tree at the tip of its branch and the claim in its commits. There may be no
/// claim, if no driver has ever had the run or some commits are missing.
pub fn branch_state(next: &LeafSelection<'_>, claimed: Option<&ClaimState>) -> BranchState {
    match (next, claimed) {
        (LeafSelection::Complete, _) => BranchState::Completed,
        (_, Some(ClaimState::By(_))) => BranchState::Claimed,
        (LeafSelection::Exhausted(_), _) => BranchState::Stuck,
        (LeafSelection::Open(_), Some(ClaimState::Unclaimed)) => BranchState::Released,
        (LeafSelection::Open(_), None) => BranchState::Open,
    }
}

/// What a driver states before it claims a run.
#[derive(Debug, Clone, Copy)]
pub struct TakeoverRequest<'a> {
    /// The driver that wants to take over.
    pub taker: &'a Driver,
    /// How long the tip has been unchanged, by the taker's own monotonic clock.
    pub idle_for: SignedDuration,
    /// Duration of the run's longest possible iteration.
    pub longest_iteration: SignedDuration,
    /// Whether a person has said that the previous driver is gone.
    pub is_forced: bool,
}

/// Whether a run may be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeoverDecision {
    /// At once.
    Now,
    /// Once the tip has been unchanged for this much longer.
    After(SignedDuration),
    /// Never: the same job has been started again since.
    Superseded,
}

/// Decides whether a run may be taken over.
pub fn decide_takeover(claimed: &ClaimState, taking: &TakeoverRequest<'_>) -> TakeoverDecision {
    let ClaimState::By(holder) = claimed else { return TakeoverDecision::Now };
    if holder.is_same_job(taking.taker) && holder.attempt > taking.taker.attempt {
        return TakeoverDecision::Superseded;
    }
    if taking.is_forced || holder.is_same_job(taking.taker) && holder.attempt < taking.taker.attempt {
        return TakeoverDecision::Now;
    }
    let left = taking.longest_iteration.saturating_add(GRACE).saturating_sub(taking.idle_for);
    if left.is_positive() { TakeoverDecision::After(left) } else { TakeoverDecision::Now }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(job: &str, attempt: u32) -> Driver {
        Driver::new("slurm", job, attempt, "n1", "0a1b")
    }

    fn request(taker: &Driver, minutes: i64) -> TakeoverRequest<'_> {
        let unmoved = SignedDuration::from_mins(minutes);
        TakeoverRequest { taker, idle_for: unmoved, longest_iteration: SignedDuration::from_mins(30), is_forced: false }
    }

    #[test]
    fn a_driver_is_read_as_it_is_written() {
        for driver in [driver("4711_3", 2), Driver::new("host", "a b/c@d", 0, "", "ff")] {
            assert_eq!(driver.to_string().parse(), Ok(driver.clone()), "{driver}");
        }
        assert_eq!(driver("4711", 2).to_string(), "slurm/4711.2@n1 nonce=0a1b");
        for text in
            ["", "slurm/1.0@n1", "slurm/1@n1 nonce=0", "s/1.00@n nonce=0", "s/1.0@n nonce=X", "s /1.0@n nonce=0"]
        {
            assert!(text.parse::<Driver>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_run_is_taken_over_at_once_by_the_next_attempt_after_a_release_or_when_asked() {
        let first = driver("1", 0);
        let second = driver("1", 1);
        let other = driver("2", 0);
        let held = ClaimState::By(first.clone());
        assert_eq!(decide_takeover(&ClaimState::Unclaimed, &request(&other, 0)), TakeoverDecision::Now);
        assert_eq!(decide_takeover(&held, &request(&second, 0)), TakeoverDecision::Now);
        assert_eq!(
            decide_takeover(&held, &TakeoverRequest { is_forced: true, ..request(&other, 0) }),
            TakeoverDecision::Now
        );
        assert_eq!(decide_takeover(&ClaimState::By(second), &request(&first, 99)), TakeoverDecision::Superseded);
    }

    #[test]
    fn others_wait_until_the_tip_has_stood_still_longer_than_an_iteration() {
        let first = driver("1", 0);
        let other = driver("2", 7);
        for (taker, minutes, expected) in [
            (&other, 0, TakeoverDecision::After(SignedDuration::from_mins(35))),
            (&other, 34, TakeoverDecision::After(SignedDuration::from_mins(1))),
            (&other, 35, TakeoverDecision::Now),
            (&first, 1, TakeoverDecision::After(SignedDuration::from_mins(34))),
        ] {
            assert_eq!(
                decide_takeover(&ClaimState::By(first.clone()), &request(taker, minutes)),
                expected,
                "{minutes}"
            );
        }
    }
}
