//! A repository with a planted task tree, run for as many iterations as a test needs, and observations afterwards.

use std::fs;

use protocol::meta::IterationMeta;
use protocol::tree::{Node, TREE_VERSION, TaskTree};
use protocol::words::Role;
use runner_testkit::{
    Client, Config, Daemon, FakeClock, Home, ProgramOutput, ReceiptCommit, Repo, Script, SessionGate,
};

/// Id of every test's run.
pub(crate) const RUN: &str = "play";

/// Twice the budget of an iteration, in seconds. After this time, whatever waits at a gate has exceeded its budget,
/// however long it took to get there.
pub(crate) const HOUR: i64 = 3600;

/// Uses the script's file `tree.json` as the task tree.
pub(crate) const LEAVE: &str = "cp \"$kit/files/tree.json\" \"$tree\"\n";

pub(crate) fn leaf(id: &str, order: i64) -> Node {
    Node {
        id: id.to_owned(),
        order,
        title: format!("Title of {id}"),
        goal: format!("Goal of {id}"),
        acceptance: vec![format!("{id} holds")],
        passes: false,
        attempts: 0,
        max_attempts: 3,
        children: Vec::new(),
    }
}

pub(crate) fn inner(id: &str, order: i64, children: Vec<Node>) -> Node {
    Node { children, ..leaf(id, order) }
}

/// A root with a passed leaf `a`, an open leaf `b`, which is selected, and an open branch `c` of `c1` and `c2`.
pub(crate) fn sample() -> TaskTree {
    let passed = Node { passes: true, ..leaf("a", 1) };
    let branch = inner("c", 3, vec![leaf("c1", 1), leaf("c2", 2)]);
    TaskTree { version: TREE_VERSION, root: inner("root", 0, vec![passed, leaf("b", 2), branch]) }
}

pub(crate) fn node<'a>(tree: &'a mut TaskTree, id: &str) -> &'a mut Node {
    fn find<'a>(node: &'a mut Node, id: &str) -> Option<&'a mut Node> {
        if node.id == id { Some(node) } else { node.children.iter_mut().find_map(|child| find(child, id)) }
    }
    find(&mut tree.root, id).expect("the node is in the tree")
}

/// A repository, its script, and the daemon. The daemon stops before the home is checked.
pub(crate) struct RunPlay {
    daemon: Option<Daemon>,
    pub(crate) repo: Repo,
    pub(crate) home: Home,
}

impl RunPlay {
    /// The sample tree, one iteration.
    pub(crate) fn new() -> Self {
        Self::with_tree(&sample(), |config| config.top("max_iterations = 1"))
    }

    pub(crate) fn with_tree(tree: &TaskTree, configure: impl FnOnce(Config) -> Config) -> Self {
        Self::in_home(Home::new(), tree, configure)
    }

    /// Like [`Self::with`], in a prepared home.
    pub(crate) fn in_home(home: Home, tree: &TaskTree, configure: impl FnOnce(Config) -> Config) -> Self {
        let repo = home.repo_with_tree("one", tree, configure);
        Self { daemon: Some(home.daemon()), repo, home }
    }

    /// The sample tree, with clocks controlled by the test.
    pub(crate) fn with_clock(configure: impl FnOnce(Config) -> Config) -> (Self, FakeClock) {
        let home = Home::new();
        let clock = FakeClock::new(&home);
        let repo = home.repo_with_tree("one", &sample(), configure);
        (Self { daemon: Some(clock.daemon(&home)), repo, home }, clock)
    }

    /// Kills the daemon.
    pub(crate) fn kill(&mut self) {
        self.daemon.take().expect("a daemon runs").kill();
    }

    /// Kills the daemon, and starts the next one.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// Starts the next daemon.
    pub(crate) fn restart(&mut self) {
        self.daemon = Some(self.home.daemon());
    }

    /// Stops the daemon in order, and starts the next one.
    pub(crate) fn stop_and_restart(&mut self) {
        self.daemon.take().expect("a daemon runs").stop();
        self.daemon = Some(self.home.daemon());
    }

    pub(crate) fn script(&self) -> &Script {
        self.repo.script()
    }

    pub(crate) fn client(&self) -> Client {
        self.home.client()
    }

    /// Sets the tree for `LEAVE`: the sample with a change.
    pub(crate) fn script_tree_change(&self, change: impl FnOnce(&mut TaskTree)) -> &Script {
        let mut tree = sample();
        change(&mut tree);
        self.script().file("tree.json", &serde_json::to_string(&tree).expect("a task tree serializes"))
    }

    /// Starts the run and waits for its end.
    pub(crate) fn run(&self) -> ProgramOutput {
        self.home.run(&self.repo, &["--id", RUN])
    }

    /// Starts the run, calls a function meanwhile, and waits for the run's end.
    pub(crate) fn run_while(&self, meanwhile: impl FnOnce()) -> ProgramOutput {
        self.home.run_while(&self.repo, &["--id", RUN], meanwhile)
    }

    /// Starts the run, lets the budget pass while something waits at a gate, and waits for the run's end.
    pub(crate) fn run_over_budget(&self, gate: &SessionGate, clock: &FakeClock) -> ProgramOutput {
        self.run_while(|| {
            gate.wait_reached();
            clock.set(HOUR, 0);
        })
    }

    /// Starts the run without waiting for it.
    pub(crate) fn start_run(&self) {
        let args = ["start", "--yes", "--id", RUN];
        self.home.ctl_in(&self.repo, &args).exits(0);
    }

    /// Starts the run, waits for its end and returns the result of its first iteration.
    pub(crate) fn run_first(&self, exit: i32) -> SeenIteration {
        self.run().exits(exit);
        self.iteration_at(1)
    }

    /// Returns the result of an iteration, after asserting that the repository is sound.
    pub(crate) fn iteration_at(&self, iter: u32) -> SeenIteration {
        self.repo.assert_sound();
        let receipts = self.repo.receipts();
        let subject = format!("chore(loop): run {RUN} iter {iter:04} ");
        let receipt = receipts.iter().find(|receipt| receipt.subject.starts_with(&subject));
        let receipt = receipt.unwrap_or_else(|| panic!("no receipt of {iter} in {receipts:#?}")).clone();
        let meta = serde_json::from_str(&self.record(iter, "meta.json")).expect("the record has its facts");
        let seen = SeenIteration { receipt, meta };
        seen.assert_consistent(self, iter);
        seen
    }

    /// Returns a file of an iteration's record.
    pub(crate) fn record(&self, iter: u32, file: &str) -> String {
        self.repo.read(&format!(".runner/iterations/{RUN}/{iter:04}/{file}"))
    }

    pub(crate) fn has_record(&self, iteration: &str) -> bool {
        fs::exists(self.repo.path().join(format!(".runner/iterations/{RUN}/{iteration}")))
            .expect("records can be looked for")
    }
}

/// What a row of the table says about an iteration.
pub(crate) struct ExpectedRow {
    pub(crate) verdict: &'static str,
    pub(crate) status: &'static str,
    pub(crate) guard: &'static str,
    pub(crate) attempts: &'static str,
}

/// An iteration according to its commit and its record.
pub(crate) struct SeenIteration {
    pub(crate) receipt: ReceiptCommit,
    pub(crate) meta: IterationMeta,
}

impl SeenIteration {
    /// Asserts subject and trailers, and that they agree with the record.
    #[track_caller]
    pub(crate) fn assert_row(&self, row: &ExpectedRow) -> &Self {
        let trailer = |name| self.receipt.trailer(name).unwrap_or_default();
        assert_eq!(self.receipt.verdict(), row.verdict, "{:#?}", self.receipt);
        let end = format!("node {} status={} guard={}", self.meta.node, row.status, row.guard);
        assert!(self.receipt.subject.ends_with(&end), "{} against {end}", self.receipt.subject);
        assert_eq!(trailer("Runner-Attempts"), row.attempts);
        assert_eq!(self.meta.verdict.as_str(), row.verdict);
        assert_eq!((self.meta.status.as_str(), self.meta.guard.as_str()), (row.status, row.guard));
        self
    }

    /// Asserts that the receipt's verdict contains a text.
    #[track_caller]
    pub(crate) fn assert_detail(&self, detail: &str) -> &Self {
        let line = self.receipt.trailer("Runner-Verdict").unwrap_or_default();
        assert!(line.contains(detail), "`{line}` does not tell `{detail}`");
        self
    }

    /// Asserts what holds for every iteration.
    fn assert_consistent(&self, play: &RunPlay, iter: u32) {
        let repo = &play.repo;
        let commit = &self.receipt.commit;
        let from = self.receipt.trailer("Runner-From").expect("a receipt names From");
        assert_eq!(self.meta.from, from);
        assert_eq!(self.meta.commit.as_ref(), Some(commit));
        repo.git(&["merge-base", "--is-ancestor", from, commit]);
        let state = repo.run_state(commit);
        assert_eq!((state.run_id.as_deref(), state.next_iter), (Some(RUN), iter + 1));
        assert_eq!(state.last_node.as_ref(), Some(&self.meta.node));
        assert_eq!((state.last_status, state.last_guard), (Some(self.meta.status), Some(self.meta.guard)));
        let has_prompt = play.has_record(&format!("{iter:04}/prompt.md"));
        assert_eq!(has_prompt, self.meta.role != Role::Human, "a session has a prompt, and a person has none");
        for file in ["events.jsonl", "tree.before.json", "tree.after.json", "diff.patch"] {
            assert!(play.has_record(&format!("{iter:04}/{file}")), "the record lacks {file}");
        }
        assert_eq!(play.record(iter, "tree.after.json").trim_end(), repo.show(commit, ".runner/state/tree.json"));
        assert_eq!(play.record(iter, "tree.before.json").trim_end(), repo.show(from, ".runner/state/tree.json"));
    }
}
