//! Chooses the kind of agent for a session while services are unavailable.
//!
//! A kind is just a name here. The caller keeps the facts; `choose_kind` is the rule.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::iteration::session_failure::is_unexplained;
use crate::run::wait::{WaitPeriod, is_plausible_end};
use crate::verdict::Verdict;

/// Number of times that an agent is tried again although no rule knows why it fails: for six hours.
const MAX_UNEXPLAINED: u32 = 9;

/// A kind of agent whose service was unavailable when last tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceOutage {
    /// Name of the kind.
    pub kind: String,
    /// What its agent reported, in one line.
    pub why: String,
    /// The wait until it is tried again.
    pub wait: WaitPeriod,
    /// Number of consecutive times it was unavailable.
    pub times: u32,
}

impl ServiceOutage {
    /// Whether the agent has failed for so long, for a reason that no rule knows, that it is no outage.
    pub fn is_failure(&self) -> bool {
        self.times > MAX_UNEXPLAINED && is_unexplained(&self.why)
    }

    /// Lets the service be tried again at once; the number of outages is kept.
    pub fn retry_now(&mut self, now: Timestamp) {
        self.wait = WaitPeriod { since: now, until: now };
    }
}

/// The choice for the next session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KindChoice<'a> {
    /// Run this kind; `None` if no kinds are configured.
    Ask(Option<&'a str>),
    /// Wait, because every kind is unavailable; the first of them is tried again when the wait is over.
    Wait(WaitPeriod, Vec<&'a ServiceOutage>),
}

/// Returns the first of `kinds` whose service is not known to be unavailable, so that an earlier kind is used again as
/// soon as it is due for another try.
pub fn choose_kind<'a>(kinds: &'a [String], outages: &'a [ServiceOutage], now: Timestamp) -> KindChoice<'a> {
    let lasting = |kind: &String| outages.iter().find(|outage| outage.kind == *kind && !outage.wait.is_over(now));
    let mut out: Vec<&ServiceOutage> = Vec::new();
    for kind in kinds {
        match lasting(kind) {
            None => return KindChoice::Ask(Some(kind)),
            Some(outage) => out.push(outage),
        }
    }
    match out.iter().map(|outage| outage.wait).min_by_key(|wait| wait.until) {
        Some(wait) => KindChoice::Wait(wait, out),
        None => KindChoice::Ask(None),
    }
}

/// Returns what is known about the services after a session of `kind`: its outage is added or counted, or removed if it
/// answered. A session that was cut short or failed changes nothing.
pub fn outages_after(outages: &[ServiceOutage], kind: &str, verdict: &Verdict, now: Timestamp) -> Vec<ServiceOutage> {
    let (own, mut others): (Vec<ServiceOutage>, Vec<ServiceOutage>) =
        outages.iter().cloned().partition(|outage| outage.kind == kind);
    match verdict {
        Verdict::Unavailable { why, until } => {
            let times = own.first().map_or(0, |outage| outage.times);
            others.push(ServiceOutage {
                kind: kind.to_owned(),
                why: explain_outage(why, *until, now),
                wait: WaitPeriod::for_service(now, *until, times),
                times: times.saturating_add(1),
            });
        }
        Verdict::Fault { .. }
        | Verdict::Timeout { .. }
        | Verdict::Misconfigured { .. }
        | Verdict::Interrupted { .. } => others.extend(own),
        Verdict::Accepted
        | Verdict::RedGuard
        | Verdict::Rejected { .. }
        | Verdict::Pending
        | Verdict::Retry
        | Verdict::Narrowed
        | Verdict::Decomposed
        | Verdict::Broken(_) => {}
    }
    others
}

/// Returns what is known about the services after an iteration in which `worker` has answered and `reviewer` was run
/// and made the verdict.
pub fn outages_after_review(
    outages: &[ServiceOutage],
    worker: &str,
    reviewer: &str,
    verdict: &Verdict,
    now: Timestamp,
) -> Vec<ServiceOutage> {
    let others: Vec<ServiceOutage> = outages.iter().filter(|outage| outage.kind != worker).cloned().collect();
    outages_after(&others, reviewer, verdict, now)
}

/// Returns what an agent reported; if its stated time is not waited for, says so.
fn explain_outage(why: &str, stated: Option<Timestamp>, now: Timestamp) -> String {
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    match stated.filter(|stated| *stated > now && !is_plausible_end(now, *stated)) {
        Some(stated) => format!("{why} (the time that it states, {stated}, is too far away to be waited for)"),
        None => why,
    }
}
