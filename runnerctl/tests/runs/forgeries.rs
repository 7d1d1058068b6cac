//! Branches modified by someone who may not write to them: each is reported with a finding. They are made from a branch
//! of the real runner.
//!
//! The forger knows git: commit ids in messages are those of the forged branch.

mod lists;
mod objects;
mod provenance;
mod words;

use std::io::Write as _;
use std::process::{Command, Stdio};

use protocol::state::RunState;
use protocol::tree::TaskTree;
use protocol::verify::{AuditFinding, AuditReport, AuditRule as Rule, Severity};
use runner_testkit::{Home, ProgramOutput};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::audits::parse_report;
use crate::play::{RUN, RunPlay, node, sample};

const TREE: &str = ".runner/state/tree.json";
const RUN_STATE: &str = ".runner/state/run_state.json";
const FEEDBACK: &str = ".runner/state/feedback.json";
const PROGRESS: &str = ".runner/state/progress.md";
const CONFIG: &str = ".runner/state/config.toml";
/// A forger's change of a run state.
type StateChange = fn(&mut RunState);

const GOAL: &str = ".runner/GOAL.md";

/// A commit of the branch, as the forger sees it.
#[derive(Debug, Clone, PartialEq)]
struct BranchCommit {
    /// Its id in the genuine branch.
    id: String,
    message: String,
    tree: String,
}

/// A genuine branch, and a bare clone in which it is forged.
struct BranchForge {
    play: RunPlay,
    clone: String,
    pieces: Vec<BranchCommit>,
}

impl BranchForge {
    /// Creates a branch with most of what can happen in a run: a red guard, a retry, a decomposition, an agent's own
    /// commit, an invalid tree, a note, an edit by hand, and a resume.
    fn new() -> Self {
        let definition = r#"definition = ["/justfile", "/ci.sh"]"#;
        let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 3").guard(definition));
        play.repo.write("ci.sh", "true\n").commit("Check the work");
        let script = play.script();
        script.step(1, "echo 1 > one\nanswer done 'Not yet.'").guard_step(1, "echo 'error: not yet'; exit 1");
        script.step(2, "echo 2 > one\nanswer done 'Now.'");
        script.step(3, "answer retry 'Too hard.'");
        script.step(4, "decompose 'Split.' First Second");
        script.step(5, "echo 5 > five\ngit add five; git commit -q -m Mine\nanswer done 'First.'");
        script.step(6, "echo '{' > $tree\necho 6 > six\nanswer done 'Broken.'");
        script.always("echo $n > \"file$n\"\nanswer done \"Done $n.\"");
        play.run().exits(4);
        play.home.ctl_in(&play.repo, &["note", "Mind the gap."]).exits(0);
        play.repo.write(GOAL, &play.repo.read(GOAL).replace("Reach the goal", "Reach the goal soon"));
        play.repo.commit("Say when");
        play.home.ctl_in(&play.repo, &["resume", "--more", "20", "--wait"]).exits(0);
        Self::from_play(play)
    }

    /// Uses the branch of an existing run.
    fn from_play(play: RunPlay) -> Self {
        let clone = play.home.path().join("forge.git").display().to_string();
        play.repo.git(&["clone", "-q", "--bare", ".", &clone]);
        let base = play.repo.run_state("HEAD").base.expect("a run has a base");
        let ids = play.repo.git(&["rev-list", "--reverse", "--first-parent", &format!("{base}..HEAD")]);
        let git = |args: &[&str]| play.repo.git(args);
        let piece = |id: &str| BranchCommit {
            id: id.to_owned(),
            message: git(&["log", "-1", "--format=%B", id]),
            tree: git(&["rev-parse", &format!("{id}^{{tree}}")]),
        };
        let pieces = ids.lines().map(piece).collect();
        Self { play, clone, pieces }
    }

    /// Returns the index of the commit whose subject contains this.
    fn index_of(&self, says: &str) -> usize {
        let subject = |piece: &BranchCommit| piece.message.lines().next().unwrap_or_default().contains(says);
        self.pieces.iter().position(subject).unwrap_or_else(|| panic!("no commit says {says}: {:#?}", self.pieces))
    }

    /// Audits the branch made of these pieces.
    fn audit(&self, pieces: &[BranchCommit]) -> AuditReport {
        parse_report(&self.run_verify(pieces))
    }

    /// Asserts that the branch made of these pieces cannot be judged, and why.
    #[track_caller]
    fn assert_ends(&self, pieces: &[BranchCommit], reason: &str) {
        let output = self.run_verify(pieces);
        assert!(output.exits(6).stderr.contains(reason), "{}", output.stderr);
    }

    fn run_verify(&self, pieces: &[BranchCommit]) -> ProgramOutput {
        let base = self.play.repo.run_state("HEAD").base.expect("a run has a base");
        let mut parent = base;
        let mut renamed = Vec::<(String, String)>::new();
        let honest = pieces.iter().zip(&self.pieces).take_while(|(piece, honest)| piece == honest).count();
        if let Some(last) = honest.checked_sub(1) {
            self.pieces[last].id.clone_into(&mut parent);
        }
        for piece in &pieces[honest..] {
            let message = renamed.iter().fold(piece.message.clone(), |text, (old, new)| text.replace(old, new));
            parent = self.git(&["commit-tree", &piece.tree, "-p", &parent], message + "\n");
            renamed.push((piece.id.clone(), parent.clone()));
        }
        self.git(&["update-ref", &format!("refs/heads/runner/{RUN}"), &parent], "");
        self.play.home.ctl(&["verify", &self.clone, "--run", RUN, "--json"])
    }

    /// Creates a commit by hand.
    fn commit(&self, parent: Option<&str>, tree: &str, message: &str) -> String {
        let parent = parent.map(|parent| ["-p", parent]);
        let args: Vec<&str> = ["commit-tree", tree].into_iter().chain(parent.into_iter().flatten()).collect();
        self.git(&args, format!("{message}\n"))
    }

    /// Audits a run's branch as if this were its tip.
    fn audit_at(&self, run: &str, tip: &str) -> AuditReport {
        self.git(&["update-ref", &format!("refs/heads/runner/{run}"), tip], "");
        parse_report(&self.play.home.ctl(&["verify", &self.clone, "--run", run, "--json"]))
    }

    #[track_caller]
    fn assert_finds_at(&self, (run, tip): (&str, &str), (severity, rule, at): (Severity, Rule, &str)) {
        let report = self.audit_at(run, tip);
        let is_expected =
            |finding: &AuditFinding| finding.severity == severity && finding.rule == rule && finding.at.contains(at);
        assert!(report.findings.iter().any(is_expected), "no {severity} of {rule} at {at} in {report:#?}");
    }

    fn tip(&self) -> &BranchCommit {
        self.pieces.last().expect("the branch has commits")
    }

    #[track_caller]
    fn assert_honest(&self, name: &str, tip: &str) -> AuditReport {
        let report = self.audit_at(RUN, tip);
        let found: Vec<_> = report.findings.iter().filter(|found| found.severity == Severity::Violation).collect();
        assert!(found.is_empty(), "{name}: {found:#?}");
        report
    }

    /// Returns the pieces with one changed.
    fn with_change(&self, at: usize, change: impl FnOnce(&mut BranchCommit)) -> Vec<BranchCommit> {
        let mut pieces = self.pieces.clone();
        change(&mut pieces[at]);
        pieces
    }

    /// Returns the pieces with a file changed from one commit on, either in all later ones or only in that one.
    fn with_file(
        &self,
        (at, to_the_end): (usize, bool),
        path: &str,
        change: impl Fn(&str) -> String,
    ) -> Vec<BranchCommit> {
        let mut pieces = self.pieces.clone();
        let end = if to_the_end { pieces.len() } else { at + 1 };
        for piece in &mut pieces[at..end] {
            let text = self.try_show(&piece.tree, path);
            piece.tree = self.tree_with(&piece.tree, path, &change(&text));
        }
        pieces
    }

    fn with_json<T: Serialize + DeserializeOwned>(
        &self,
        at: usize,
        path: &str,
        change: impl Fn(&mut T),
    ) -> Vec<BranchCommit> {
        self.with_file((at, false), path, |text| {
            let mut value: T = serde_json::from_str(text).expect("the file has its form");
            change(&mut value);
            serde_json::to_string_pretty(&value).expect("the file serializes") + "\n"
        })
    }

    fn try_show(&self, tree: &str, path: &str) -> String {
        let listed = self.git(&["ls-tree", tree, "--", path], "");
        if listed.is_empty() { String::new() } else { self.git(&["show", &format!("{tree}:{path}")], "") + "\n" }
    }

    fn tree_with(&self, tree: &str, path: &str, text: &str) -> String {
        let blob = self.git(&["hash-object", "-w", "--stdin"], text);
        self.git(&["read-tree", tree], "");
        self.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")], "");
        self.git(&["write-tree"], "")
    }

    fn tree_with_executable(&self, tree: &str, path: &str) -> String {
        let blob = self.git(&["rev-parse", &format!("{tree}:{path}")], "");
        self.git(&["read-tree", tree], "");
        self.git(&["update-index", "--cacheinfo", &format!("100755,{blob},{path}")], "");
        self.git(&["write-tree"], "")
    }

    fn git(&self, args: &[&str], input: impl AsRef<[u8]>) -> String {
        git(&self.play.home, &self.clone, args, input.as_ref())
    }

    /// Asserts that an audit of these pieces has a finding of this rule at this place.
    #[track_caller]
    fn assert_finds(&self, name: &str, pieces: &[BranchCommit], (severity, rule, at): (Severity, Rule, &str)) {
        let report = self.audit(pieces);
        let is_found = report
            .findings
            .iter()
            .any(|finding| finding.severity == severity && finding.rule == rule && finding.at.contains(at));
        assert!(is_found, "{name}: no {severity} of {rule} at {at} in {:#?}", report.findings);
    }
}

fn git(home: &Home, folder: &str, args: &[&str], input: &[u8]) -> String {
    let mut command = Command::new("git");
    command.env_clear().envs(home.env().iter().cloned()).current_dir(folder).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("git can be started");
    let mut stdin = child.stdin.take().expect("BUG: standard input is a pipe");
    stdin.write_all(input).expect("git reads what it is given");
    drop(stdin);
    let output = child.wait_with_output().expect("git can be waited for");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

fn violation(rule: Rule, at: &str) -> (Severity, Rule, &str) {
    (Severity::Violation, rule, at)
}

#[test]
fn every_forgery_is_named_and_the_branch_it_was_made_of_is_not() {
    let forge = BranchForge::new();
    let report = forge.audit(&forge.pieces);
    assert_eq!(report.findings, [], "the honest branch");
    assert_eq!(report.counts.prompts, report.counts.iterations, "every prompt is built again");
    let commands: Vec<_> = report.people.iter().map(|person| person.command.as_deref()).collect();
    assert_eq!(commands, [Some("note"), None], "people are listed: {:#?}", report.people);
    assert_eq!(report.brought, ["a"], "what had passed before is not this run's");

    forge_trees(&forge);
    forge_bookkeeping(&forge);
    forge_messages(&forge);
    forge_chain(&forge);
    forge_files(&forge);
    forge_guard_definition(&forge);
    forge_people_and_milestones(&forge);
}

fn forge_trees(forge: &BranchForge) {
    let retry = forge.index_of("iter 0003");
    let tree = |at, change: fn(&mut TaskTree)| forge.with_json::<TaskTree>(at, TREE, change);
    let flipped = tree(retry, |tree| node(tree, "c2").passes = true);
    forge.assert_finds("flipped passes", &flipped, violation(Rule::Passes, "node c2: passes"));
    let charged = tree(forge.index_of("iter 0001"), |tree| node(tree, "b").attempts = 0);
    forge.assert_finds("wrong attempts", &charged, violation(Rule::Tree, "node b: attempts"));
    let granted = tree(retry, |tree| node(tree, "c1").max_attempts = 9);
    forge.assert_finds("granted attempts", &granted, violation(Rule::Tree, "node c1: max_attempts"));
    let reordered = tree(retry, |tree| node(tree, "c").children.reverse());
    forge.assert_finds("reordered siblings", &reordered, violation(Rule::Tree, TREE));
    let edited = tree(retry, |tree| node(tree, "b").title.push_str(", another"));
    forge.assert_finds("edited passed node", &edited, violation(Rule::Passed, "node b"));
    let lost = tree(retry, |tree| node(tree, "c").children.retain(|node| node.id != "c2"));
    forge.assert_finds("lost open node", &lost, violation(Rule::Tree, "node c2"));
    let unmade = tree(forge.index_of("iter 0002"), |tree| node(tree, "b").passes = false);
    forge.assert_finds("a pass that was taken back", &unmade, violation(Rule::Passes, "node b: passes"));
    let repaired = forge.with_file((forge.index_of("iter 0006"), false), TREE, |_| "{\n".to_owned());
    forge.assert_finds("an invalid tree", &repaired, violation(Rule::Valid, TREE));
}

fn forge_bookkeeping(forge: &BranchForge) {
    let state = |at, change: fn(&mut RunState)| forge.with_json::<RunState>(at, RUN_STATE, change);
    let changes: [(&str, StateChange); 10] = [
        ("allowance", |state| state.allowance = 99),
        ("narrowed", |state| state.narrowed = vec!["c2".to_owned()]),
        ("stall", |state| state.stall.count = 4),
        ("consecutive_faults", |state| state.consecutive_faults = 2),
        ("usage", |state| state.usage.sessions += 1),
        ("last_guard", |state| state.last_guard = None),
        ("next_iter", |state| state.next_iter = 7),
        ("base", |state| state.base = None),
        ("guard_definition", |state| drop(state.guard_definition.insert("justfile".to_owned(), "1".repeat(40)))),
        ("notes_used", |state| state.notes_used = vec!["n1".to_owned()]),
    ];
    for (field, change) in changes {
        let at = format!("{RUN_STATE}: {field}");
        forge.assert_finds(field, &state(forge.index_of("iter 0003"), change), violation(Rule::RunState, &at));
    }
    let required = state(forge.index_of("iter 0003"), |state| state.review_required = true);
    forge.assert_finds("a review that nothing requires", &required, violation(Rule::RunState, RUN_STATE));
    let first = (forge.index_of("iter 0001"), false);
    let edited = forge.with_file(first, FEEDBACK, |text| text.replace("Not yet.", "Fine."));
    forge.assert_finds("edited feedback", &edited, violation(Rule::Feedback, "feedback.json: nodes"));
    let blamed = forge.with_file(first, FEEDBACK, |text| text.replace("error: not yet", "error: something else"));
    forge.assert_finds("edited failure", &blamed, violation(Rule::Feedback, "feedback.json: nodes"));
    let boasted = forge.with_file((forge.index_of("iter 0003"), false), PROGRESS, |text| {
        format!("{text}- c2 — Done (iteration 0003)\n")
    });
    forge.assert_finds("forged progress", &boasted, violation(Rule::Progress, PROGRESS));
}

fn forge_messages(forge: &BranchForge) {
    let red = forge.index_of("iter 0001");
    let retry = forge.index_of("iter 0003");
    let accepted = forge.index_of("iter 0002");
    let says = |at: usize, old: &str, new: &str| {
        assert!(forge.pieces[at].message.contains(old), "{}", forge.pieces[at].message);
        forge.with_change(at, |piece| piece.message = piece.message.replace(old, new))
    };
    let cases = [
        ("an attempt taken off", says(red, "Attempts: 1/3", "Attempts: 0/3"), Rule::Receipt, "Runner-Attempts"),
        ("another mode", says(red, "Mode: execute", "Mode: decompose"), Rule::Receipt, "Runner-Mode"),
        ("another role", says(red, "Role: worker", "Role: planner"), Rule::Selection, "Runner-Role"),
        ("another agent", says(red, "Agent: command", "Agent: codex"), Rule::Selection, "Runner-Agent"),
        ("another summary", says(red, "Not yet.", "All fine."), Rule::Receipt, "message"),
        ("a green guard", says(red, "exit=1", "exit=0"), Rule::Verdict, "Runner-Verdict"),
        ("another node", says(red, "node b", "node c2"), Rule::Selection, "node"),
        ("another status", says(red, "status=done", "status=retry"), Rule::Receipt, "message"),
        ("a prompt of its own", says(red, "Prompt: sha256:", "Prompt: sha256:0"), Rule::Form, "message"),
        ("a line of its own", says(red, "Runner-Mode", "Runner-Mood"), Rule::Form, "message"),
        ("another number", says(retry, "iter 0003", "iter 0004"), Rule::Number, "iter"),
        ("another run", says(retry, "run play iter", "run other iter"), Rule::Number, "run"),
        ("no receipt at all", says(accepted, "Runner-Commit: iteration\n", ""), Rule::Passes, TREE),
    ];
    for (name, pieces, rule, at) in cases {
        forge.assert_finds(name, &pieces, violation(rule, at));
    }
    let relabelled = forge.with_change(red, |piece| {
        piece.message =
            piece.message.replace("RedGuard", "Retry").replace("status=done guard=fail", "status=retry guard=skipped");
    });
    forge.assert_finds("a red guard as a retry", &relabelled, violation(Rule::Receipt, "Runner-Guard"));
    let longer = forge.with_change(red, |piece| piece.message.push('\n'));
    forge.assert_finds("a line behind the receipt", &longer, violation(Rule::Form, "message"));
    let other = says(forge.index_of("note run"), "Mind the gap", "Mind the cat");
    forge.assert_finds("another note than the file has", &other, violation(Rule::Person, ".runner/state/notes.md"));
    let passed = forge.with_change(red, |piece| {
        piece.message = piece.message.replace("RedGuard", "Accepted").replace("guard=fail", "guard=pass");
    });
    forge.assert_finds("a red guard as accepted", &passed, violation(Rule::Verdict, "Runner-Verdict"));
    let prompt = forge.with_change(red, |piece| {
        let line = piece.message.lines().find(|line| line.starts_with("Runner-Prompt")).expect("it has a prompt");
        piece.message = piece.message.replace(line, &format!("Runner-Prompt: sha256:{}", "0".repeat(64)));
    });
    forge.assert_finds("another prompt", &prompt, violation(Rule::Prompt, "Runner-Prompt"));
    let tree_from = forge.with_change(red, |piece| {
        let line = piece.message.lines().find(|line| line.starts_with("Runner-Tree-From")).expect("it has one");
        piece.message = piece.message.replace(line, &format!("Runner-Tree-From: sha256:{}", "0".repeat(64)));
    });
    forge.assert_finds("another tree before", &tree_from, violation(Rule::Chain, "Runner-Tree-From"));
}

fn forge_chain(forge: &BranchForge) {
    let second = forge.index_of("iter 0002");
    let [first, gone] = [&forge.pieces[second - 1], &forge.pieces[second]];
    let mut missing = forge.pieces.clone();
    missing.remove(second);
    forge.assert_finds("a commit that is missing", &missing, violation(Rule::Chain, "Runner-From"));
    for piece in &mut missing {
        piece.message = piece.message.replace(&gone.id, &first.id);
    }
    forge.assert_finds("a commit that is missing, and not missed", &missing, violation(Rule::Number, "iter"));
    let mut swapped = forge.pieces.clone();
    swapped.swap(forge.index_of("iter 0001"), forge.index_of("iter 0002"));
    forge.assert_finds("two that were swapped", &swapped, violation(Rule::Number, "iter"));
    let swallowed = forge.with_change(forge.index_of("iter 0003"), |piece| {
        piece.message = piece.message.replace(&gone.id, &first.id);
    });
    forge.assert_finds("a receipt that swallows another", &swallowed, violation(Rule::Number, "iter"));
    forge.assert_finds("and the one that was", &swallowed, (Severity::Warning, Rule::Form, "message"));
    let mut posed = forge.pieces.clone();
    let mut fake = forge.pieces[forge.index_of("iter 0003")].clone();
    "fake".clone_into(&mut fake.id);
    posed.insert(forge.index_of("iter 0003"), fake);
    forge.assert_finds("an agent that poses as the runner", &posed, (Severity::Warning, Rule::Form, "message"));
}

fn forge_guard_definition(forge: &BranchForge) {
    let weak = "ci:\n\ttrue\n";
    let unnamed = forge.with_file((forge.index_of("iter 0002"), true), "justfile", |_| weak.to_owned());
    forge.assert_finds(
        "a definition that nobody is told of",
        &unnamed,
        violation(Rule::Receipt, "Runner-Guard-Changed"),
    );
    let blob = forge.git(&["hash-object", "--stdin"], weak);
    let mut accepted = unnamed;
    for piece in &mut accepted {
        let text = forge.try_show(&piece.tree, RUN_STATE);
        let mut state: RunState = serde_json::from_str(&text).expect("the file has its form");
        state.guard_definition.insert("justfile".to_owned(), blob.clone());
        let text = serde_json::to_string_pretty(&state).expect("the file serializes") + "\n";
        piece.tree = forge.tree_with(&piece.tree, RUN_STATE, &text);
    }
    let at = format!("{RUN_STATE}: guard_definition: justfile");
    forge.assert_finds("a definition that the base has not had", &accepted, violation(Rule::Milestone, &at));
}

fn forge_files(forge: &BranchForge) {
    let retry = forge.index_of("iter 0003");
    for path in [CONFIG, GOAL, ".runner/prompts/worker.md", ".runner/state/notes.md", ".runner/state/extra"] {
        let changed = forge.with_file((retry, true), path, |text| format!("{text}# more\n"));
        forge.assert_finds(path, &changed, violation(Rule::Owned, path));
    }
    for path in [".RUNNER/state/config.toml", ".runner\u{200c}/x", "runner~1"] {
        let like_runner = forge.with_file((retry, true), path, |_| "max_iterations = 1\n".to_owned());
        forge.assert_finds(path, &like_runner, violation(Rule::Owned, path));
    }
    for (at, path, rule) in
        [(retry, TREE, Rule::Owned), (forge.index_of("note run"), ".runner/state/notes.md", Rule::Person)]
    {
        let mut executable = forge.pieces.clone();
        for piece in &mut executable[at..] {
            piece.tree = forge.tree_with_executable(&piece.tree, path);
        }
        forge.assert_finds("a file that can be executed", &executable, violation(rule, path));
    }
    let memory = ".runner/state/assumptions.md";
    let rewritten = forge.with_file((retry, true), memory, |text| text.replace("# ", "## "));
    forge.assert_finds(memory, &rewritten, violation(Rule::Owned, memory));
    let template = forge
        .with_file((forge.index_of("Say when"), true), ".runner/prompts/worker.md", |_| "Do as you like.\n".to_owned());
    forge.assert_finds("a template before a prompt", &template, violation(Rule::Prompt, "Runner-Prompt"));
}

fn forge_people_and_milestones(forge: &BranchForge) {
    let hand = forge.index_of("Say when");
    let resume = forge.index_of("resume run");
    let start = forge.index_of("start run");
    let passes = forge.with_json::<TaskTree>(hand, TREE, |tree| node(tree, "c2").passes = true);
    forge.assert_finds("a person who sets passes", &passes, violation(Rule::Passes, "node c2"));
    let mut kept = passes.clone();
    let at_resume = forge.with_json::<TaskTree>(resume, TREE, |tree| node(tree, "c2").passes = true);
    kept[resume].tree.clone_from(&at_resume[resume].tree);
    forge.assert_finds("a person who sets passes for good", &kept, violation(Rule::Passes, TREE));
    let edited =
        forge.with_file((hand, true), RUN_STATE, |text| text.replace("\"run_id\": \"play\"", "\"run_id\": \"other\""));
    forge.assert_finds("a person who renames the run", &edited, violation(Rule::Number, "run_state.json"));
    let faults = forge.with_json::<RunState>(hand, RUN_STATE, |state| state.stall.count = 0);
    forge.assert_finds("a person who counts", &faults, (Severity::Warning, Rule::Person, "run_state.json: stall"));
    let granted = forge.with_json::<RunState>(resume, RUN_STATE, |state| state.next_iter = 1);
    forge.assert_finds("a resume that resets the count", &granted, violation(Rule::Milestone, "next_iter"));
    let planted = forge.with_json::<TaskTree>(resume, TREE, |tree| node(tree, "c2").title.push_str(", another"));
    forge.assert_finds("a resume that plans", &planted, violation(Rule::Tree, "node c2"));
    let code = forge.with_file((start, true), "one", |_| "1\n".to_owned());
    forge.assert_finds("a start with work in it", &code, violation(Rule::Milestone, "one"));
    let base = forge.with_json::<RunState>(start, RUN_STATE, |state| state.elapsed_ms = 5);
    forge.assert_finds("a start that has spent", &base, violation(Rule::Milestone, "elapsed_ms"));
    let passes_at_start = forge.with_json::<TaskTree>(start, TREE, |tree| node(tree, "c2").passes = true);
    forge.assert_finds("a start with a pass", &passes_at_start, violation(Rule::Passes, TREE));
}
