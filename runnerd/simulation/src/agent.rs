//! An untrustworthy agent: it works, plans, appends, and sometimes does something it may not do.

use jiff::SignedDuration;
use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::tree::{Node, TaskTree};
use runner_core::files::layout;
use runner_core::iteration::GuardEndKind;
use runner_core::tree;
use runner_core::verdict::{FaultKind, SessionEndKind, SessionTask};

use super::daemon::SimulatedRun;
use super::definition::JUSTFILE;
use super::habits::child;
use super::loaded::LoadedState;
use super::people::open_leaves;

/// Number of nodes beyond which no node is split any more.
const MANY_NODES: usize = 14;

/// What agents say by default.
const SUMMARIES: [&str; 3] = ["Ported the ledger", "Not yet: the tests  fail", "It is more than it seemed"];

impl SimulatedRun {
    /// Runs a session of the agent; the work tree stays as the agent leaves it.
    pub(crate) fn act(&mut self, loaded: &LoadedState, task: &SessionTask) -> SessionEndKind {
        if !self.random.one_in(4) {
            self.edit_code();
        }
        if self.random.one_in(4) {
            self.append();
        }
        if self.random.one_in(6) {
            let path = format!("{}/{}/context.md", layout::NODES, task.node);
            self.scribble(&path);
        }
        let mut how = self.how(loaded, task);
        if let SessionEndKind::Answered(answer) = &mut how {
            self.plan(answer, task);
        } else if self.random.one_in(3) {
            self.edit_tree(|random, tree| sibling(random.below(90), tree));
        }
        if self.random.one_in(8) {
            self.own_commit("wip");
            self.edit_code();
        }
        if self.random.one_in(self.habits.mischief.saturating_mul(2)) {
            self.weaken_guard();
        }
        if self.random.one_in(self.habits.mischief) {
            self.mischief(task);
        }
        how
    }

    fn edit_code(&mut self) {
        let path = format!("src/part_{}.rs", self.random.below(6));
        if self.random.one_in(8) {
            self.repository.work.remove(&path);
        } else {
            self.scribble(&path);
        }
        if self.random.one_in(20) {
            self.scribble("keys/id_rsa");
        }
    }

    /// Changes or removes the guard's command.
    fn weaken_guard(&mut self) {
        match self.random.below(8) {
            0 => _ = self.repository.work.remove(JUSTFILE),
            1 | 2 => self.scribble_on(&["ci/check.sh", "ci/new.sh"]),
            3 => self.rename_in_definition(),
            4 => self.rework_definition(),
            _ => self.scribble(JUSTFILE),
        }
    }

    /// Changes many files of the definition at once: more than a list of the first rules contains.
    fn rework_definition(&mut self) {
        for number in 0..self.random.below(30) {
            self.scribble(&format!("ci/part-{number:02}.sh"));
        }
    }

    pub(crate) fn scribble(&mut self, path: &str) {
        let text = format!("// {}\n", self.random.below(1_000_000));
        self.repository.write(path, text.as_bytes());
    }

    fn scribble_on(&mut self, paths: &[&str]) {
        let path = *self.random.pick(paths);
        self.scribble(path);
    }

    fn append(&mut self) {
        let path = *self.random.pick(&layout::MEMORY);
        let text = format!("{}- is part {} needed?\n", self.repository.text(path), self.random.below(50));
        self.repository.write(path, text.as_bytes());
    }

    /// How the session ends.
    fn how(&mut self, loaded: &LoadedState, task: &SessionTask) -> SessionEndKind {
        let until =
            self.random.one_in(2).then(|| self.now + SignedDuration::from_mins(self.random.below(300).cast_signed()));
        let what = || "it said no".to_owned();
        let kinds =
            [FaultKind::Exit, FaultKind::Crash, FaultKind::Silence, FaultKind::NoAnswer, FaultKind::InvalidAnswer];
        match self.random.below(40) {
            0 | 1 => SessionEndKind::Unavailable { why: "overloaded".to_owned(), until },
            2 => SessionEndKind::TimedOut,
            3 if self.random.one_in(2) => {
                SessionEndKind::Misconfigured { what: "the key is refused; log in".to_owned() }
            }
            4 => SessionEndKind::ContextExceeded { what: "the prompt is too long".to_owned() },
            5..=7 => SessionEndKind::Faulty { kind: *self.random.pick(&kinds), what: what() },
            _ => SessionEndKind::Answered(self.answer(loaded, task)),
        }
    }

    fn answer(&mut self, loaded: &LoadedState, task: &SessionTask) -> AgentAnswer {
        let may_divide = tree::index(&loaded.tree).len() < MANY_NODES;
        let is_root = task.path.len() == 1;
        let status = match self.random.below(if is_root { 5 } else { 9 }) {
            0 | 1 if may_divide => AnswerStatus::Decomposed,
            2 => AnswerStatus::Retry,
            _ => AnswerStatus::Done,
        };
        let is_own = self.random.one_in(2);
        let summary = if is_own {
            format!("Ported {}", self.random.below(500))
        } else {
            (*self.random.pick(&SUMMARIES)).to_owned()
        };
        AgentAnswer { status, summary, children: None }
    }

    /// Changes the tree to match the answer, or puts the children into the answer; sometimes both, or neither.
    fn plan(&mut self, answer: &mut AgentAnswer, task: &SessionTask) {
        let node = task.node.clone();
        let children: Vec<_> = (0..=self.random.below(3)).map(child).collect();
        let is_odd = self.random.one_in(self.habits.mischief.saturating_mul(4));
        match (answer.status, self.random.below(2)) {
            (AnswerStatus::Decomposed, 0) => answer.children = Some(children.clone()),
            (AnswerStatus::Decomposed, _) => {
                self.edit_tree(|_, tree| tree::insert_children(tree, &node, &children, 7));
            }
            (AnswerStatus::Retry, 0) => self.edit_tree(|random, tree| reword(random.below(99), &node, tree)),
            (AnswerStatus::Done | AnswerStatus::Retry, _) => {}
        }
        if is_odd {
            answer.children = if answer.children.is_some() { None } else { Some(children) };
        }
        if self.random.one_in(6) {
            self.edit_tree(|random, tree| sibling(random.below(90), tree));
        }
        if self.random.one_in(6) {
            let other = open_leaves(&self.tree()).into_iter().find(|id| *id != node);
            if let Some(other) = other {
                self.edit_tree(|random, tree| reword(random.below(99), &other, tree));
            }
        }
    }

    /// Reads the tree in the work tree; if it is unreadable, the agent creates a new one.
    fn tree(&self) -> TaskTree {
        serde_json::from_str(&self.repository.text(layout::TREE)).unwrap_or_else(|_| tree::new_tree(3))
    }

    fn edit_tree(&mut self, edit: impl FnOnce(&mut super::random::RandomSource, &mut TaskTree)) {
        let mut tree = self.tree();
        edit(&mut self.random, &mut tree);
        // An agent formats it differently from the runner.
        let text = serde_json::to_string(&tree).unwrap_or_default();
        self.repository.write(layout::TREE, text.as_bytes());
    }

    fn own_commit(&mut self, message: &str) {
        self.repository.commit_all(message);
    }

    /// Does something that an agent may not do.
    fn mischief(&mut self, task: &SessionTask) {
        let node = task.node.clone();
        match self.random.below(18) {
            16 => self.edit_tree(|_, tree| {
                tree::insert_children(tree, &node, &(0..13).map(child).collect::<Vec<_>>(), 7);
            }),
            17 => self.edit_tree(|_, tree| {
                let mut parent = node;
                for number in 0..3 {
                    tree::insert_children(tree, &parent, &[child(number)], 7);
                    let only = tree::find(tree, &parent).and_then(|node| node.children.first());
                    parent = only.map_or(parent.clone(), |only| only.id.clone());
                }
            }),
            0 => self.repository.write(layout::TREE, b"{\"version\": 1, \"root\": "),
            1 => _ = self.repository.work.remove(layout::TREE),
            2 => self.edit_tree(|_, tree| edit_passed_node(tree, |node| node.title.push('!'))),
            3 => self.edit_tree(|_, tree| drop(tree.root.children.pop())),
            4 => self.edit_tree(|_, tree| move_node(tree)),
            5 => self.edit_tree(|random, tree| reword(random.below(99), &node, tree)),
            6 => self.edit_tree(|_, tree| {
                tree::for_each_node_mut(tree, |node| (node.passes, node.attempts) = (node.children.is_empty(), 0));
            }),
            7 => self.scribble(layout::RUN_STATE),
            8 => self.scribble_on(&[layout::CONFIG, layout::GOAL, layout::PROGRESS, layout::NOTES]),
            9 => self.scribble_on(&layout::MEMORY),
            10 => _ = self.repository.work.remove(layout::FEEDBACK),
            11 => self.scribble(".runner/prompts/worker.md"),
            12 => self.rewrite_history(),
            13 => self.repository.strayed = Some("HEAD was detached"),
            14 => {
                self.scribble(layout::CONFIG);
                self.own_commit("chore: tune");
            }
            _ => {
                let message = self.repository.head().message.clone();
                self.own_commit(&message);
            }
        }
    }

    pub(crate) fn rewrite_history(&mut self) {
        let parent = self.repository.head().parent.clone();
        if let Some(parent) = parent {
            self.repository.tip = parent;
            self.edit_code();
            self.own_commit("rewritten");
        }
    }

    /// Runs a guard, which misbehaves like the agent.
    pub(crate) fn run_guard(&mut self) -> GuardEndKind {
        if self.random.one_in(6) {
            self.scribble("target.lock");
        }
        if self.random.one_in(20) {
            self.own_commit("chore: what the guard has written");
        }
        if self.random.one_in(self.habits.mischief.saturating_mul(4)) {
            match self.random.below(6) {
                0 => self.rewrite_history(),
                1 => self.scribble(layout::CONFIG),
                2 => self.scribble(layout::TREE),
                3 => self.weaken_guard(),
                4 => self.repository.strayed = Some("HEAD was detached"),
                _ => self.repository.strayed = Some("a merge was left under way"),
            }
        }
        match self.random.below(30) {
            0 => GuardEndKind::TimedOut,
            1 => GuardEndKind::Lost,
            2 => GuardEndKind::Signaled(9),
            3 if self.random.one_in(3) => GuardEndKind::Missing { what: "just is not installed".to_owned() },
            4..=12 => GuardEndKind::Exited(1 + i32::from(self.random.one_in(2))),
            _ => GuardEndKind::Exited(0),
        }
    }
}

fn sibling(number: u64, tree: &mut TaskTree) {
    let open = tree::walk(tree).into_iter().rev().find(|placed| !placed.node.is_leaf() && !placed.node.passes);
    if let Some(id) = open.map(|placed| placed.node.id.clone())
        && tree::index(tree).len() < MANY_NODES
    {
        tree::insert_children(tree, &id, &[child(number)], 9);
        if let Some(last) = tree::find_mut(tree, &id).and_then(|parent| parent.children.last_mut()) {
            last.order = number.cast_signed();
        }
    }
}

fn reword(number: u64, id: &str, tree: &mut TaskTree) {
    if let Some(node) = tree::find_mut(tree, id) {
        node.goal = format!("Part {number} of it, and no more.");
    }
}

/// Changes the first passed node.
fn edit_passed_node(tree: &mut TaskTree, change: impl FnOnce(&mut Node)) {
    let first = tree::walk(tree).into_iter().find(|placed| placed.node.passes).map(|placed| placed.node.id.clone());
    if let Some(node) = first.and_then(|id| tree::find_mut(tree, &id)) {
        change(node);
    }
}

/// Moves the last child of the root below the first.
fn move_node(tree: &mut TaskTree) {
    let children = &mut tree.root.children;
    if children.len() > 1
        && let Some(last) = children.pop()
    {
        children[0].children.push(last);
    }
}
