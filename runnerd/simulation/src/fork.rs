//! A fork: another run that continues from an iteration of a finished simulation, with its tree, attempts and feedback.

use protocol::state::RunState;
use runner_core::files::layout;
use runner_core::message::RunnerCommit;
use runner_core::text::json;

use super::audit::is_iteration;
use super::daemon::{LiveState, SimulatedRun, StepResult};
use super::loaded::LoadedState;
use super::witness::TaskClaim;

/// Number of iterations of a fork.
const ITERATIONS: u32 = 8;

/// What a witness knew after an iteration, and therefore also knows in a fork from it.
#[derive(Debug, Clone)]
pub(crate) struct ForkOrigin {
    pub(crate) claim: Option<TaskClaim>,
    pub(crate) accepted: Option<String>,
}

impl SimulatedRun {
    /// Forks the run at one of its iterations; false if it has none. Nothing else works on the run any more.
    pub(crate) fn fork(&mut self) -> bool {
        if self.is_lost {
            return false;
        }
        let all: Vec<String> = self
            .repository
            .chain()
            .iter()
            .filter(|commit| is_iteration(commit))
            .map(|commit| commit.id.clone())
            .collect();
        let known = |id: &&String| self.known.contains_key(*id);
        let all: Vec<&String> = all.iter().filter(known).collect();
        let Some(from) = self.random.place(all.len()).map(|at| all[at].clone()) else { return false };
        let known = self.known[&from].clone();
        self.repository.restore(&from);
        (self.claim, self.accepted) = (known.claim, known.accepted);
        (self.run, self.record, self.habits) = ("run-2", Self::queued("run-2"), self.lively.clone());
        (self.journal, self.live, self.amends, self.last_end) = (None, LiveState::default(), None, None);
        self.changes.clear();
        self.habits.iterations = self.settled + ITERATIONS;
        self.rise();
        true
    }

    /// Makes the start commit of a fork: a copy of the original start commit with another name.
    pub(crate) fn start_fork(&mut self, from: &LoadedState) -> StepResult<()> {
        let base = self.repository.tip.clone();
        let run_id = Some(self.run.to_owned());
        let at = Some(base.clone());
        let state = RunState { run_id, base: at, ..(*from.run_state).clone() };
        self.repository.write(layout::RUN_STATE, json::to_canonical_json(&state).as_bytes());
        self.may_die()?;
        let goal = from.goal.with_id(self.run).expect("the id can be set");
        self.repository.write(layout::GOAL, goal.as_bytes());
        self.may_die()?;
        self.repository.commit_all(&RunnerCommit::Start(self.milestone(base)).compose());
        Ok(())
    }
}
