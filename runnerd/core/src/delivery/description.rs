//! Writes the description of a pull request from the receipts of a run: what was requested and done, what is proven,
//! what is only claimed and by whom, what is open, and how to verify it.
//!
//! A pure function. What it calls proven was established by an audit; all text from others stays text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use protocol::delivery::{DESCRIPTION_BEGINS, DESCRIPTION_ENDS};
use protocol::shell;
use protocol::state::{RunState, UsageTotal};
use protocol::test_record::{LostTest, TestRecord};
use protocol::tree::{Node, TaskTree};
use protocol::verify::{AuditFinding, AuditReport, Severity};
use protocol::words::VerdictName;

use super::markdown::{escape_code, escape_line, quote_text};
use crate::files::questions;
use crate::message::Receipt;
use crate::text::fence::one_line;
use crate::tree;

/// Most bytes of a description: GitHub takes 65,536 characters.
pub const BODY_LIMIT: usize = 60_000;
/// Most bytes of a title.
const TITLE_LIMIT: usize = 120;
/// Most bytes of the goal.
const GOAL_LIMIT: usize = 5_000;
/// Most bytes of each task's summary; the first limit that fits is used.
const SUMMARY_LIMITS: [usize; 4] = [1_500, 600, 250, 0];
/// Most bytes of the list of tasks.
const TASKS_LIMIT: usize = 26_000;
/// Most bytes of a line written by others.
const LINE_LIMIT: usize = 200;
/// Most findings, questions, gaps, agents and people's commits that are listed.
const MAX_LISTED: usize = 10;

/// What is known about a run that is being delivered.
#[derive(Debug, Clone, Copy)]
pub struct DeliveredRun<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// Name of the branch under which it is delivered.
    pub branch: &'a str,
    /// The name of the remote.
    pub remote: &'a str,
    /// The goal, without front matter.
    pub goal: &'a str,
    /// The task tree at the tip.
    pub tree: &'a TaskTree,
    /// The bookkeeping at the tip.
    pub run_state: &'a RunState,
    /// The names of tests at the tip.
    pub tests: &'a TestRecord,
    /// The text of `questions.md` at the tip.
    pub questions: &'a str,
    /// The guard's command at the tip.
    pub guard: &'a [String],
    /// The iterations, oldest first.
    pub iterations: &'a [IterationCommit],
    /// Result of the audit of the branch.
    pub audit: &'a AuditReport,
}

/// An iteration's commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IterationCommit {
    /// Id of the commit.
    pub commit: String,
    /// The receipt in its message.
    pub receipt: Receipt,
}

/// Title and body of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestText {
    /// One line of plain text.
    pub title: String,
    /// Markdown.
    pub body: String,
}

/// Describes a run to the people who decide whether to merge it.
pub fn describe_run(delivered: &DeliveredRun<'_>) -> PullRequestText {
    let tasks = delivered.render_tasks();
    let parts = [
        delivered.render_opening(),
        delivered.render_goal(),
        tasks,
        delivered.render_open_questions(),
        delivered.render_evidence(),
        delivered.render_cost(),
        delivered.render_verify_commands(),
    ];
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty()).collect();
    let body = format!("{DESCRIPTION_BEGINS}\n{}\n{DESCRIPTION_ENDS}\n", parts.join("\n\n"));
    PullRequestText { title: delivered.title(), body }
}

impl DeliveredRun<'_> {
    fn title(&self) -> String {
        let is_prose = |line: &&str| !line.trim_matches(|c: char| c == '#' || c.is_whitespace()).is_empty();
        let first = self.goal.lines().find(is_prose).unwrap_or(self.run);
        one_line(first.trim_start_matches(['#', ' ']).trim_end_matches(['#', ' ']), TITLE_LIMIT)
    }

    /// Introduces the pull request to a reader who does not know the runner.
    fn render_opening(&self) -> String {
        let sessions = pluralize(self.run_state.usage.sessions, "session");
        let (passed, total) = self.tree.root.leaves();
        let agents = self.render_agents();
        let guard = escape_code(&shell::join_args(self.guard.iter().map(String::as_str)), LINE_LIMIT);
        let mut text = format!(
            "A coding agent{agents} made these changes by itself, in {sessions} driven by `runnerd` (run {}). A task \
             counts as done when {guard} exits 0, whatever the agent says: {passed} of {} done.\n",
            escape_code(self.run, LINE_LIMIT),
            if total == 1 { "1 task is".to_owned() } else { format!("{total} tasks are") },
        );
        if passed < total {
            text.push_str(
                "\n**The run is not complete.** What was begun after the last finished task is not part of this.\n",
            );
        }
        text
    }

    fn render_agents(&self) -> String {
        let mut kinds: Vec<String> = Vec::new();
        for agent in self.iterations.iter().filter_map(|iteration| iteration.receipt.agent.as_ref()) {
            let stamp = escape_code(&agent.to_string(), LINE_LIMIT);
            if !kinds.contains(&stamp) && kinds.len() < MAX_LISTED {
                kinds.push(stamp);
            }
        }
        if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) }
    }

    fn render_goal(&self) -> String {
        let goal = quote_text(self.goal, "", GOAL_LIMIT);
        if goal.is_empty() { goal } else { format!("## What was asked\n\n{goal}") }
    }

    /// The tasks, each with as much of its summary as there is room for.
    fn render_tasks(&self) -> String {
        let leaves: Vec<&Node> =
            tree::walk(self.tree).into_iter().map(|placed| placed.node).filter(|node| node.is_leaf()).collect();
        let mut tries: BTreeMap<&str, Vec<&IterationCommit>> = BTreeMap::new();
        for iteration in self.iterations {
            tries.entry(&iteration.receipt.node).or_default().push(iteration);
        }
        let mut text = String::new();
        for limit in SUMMARY_LIMITS {
            text = leaves.iter().map(|leaf| Self::render_task(leaf, &tries, limit)).collect();
            if text.len() <= TASKS_LIMIT {
                return format!("## What was done\n\n{text}");
            }
        }
        let end = text[..text.floor_char_boundary(TASKS_LIMIT)].rfind('\n').map_or(0, |end| end + 1);
        let rest = text[end..].lines().count();
        format!("## What was done\n\n{}\n*(… {rest} more; `runnerctl tree --run {}`)*\n", &text[..end], self.run)
    }

    fn render_task(leaf: &Node, tries: &BTreeMap<&str, Vec<&IterationCommit>>, limit: usize) -> String {
        let tries = tries.get(leaf.id.as_str()).map_or(&[][..], Vec::as_slice);
        let accepted = tries.iter().rev().find(|iteration| iteration.receipt.verdict.name == VerdictName::Accepted);
        let title = escape_line(&leaf.title, LINE_LIMIT);
        let mark = if leaf.passes { "x" } else { " " };
        let how = match (leaf.passes, accepted) {
            (true, Some(iteration)) if tries.len() == 1 => format!("session {}", iteration.receipt.iter),
            (true, Some(iteration)) => {
                format!("session {}, after {}", iteration.receipt.iter, pluralize(tries.len() - 1, "earlier try"))
            }
            (true, None) => "was done before this run".to_owned(),
            (false, _) if tries.is_empty() => "not begun".to_owned(),
            (false, _) => format!("not done, {}", pluralize(tries.len(), "session")),
        };
        let mut text = format!("- [{mark}] **{title}** ({how})\n");
        let summary = accepted.filter(|_| leaf.passes).map_or("", |iteration| iteration.receipt.summary.as_str());
        if limit > 0 && !summary.trim().is_empty() {
            let _ = write!(text, "\n{}\n", quote_text(summary, "  ", limit));
        }
        text
    }

    fn render_open_questions(&self) -> String {
        let open: Vec<_> = questions::parse_questions(self.questions)
            .into_iter()
            .filter(|question| question.answer.is_none())
            .collect();
        let item = |question: &questions::AgentQuestion| format!("- {}\n", escape_line(&question.text, 2 * LINE_LIMIT));
        render_list("## Open questions of the agent", open.iter().map(item))
    }

    /// What is proven, and who claims the rest.
    fn render_evidence(&self) -> String {
        let text = format!(
            "## What is proven, and what is said\n\n{}{}{}",
            self.render_proven(),
            self.render_runner_claims(),
            AGENT_CLAIMS
        );
        text + &self.render_lost_tests() + &self.render_findings() + &self.render_person_commits()
    }

    /// The tests that passed on the base or in the run, and do not at the tip.
    fn render_lost_tests(&self) -> String {
        let item = |lost: &LostTest| {
            let name = escape_code(&lost.name, LINE_LIMIT);
            format!("- {name}: {}, session {}\n", lost.now.as_str(), lost.iter)
        };
        render_list("\nTests that passed before and do not now:", self.tests.lost.iter().map(item))
    }

    fn render_proven(&self) -> String {
        let counts = &self.audit.counts;
        let violations = self.findings_of_severity(Severity::Violation).count();
        let sessions = pluralize(counts.iterations, "session");
        if violations > 0 || !self.audit.unseen.is_empty() || counts.iterations == 0 {
            let mut why: Vec<String> =
                self.audit.unseen.iter().take(MAX_LISTED).map(|gap| escape_line(gap, LINE_LIMIT)).collect();
            why.extend((violations > 0).then(|| format!("{} of the rules", pluralize(violations, "violation"))));
            let why = if why.is_empty() { "the branch has no session of the run".to_owned() } else { why.join("; ") };
            return format!("- **Proven from the commits: not all of it.** {why}.\n");
        }
        let sent = counts.iterations.saturating_sub(counts.decisions);
        let merged = match self.audit.brought.len() {
            0 => String::new(),
            many => {
                format!("; {} passed before its first commit, which these say nothing about", pluralize(many, "task"))
            }
        };
        format!(
            "- **Proven from the commits alone:** {sessions}, each on the task that was next, each changing what its \
             result allows and nothing else; {} passed, each by a session that the checks accepted, and none was touched \
             since{merged}; {} of {sent} prompts are exactly those that the rules make.\n",
            pluralize(self.audit.passes.len(), "task"),
            counts.prompts,
        )
    }

    fn render_runner_claims(&self) -> String {
        let guards = pluralize(self.audit.counts.guards_unproven, "run");
        format!(
            "- **The runner's word:** how {guards} of the checks ended, and what sessions consumed. The checks can be run \
             again; what they do may have changed with the code, so read them too.\n"
        )
    }

    fn findings_of_severity(&self, severity: Severity) -> impl Iterator<Item = &AuditFinding> {
        self.audit.findings.iter().filter(move |finding| finding.severity == severity)
    }

    fn render_findings(&self) -> String {
        let item = |finding: &AuditFinding| {
            let AuditFinding { commit, rule, severity, at, expected, found, .. } = finding;
            let [at, expected, found] = [at, expected, found].map(|text| escape_line(text, LINE_LIMIT));
            format!(
                "- {severity}, {} ({rule}, {at}): expected {expected}, found {found}\n",
                escape_code(short_id(commit), 40)
            )
        };
        let all = self.findings_of_severity(Severity::Violation).chain(self.findings_of_severity(Severity::Warning));
        render_list("\nThe audit found:", all.map(item))
    }

    fn render_person_commits(&self) -> String {
        let item = |person: &protocol::verify::PersonCommit| {
            let by = person
                .command
                .as_ref()
                .map_or_else(|| "by hand".to_owned(), |command| escape_code(command, LINE_LIMIT));
            format!(
                "- {} {by}: {}\n",
                escape_code(short_id(&person.commit), 40),
                escape_line(&person.subject, LINE_LIMIT)
            )
        };
        render_list("\nCommits of people on the run's branch:", self.audit.people.iter().map(item))
    }

    fn render_cost(&self) -> String {
        format!("## What it cost\n\n{}\n", render_usage(&self.run_state.usage))
    }

    /// Commands to paste: ids and branch names are quoted if a shell would interpret them.
    fn render_verify_commands(&self) -> String {
        let [run, branch, remote] = [self.run, self.branch, self.remote].map(shell::quote);
        let history = shell::quote(&format!("runner/{0}:runner/{0}", self.run));
        let push = shell::quote(&format!("runner/{}", self.run));
        let delivered = shell::quote(&format!("{0}:{0}", self.branch));
        format!(
            "## How to verify\n\nThe receipts are on the run's own branch. The person who delivered this can push it (`git push \
             {remote} {push}`); then, in a clone:\n\n```sh\ngit fetch {remote} {history} {delivered}\nrunnerctl verify --run \
             {run}\nrunnerctl verify --run {run} --rerun-guards\nrunnerctl verify --landed {branch}\n```\n"
        )
    }
}

const AGENT_CLAIMS: &str =
    "- **The agent's word:** what is quoted under each task. Nothing depends on it; read the changes themselves.\n";

/// A heading with its list, or nothing without items. Items that do not fit are counted.
fn render_list(heading: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        return String::new();
    }
    let mut text = format!("{heading}\n\n{}", items.iter().take(MAX_LISTED).map(String::as_str).collect::<String>());
    if items.len() > MAX_LISTED {
        let _ = writeln!(text, "- … and {} more", items.len() - MAX_LISTED);
    }
    text
}

fn render_usage(usage: &UsageTotal) -> String {
    let at_least = |unknown: u64| if unknown > 0 { "at least " } else { "" };
    let tokens = |name: &str, tokens: Option<u64>| {
        tokens.map_or_else(
            || format!("{name} unknown"),
            |tokens| format!("{}{tokens} {name}", at_least(usage.tokens_unknown)),
        )
    };
    let cost = match usage.cost_micro_usd {
        None => "cost unknown".to_owned(),
        Some(micro) => {
            format!(
                "{}{}.{:02} US dollars",
                at_least(usage.cost_unknown),
                micro / 1_000_000,
                micro % 1_000_000 / 10_000
            )
        }
    };
    let [read, cached, written] = [
        tokens("tokens read", usage.input_tokens),
        tokens("from a cache", usage.cached_tokens),
        tokens("written", usage.output_tokens),
    ];
    format!(
        "{}: {read}, {cached}, {written}; {cost}, as the agent reports it or its list prices say.",
        pluralize(usage.sessions, "session")
    )
}

fn short_id(commit: &str) -> &str {
    commit.get(..8).unwrap_or(commit)
}

fn pluralize(n: impl TryInto<u64>, what: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    match (n, what) {
        (1, _) => format!("1 {what}"),
        (_, "earlier try") => format!("{n} earlier tries"),
        _ => format!("{n} {what}s"),
    }
}

#[cfg(test)]
mod tests;
