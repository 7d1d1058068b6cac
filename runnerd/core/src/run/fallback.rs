//! Which kind of agent a session is asked of while services are not available.
//!
//! A kind is a word here. The facts are kept by whoever runs the sessions; the rule is `choose`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::verdict::Verdict;
use crate::wait::{WaitPeriod, is_plausible_end};

/// A kind of agent whose service was not available when it was last asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceOutage {
    /// The kind.
    pub kind: String,
    /// What its agent said, in one line.
    pub why: String,
    /// When it is asked again.
    pub wait: WaitPeriod,
    /// Times in a row that it was not available.
    pub times: u32,
}

impl ServiceOutage {
    /// Has the service asked again at once; how often it was out stays known.
    pub fn retry_now(&mut self, now: Timestamp) {
        self.wait = WaitPeriod { since: now, until: now };
    }
}

/// Who is asked next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KindChoice<'a> {
    /// This kind; none where no kinds are configured.
    Ask(Option<&'a str>),
    /// Nobody, since each of them is out; the first of them is asked again when the wait is over.
    Wait(WaitPeriod, Vec<&'a ServiceOutage>),
}

/// Returns the first of `kinds` whose service is not known to be out, so that each goes back to the one before it
/// as soon as that is to be asked again.
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

/// Returns what is known of the services after a session of `kind`: its outage is added, counted on, or forgotten
/// with an answer. A session that was cut short or failed says nothing.
pub fn outages_after(outages: &[ServiceOutage], kind: &str, verdict: &Verdict, now: Timestamp) -> Vec<ServiceOutage> {
    let (own, mut others): (Vec<ServiceOutage>, Vec<ServiceOutage>) = outages.iter().cloned().partition(|outage| outage.kind == kind);
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

/// Returns what is known of the services after an iteration in which `worker` has answered and `reviewer` was asked, who
/// made the verdict.
pub fn outages_after_review(
    outages: &[ServiceOutage],
    (worker, reviewer): (&str, &str),
    verdict: &Verdict,
    now: Timestamp,
) -> Vec<ServiceOutage> {
    let others: Vec<ServiceOutage> = outages.iter().filter(|outage| outage.kind != worker).cloned().collect();
    outages_after(&others, reviewer, verdict, now)
}

/// Says what an agent said, and where its time is not waited for that it is not.
fn explain_outage(why: &str, stated: Option<Timestamp>, now: Timestamp) -> String {
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    match stated.filter(|stated| *stated > now && !is_plausible_end(now, *stated)) {
        Some(stated) => format!("{why} (the time that it states, {stated}, is too far away to be waited for)"),
        None => why,
    }
}
