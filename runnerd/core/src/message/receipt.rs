//! The receipt of an iteration: everything the runner testifies about it, in the trailers of its commit.

use protocol::words::{GuardOutcome, IterationStatus, Mode, Role};

use super::guard_flaky::GuardFlaky;
use super::name_list::NameList;
use super::trailer_values::{
    AgentStamp, AttemptCount, GuardRun, GuardTests, ReviewRun, ReviewSignature, RunnerVersion, UsageLine, VerdictLine,
};
use super::trailers::TrailerReader;
use super::{
    FROM, GUARD, GUARD_WROTE, KIND, MessageError, MessageParts, REVERTED, SCOPE, VERSION, headline, join_message,
};
use crate::text::digest::Digest;

/// An iteration's commit message; a field that is `None` or empty does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Id of the run.
    pub run: String,
    /// Number of the iteration.
    pub iter: u32,
    /// Node that was worked on.
    pub node: String,
    /// `status=` of the subject.
    pub status: IterationStatus,
    /// `guard=` of the subject.
    pub guard: GuardOutcome,
    /// The title of the task and how it ended, as written by [`compose_headline()`](super::headline::compose_headline).
    pub headline: String,
    /// What the agent reported, or what happened; may be empty, is cleaned, wrapped and bounded to 20,000 bytes.
    pub summary: String,
    /// Version of the runner that wrote the commit.
    pub version: RunnerVersion,
    /// Commit at which the session began, in hexadecimal.
    pub from: String,
    /// How the iteration ended.
    pub verdict: VerdictLine,
    /// Role of the session.
    pub role: Role,
    /// Whether files outside `.runner/` were changed.
    pub mode: Mode,
    /// Attempts of the node after the iteration.
    pub attempts: AttemptCount,
    /// The agent that ran; `None` without a session.
    pub agent: Option<AgentStamp>,
    /// Digest of the prompt.
    pub prompt: Option<Digest>,
    /// Digest of the agent's answer, as recorded.
    pub output: Option<Digest>,
    /// How the guard ended, if it ran.
    pub guard_run: Option<GuardRun>,
    /// How the tests that passed differ from those at From, if they do.
    pub guard_tests: Option<GuardTests>,
    /// The guard's red run before a green one on the same files, if there was one.
    pub guard_flaky: Option<GuardFlaky>,
    /// The review's decision, if there was one.
    pub review: Option<ReviewRun>,
    /// The signature of the person who decided, if they signed.
    pub signature: Option<ReviewSignature>,
    /// Ids of the notes that the session answered.
    pub notes: NameList,
    /// What the session consumed.
    pub usage: Option<UsageLine>,
    /// Paths that were restored.
    pub reverted: NameList,
    /// Paths that were moved away while an agent ran.
    pub hidden: NameList,
    /// Files of the guard's definition that differ from the accepted ones.
    pub guard_changed: NameList,
    /// Paths outside `.runner/` that the guard wrote.
    pub guard_wrote: NameList,
    /// Paths that were not committed.
    pub held_back: NameList,
    /// Submodules with uncommitted work inside.
    pub dirty_submodules: NameList,
    /// Digest of From's canonical task tree.
    pub tree_from: Digest,
    /// Blob of the agent's task tree, if the tree was rejected.
    pub raw: Option<String>,
}

impl Receipt {
    /// Returns the message: subject, summary and trailers, with a newline at the end.
    pub fn compose(&self) -> String {
        let run = self.run.as_str();
        let node = self.node.as_str();
        let subject = ReceiptSubject { run, iter: self.iter, node, status: self.status, guard: self.guard };
        join_message(&subject.to_string(), &headline::join_body(&self.headline, &self.summary), &self.trailers())
    }

    /// Returns the title of the task, if the message has it.
    pub fn title(&self) -> Option<String> {
        headline::parse_title(&self.headline, self.verdict.name)
    }

    fn trailers(&self) -> Vec<(&'static str, String)> {
        let names = |list: &NameList| (!list.is_empty()).then(|| list.to_string());
        let all = [
            (KIND, Some("iteration".to_owned())),
            (VERSION, Some(self.version.to_string())),
            (FROM, Some(self.from.clone())),
            ("Runner-Verdict", Some(self.verdict.to_string())),
            ("Runner-Role", Some(self.role.to_string())),
            ("Runner-Mode", Some(self.mode.to_string())),
            ("Runner-Attempts", Some(self.attempts.to_string())),
            ("Runner-Agent", self.agent.as_ref().map(ToString::to_string)),
            ("Runner-Prompt", self.prompt.as_ref().map(ToString::to_string)),
            ("Runner-Output", self.output.as_ref().map(ToString::to_string)),
            (GUARD, self.guard_run.as_ref().map(ToString::to_string)),
            ("Runner-Guard-Tests", self.guard_tests.as_ref().map(ToString::to_string)),
            ("Runner-Guard-Flaky", self.guard_flaky.as_ref().map(ToString::to_string)),
            ("Runner-Review", self.review.as_ref().map(ToString::to_string)),
            ("Runner-Signature", self.signature.as_ref().map(ToString::to_string)),
            ("Runner-Notes", names(&self.notes)),
            ("Runner-Usage", self.usage.as_ref().map(ToString::to_string)),
            (REVERTED, names(&self.reverted)),
            ("Runner-Hidden", names(&self.hidden)),
            ("Runner-Guard-Changed", names(&self.guard_changed)),
            (GUARD_WROTE, names(&self.guard_wrote)),
            ("Runner-Held-Back", names(&self.held_back)),
            ("Runner-Dirty-Submodules", names(&self.dirty_submodules)),
            ("Runner-Tree-From", Some(self.tree_from.to_string())),
            ("Runner-Raw", self.raw.clone()),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    pub(super) fn parse_trailers(
        parts: &MessageParts<'_>,
        trailers: &mut TrailerReader<'_>,
    ) -> Result<Self, MessageError> {
        let subject = ReceiptSubject::parse(parts).ok_or_else(|| parts.subject_error())?;
        let (headline, summary) = headline::split_body(parts.summary);
        Ok(Self {
            run: subject.run.to_owned(),
            iter: subject.iter,
            node: subject.node.to_owned(),
            status: subject.status,
            guard: subject.guard,
            headline: headline.to_owned(),
            summary: summary.to_owned(),
            version: trailers.take_required(VERSION)?,
            from: trailers.take_object_id(FROM)?.ok_or(MessageError::Missing(FROM))?,
            verdict: trailers.take_required("Runner-Verdict")?,
            role: trailers.take_required("Runner-Role")?,
            mode: trailers.take_required("Runner-Mode")?,
            attempts: trailers.take_required("Runner-Attempts")?,
            agent: trailers.take_optional("Runner-Agent")?,
            prompt: trailers.take_optional("Runner-Prompt")?,
            output: trailers.take_optional("Runner-Output")?,
            guard_run: trailers.take_optional(GUARD)?,
            guard_tests: trailers.take_optional("Runner-Guard-Tests")?,
            guard_flaky: trailers.take_optional("Runner-Guard-Flaky")?,
            review: trailers.take_optional("Runner-Review")?,
            signature: trailers.take_optional("Runner-Signature")?,
            notes: trailers.take_optional("Runner-Notes")?.unwrap_or_default(),
            usage: trailers.take_optional("Runner-Usage")?,
            reverted: trailers.take_optional(REVERTED)?.unwrap_or_default(),
            hidden: trailers.take_optional("Runner-Hidden")?.unwrap_or_default(),
            guard_changed: trailers.take_optional("Runner-Guard-Changed")?.unwrap_or_default(),
            guard_wrote: trailers.take_optional(GUARD_WROTE)?.unwrap_or_default(),
            held_back: trailers.take_optional("Runner-Held-Back")?.unwrap_or_default(),
            dirty_submodules: trailers.take_optional("Runner-Dirty-Submodules")?.unwrap_or_default(),
            tree_from: trailers.take_required("Runner-Tree-From")?,
            raw: trailers.take_object_id("Runner-Raw")?,
        })
    }
}

/// The fields of `run <run> iter <iter> node <node> status=<status> guard=<guard>`: a subject without its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiptSubject<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// Number of the iteration.
    pub iter: u32,
    /// Node that was worked on.
    pub node: &'a str,
    /// Status of the iteration.
    pub status: IterationStatus,
    /// How the guard ended.
    pub guard: GuardOutcome,
}

impl std::fmt::Display for ReceiptSubject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { run, iter, node, status, guard } = self;
        write!(f, "run {run} iter {iter:04} node {node} status={status} guard={guard}")
    }
}

impl<'a> ReceiptSubject<'a> {
    /// Returns the first line of the commit's message.
    pub fn line(&self) -> String {
        format!("{SCOPE}{self}")
    }

    fn parse(parts: &MessageParts<'a>) -> Option<Self> {
        let words: Vec<&str> = parts.scoped_subject()?.split(' ').collect();
        let ["run", run, "iter", iter, "node", node, status, guard] = words[..] else { return None };
        Some(Self {
            run,
            iter: iter.parse().ok()?,
            node,
            status: status.strip_prefix("status=")?.parse().ok()?,
            guard: guard.strip_prefix("guard=")?.parse().ok()?,
        })
    }
}
