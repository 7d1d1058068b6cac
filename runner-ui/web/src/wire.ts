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
 * How tightly processes are held together.
 */
export type Containment = 'walk' | 'cgroup' | 'pidns';
/**
 * What a session was asked to be.
 */
export type Role = 'worker' | 'planner' | 'repair' | 'reviewer' | 'human';
/**
 * A stop that was asked for and has not taken effect.
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
 * Why a session of an agent gave no answer, as far as it is known.
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
  | 'crashed';
/**
 * What an iteration did, seen from its changes.
 */
export type Mode = 'execute' | 'decompose';
/**
 * What a review decides of a finished node.
 */
export type ReviewVerdict = 'accept' | 'reject';
/**
 * Where the value of a setting comes from.
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
   * Id of the repository; null for the daemon's own.
   */
  repo?: string | null;
  /**
   * Id of the run.
   */
  run?: string | null;
  /**
   * Number in the daemon's stream; grows by one, begins anew with the daemon.
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
         * Why, where it stopped.
         */
        reason?: StopReason | null;
        state: RunStatus;
        /**
         * When it goes on by itself, where it waits for a time.
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
         * When it is asked again.
         */
        until: string;
        /**
         * What it said.
         */
        why: string;
      };
      kind: 'outage';
    }
  | {
      data: {
        /**
         * Node that is worked on, once it is known.
         */
        node?: string | null;
        phase: PhaseName;
      };
      kind: 'phase';
    }
  | {
      data: {
        /**
         * What is in the way.
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
         * Attempts charged after it.
         */
        attempts: number;
        guard: GuardOutcome;
        /**
         * Attempts allowed.
         */
        max_attempts: number;
        /**
         * The node.
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
         * Leaves that pass.
         */
        leaves_passed: number;
        /**
         * Leaves of the tree.
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
         * Paths relative to the work tree.
         */
        paths: string[];
      };
      kind: 'reverted';
    }
  | {
      data: {
        /**
         * Each with where it was and where it is.
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
         * The process, where the system tells which; it may be gone.
         */
        pid?: number | null;
      };
      kind: 'refused';
    }
  | {
      data: {
        /**
         * Which files, and whose values.
         */
        seen: SecretSeen[];
      };
      kind: 'secrets';
    }
  | {
      data: {
        /**
         * What is new and open.
         */
        asked: QuestionView[];
      };
      kind: 'questions';
    }
  | {
      data: {
        phase: PhaseName;
        /**
         * Text made safe for a terminal.
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
         * How much of it is done: bytes or files, as the stage has them.
         */
        done: number;
        /**
         * What is being done.
         */
        stage: string;
        /**
         * How much there is; 0 where that is not known.
         */
        total: number;
      };
      kind: 'workspace';
    }
  | {
      data: {
        /**
         * What was seen.
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
 * What is to be done with a run: the body of a request that steers.
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
       * Number of the iteration; it is refused where another one waits.
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
       * Why, at most 8 KiB.
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
       * What, at most 8 KiB.
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
       * Do not wait for the time that it waits for.
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
   * Its isolated runs, each in a workspace of its own, those that are over included.
   */
  isolated?: RunSummary[];
  repo: RepoView;
  /**
   * The run at the head of the queue, else the last one that ended.
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
   * What its goal is called: the first heading or line of it; null where nobody has told.
   */
  goal?: string | null;
  /**
   * Id of the run.
   */
  id: string;
  path: WirePath;
  /**
   * How far it is published, where it is an isolated run.
   */
  published?: PublishedView | null;
  /**
   * When it was put into the queue.
   */
  queued_at: string;
  /**
   * Why it is not running, where that is so.
   */
  reason?: StopReason | null;
  state: RunStatus;
}
/**
 * How far an isolated run is published: what its branch is in the repository that it was begun from.
 */
export interface PublishedView {
  /**
   * Commits of the run that the branch does not have yet; null where the last look at it has failed.
   */
  behind?: number | null;
  /**
   * The commit that the branch names there; null where there is no such branch, or `behind` is null.
   */
  tip?: string | null;
  to: WirePath;
  /**
   * Why it is behind, or why that is not known, where that is so.
   */
  why?: StopReason | null;
}
/**
 * Why a run stopped, and what goes on.
 */
export interface StopReason {
  /**
   * What goes on, as a sentence.
   */
  command?: string | null;
  /**
   * The commands of that sentence, for whoever runs or copies them.
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
   * The program and its arguments, as they are: whoever shows them for a shell quotes them.
   */
  argv: string[];
  /**
   * What it is for, in a few words.
   */
  label: string;
}
/**
 * A registered repository.
 */
export interface RepoView {
  /**
   * Why its state could not be read, where that is so.
   */
  held?: StopReason | null;
  /**
   * Id of the repository: the start of a digest of its git folder.
   */
  id: string;
  path: WirePath;
  /**
   * Its runs that are not over, in order.
   */
  queue: RunSummary[];
  /**
   * The work tree that its run was asked for in, where this is the workspace of an isolated run.
   */
  source?: WirePath | null;
  /**
   * Id of the repository that its run was begun from, where this is the workspace of an isolated run.
   */
  source_id?: string | null;
}
/**
 * One run in detail.
 */
export interface RunView {
  /**
   * Result of the guard on the base.
   */
  baseline?: GuardOutcome | null;
  /**
   * What a person has asked of its files and what is not committed yet, oldest first.
   */
  changes: ChangeView[];
  containment: Containment;
  /**
   * Time spent in iterations, in milliseconds.
   */
  elapsed_ms: number;
  /**
   * A command of git's that has not ended for a while.
   */
  git_wait?: GitWaitView | null;
  /**
   * What is watched for the guard; null where the committed state cannot be read.
   */
  guard?: GuardFiles | null;
  /**
   * Files of the guard's definition that are committed otherwise than a person has accepted them.
   */
  guard_changed: string[];
  /**
   * Files that stay in the work tree and out of the branch.
   */
  held_back: string[];
  /**
   * Number of the next iteration, or of the live one.
   */
  iteration: number;
  /**
   * Leaves that pass.
   */
  leaves_passed: number;
  /**
   * Leaves of the tree.
   */
  leaves_total: number;
  /**
   * What costs are computed from that no agent has told and no configuration states: "list price" and its date.
   */
  list_price?: string | null;
  /**
   * The node of the live iteration, else the next one.
   */
  node?: NodeRef | null;
  /**
   * Ids of the notes that no session has answered to.
   */
  notes: string[];
  /**
   * What else somebody should know of the last iterations: moved references, logs that are not complete.
   */
  notices: string[];
  /**
   * Kinds of agents whose services were not available when they were last asked, and are not asked now.
   */
  outages: OutageView[];
  /**
   * A stop that was asked for and has not taken effect.
   */
  pending?: PendingControl | null;
  /**
   * What the live iteration is doing.
   */
  phase?: PhaseView | null;
  /**
   * Questions that are open.
   */
  questions: number;
  /**
   * The last iterations, newest first.
   */
  recent: IterationView[];
  /**
   * Paths that the last iteration changed without right.
   */
  reverted: string[];
  /**
   * Files of the last iterations that hold secrets.
   */
  secrets: SecretSeen[];
  summary: RunSummary;
  usage: UsageTotal;
  /**
   * When a waiting run goes on by itself.
   */
  wait_until?: string | null;
}
/**
 * A request of a person's that waits for its commit.
 */
export interface ChangeView {
  /**
   * The command that asked for it.
   */
  command: string;
  /**
   * Id of the note, the question or the node, or the key, where it is known before it is done.
   */
  id?: string | null;
  /**
   * What is asked, in one line.
   */
  text: string;
}
/**
 * A command of git's that has not ended for a while: until it has, nothing else is done in the repository.
 */
export interface GitWaitView {
  /**
   * The subcommand.
   */
  command: string;
  /**
   * The program that git waits for, such as gpg or a filter; null where it waits for none.
   */
  program?: string | null;
  /**
   * When it was started.
   */
  since: string;
}
/**
 * The files that say what the guard does, and are watched for changes.
 */
export interface GuardFiles {
  /**
   * Whether none is, though the guard may read some: whoever changes these changes unseen what the guard does.
   */
  is_blind: boolean;
  /**
   * Commands that run files of which nobody can tell which these are, as `FILE: COMMAND`; none where the configuration
   * names files. Of many the first.
   */
  unknown: string[];
  /**
   * Their paths, in order.
   */
  watched: string[];
}
/**
 * A node by its place.
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
   * Ids from the root to the node, both included.
   */
  path: string[];
  /**
   * What the session is, or would be, asked to be.
   */
  role?: Role | null;
  /**
   * Title.
   */
  title: string;
  /**
   * What its sessions have consumed, those that failed and that found no service included; null where that is not
   * asked for.
   */
  usage?: UsageTotal | null;
}
/**
 * What sessions have consumed together: null where none of them said, and too little by those that did not.
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
   * Sessions whose cost is not known.
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
   * Sessions that did not say how many tokens they read and wrote.
   */
  tokens_unknown?: number;
}
/**
 * A kind of agent whose service is not available.
 */
export interface OutageView {
  /**
   * The kind.
   */
  agent: string;
  /**
   * When it is asked again.
   */
  until: string;
  /**
   * What it said.
   */
  why: string;
}
/**
 * A live phase.
 */
export interface PhaseView {
  /**
   * The kind of agent that was chosen for the session.
   */
  agent?: string | null;
  /**
   * Whether it is the guard on the base, before the first iteration.
   */
  baseline: boolean;
  /**
   * Budget of the iteration, in milliseconds.
   */
  budget_ms: number;
  /**
   * When the iteration began.
   */
  iteration_since: string;
  name: PhaseName;
  /**
   * What keeps its effect from being done, where that is so.
   */
  obstacle?: string | null;
  /**
   * When it began.
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
   * Its commit, where it has one.
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
  guard: GuardOutcome;
  /**
   * Number.
   */
  iter: number;
  /**
   * Node that was worked on.
   */
  node: string;
  /**
   * How long each of its phases took, in order; empty where its record is gone.
   */
  phases: PhaseTime[];
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
   * Title of the node, where its commit tells it.
   */
  title?: string | null;
  /**
   * What it consumed, tries that left no commit included.
   */
  usage?: UsageTotal | null;
  verdict: VerdictName;
  /**
   * Number of the wait that it led to, where it left no commit: the iteration was begun again under the same number.
   */
  wait?: number | null;
}
/**
 * The time one phase took.
 */
export interface PhaseTime {
  /**
   * Milliseconds.
   */
  duration_ms: number;
  phase: PhaseName;
}
/**
 * A known secret in a file of the agent's.
 */
export interface SecretSeen {
  /**
   * Path relative to the work tree; a secret in its name is replaced.
   */
  path: string;
  /**
   * The variable whose value it is.
   */
  variable: string;
}
/**
 * `tree.get`.
 */
export interface TreeReply {
  /**
   * The node of the live iteration, else the next leaf.
   */
  current?: string | null;
  /**
   * SHA-256 of its canonical form, for `tree.edit`.
   */
  digest: string;
  /**
   * State of the run, where there is one.
   */
  state?: RunStatus | null;
  tree: TaskTree;
}
/**
 * A task tree file: a version and the root node.
 */
export interface TaskTree {
  root: Node;
  /**
   * Version of the format, always 1.
   */
  version: number;
}
/**
 * One task: a leaf is worked on, a node with children is passed by them.
 */
export interface Node {
  /**
   * Testable statements, at most 20 of at most 400 bytes each.
   */
  acceptance: string[];
  /**
   * Attempts charged so far; written by the runner alone.
   */
  attempts: number;
  /**
   * The parts it was decomposed into.
   */
  children: Node[];
  /**
   * What is to be true when it is done, at most 8 KiB.
   */
  goal: string;
  /**
   * Unique in the tree, ignoring case; `[A-Za-z0-9][A-Za-z0-9._-]{0,199}`.
   */
  id: string;
  /**
   * Attempts allowed, at least 1; written by the runner alone once the node exists.
   */
  max_attempts: number;
  /**
   * Place among the siblings; ties are broken by the bytes of the id.
   */
  order: number;
  /**
   * Whether it is done; written by the runner alone.
   */
  passes: boolean;
  /**
   * What it is called, at most 200 bytes.
   */
  title: string;
}
/**
 * `iteration.get`: one record.
 */
export interface IterationReply {
  /**
   * What has failed in its guard, as runners of tests and compilers have reported it; the first ones, bounded.
   */
  failures: ReportedFailure[];
  iteration: IterationView;
  /**
   * The facts, where the record holds them.
   */
  meta?: IterationMeta | null;
  record: WirePath;
}
/**
 * What a runner of tests or a compiler has reported as failed.
 */
export interface ReportedFailure {
  /**
   * What was said of it, the line that names it first.
   */
  lines: string[];
  /**
   * What has failed.
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
   * Exit of the agent: a code, or a negative signal number.
   */
  agent_exit?: number | null;
  /**
   * Bytes of the agent's output that were kept.
   */
  captured_bytes: number;
  /**
   * The commit it ended in; null where nothing changed and none was made.
   */
  commit?: string | null;
  containment: Containment;
  /**
   * Details of the verdict, where it has any.
   */
  detail?: string | null;
  /**
   * Submodules with work inside that is not committed there; its commit lacks it.
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
   * Why the agent gave no answer; null where it gave one, or was not let finish.
   */
  failure?: SessionFailure | null;
  /**
   * Commit at which the session began.
   */
  from: string;
  guard: GuardOutcome;
  /**
   * Files of the guard's definition that were not as a person has accepted them.
   */
  guard_changed: string[];
  /**
   * Exit of the guard, likewise.
   */
  guard_exit?: number | null;
  /**
   * Whether the guard was run with the accepted definition too, and `guard` is how that ended.
   */
  guard_with_accepted: boolean;
  /**
   * Files that stay in the work tree and out of its commit.
   */
  held_back: string[];
  /**
   * Number of the iteration.
   */
  iter: number;
  /**
   * Logs that are not complete because the disk refused a part of them: the file, and why.
   */
  log_faults: string[];
  mode: Mode;
  /**
   * Branches and tags of others that its processes moved, each with where it was and where it is.
   */
  moved_refs: string[];
  /**
   * Node that was worked on.
   */
  node: string;
  /**
   * Ids from the root to the node, both included.
   */
  node_path: string[];
  /**
   * How long each phase took.
   */
  phases: PhaseTime[];
  /**
   * Paths that its processes changed without right, and that were put back.
   */
  reverted: string[];
  /**
   * The review; null where nobody was asked.
   */
  review?: ReviewFacts | null;
  role: Role;
  /**
   * Id of the run.
   */
  run: string;
  /**
   * Files that the session changed and that hold secrets.
   */
  secrets: SecretSeen[];
  /**
   * By which the agent's service knows the session; null where the agent does not say.
   */
  session_id?: string | null;
  /**
   * When it began.
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
 * Why a session gave no answer, and by what that is known.
 */
export interface SessionFailure {
  /**
   * The class; null where nothing that was seen is known to mean anything.
   */
  class?: FailureClass | null;
  /**
   * What the agent showed of its failure, each as `field: value`, bounded; what is structural comes first.
   */
  evidence: string[];
  /**
   * The line of the table of signatures that told the class, where one did.
   */
  signature?: string | null;
  /**
   * When the service is expected back, where it said so.
   */
  until?: string | null;
}
/**
 * The facts of a review. What was said is in `review.json` of the record.
 */
export interface ReviewFacts {
  /**
   * Kind and version of the reviewer; `human` for a person.
   */
  by: string;
  /**
   * Why the last one gave no answer; null where it gave one, or was not let finish.
   */
  failure?: SessionFailure | null;
  /**
   * By which the reviewer's service knows the session; null where the reviewer does not say.
   */
  session_id?: string | null;
  /**
   * Times that a reviewer was asked; 0 for a person.
   */
  tries: number;
  usage: UsageTotal;
  /**
   * What was decided; null where nothing was.
   */
  verdict?: ReviewVerdict | null;
  /**
   * What reviewers wrote outside of the record: kept under `refs/runner/rescue/` and undone.
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
 * A question of an agent.
 */
export interface QuestionView {
  /**
   * What a person has answered.
   */
  answer?: string | null;
  /**
   * The start of the hash of its text.
   */
  id: string;
  path: WirePath;
  /**
   * Id of the run.
   */
  run: string;
  /**
   * What is asked.
   */
  text: string;
}
/**
 * `config.show`: every key and where its value comes from.
 */
export interface ConfigShowReply {
  daemon_file: WirePath;
  /**
   * Its keys; what has changed since the daemon started holds from its next start on.
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
   * The words that it may be, where it is one of a few.
   */
  choices: string[];
  /**
   * The dotted key.
   */
  key: string;
  origin: SettingOrigin;
  /**
   * Where exactly: `FILE:LINE`, or a variable.
   */
  place?: string | null;
  /**
   * Its value as TOML; null where it is off.
   */
  value?: string | null;
}
/**
 * `memory.get`: the texts that sessions are told from.
 */
export interface MemoryReply {
  /**
   * The commit that they are read from; null where they are read from a work tree.
   */
  commit?: string | null;
  /**
   * The texts that are there: goal, progress, notes, and what agents append to.
   */
  files: MemoryFile[];
}
/**
 * One of the texts.
 */
export interface MemoryFile {
  /**
   * Its name without a folder, like `assumptions.md`.
   */
  name: string;
  /**
   * Its text; bytes that are not UTF-8 are replaced.
   */
  text: string;
}
/**
 * `iteration.activity`: steps of an agent's work, as its output tells them.
 */
export interface ActivityReply {
  /**
   * Whether the end was reached and nobody writes any more.
   */
  complete: boolean;
  /**
   * Where the next request goes on.
   */
  next_offset: number;
  /**
   * The steps, oldest first; none from an agent whose output has no form that is known.
   */
  steps: ActivityStep[];
}
/**
 * One step of an agent's work.
 */
export interface ActivityStep {
  /**
   * Where the line that tells it begins in the agent's output, in bytes.
   */
  offset: number;
  /**
   * What it says, starts or touches, made safe for a terminal; at most 4 KiB.
   */
  text: string;
  what: ActivityKind;
}
/**
 * A step of an agent's work, as its program tells it.
 */
export interface Activity {
  /**
   * What it says, starts or touches, made safe for a terminal; at most 4 KiB.
   */
  text: string;
  what: ActivityKind;
}
/**
 * `/api/health` and `/api/session`: who answers, and from what.
 */
export interface Health {
  /**
   * When the daemon was heard last; null where none has answered yet.
   */
  as_of?: string | null;
  /**
   * Whether a daemon answers.
   */
  connected: boolean;
  /**
   * The daemon, as it was when the connection to it was made.
   */
  daemon?: DaemonView | null;
  /**
   * The machine of the daemon; null where it is this one.
   */
  host?: string | null;
  /**
   * All machines that have a page: that of the first is at `/`, that of the one after `n` others at `/m/n`.
   */
  hosts?: string[];
  /**
   * Id of the only repository, where the short paths name it.
   */
  only?: string | null;
  /**
   * When it was started.
   */
  started_at: string;
  /**
   * Whether replies come from the files of a work tree, since no daemon has answered.
   */
  static: boolean;
  /**
   * Whether the server was started to steer.
   */
  steers?: boolean;
  /**
   * Version of `runner-ui`.
   */
  version: string;
}
/**
 * The daemon itself.
 */
export interface DaemonView {
  /**
   * Version of the API: must be equal on both sides.
   */
  api_version: number;
  containment: Containment;
  /**
   * The levels of containment that it does not use, the weakest first.
   */
  containment_missing: MissingLevel[];
  /**
   * Whether it ends after the current iterations.
   */
  draining: boolean;
  /**
   * The folder of its log; none: standard error, which a service manager may keep.
   */
  log?: WirePath | null;
  /**
   * The log filter in force.
   */
  log_filter: string;
  /**
   * Whether another file has taken the place of that one: a restart starts another program.
   */
  outdated: boolean;
  /**
   * Process id.
   */
  pid: number;
  /**
   * The file that it was started from.
   */
  program?: WirePath | null;
  /**
   * Registered repositories.
   */
  repositories: number;
  /**
   * Runs that are being driven.
   */
  running: number;
  sleep: SleepView;
  socket: WirePath;
  /**
   * Whether a service manager has passed the socket, and keeps it when the daemon ends.
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
 * A level of containment that is not used.
 */
export interface MissingLevel {
  level: Containment;
  /**
   * What a person can do to have it.
   */
  raise: string;
  /**
   * Why not.
   */
  why: string;
}
/**
 * Whether the machine may go to sleep by itself.
 */
export interface SleepView {
  /**
   * Whether the daemon keeps it awake.
   */
  inhibited: boolean;
  /**
   * Why not, where it does not.
   */
  why?: string | null;
}
/**
 * `/api/session`.
 */
export interface Session {
  /**
   * When the daemon was heard last; null where none has answered yet.
   */
  as_of?: string | null;
  /**
   * Whether a daemon answers.
   */
  connected: boolean;
  /**
   * The daemon, as it was when the connection to it was made.
   */
  daemon?: DaemonView | null;
  /**
   * The machine of the daemon; null where it is this one.
   */
  host?: string | null;
  /**
   * All machines that have a page: that of the first is at `/`, that of the one after `n` others at `/m/n`.
   */
  hosts?: string[];
  /**
   * Id of the only repository, where the short paths name it.
   */
  only?: string | null;
  /**
   * When it was started.
   */
  started_at: string;
  /**
   * Whether replies come from the files of a work tree, since no daemon has answered.
   */
  static: boolean;
  /**
   * What steering needs beside the cookie, under the name of the host that was asked for; told to those alone who came by
   * an address, and null where the server only looks.
   */
  steer_token?: string | null;
  /**
   * Whether the server was started to steer.
   */
  steers?: boolean;
  /**
   * Version of `runner-ui`.
   */
  version: string;
}
/**
 * What was done.
 */
export interface Steered {
  /**
   * Whether it waits for something.
   */
  pending: boolean;
  /**
   * In one line.
   */
  summary: string;
  /**
   * What it waits for.
   */
  waits_for?: string | null;
}
/**
 * What a file of `runnerctl export html` holds: a run, as the page asks for it. Replies and texts are named by the end of their
 * path: `tree`, `iterations/7`, `iterations/7/guard.log`.
 */
export interface RunFile {
  /**
   * What is left out, in sentences.
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
   * Texts; bytes that are not UTF-8 are replaced.
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
