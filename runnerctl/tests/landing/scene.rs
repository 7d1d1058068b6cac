//! A repository with a tree of leaves, runs that complete them, and observations of `main` afterwards.

use protocol::tree::{Node, TREE_VERSION, TaskTree};
use runner_testkit::{Daemon, Home, ProgramOutput, Repo};

pub(crate) fn leaf(id: &str, order: i64, children: Vec<Node>) -> Node {
    Node {
        id: id.to_owned(),
        order,
        title: format!("Title of {id}"),
        goal: format!("Goal of {id}."),
        acceptance: Vec::new(),
        passes: false,
        attempts: 0,
        max_attempts: 3,
        children,
    }
}

/// A repository, its script, and the daemon, which stops before the home is checked.
pub(crate) struct LandingScene {
    daemon: Option<Daemon>,
    pub(crate) repo: Repo,
    pub(crate) home: Home,
    sessions: std::cell::Cell<u32>,
}

impl LandingScene {
    /// A tree with these leaves; `main` also has a file `shared` of five lines.
    pub(crate) fn new(leaves: &[&str]) -> Self {
        Self::in_format(leaves, &[])
    }

    /// Like [`Self::new`], with these options of `git init`.
    pub(crate) fn in_format(leaves: &[&str], init: &[&str]) -> Self {
        let home = Home::new();
        let repo = home.repo("one");
        if !init.is_empty() {
            std::fs::remove_dir_all(repo.path().join(".git")).expect("the repository can be created again");
            repo.git(&[&["init", "-q", "-b", "main"], init].concat());
        }
        repo.write("shared", "one\ntwo\nthree\nfour\nfive\n");
        repo.write(".gitignore", "*.log\n");
        repo.commit_config(&repo.config());
        let children = (1..).zip(leaves).map(|(order, id)| leaf(id, order, Vec::new())).collect();
        repo.commit_tree(&TaskTree { version: TREE_VERSION, root: leaf("root", 0, children) });
        let daemon = home.daemon();
        Self { daemon: Some(daemon), repo, home, sessions: std::cell::Cell::new(0) }
    }

    /// Runs `id` from `main`, with one session for each of these steps.
    pub(crate) fn run(&self, id: &str, steps: &[&str]) -> &Self {
        self.git(&["checkout", "-q", "main"]);
        self.run_on(id, steps)
    }

    /// Runs `id` from where HEAD is.
    pub(crate) fn run_on(&self, id: &str, steps: &[&str]) -> &Self {
        for step in steps {
            self.sessions.set(self.sessions.get() + 1);
            self.repo.script().step(self.sessions.get(), step);
        }
        self.home.run(&self.repo, &["--id", id]).exits(0);
        self
    }

    /// Checks out `main` in the work tree.
    pub(crate) fn on_main(&self) -> &Self {
        self.git(&["checkout", "-q", "main"]);
        self
    }

    pub(crate) fn land(&self, args: &[&str]) -> ProgramOutput {
        self.home.ctl_in(&self.repo, &[&["land"], args].concat())
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.repo.git(args)
    }

    /// Returns the subjects of the commits on `main` since the tree was planted, oldest first.
    pub(crate) fn landed_subjects(&self) -> Vec<String> {
        let log = self.git(&["log", "--reverse", "--first-parent", "--format=%s", "main"]);
        let all: Vec<String> = log.lines().map(str::to_owned).collect();
        let planted = all.iter().position(|subject| subject == "Plan the work");
        all[planted.map_or(0, |at| at + 1)..].to_vec()
    }

    /// Kills the daemon.
    pub(crate) fn kill(&mut self) {
        self.daemon.take().expect("a daemon runs").kill();
    }

    /// Starts the next one.
    pub(crate) fn restart(&mut self) {
        self.daemon = Some(self.home.daemon());
    }
}

/// A session that writes a file and is done.
pub(crate) fn write_step(file: &str, text: &str) -> String {
    format!("mkdir -p \"$(dirname {file})\"; printf '{text}' > {file}; answer done 'Wrote {file}.'")
}

/// A session that replaces a line of `shared` and is done.
pub(crate) fn change_step(line: &str, by: &str) -> String {
    format!("sed -i 's/^{line}$/{by}/' shared; answer done 'Changed {line}.'")
}
