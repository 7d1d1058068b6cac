/* Generated from schemas/ by scripts/types.mjs (`npm run types`). Do not edit. */

export type WirePath =
  | string
  | {
      hex: string;
    };
/**
 * The state of a run.
 */
export type RunStatus =
  | 'queued'
  | 'running'
  | 'paused'
  | 'waiting'
  | 'held'
  | 'completed'
  | 'stuck'
  | 'limit'
  | 'timed_out'
  | 'failed'
  | 'cancelled';
/**
 * `guard=` of an iteration's commit.
 */
export type GuardOutcome = 'pass' | 'fail' | 'skipped';
/**
 * The level of containment of processes.
 */
export type Containment = 'walk' | 'cgroup' | 'pidns';
/**
 * The role of a session.
 */
export type Role = 'worker' | 'planner' | 'repair' | 'reviewer' | 'human';
/**
 * A requested stop that has not taken effect yet.
 */
export type PendingControl = 'pause' | 'cancel';
/**
 * The phases of an iteration.
 */
export type PhaseName = 'open' | 'brief' | 'work' | 'inspect' | 'guard' | 'review' | 'settle' | 'over';
/**
 * `status=` of an iteration's commit.
 */
export type IterationStatus =
  'done' | 'retry' | 'decomposed' | 'fault' | 'waiting' | 'timeout' | 'interrupted';
/**
 * The outcome of an iteration, without its details.
 */
export type VerdictName =
  | 'Accepted'
  | 'RedGuard'
  | 'Rejected'
  | 'Pending'
  | 'Retry'
  | 'Narrowed'
  | 'Decomposed'
  | 'Broken'
  | 'Fault'
  | 'Unavailable'
  | 'Timeout'
  | 'Misconfigured'
  | 'Interrupted';
/**
 * Why a test does not pass.
 */
export type TestAbsence = 'gone' | 'skipped' | 'expected_failure' | 'failed';
/**
 * Why an agent's session gave no answer, if known.
 */
export type FailureClass =
  | 'usage_limit'
  | 'quota'
  | 'rate_limit'
  | 'overloaded'
  | 'network'
  | 'authentication'
  | 'model_unknown'
  | 'schema_refused'
  | 'misused'
  | 'context_exceeded'
  | 'session_limit'
  | 'refused'
  | 'output_cut'
  | 'invalid_answer'
  | 'empty'
  | 'hung'
  | 'crashed'
  | 'unexplained';
/**
 * The kind of work that an iteration did, judged by its changes.
 */
export type Mode = 'execute' | 'decompose';
/**
 * A review's decision about a finished task.
 */
export type ReviewVerdict = 'accept' | 'reject';
/**
 * The origin of a setting's value.
 */
export type SettingOrigin = 'default' | 'file' | 'start' | 'list_price';
/**
 * The kinds of steps.
 */
export type ActivityKind = 'message' | 'reasoning' | 'tool' | 'tool_result' | 'file_change' | 'notice';
/**
 * One event.
 */
export type Event = {
  /**
   * Number of the iteration.
   */
  iter?: number | null;
  /**
   * Id of the repository; null for the daemon's own events.
   */
  repo?: string | null;
  /**
   * Id of the run.
   */
  run?: string | null;
  /**
   * Number in the daemon's stream; it grows by one, and starts again when the daemon starts.
   */
  seq: number;
  /**
   * When it happened.
   */
  time: string;
} & Event1;
export type Event1 =
  | {
      data: {
        /**
         * The reason, if the run stopped.
         */
        reason?: StopReason | null;
        state: RunStatus;
        /**
         * The time at which it continues automatically, if it waits for one.
         */
        until?: string | null;
      };
      kind: 'run_state';
    }
  | {
      data: {
        /**
         * The kind.
         */
        agent: string;
        /**
         * When the service is tried again.
         */
        until: string;
        /**
         * The service's message.
         */
        why: string;
      };
      kind: 'outage';
    }
  | {
      data: {
        /**
         * The task of the session, if already known.
         */
        node?: string | null;
        phase: PhaseName;
      };
      kind: 'phase';
    }
  | {
      data: {
        /**
         * The obstacle.
         */
        message: string;
      };
      kind: 'obstacle';
    }
  | {
      data: {
        /**
         * Kind and version of the agent.
         */
        agent?: string | null;
        /**
         * Charged attempts after the iteration.
         */
        attempts: number;
        guard: GuardOutcome;
        /**
         * Attempts allowed.
         */
        max_attempts: number;
        /**
         * The task.
         */
        node: string;
        status: IterationStatus;
        usage: SessionUsage;
        verdict: VerdictName;
      };
      kind: 'iteration';
    }
  | {
      data: {
        /**
         * Leaf tasks that have passed.
         */
        leaves_passed: number;
        /**
         * Leaf tasks of the tree.
         */
        leaves_total: number;
      };
      kind: 'tree';
    }
  | {
      data: {
        /**
         * Its id.
         */
        commit: string;
        /**
         * Its subject.
         */
        subject: string;
      };
      kind: 'commit';
    }
  | {
      data: {
        /**
         * Paths relative to the working tree.
         */
        paths: string[];
      };
      kind: 'reverted';
    }
  | {
      data: {
        /**
         * Each reference with the old and the new commit.
         */
        moved: string[];
      };
      kind: 'refs';
    }
  | {
      data: {
        /**
         * The method.
         */
        method: string;
        /**
         * The process, if the system identifies it; it may have ended.
         */
        pid?: number | null;
      };
      kind: 'refused';
    }
  | {
      data: {
        /**
         * The files, and the variables with the secrets.
         */
        seen: SecretFinding[];
      };
      kind: 'secrets';
    }
  | {
      data: {
        /**
         * The new open questions.
         */
        asked: QuestionView[];
      };
      kind: 'questions';
    }
  | {
      data: {
        phase: PhaseName;
        /**
         * The text, made safe for a terminal.
         */
        text: string;
      };
      kind: 'output';
    }
  | {
      data: Activity;
      kind: 'activity';
    }
  | {
      data: {
        /**
         * Completed amount: bytes or files, depending on the stage.
         */
        done: number;
        /**
         * The current stage.
         */
        stage: string;
        /**
         * Total amount; 0 if unknown.
         */
        total: number;
      };
      kind: 'workspace';
    }
  | {
      data: {
        /**
         * The problem.
         */
        message: string;
      };
      kind: 'warning';
    }
  | {
      kind: 'lagged';
    }
  | {
      kind: 'stopping';
    };
/**
 * The body of a request that steers a run.
 */
export type Steer =
  | {
      action: 'answer';
      /**
       * Its id, or `RUN/ID`.
       */
      question: string;
      /**
       * The answer, at most 8 KiB.
       */
      text: string;
    }
  | {
      action: 'approve';
      /**
       * Number of the iteration; refused if a different one waits.
       */
      iter: number;
    }
  | {
      action: 'reject';
      /**
       * Number of the iteration.
       */
      iter: number;
      /**
       * The reason, at most 8 KiB.
       */
      reason: string;
    }
  | {
      action: 'retry';
      /**
       * Its id.
       */
      node: string;
    }
  | {
      action: 'note';
      /**
       * The note, at most 8 KiB.
       */
      text: string;
    }
  | {
      action: 'pause';
      /**
       * End the session at once.
       */
      now?: boolean;
    }
  | {
      action: 'resume';
      /**
       * Iterations granted beyond its limit.
       */
      more?: number | null;
      /**
       * Do not wait for the time at which the run would continue automatically.
       */
      now?: boolean;
    };

export interface Wire {
  StatusView?: StatusView;
  TreeReply?: TreeReply;
  RunSummary?: RunSummary;
  IterationView?: IterationView;
  IterationReply?: IterationReply;
  QuestionView?: QuestionView;
  ConfigShowReply?: ConfigShowReply;
  MemoryReply?: MemoryReply;
  ActivityReply?: ActivityReply;
  Event?: Event;
  Health?: Health;
  Session?: Session;
  Steer?: Steer;
  Steered?: Steered;
  RunFile?: RunFile;
}
/**
 * One repository in detail.
 */
export interface StatusView {
  /**
   * Its isolated runs, each in a separate workspace, including those that have ended.
   */
  isolated?: RunSummary[];
  /**
   * The run's branch that the working tree is on, if it is on one and no run is at work there.
   */
  on_run?: RunCheckout | null;
  repo: RepoView;
  /**
   * The run at the head of the queue, otherwise the last one that ended.
   */
  run?: RunView | null;
}
/**
 * A run in a list.
 */
export interface RunSummary {
  /**
   * The branch `runner/<id>`.
   */
  branch: string;
  /**
   * When it reached a terminal state.
   */
  ended_at?: string | null;
  /**
   * The title of its goal, which is the first heading or line; null if unknown.
   */
  goal?: string | null;
  /**
   * Id of the run.
   */
  id: string;
  /**
   * Whether it waits for a person: for a review, or because it stopped before its goal and does not continue
   * automatically.
   */
  needs_you?: boolean;
  path: WirePath;
  /**
   * For an isolated run: how much of it is published.
   */
  published?: PublishedView | null;
  /**
   * When it was queued.
   */
  queued_at: string;
  /**
   * Why it is not running, if it is not.
   */
  reason?: StopReason | null;
  state: RunStatus;
}
/**
 * How much of an isolated run is published: the state of its branch in the repository from which it started.
 */
export interface PublishedView {
  /**
   * Commits of the run that the branch does not have yet; null if the last check failed.
   */
  behind?: number | null;
  /**
   * The commit at the tip of the branch there; null if the branch does not exist, or `behind` is null.
   */
  tip?: string | null;
  to: WirePath;
  /**
   * Why it is behind, or why that is unknown.
   */
  why?: StopReason | null;
}
/**
 * Why a run stopped, and how to continue it.
 */
export interface StopReason {
  /**
   * How to continue, as a sentence.
   */
  command?: string | null;
  /**
   * The commands in that sentence, for clients that run or copy them.
   */
  commands?: Command[];
  /**
   * One sentence.
   */
  message: string;
}
/**
 * A command to type.
 */
export interface Command {
  /**
   * The program and its arguments, unquoted: quote them to show them for a shell.
   */
  argv: string[];
  /**
   * Its purpose, in a few words.
   */
  label: string;
}
/**
 * A working tree that is on the branch of a run.
 */
export interface RunCheckout {
  /**
   * The branch that the run started from; null if unknown.
   */
  back?: string | null;
  /**
   * The branch.
   */
  branch: string;
  /**
   * Files of the runner there with changes that are not committed, which git does not take to that branch.
   */
  uncommitted?: string[];
}
/**
 * A registered repository.
 */
export interface RepoView {
  /**
   * Why its state could not be read; null if it could.
   */
  held?: StopReason | null;
  /**
   * Id of the repository: the start of a digest of its git directory.
   */
  id: string;
  path: WirePath;
  /**
   * Its runs that have not ended, in order.
   */
  queue: RunSummary[];
  /**
   * If this is the workspace of an isolated run: the working tree in which the run was requested.
   */
  source?: WirePath | null;
  /**
   * If this is the workspace of an isolated run: the id of the repository from which the run started.
   */
  source_id?: string | null;
}
/**
 * One run in detail.
 */
export interface RunView {
  /**
   * The guard's result on the base.
   */
  baseline?: GuardOutcome | null;
  /**
   * A person's changes to its files that are not committed yet, oldest first.
   */
  changes: ChangeView[];
  containment: Containment;
  /**
   * Time spent in sessions and guards, in milliseconds.
   */
  elapsed_ms: number;
  /**
   * Tests that failed in this run and then passed on the same files, last first, at most 50.
   */
  flakes?: FlakyTest[];
  /**
   * A git command that takes long.
   */
  git_wait?: GitWaitView | null;
  /**
   * The watched files of the guard; null if the committed state cannot be read.
   */
  guard?: GuardFiles | null;
  /**
   * Files of the guard definition whose committed versions differ from the ones that a person accepted.
   */
  guard_changed: string[];
  /**
   * Files that stay in the working tree and are not on the branch.
   */
  held_back: string[];
  /**
   * Number of the next iteration, or of the live one.
   */
  iteration: number;
  /**
   * Leaf tasks that have passed.
   */
  leaves_passed: number;
  /**
   * Leaf tasks of the tree.
   */
  leaves_total: number;
  /**
   * The list prices of costs that no agent reported and no configuration sets: "list price" and its date.
   */
  list_price?: string | null;
  /**
   * The task of the live iteration, otherwise the next one.
   */
  node?: NodeRef | null;
  /**
   * Ids of the notes that stay in the prompt, because no session has returned an answer yet.
   */
  notes: string[];
  /**
   * Other notices about the last iterations: moved references, incomplete logs.
   */
  notices: string[];
  /**
   * Agents whose services were unavailable at the last request, and are not used now.
   */
  outages: OutageView[];
  /**
   * A requested stop that has not taken effect yet.
   */
  pending?: PendingControl | null;
  /**
   * The phase of the live iteration.
   */
  phase?: PhaseView | null;
  /**
   * Open questions.
   */
  questions: number;
  /**
   * The last iterations, newest first.
   */
  recent: IterationView[];
  /**
   * Paths that the last iteration changed without permission.
   */
  reverted: string[];
  /**
   * Files with secrets from the last iterations.
   */
  secrets: SecretFinding[];
  summary: RunSummary;
  tests?: TestsView;
  usage: UsageTotal;
  /**
   * When a waiting run continues automatically.
   */
  wait_until?: string | null;
}
/**
 * A person's request that waits for its commit.
 */
export interface ChangeView {
  /**
   * The command that asked for it.
   */
  command: string;
  /**
   * Id of the note, question or task, or the key, if it is known in advance.
   */
  id?: string | null;
  /**
   * The request, in one line.
   */
  text: string;
}
/**
 * A test that failed and then passed on the same files.
 */
export interface FlakyTest {
  /**
   * Number of times in this run.
   */
  count: number;
  /**
   * The task whose guard it was the first time.
   */
  first_node: string;
  /**
   * The iteration of the last time.
   */
  last_iter: number;
  /**
   * Its name, with its file if that is known; null for a guard that failed without naming a test.
   */
  name?: string | null;
}
/**
 * A git command that takes long; the daemon does nothing else in the repository until it ends.
 */
export interface GitWaitView {
  /**
   * The subcommand.
   */
  command: string;
  /**
   * The program that git waits for, such as gpg or a filter; null if there is none.
   */
  program?: string | null;
  /**
   * When it was started.
   */
  since: string;
}
/**
 * The files that determine the guard's result, and are watched for changes.
 */
export interface GuardFiles {
  /**
   * Whether no file is watched although the guard may read some: changes to them go unnoticed.
   */
  is_blind: boolean;
  /**
   * Commands that run files which the runner cannot identify, as `FILE: COMMAND`; empty if the configuration names
   * files. Only the first ones.
   */
  unknown: string[];
  /**
   * Their paths, in order.
   */
  watched: string[];
}
/**
 * A task and its place in the tree.
 */
export interface NodeRef {
  /**
   * Attempts charged so far.
   */
  attempts: number;
  /**
   * Id.
   */
  id: string;
  /**
   * Attempts allowed.
   */
  max_attempts: number;
  /**
   * Ids from the root to the task, both included.
   */
  path: string[];
  /**
   * The role of its session, or of the next one.
   */
  role?: Role | null;
  /**
   * Title.
   */
  title: string;
  /**
   * Tokens and cost of its sessions, including failed ones and those without a service; null if not requested.
   */
  usage?: UsageTotal | null;
}
/**
 * The total consumption of sessions: null if no session reported it, and too low if some did not.
 */
export interface UsageTotal {
  /**
   * Input tokens read from a cache.
   */
  cached_tokens?: number | null;
  /**
   * Cost in millionths of a US dollar.
   */
  cost_micro_usd?: number | null;
  /**
   * Sessions of unknown cost.
   */
  cost_unknown?: number;
  /**
   * Input tokens not read from a cache.
   */
  input_tokens?: number | null;
  /**
   * Output tokens.
   */
  output_tokens?: number | null;
  /**
   * Sessions that were started.
   */
  sessions: number;
  /**
   * Sessions that did not report their tokens.
   */
  tokens_unknown?: number;
}
/**
 * A kind of agent whose service is unavailable.
 */
export interface OutageView {
  /**
   * The kind.
   */
  agent: string;
  /**
   * When the service is tried again.
   */
  until: string;
  /**
   * The service's message.
   */
  why: string;
}
/**
 * A live phase.
 */
export interface PhaseView {
  /**
   * The kind of agent chosen for the session.
   */
  agent?: string | null;
  /**
   * Whether it is the guard's run on the base, before the first iteration.
   */
  baseline: boolean;
  /**
   * Time budget of the iteration, in milliseconds.
   */
  budget_ms: number;
  /**
   * When the iteration began.
   */
  iteration_since: string;
  name: PhaseName;
  /**
   * The obstacle that prevents its effect, if there is one.
   */
  obstacle?: string | null;
  /**
   * When it started.
   */
  since: string;
}
/**
 * One finished iteration.
 */
export interface IterationView {
  /**
   * Kind and version of the agent.
   */
  agent?: string | null;
  /**
   * Its commit, if it has one.
   */
  commit?: string | null;
  /**
   * How long it took, in milliseconds.
   */
  duration_ms?: number | null;
  /**
   * When it ended.
   */
  ended_at?: string | null;
  /**
   * What failed before the guard passed on the same files, if that happened.
   */
  flaky?: FlakyRunView | null;
  guard: GuardOutcome;
  /**
   * Number.
   */
  iter: number;
  /**
   * Task of the session.
   */
  node: string;
  /**
   * The duration of each of its phases, in order; empty if its record is missing.
   */
  phases: PhaseTime[];
  /**
   * Whether it is in the records of this machine with this commit; absent if its record was removed or none is here.
   */
  recorded?: boolean | null;
  /**
   * Id of the run.
   */
  run: string;
  status: IterationStatus;
  /**
   * First line of the summary.
   */
  summary?: string | null;
  /**
   * How the tests that passed changed, if they did.
   */
  tests?: TestsChange | null;
  /**
   * Title of the task, if its commit has it.
   */
  title?: string | null;
  /**
   * Tokens and cost, including tries without a commit.
   */
  usage?: UsageTotal | null;
  verdict: VerdictName;
  /**
   * Number of the wait that it led to, if it left no commit: the iteration was then started again under the same
   * number.
   */
  wait?: number | null;
}
/**
 * What failed in an iteration before its guard passed on the same files.
 */
export interface FlakyRunView {
  /**
   * Number of tests besides those.
   */
  more: number;
  /**
   * The first tests; empty if the guard named none.
   */
  names: string[];
}
/**
 * The duration of one phase.
 */
export interface PhaseTime {
  /**
   * Milliseconds.
   */
  duration_ms: number;
  phase: PhaseName;
}
/**
 * How the tests that passed changed with an iteration.
 */
export interface TestsChange {
  /**
   * Number of tests that pass now and did not before.
   */
  added: number;
  /**
   * Number of tests that passed before and do not now.
   */
  lost: number;
  /**
   * The first names of those.
   */
  names: string[];
}
/**
 * A known secret in a file that the agent changed.
 */
export interface SecretFinding {
  /**
   * Path relative to the working tree; a secret in the path is replaced.
   */
  path: string;
  /**
   * The variable whose value it is.
   */
  variable: string;
}
/**
 * A summary of a run's tests, for readers.
 */
export interface TestsView {
  /**
   * The first of those, newest first, at most 20.
   */
  first_lost: LostTest[];
  /**
   * Number of tests that passed before and do not now.
   */
  lost: number;
  /**
   * Number of tests that passed at the last green guard, or on the base; at least that many if there are too many to
   * name.
   */
  passed: number;
}
/**
 * A test that passed before and does not now.
 */
export interface LostTest {
  /**
   * The iteration since which it does not pass.
   */
  iter: number;
  /**
   * Its name, as the test runner or its report has it.
   */
  name: string;
  now: TestAbsence;
}
/**
 * `tree.get`.
 */
export interface TreeReply {
  /**
   * The task of the live iteration, otherwise the next task.
   */
  current?: string | null;
  /**
   * SHA-256 of the tree's canonical form, for `tree.edit`.
   */
  digest: string;
  /**
   * State of the run, if there is one.
   */
  state?: RunStatus | null;
  tree: TaskTree;
}
/**
 * A task tree file: a version and the root task.
 */
export interface TaskTree {
  root: Node;
  /**
   * Version of the format, always 1.
   */
  version: number;
}
/**
 * One task. Sessions work on tasks without children; a task with children passes when they pass.
 */
export interface Node {
  /**
   * Testable statements, at most 20 of at most 400 bytes each.
   */
  acceptance: string[];
  /**
   * Attempts charged so far; only the runner writes it.
   */
  attempts: number;
  /**
   * The subtasks that it was split into.
   */
  children: Node[];
  /**
   * The condition that must be true when it is done, at most 8 KiB.
   */
  goal: string;
  /**
   * Unique in the tree, ignoring case; `[A-Za-z0-9][A-Za-z0-9._-]{0,199}`.
   */
  id: string;
  /**
   * Attempts allowed, at least 1; only the runner writes it once the task exists.
   */
  max_attempts: number;
  /**
   * Place among the siblings; ties are broken by the bytes of the id.
   */
  order: number;
  /**
   * Whether it is done; only the runner writes it.
   */
  passes: boolean;
  /**
   * Its title, at most 200 bytes.
   */
  title: string;
}
/**
 * `iteration.get`: one record.
 */
export interface IterationReply {
  /**
   * The failures that test runners and compilers reported in the guard's output; only the first ones.
   */
  failures: ReportedFailure[];
  iteration: IterationView;
  /**
   * The facts, if the record has them.
   */
  meta?: IterationMeta | null;
  record: WirePath;
}
/**
 * A failure reported by a test runner or a compiler.
 */
export interface ReportedFailure {
  /**
   * The lines about it, starting with the one that names it.
   */
  lines: string[];
  /**
   * The name of the failed test, or of the failed check.
   */
  name: string;
}
/**
 * The facts of one iteration.
 */
export interface IterationMeta {
  /**
   * Kind and version of the agent.
   */
  agent: string;
  /**
   * Exit status of the agent: a code, or a negative signal number.
   */
  agent_exit?: number | null;
  /**
   * Bytes of the agent's output that were kept.
   */
  captured_bytes: number;
  /**
   * The iteration's commit; null if nothing changed and none was made.
   */
  commit?: string | null;
  containment: Containment;
  /**
   * Details of the verdict, if there are any.
   */
  detail?: string | null;
  /**
   * Submodules with uncommitted work, which its commit lacks.
   */
  dirty_submodules: string[];
  /**
   * Bytes of the agent's output that were dropped.
   */
  dropped_bytes: number;
  /**
   * When it ended.
   */
  ended_at: string;
  /**
   * Why the agent gave no answer; null if it gave one, or was interrupted.
   */
  failure?: SessionFailure | null;
  /**
   * Commit at which the session started.
   */
  from: string;
  guard: GuardOutcome;
  /**
   * Files of the guard definition that differ from the versions that a person accepted.
   */
  guard_changed: string[];
  /**
   * Exit status of the guard, in the same form.
   */
  guard_exit?: number | null;
  /**
   * Whether the guard also ran with the accepted definition; if so, `guard` is the result of that run.
   */
  guard_with_accepted: boolean;
  /**
   * Files that stay in the working tree and are not in its commit.
   */
  held_back: string[];
  /**
   * Paths of the work tree that were moved away while an agent ran: its program would have obeyed them.
   */
  hidden?: string[];
  /**
   * Number of the iteration.
   */
  iter: number;
  /**
   * Logs that are incomplete because of a disk error, and reports of tests that could not be read: the file, and the
   * error.
   */
  log_faults: string[];
  mode: Mode;
  /**
   * Branches and tags outside the run that its processes moved, each with the old and the new commit.
   */
  moved_refs: string[];
  /**
   * Task of the session.
   */
  node: string;
  /**
   * Ids from the root to the task, both included.
   */
  node_path: string[];
  /**
   * How long each phase took.
   */
  phases: PhaseTime[];
  /**
   * Paths that its processes changed without permission, and that were restored.
   */
  reverted: string[];
  /**
   * The review; null if no review was requested.
   */
  review?: ReviewFacts | null;
  role: Role;
  /**
   * Id of the run.
   */
  run: string;
  /**
   * Files with secrets that the session changed.
   */
  secrets: SecretFinding[];
  /**
   * The service's id for the session; null if the agent does not report it.
   */
  session_id?: string | null;
  /**
   * When it started.
   */
  started_at: string;
  status: IterationStatus;
  /**
   * Processes that outlived their leader and were ended.
   */
  survivors_ended: number;
  usage: SessionUsage;
  verdict: VerdictName;
}
/**
 * Why a session gave no answer, and the evidence.
 */
export interface SessionFailure {
  /**
   * The class; null if no known failure matches.
   */
  class?: FailureClass | null;
  /**
   * The agent's report of its failure, each part as `field: value`, cut to a limit; structured fields first.
   */
  evidence: string[];
  /**
   * The line of the table of signatures that matched, if one did.
   */
  signature?: string | null;
  /**
   * When the service is expected back, if it said so.
   */
  until?: string | null;
}
/**
 * The facts of a review. Its text is in `review.json` of the record.
 */
export interface ReviewFacts {
  /**
   * Kind and version of the reviewer; `human` for a person.
   */
  by: string;
  /**
   * Why the last try gave no answer; null if it gave one, or was interrupted.
   */
  failure?: SessionFailure | null;
  /**
   * The service's id for the reviewer's session; null if the reviewer does not report it.
   */
  session_id?: string | null;
  /**
   * Number of tries to get a review; 0 for a person.
   */
  tries: number;
  usage: UsageTotal;
  /**
   * The decision; null if there was none.
   */
  verdict?: ReviewVerdict | null;
  /**
   * Files that reviewers wrote outside of the record: they are kept under `refs/runner/rescue/`, and the working
   * tree is restored.
   */
  wrote: string[];
}
/**
 * What one session consumed; a field that the backend did not report is null, never 0.
 */
export interface SessionUsage {
  /**
   * Input tokens that were read from a cache.
   */
  cached_tokens?: number | null;
  /**
   * Cost in millionths of a US dollar.
   */
  cost_micro_usd?: number | null;
  /**
   * Input tokens that were not read from a cache.
   */
  input_tokens?: number | null;
  /**
   * Output tokens.
   */
  output_tokens?: number | null;
}
/**
 * An agent's question.
 */
export interface QuestionView {
  /**
   * A person's answer.
   */
  answer?: string | null;
  /**
   * The beginning of the hash of its text.
   */
  id: string;
  path: WirePath;
  /**
   * Id of the run.
   */
  run: string;
  /**
   * The question.
   */
  text: string;
}
/**
 * `config.show`: every key and the origin of its value.
 */
export interface ConfigShowReply {
  daemon_file: WirePath;
  /**
   * Its keys; changes since the daemon started apply from its next start.
   */
  daemon_settings: SettingView[];
  file: WirePath;
  /**
   * Its keys.
   */
  settings: SettingView[];
}
/**
 * A key of a configuration.
 */
export interface SettingView {
  /**
   * The possible words, if its value is one of a few.
   */
  choices: string[];
  /**
   * The dotted key.
   */
  key: string;
  origin: SettingOrigin;
  /**
   * The exact origin: `FILE:LINE`, or a variable.
   */
  place?: string | null;
  /**
   * Its value as TOML; null if it is not set.
   */
  value?: string | null;
}
/**
 * `memory.get`: the texts from which prompts are built.
 */
export interface MemoryReply {
  /**
   * The commit from which they are read; null if they are read from a working tree.
   */
  commit?: string | null;
  /**
   * The existing texts: goal, progress, notes, and the files that agents append to.
   */
  files: MemoryFile[];
}
/**
 * One of the texts.
 */
export interface MemoryFile {
  /**
   * Its name without a directory, like `assumptions.md`.
   */
  name: string;
  /**
   * Its text; bytes that are not UTF-8 are replaced.
   */
  text: string;
}
/**
 * `iteration.activity`: steps of an agent's work, from its output.
 */
export interface ActivityReply {
  /**
   * Whether the end was reached and nothing more will be written.
   */
  complete: boolean;
  /**
   * The offset for the next request.
   */
  next_offset: number;
  /**
   * The steps, oldest first; empty if the format of the agent's output is unknown.
   */
  steps: ActivityStep[];
}
/**
 * One step of an agent's work.
 */
export interface ActivityStep {
  /**
   * The byte offset in the agent's output of the line that reports the step.
   */
  offset: number;
  /**
   * The text, command or files, made safe for a terminal; at most 4 KiB.
   */
  text: string;
  what: ActivityKind;
}
/**
 * A step of an agent's work, as the agent's program reports it.
 */
export interface Activity {
  /**
   * The text, command or files, made safe for a terminal; at most 4 KiB.
   */
  text: string;
  what: ActivityKind;
}
/**
 * `/api/health` and `/api/session`: the server, and its source of data.
 */
export interface Health {
  /**
   * When the daemon last answered; null if it has not answered yet.
   */
  as_of?: string | null;
  /**
   * Whether a daemon answers.
   */
  connected: boolean;
  /**
   * The daemon, as it was when the connection was opened.
   */
  daemon?: DaemonView | null;
  /**
   * The machine of the daemon; null if it is this machine.
   */
  host?: string | null;
  /**
   * All machines that have a page: the first one is at `/`, the others are at `/m/1`, `/m/2` and so on.
   */
  hosts?: string[];
  /**
   * Id of the only repository, if the short paths refer to it.
   */
  only?: string | null;
  /**
   * When it was started.
   */
  started_at: string;
  /**
   * Whether replies come from the files of a work tree, because no daemon has answered.
   */
  static: boolean;
  /**
   * Whether the server was started with permission to steer.
   */
  steers?: boolean;
  /**
   * Version of `runner-ui`.
   */
  version: string;
}
/**
 * The daemon.
 */
export interface DaemonView {
  /**
   * Version of the API, which must be equal on both sides.
   */
  api_version: number;
  containment: Containment;
  /**
   * The levels of containment that are not in use, weakest first.
   */
  containment_missing: MissingLevel[];
  /**
   * Whether the daemon stops after the current iterations.
   */
  draining: boolean;
  /**
   * The directory of its log; null if it logs to standard error, which a service manager may keep.
   */
  log?: WirePath | null;
  /**
   * The current log filter.
   */
  log_filter: string;
  /**
   * Whether that file has been replaced: after a restart, the daemon is a different program.
   */
  outdated: boolean;
  /**
   * Process id.
   */
  pid: number;
  /**
   * The file from which it was started.
   */
  program?: WirePath | null;
  /**
   * Registered repositories.
   */
  repositories: number;
  /**
   * Runs in progress.
   */
  running: number;
  sleep: SleepView;
  socket: WirePath;
  /**
   * Whether a service manager passed the socket, and keeps it open after the daemon ends.
   */
  socket_passed: boolean;
  /**
   * When it started.
   */
  started_at: string;
  state_folder: WirePath;
  /**
   * Version of the program.
   */
  version: string;
}
/**
 * A level of containment that is not in use.
 */
export interface MissingLevel {
  level: Containment;
  /**
   * How to make it available.
   */
  raise: string;
  /**
   * The reason.
   */
  why: string;
}
/**
 * Whether the machine may go to sleep automatically.
 */
export interface SleepView {
  /**
   * Whether the daemon keeps it awake.
   */
  inhibited: boolean;
  /**
   * The reason, if it does not.
   */
  why?: string | null;
}
/**
 * `/api/session`.
 */
export interface Session {
  /**
   * When the daemon last answered; null if it has not answered yet.
   */
  as_of?: string | null;
  /**
   * Whether a daemon answers.
   */
  connected: boolean;
  /**
   * The daemon, as it was when the connection was opened.
   */
  daemon?: DaemonView | null;
  /**
   * The machine of the daemon; null if it is this machine.
   */
  host?: string | null;
  /**
   * All machines that have a page: the first one is at `/`, the others are at `/m/1`, `/m/2` and so on.
   */
  hosts?: string[];
  /**
   * Id of the only repository, if the short paths refer to it.
   */
  only?: string | null;
  /**
   * When it was started.
   */
  started_at: string;
  /**
   * Whether replies come from the files of a work tree, because no daemon has answered.
   */
  static: boolean;
  /**
   * The token that steering requires in addition to the cookie, for the requested host; sent only to a page that was
   * opened with an address from this server, and null if the server does not steer.
   */
  steer_token?: string | null;
  /**
   * Whether the server was started with permission to steer.
   */
  steers?: boolean;
  /**
   * Version of `runner-ui`.
   */
  version: string;
}
/**
 * The result of a request that steers.
 */
export interface Steered {
  /**
   * Whether the request has not taken effect yet.
   */
  pending: boolean;
  /**
   * The result, in one line.
   */
  summary: string;
  /**
   * What the request waits for.
   */
  waits_for?: string | null;
}
/**
 * The content of a file from `runnerctl export html`: a run, in the form in which the page requests it. Replies and
 * texts are named by the end of their path: `tree`, `iterations/7`, `iterations/7/guard.log`.
 */
export interface RunFile {
  /**
   * The parts that are left out, in sentences.
   */
  cuts: string[];
  /**
   * When the run was read.
   */
  made_at: string;
  /**
   * Replies that are JSON.
   */
  replies: {
    [k: string]: unknown;
  };
  /**
   * Id of the repository.
   */
  repo: string;
  /**
   * Id of the run.
   */
  run: string;
  /**
   * Texts; invalid UTF-8 is replaced.
   */
  texts: {
    [k: string]: string;
  };
  /**
   * Version of `runner-ui`.
   */
  version: string;
  /**
   * Iterations whose texts are left out.
   */
  without_texts: string[];
}
