//! A repository, a daemon, an agent and a model; observations of a run, and assertions after each run.

use protocol::view::RunView;
use protocol::words::RunStatus;
use runner_testkit::invariants::{assert_consistent, list_verdicts};
use runner_testkit::model::{ModelReply, ModelServer, ReplyScript};
use runner_testkit::{Config, Daemon, Home, ProgramOutput, ReceiptCommit, Repo};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::agent::{AgentAccount, AgentPaths, RealAgent};

/// Everything needed for a run, in the order in which it is dropped.
pub(crate) struct AgentStage {
    daemon: Option<Daemon>,
    pub(crate) model: ModelServer,
    pub(crate) repo: Repo,
    pub(crate) home: Home,
    _folder: TempDir,
}

/// The options of a stage.
pub(crate) struct StageSetup {
    agent: RealAgent,
    account: AgentAccount,
    zone: &'static str,
    configure: Box<dyn FnOnce(Config) -> Config>,
}

impl StageSetup {
    /// The user pays per use and is in UTC.
    pub(crate) fn for_agent(agent: RealAgent) -> Self {
        Self { agent, account: AgentAccount::Key, zone: "UTC", configure: Box::new(|config| config) }
    }

    /// The user has a plan.
    pub(crate) fn with_plan(self) -> Self {
        Self { account: AgentAccount::Plan, ..self }
    }

    /// The user is in another time zone.
    pub(crate) fn in_zone(self, zone: &'static str) -> Self {
        Self { zone, ..self }
    }

    pub(crate) fn with_config(self, configure: impl FnOnce(Config) -> Config + 'static) -> Self {
        Self { configure: Box::new(configure), ..self }
    }

    /// Starts model and daemon. The first fault fails a run, and the guard requires the file `work`.
    pub(crate) fn start(self, script: ReplyScript) -> AgentStage {
        // Codex creates no helper programs below the folder for temporary files.
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder for the agents can be made");
        let model = ModelServer::start(script);
        let service = model.url();
        let place = AgentPaths { service: &service, folder: folder.path() };
        let home = Home::new().export("TZ", self.zone);
        let home = RealAgent::ALL.into_iter().fold(home, |home, agent| agent.install(home, self.account, &place));
        let repo = home.repo("one");
        let config = repo.config().top("max_consecutive_faults = 1").top("iteration_timeout_secs = 100");
        repo.commit_config(&(self.configure)(self.agent.configure(config, &service)));
        repo.script().guard_always("test -e work || { echo 'there is no work'; exit 1; }");
        AgentStage { daemon: Some(home.daemon()), model, repo, home, _folder: folder }
    }
}

impl AgentStage {
    pub(crate) fn new(agent: RealAgent, script: ReplyScript) -> Self {
        StageSetup::for_agent(agent).start(script)
    }

    /// Starts the run and waits for its end.
    pub(crate) fn run(&self) -> ProgramOutput {
        self.home.run(&self.repo, &["-m", "Write the file work."])
    }

    /// Starts the run without waiting for it.
    pub(crate) fn start_run(&self) {
        self.ctl(&["start", "--yes", "-m", "Write the file work."]).exits(0);
    }

    /// Runs `runnerctl` in the repository.
    pub(crate) fn ctl(&self, args: &[&str]) -> ProgramOutput {
        self.home.ctl_in(&self.repo, args)
    }

    /// Waits until the run is in this state; panics if it ends in another.
    #[track_caller]
    pub(crate) fn wait_for_state(&self, state: RunStatus) -> RunView {
        let is_over =
            |found: RunStatus| matches!(found, RunStatus::Completed | RunStatus::Failed | RunStatus::TimedOut);
        let has_come = |run: &RunView| run.summary.state == state || is_over(run.summary.state);
        let run = self.home.client().wait_until(self.repo.path(), has_come);
        assert_eq!(run.summary.state, state, "{run:#?}");
        run
    }

    /// Waits until the run is neither running nor queued.
    pub(crate) fn wait_until_stopped(&self) -> RunView {
        let has_stopped = |run: &RunView| !matches!(run.summary.state, RunStatus::Queued | RunStatus::Running);
        self.home.client().wait_until(self.repo.path(), has_stopped)
    }

    /// Ends the daemon with `end`, and starts the next one.
    pub(crate) fn restart(&mut self, end: impl FnOnce(Daemon)) {
        end(self.daemon.take().expect("a daemon runs"));
        self.daemon = Some(self.home.daemon());
    }

    /// Asserts the verdicts, and what holds after every run: no process is alive, history and bookkeeping agree.
    #[track_caller]
    pub(crate) fn assert_ended_as(&self, expected: &[&str]) -> Vec<ReceiptCommit> {
        assert_eq!(list_verdicts(&self.repo), expected, "{}", self.log());
        self.home.assert_no_survivors();
        assert_consistent(&self.repo);
        self.repo.receipts()
    }

    /// Diagnostics for a run that did not go as expected.
    pub(crate) fn log(&self) -> String {
        let log = self.ctl(&["log"]);
        let paths: Vec<String> = self.model.requests().iter().map(|request| request.path.clone()).collect();
        format!("{}{}\nthe model was asked: {paths:?}, and {:?}", log.stdout, log.stderr, self.model.other_requests())
    }
}

/// The result of a session that has done its work.
pub(crate) fn done_reply(summary: &str) -> ModelReply {
    ModelReply::answer(json!({"status": "done", "summary": summary, "children": null}))
}

/// The result of a session that has split its node.
pub(crate) fn split_reply(titles: &[&str]) -> ModelReply {
    let child = |title: &&str| json!({"title": title, "goal": format!("Do {title}."), "acceptance": ["It is done."]});
    let children: Vec<Value> = titles.iter().map(child).collect();
    ModelReply::answer(json!({"status": "decomposed", "summary": "Split.", "children": children}))
}

/// A session that does all the work.
pub(crate) fn with_work(script: ReplyScript) -> ReplyScript {
    script.then(ModelReply::run("echo 1 > work")).then(done_reply("Wrote the file."))
}
