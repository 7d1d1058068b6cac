//! The settings of a simulation: its configuration, its initial files, and how often something interferes.

use std::time::Duration;

use jiff::Timestamp;
use protocol::path::WirePath;
use protocol::tree::{ChildSpec, Node};
use runner_config::{ChangePolicy, ReviewPolicy, RolesMode, TimeoutPolicy};
use runner_config::{ExecutorKind, Executors, MicroUsd, Patterns, RepoConfig};
use runner_core::files::layout;
use runner_core::run::{self, RunRecord, StartRequest, StartSpec};
use runner_core::tree;

use super::daemon::{LiveState, SimulatedRun};
use super::definition::{DEFINITION, JUSTFILE};
use super::mistake::PlantedMistake;
use super::random::RandomSource;
use super::repository::{FileMap, SimulatedRepository, StoredBlob};
use super::witness::RunWitness;

/// The probability of each disturbance, as one in this many; 0 means never.
#[derive(Debug, Clone)]
pub(crate) struct AgentHabits {
    /// The daemon dies at a write.
    pub(crate) deaths: u64,
    /// An effect is blocked.
    pub(crate) obstacles: u64,
    /// A stop of the iteration or the daemon is requested.
    pub(crate) stops: u64,
    /// People do something.
    pub(crate) people: u64,
    /// An agent does something it may not do.
    pub(crate) mischief: u64,
    /// Iterations after which the simulation ends.
    pub(crate) iterations: u32,
    /// Whether prompts are built, which takes longer than everything else together.
    pub(crate) has_prompts: bool,
    /// The configuration at the start.
    pub(crate) config: RepoConfig,
}

impl AgentHabits {
    fn of(seed: u64, random: &mut RandomSource) -> Self {
        Self {
            deaths: *random.pick(&[0, 0, 25, 60, 150]),
            obstacles: *random.pick(&[0, 15, 40]),
            stops: *random.pick(&[0, 20, 60]),
            people: *random.pick(&[0, 4, 10]),
            mischief: *random.pick(&[0, 3, 8]),
            iterations: 10 + u32::try_from(random.below(40)).unwrap_or_default(),
            has_prompts: seed.is_multiple_of(16),
            config: config(random),
        }
    }

    /// Turns off all disturbances from outside.
    pub(crate) fn calm(&mut self) {
        (self.deaths, self.obstacles, self.stops, self.people) = (0, 0, 0, 0);
    }
}

fn config(random: &mut RandomSource) -> RepoConfig {
    let mut config = RepoConfig::default();
    let kinds = [
        (ExecutorKind::Codex, vec![]),
        (ExecutorKind::Command, vec![]),
        (ExecutorKind::Codex, vec![ExecutorKind::Claude]),
    ];
    let (kind, fallback) = random.pick(&kinds).clone();
    let Executors { work, plan, review } = &mut config.executor;
    for executor in [work, plan, review] {
        (executor.kind, executor.fallback) = (kind, fallback.clone());
        executor.command = vec!["agent".to_owned()];
    }
    config.max_iterations = *random.pick(&[6, 20, 100]);
    config.review.sign = config.max_iterations == 20;
    "It has tests.".clone_into(&mut config.review.criteria);
    config.max_attempts_default = *random.pick(&[1, 2, 3, 3, 5]);
    config.max_consecutive_faults = *random.pick(&[1, 3, 5]);
    config.stall_after = *random.pick(&[3, 5]);
    config.on_timeout = *random.pick(&[TimeoutPolicy::Stop, TimeoutPolicy::Retry]);
    config.roles.mode = *random.pick(&[RolesMode::Auto, RolesMode::Auto, RolesMode::Strict]);
    config.review.by = *random.pick(&REVIEWS);
    config.max_cost = *random.pick(&[None, None, Some(MicroUsd(9_000))]);
    config.max_tokens = *random.pick(&[None, None, Some(20_000)]);
    config.max_run = *random.pick(&[None, None, Some(Duration::from_mins(150))]);
    config.guard.on_change =
        *random.pick(&[ChangePolicy::Both, ChangePolicy::Both, ChangePolicy::Report, ChangePolicy::Revert]);
    config.guard.baseline = random.one_in(2);
    config.guard.flakes = !random.one_in(4);
    config.guard.command = vec!["just".to_owned(), "ci".to_owned()];
    config.guard.definition = Some(Patterns::new(DEFINITION));
    match config.max_attempts_default {
        2 => config.scope.write = Patterns::new(["/src", "/ci"]),
        5 => config.scope.never = Patterns::new(["part_3.rs", "/ci/"]),
        _ => {}
    }
    config
}

/// Who reviews.
const REVIEWS: [ReviewPolicy; 4] = [ReviewPolicy::Off, ReviewPolicy::Off, ReviewPolicy::Human, ReviewPolicy::Agent];

impl SimulatedRun {
    /// Derives the settings of a simulation from its seed.
    pub(crate) fn new(seed: u64, mistake: Option<PlantedMistake>) -> Self {
        let mut random = RandomSource::new(seed);
        let habits = AgentHabits::of(seed, &mut random);
        let repository = SimulatedRepository::with(base(&habits, &mut random));
        Self {
            mistake,
            record: Self::queued("run-1"),
            changes: Vec::new(),
            is_lost: false,
            is_driving: false,
            steps: Vec::new(),
            followed: 0,
            run: "run-1",
            known: std::collections::BTreeMap::new(),
            lively: habits.clone(),
            habits,
            journal: None,
            live: LiveState::default(),
            now: Timestamp::UNIX_EPOCH,
            marks: 0,
            witness: RunWitness::default(),
            loaded: None,
            declined: None,
            read: std::cell::RefCell::default(),
            stop: None,
            is_leaving: false,
            last_end: None,
            advised: None,
            claim: None,
            accepted: repository.work.get(JUSTFILE).map(|blob| blob.id.to_string()),
            coverage: std::collections::BTreeSet::new(),
            settled: 0,
            amends: None,
            random,
            repository,
        }
    }

    /// A new run.
    pub(crate) fn queued(run: &str) -> RunRecord {
        let beginning =
            StartSpec { base: None, goal: None, keep_tree: false, fork: false, config: None, id_stem: None };
        let path = WirePath("/work".into());
        let start = StartRequest {
            path,
            goal: None,
            goal_file: None,
            start_spec: beginning,
            queue_only: false,
            is_begun: false,
        };
        run::create_run(run, start, Timestamp::UNIX_EPOCH).record
    }
}

/// The files of the base: code, and sometimes a tree prepared by a person.
fn base(habits: &AgentHabits, random: &mut RandomSource) -> FileMap {
    let mut files = FileMap::new();
    let mut put = |path: &str, text: &str| files.insert(path.to_owned(), StoredBlob::of(text.as_bytes()));
    put("src/lib.rs", "pub fn ledger() {}\n");
    if !random.one_in(8) {
        put(JUSTFILE, "ci:\n\tsh ci/check.sh\n");
        put("ci/check.sh", "true\n");
    }
    if random.one_in(3) {
        put(layout::ASSUMPTIONS, "# Assumptions\n\n- none\n");
        put(layout::NOTES, "# Notes\n");
    }
    if random.one_in(2) {
        let max_attempts = habits.config.max_attempts_default;
        let mut prepared = tree::new_tree(max_attempts);
        let children: Vec<ChildSpec> = (0..=random.below(4)).map(child).collect();
        tree::insert_children(&mut prepared, "root", &children, max_attempts);
        if random.one_in(3)
            && let Some(Node { id, .. }) = prepared.root.children.first().cloned()
        {
            tree::insert_children(&mut prepared, &id, &children, max_attempts);
        }
        put(layout::TREE, &tree::canonical(&prepared));
    }
    files
}

/// Returns the text of a new node.
pub(crate) fn child(number: u64) -> ChildSpec {
    ChildSpec {
        title: format!("Part {number}"),
        goal: format!("Part {number} of the ledger is ported."),
        acceptance: vec![format!("test part_{number} passes")],
    }
}
