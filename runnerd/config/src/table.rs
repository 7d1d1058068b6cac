//! Every key of both configuration files: name, type, default and meaning.
//!
//! The defaults of configuration files are stated here. The types in [`super::repository`] and [`super::daemon`] must
//! have exactly these keys, which tests check.

use super::executor::{Effort, ExecutorKind, Sandbox};
use super::keys::KeyDefault::{Example, Required, Toml};
use super::keys::SectionDisplay::{Entry, Full, Override};
use super::keys::ValueKind::{
    AbsolutePath, Arguments, Argv, Choice, Choices, Dollars, Flag, Inherited, Name, Number, Patterns, RootPages, Text,
};
use super::keys::{ConfigSection, GlobSubject, KeyDefinition, ValueKind};
use super::value_enums::{
    ChangePolicy, LogLevel, PublishExtras, ReviewPolicy, RolesMode, TimeoutPolicy, WorkspaceKind,
};

const COUNT: ValueKind = Number { min: 1, max: 1_000_000 };
const SECONDS: ValueKind = Number { min: 1, max: 365 * 24 * 60 * 60 };
const LOG_BYTES: ValueKind = Number { min: 4096, max: 1 << 30 };
const HOOK: ValueKind = Argv { required: false };

/// The sections of a repository's `.runner/state/config.toml`.
pub(super) const REPOSITORY: &[ConfigSection] = &[
    ConfigSection { path: "", doc: "Limits of a run.", keys: TOP, shown: Full },
    ConfigSection { path: "executor", doc: "The agent that works on the tasks.", keys: EXECUTOR, shown: Full },
    ConfigSection {
        path: "executor.plan",
        doc: "Overrides for planning sessions: any key of [executor]. A different `kind` does not take over `model`, `effort`, `inherit` and `extra_args`.",
        keys: EXECUTOR,
        shown: Override(&["model = \"a-stronger-model\""]),
    },
    ConfigSection {
        path: "executor.review",
        doc: "Overrides for the reviewer: any key of [executor]. A different `kind` does not take over `model`, `effort`, `inherit` and `extra_args`.",
        keys: EXECUTOR,
        shown: Override(&["kind = \"claude\""]),
    },
    ConfigSection { path: "roles", doc: "How work is divided between sessions.", keys: ROLES, shown: Full },
    ConfigSection {
        path: "guard",
        doc: "The command that decides whether a task is done: exit code 0 means yes.",
        keys: GUARD,
        shown: Full,
    },
    ConfigSection { path: "review", doc: "A second opinion after the guard has passed.", keys: REVIEW, shown: Full },
    ConfigSection { path: "prompt", doc: "The size of prompts.", keys: PROMPT, shown: Full },
    ConfigSection { path: "git", doc: "Branches and commits.", keys: GIT, shown: Full },
    ConfigSection {
        path: "scope",
        doc: "The files that a run may change, outside .runner/. What is written anywhere else is restored.",
        keys: SCOPE,
        shown: Full,
    },
    ConfigSection {
        path: "workspace",
        doc: "Where a run works, and how an isolated run's workspace is prepared.",
        keys: WORKSPACE,
        shown: Full,
    },
    ConfigSection {
        path: "publish",
        doc: "How `runnerd drive` publishes its run at the remote.",
        keys: PUBLISH,
        shown: Full,
    },
    ConfigSection {
        path: "containment",
        doc: "How tightly agents' processes are contained.",
        keys: CONTAINMENT,
        shown: Full,
    },
    ConfigSection {
        path: "prices.*",
        doc: "Prices in dollars per million tokens, for agents that report no cost. The name is the model, or the kind if no model is set.",
        keys: PRICES,
        shown: Entry(&["input = 1.25", "cached = 0.125", "output = 10.0"]),
    },
    ConfigSection {
        path: "env",
        doc: "Environment variables of the caller to pass on: names, or globs such as \"MY_TOOL_*\".",
        keys: ENV,
        shown: Full,
    },
    ConfigSection {
        path: "hooks",
        doc: "Programs to run on events; each gets the event as JSON on standard input.",
        keys: HOOKS,
        shown: Full,
    },
    ConfigSection { path: "deliver", doc: "How `runnerctl deliver` delivers a run.", keys: DELIVER, shown: Full },
];

/// The sections of the daemon's own `config.toml`.
pub(super) const DAEMON: &[ConfigSection] =
    &[ConfigSection { path: "", doc: "Settings of your daemon.", keys: DAEMON_TOP, shown: Full }];

const TOP: &[KeyDefinition] = &[
    KeyDefinition::new("max_iterations", COUNT, Toml("100"), "Number of iterations after which a run stops."),
    KeyDefinition::new(
        "max_attempts_default",
        COUNT,
        Toml("3"),
        "Attempts of a new task; the run is stuck when a task has used all of them.",
    ),
    KeyDefinition::new(
        "max_consecutive_faults",
        COUNT,
        Toml("3"),
        "Number of faults in a row (crashes, unusable results) after which a run fails.",
    ),
    KeyDefinition::new(
        "stall_after",
        Number { min: 2, max: 1_000_000 },
        Toml("5"),
        "Number of identical results in a row after which a run is stuck.",
    ),
    KeyDefinition::new(
        "iteration_timeout_secs",
        SECONDS,
        Toml("1800"),
        "Time limit of an iteration in seconds: agent, guard and reviewer together.",
    ),
    KeyDefinition::new(
        "on_timeout",
        Choice(TimeoutPolicy::SPELLINGS),
        Toml("\"stop\""),
        "Effect of that time limit: \"stop\" stops the run, \"retry\" counts a fault and continues.",
    ),
    KeyDefinition::new("max_cost_usd", Dollars, Example("25.0"), "Cost in dollars after which a run stops."),
    KeyDefinition::new(
        "max_tokens",
        Number { min: 1, max: ValueKind::UNBOUNDED },
        Example("50000000"),
        "Number of tokens, input and output together, after which a run stops.",
    ),
    KeyDefinition::new("max_run_secs", SECONDS, Example("28800"), "Working time in seconds after which a run stops."),
];

const EXECUTOR: &[KeyDefinition] = &[
    KeyDefinition::new(
        "kind",
        Choice(ExecutorKind::SPELLINGS),
        Toml("\"codex\""),
        "The agent; \"command\" runs the program in `command`.",
    ),
    KeyDefinition::new(
        "command",
        Argv { required: false },
        Toml("[]"),
        "Program and arguments for the kind \"command\": it reads the prompt on standard input and writes its result to the file in $RUNNER_OUTPUT.",
    ),
    KeyDefinition::new("model", Name, Example("\"model-name\""), "The model; if not set, the agent chooses."),
    KeyDefinition::new(
        "effort",
        Choice(Effort::SPELLINGS),
        Example("\"high\""),
        "How much the model thinks, for codex and claude; if not set, the agent chooses.",
    ),
    KeyDefinition::new(
        "inherit",
        Inherited,
        Toml("[]"),
        "What a session takes from your own set-up of the agent's program: \"settings\", \"skills\" and \"mcp:NAME\", an MCP server by its name there. By default nothing.",
    ),
    KeyDefinition::new("extra_args", Arguments, Toml("[]"), "Extra arguments for the agent."),
    KeyDefinition::new(
        "wrapper",
        Argv { required: false },
        Toml("[]"),
        "Program and arguments that wrap the agent, such as a sandbox.",
    ),
    KeyDefinition::new(
        "fallback",
        Choices(ExecutorKind::SPELLINGS),
        Toml("[]"),
        "Agents to use while the service of the first agent is unavailable, in this order.",
    ),
    KeyDefinition::new(
        "idle_timeout_secs",
        SECONDS,
        Toml("900"),
        "Seconds without output after which a session ends as a fault.",
    ),
    KeyDefinition::new(
        "output_limit_bytes",
        LOG_BYTES,
        Toml("1048576"),
        "Maximum size of kept agent output in bytes; longer output keeps its first and last part.",
    ),
    KeyDefinition::new(
        "sandbox",
        Choice(Sandbox::SPELLINGS),
        Toml("\"workspace-write\""),
        "Access that the agent's own sandbox allows, for agents that have a sandbox.",
    ),
    KeyDefinition::new("network", Flag, Toml("true"), "Whether that sandbox allows the network."),
];

const ROLES: &[KeyDefinition] = &[KeyDefinition::new(
    "mode",
    Choice(RolesMode::SPELLINGS),
    Toml("\"auto\""),
    "With \"auto\", a session may split its task or work on it; with \"strict\", planners change no code and workers split no task.",
)];

const GUARD: &[KeyDefinition] = &[
    KeyDefinition::new(
        "command",
        Argv { required: true },
        Toml("[\"just\", \"ci\"]"),
        "Program and arguments, run at the root of the repository.",
    ),
    KeyDefinition::new(
        "output_limit_bytes",
        LOG_BYTES,
        Toml("1048576"),
        "Maximum size of kept guard output in bytes; longer output keeps its first and last part.",
    ),
    KeyDefinition::new(
        "definition",
        Patterns(GlobSubject::Paths),
        Example("[\"/ci/**\", \"!/ci/notes.md\"]"),
        "Files that determine the guard's result, as globs, in addition to those that its command reaches. A glob with \"/\" starts at the root of the repository, a glob without matches in any directory; \"!\" excludes. An empty list states that there are none.",
    ),
    KeyDefinition::new(
        "on_change",
        Choice(ChangePolicy::SPELLINGS),
        Toml("\"both\""),
        "If an agent changes those files: \"both\" runs the guard with the agent's and with the accepted files, and both must be green; \"report\" reports the change; \"revert\" restores the accepted files first.",
    ),
    KeyDefinition::new(
        "reports",
        Patterns(GlobSubject::Paths),
        Toml("[]"),
        "Reports of test runners, JUnit XML or SARIF, that the guard writes, as globs such as \"/target/nextest/**/junit.xml\"; the names of tests come from them. An empty list takes the names from the guard's output.",
    ),
    KeyDefinition::new("baseline", Flag, Toml("true"), "Whether the guard runs once before the first session."),
    KeyDefinition::new(
        "flakes",
        Flag,
        Toml("true"),
        "Whether a guard that fails runs once more on the same files, and a task is not charged if it passes then.",
    ),
];

const REVIEW: &[KeyDefinition] = &[
    KeyDefinition::new(
        "by",
        Choice(ReviewPolicy::SPELLINGS),
        Toml("\"off\""),
        "Who reviews tasks that pass the guard: \"off\" is no one, \"agent\" a new session, \"human\" a person.",
    ),
    KeyDefinition::new(
        "criteria",
        Text,
        Toml("\"\""),
        "Criteria for the reviewer, in addition to the task's goal and acceptance.",
    ),
    KeyDefinition::new(
        "sign",
        Flag,
        Toml("false"),
        "Whether people must sign their reviews, with the SSH key that signs their commits.",
    ),
];

const PROMPT: &[KeyDefinition] = &[
    KeyDefinition::new(
        "budget_bytes",
        Number { min: 32 << 10, max: 1 << 20 },
        Toml("40960"),
        "Maximum size of a prompt in bytes; longer parts are cut.",
    ),
    KeyDefinition::new(
        "instructions",
        RootPages,
        Toml("[\"AGENTS.md\", \"CLAUDE.md\", \"GEMINI.md\", \"CONTRIBUTING.md\"]"),
        "Files in the root of the repository that every prompt quotes, 8 KiB together; agents read none by themselves.",
    ),
];

const GIT: &[KeyDefinition] = &[
    KeyDefinition::new(
        "protected_branches",
        Patterns(GlobSubject::Branches),
        Toml("[\"main\", \"master\"]"),
        "Branches on which no run works, as globs; main and master are always included.",
    ),
    KeyDefinition::new(
        "hold_back",
        Patterns(GlobSubject::FileNames),
        Toml(
            "[\".env\", \".env.*\", \"!*.example\", \"!*.sample\", \"!*.template\", \"*.pem\", \"id_rsa\", \"id_ed25519\", \"id_ecdsa\"]",
        ),
        "New files that are not committed, as globs of their names in any directory except .runner/; \"!\" exempts a name, and the last match counts.",
    ),
    KeyDefinition::new(
        "max_file_bytes",
        Number { min: 1, max: ValueKind::UNBOUNDED },
        Toml("52428800"),
        "Maximum size of a new file in bytes; larger files are not committed.",
    ),
    KeyDefinition::new("sign", Flag, Toml("false"), "Whether git signs the commits."),
];

const SCOPE: &[KeyDefinition] = &[
    KeyDefinition::new(
        "write",
        Patterns(GlobSubject::Scope),
        Toml("[\"**\"]"),
        "Files that may be changed, as globs that follow git's rules for ignore files: one with \"/\" at its beginning or in its middle starts at the root of the repository, any other matches in every directory, and a directory stands for all that is in it.",
    ),
    KeyDefinition::new(
        "never",
        Patterns(GlobSubject::Scope),
        Toml("[]"),
        "Files that must not be changed although `write` names them, as globs of the same kind.",
    ),
];

const WORKSPACE: &[KeyDefinition] = &[
    KeyDefinition::new(
        "kind",
        Choice(WorkspaceKind::SPELLINGS),
        Toml("\"in-place\""),
        "Where a run works: \"in-place\" in the repository in which it starts, or \"isolated\" in a separate workspace.",
    ),
    KeyDefinition::new(
        "copy",
        Patterns(GlobSubject::Paths),
        Toml("[]"),
        "Files that git ignores and that a workspace gets, as globs such as \".env\" or \"node_modules\". A glob with \"/\" starts at the root of the repository, a glob without matches in any directory; \"!\" excludes.",
    ),
    KeyDefinition::new(
        "setup",
        Argv { required: false },
        Toml("[]"),
        "Program and arguments that prepare a new workspace, such as [\"npm\", \"ci\"]; runs once, in the guard's environment, before the first session.",
    ),
    KeyDefinition::new("setup_timeout_secs", SECONDS, Toml("900"), "Time limit of that program in seconds."),
];

const PUBLISH: &[KeyDefinition] = &[
    KeyDefinition::new(
        "unpublished_max",
        Number { min: 0, max: 1000 },
        Toml("3"),
        "Maximum number of unpublished commits while the remote is unreachable or refuses them; then the driver waits.",
    ),
    KeyDefinition::new(
        "extras",
        Choice(PublishExtras::SPELLINGS),
        Toml("\"refs\""),
        "Where to push the run's extra refs (rejected task trees, rescued work, reviewed states): \"refs\" uses refs/runner/; \"branches\" uses the branches runner-rescue/… and runner-review/…, for forges that reject or hide other refs; \"off\" pushes none. The work of a superseded driver is always pushed.",
    ),
];

/// Levels of containment, the weakest first.
const LEVELS: &[&str] = &["walk", "cgroup", "pidns"];

const CONTAINMENT: &[KeyDefinition] = &[KeyDefinition::new(
    "require",
    Choice(LEVELS),
    Toml("\"walk\""),
    "The weakest containment with which a run starts. `runnerctl daemon status` shows the levels of this machine.",
)];

const PRICES: &[KeyDefinition] = &[
    KeyDefinition::new("input", Dollars, Required, "Price of input tokens."),
    KeyDefinition::new(
        "cached",
        Dollars,
        Example("0.125"),
        "Price of input tokens from a cache; if not set, the price in `input`.",
    ),
    KeyDefinition::new("output", Dollars, Required, "Price of output tokens."),
];

const ENV: &[KeyDefinition] = &[
    KeyDefinition::new("agent", Patterns(GlobSubject::Variables), Toml("[]"), "Variables for agents."),
    KeyDefinition::new("guard", Patterns(GlobSubject::Variables), Toml("[]"), "Variables for guards."),
];

const HOOKS: &[KeyDefinition] = &[
    KeyDefinition::new("on_complete", HOOK, Toml("[]"), "Runs when the goal is reached."),
    KeyDefinition::new("on_stuck", HOOK, Toml("[]"), "Runs when a run is stuck."),
    KeyDefinition::new("on_stop", HOOK, Toml("[]"), "Runs when a run ends or is held for any other reason."),
    KeyDefinition::new("on_question", HOOK, Toml("[]"), "Runs when an agent asks a question."),
];

const DELIVER: &[KeyDefinition] = &[
    KeyDefinition::new("remote", Name, Toml("\"origin\""), "The remote to push to."),
    KeyDefinition::new(
        "base",
        Name,
        Example("\"main\""),
        "The target branch of the pull request; if not set, the remote's default branch.",
    ),
    KeyDefinition::new(
        "command",
        HOOK,
        Toml("[]"),
        "Program that opens the pull request at a forge other than GitHub and GitLab: it reads one JSON object on standard input and prints the URL of the pull request.",
    ),
    KeyDefinition::new(
        "on_complete",
        Flag,
        Toml("false"),
        "Whether a client that waits for a run delivers it on completion, with the user's own logins.",
    ),
];

const DAEMON_TOP: &[KeyDefinition] = &[
    KeyDefinition::new(
        "max_repositories",
        Number { min: 1, max: 1000 },
        Toml("4"),
        "Maximum number of repositories with a run at work; the workspace of an isolated run counts as one.",
    ),
    KeyDefinition::new(
        "max_runs_per_repository",
        Number { min: 1, max: 1000 },
        Toml("2"),
        "Maximum number of isolated runs of one repository at the same time.",
    ),
    KeyDefinition::new(
        "log_level",
        Choice(LogLevel::SPELLINGS),
        Toml("\"info\""),
        "The lowest level of logged messages.",
    ),
    KeyDefinition::new(
        "socket",
        AbsolutePath,
        Example("\"/run/user/1000/runnerd/runnerd.sock\""),
        "The control socket; if not set, in your runtime directory.",
    ),
    KeyDefinition::new(
        "workspaces",
        AbsolutePath,
        Example("\"/big/disk/runner-workspaces\""),
        "Directory of the workspaces of isolated runs; if not set, `workspaces` in the daemon's state directory.",
    ),
    KeyDefinition::new(
        "inhibit_sleep",
        Flag,
        Toml("true"),
        "Whether the daemon keeps the machine awake while a run is active.",
    ),
    KeyDefinition::new(
        "containment",
        Choice(LEVELS),
        Toml("\"pidns\""),
        "The strongest containment to use; choose a weaker one for tools that do not work in a namespace.",
    ),
];
