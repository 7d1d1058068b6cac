//! Hooks: programs of the user that are called with events of a run.
//!
//! An event is queued for its hook in the same write of `repo.json` that makes it true, and is marked as begun before
//! the program is started: no event is delivered twice, whatever happens to the daemon. Hooks run one at a time
//! alongside the runs, under a shim like guards, and their failure is reported and never fatal.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::event::EventKind;
use protocol::hook::{HookEvent, HookName};
use protocol::view::QuestionView;
use runner_config::{HooksConfig, RepoConfig};
use runner_core::files::questions;
use runner_core::verdict::SessionTask;
use runner_git::Id;
use runner_os::error_chain::display_chain;
use runner_process::{Launcher, LogFile, Mark, ProgramEnd, ProgramSpec, StopPolicy, TimeLimits};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use crate::repo::durable::{self, FileAccess};
use crate::repo::layout::Layout;
use crate::store::PendingHook;
use crate::worker::WorkerMessage;
use crate::worker::context::RunContext;
use crate::worker::hook_queue::hook_event;
use crate::worker::load::{CommittedState, load_config};
use crate::worker::run::worker::RepoWorker;

/// Time limit of a hook.
const TIME_LIMIT: Duration = Duration::from_mins(1);
/// Time from the request to exit to the kill, within the budget.
const GRACE: Duration = Duration::from_secs(5);
/// Size limit in bytes of a hook's log.
const MAX_LOG: u64 = 64 * 1024;
/// Number of logs to keep.
const MAX_LOGS: usize = 20;

/// Reports the questions that a session has asked, and calls the hook for them once.
pub(crate) fn publish_questions(
    worker: &mut RepoWorker,
    context: &RunContext,
    task: &SessionTask,
    loaded: &CommittedState,
) {
    let questions = block_in_place(|| {
        let from: Id = task.from.parse().ok()?;
        let before = context.repository().ok()?.read_file(&from, Layout::QUESTIONS).ok()?.unwrap_or_default();
        Some(questions::new_questions(&String::from_utf8_lossy(&before), loaded.text(Layout::QUESTIONS)))
    });
    let questions: Vec<QuestionView> =
        questions.unwrap_or_default().into_iter().map(|new| question_view(new, context)).collect();
    let mut file = worker.queue.file.clone();
    let iteration = format!("{}/{:04}", task.run, task.iter);
    let Some(run) = worker.queue.find_run(&task.run).cloned().filter(|_| !questions.is_empty()) else { return };
    worker.queue.publish_event(&task.run, Some(task.iter), EventKind::Questions { questions: questions.clone() });
    if file.hooks.last_questions.as_ref() == Some(&iteration) {
        return;
    }
    let event = HookEvent { questions, ..hook_event(&file.id, &run, HookName::OnQuestion) };
    file.hooks.last_questions = Some(iteration);
    file.hooks.queue.push(PendingHook { event, begun: false });
    if let Err(error) = worker.queue.save_file(file) {
        tracing::warn!(repo = worker.queue.file.id, error = display_chain(&error), "no hook is notified of questions");
    }
}

/// Drops hooks that an earlier daemon process started: it is not known whether they finished.
pub(crate) fn fail_interrupted_hooks(worker: &mut RepoWorker) {
    let interrupted: Vec<PendingHook> =
        worker.queue.file.hooks.queue.iter().filter(|hook| hook.begun).cloned().collect();
    for hook in interrupted {
        worker.queue.finish_hook(&hook.event, Some("the daemon ended while it ran; it is not run again".to_owned()));
    }
}

/// Starts the hook of the oldest pending event, if none is running.
pub(crate) fn start_hook(worker: &mut RepoWorker) {
    while let Some(queued) = worker.queue.file.hooks.queue.first().cloned() {
        if queued.begun || worker.queue.held.is_some() || worker.queue.is_draining() {
            return;
        }
        match block_in_place(|| prepare_call(worker, &queued.event)) {
            Ok(Some(call)) => {
                let mut file = worker.queue.file.clone();
                file.hooks.queue[0].begun = true;
                if worker.queue.save_file(file).is_ok() {
                    worker.hook =
                        Some(tokio::spawn(call.run(worker.queue.own_sender.clone(), worker.deps.shutdown.clone())));
                }
                return;
            }
            Ok(None) => worker.queue.finish_hook(&queued.event, None),
            Err(error) => worker.queue.finish_hook(&queued.event, Some(display_chain(&error))),
        }
        if worker.queue.file.hooks.queue.first() == Some(&queued) {
            return;
        }
    }
}

/// Builds the call from the configuration at the tip of the run's branch; `None` if it names no program.
fn prepare_call(
    worker: &RepoWorker,
    event: &HookEvent,
) -> Result<Option<HookCall>, crate::worker::run_error::RunError> {
    let Some(run) = worker.queue.find_run(&event.run) else { return Ok(None) };
    let context = worker.run_context(run)?;
    let repository = context.repository()?;
    let Some(tip) = repository.find_branch_tip(&event.branch)? else { return Ok(None) };
    let config: RepoConfig = load_config(&repository, tip)?;
    let argv = hook_argv(&config.hooks, event.hook);
    if argv.is_empty() {
        return Ok(None);
    }
    let folder = worker.queue.store.folder().join("hooks");
    durable::create_dir(&folder, FileAccess::Private)?;
    remove_oldest_logs(&folder);
    let id = format!("{}-{}", event.time.as_millisecond(), event.hook);
    let stdin = serde_json::to_string(event).expect("BUG: an event does not serialize") + "\n";
    let spec = ProgramSpec {
        argv: argv.iter().map(OsString::from).collect(),
        cwd: context.layout.root().to_owned(),
        env: context.guard_env(&config.env.guard),
        stdin: context.secrets.redact(&stdin).into_owned().into_bytes(),
        mark: Mark::new(format!("{}-hook-{id}", worker.queue.file.id)),
        lock: folder.join("shim.lock"),
        limits: TimeLimits { budget: TIME_LIMIT, idle: None, grace: GRACE },
        log: LogFile { path: folder.join(format!("{id}.log")), cap_bytes: MAX_LOG, secrets: context.secrets.clone() },
        follower: None,
        separates_output: false,
        stop_policy: StopPolicy::Terminate,
        output: None,
        no_new_privs: true,
    };
    Ok(Some(HookCall { event: event.clone(), log: spec.log.path.clone(), spec, launcher: context.launcher.clone() }))
}

/// One call of a hook.
struct HookCall {
    event: HookEvent,
    spec: ProgramSpec<'static>,
    log: PathBuf,
    launcher: Launcher,
}

impl HookCall {
    /// Runs the program to its end, and reports to the owner of the queue.
    async fn run(self, owner: tokio::sync::mpsc::WeakSender<WorkerMessage>, stop: CancellationToken) {
        let Self { event, spec, log, launcher } = self;
        let mark = spec.mark.clone();
        let lock = spec.lock.clone();
        let failure = match runner_process::run_program(&launcher, spec, &stop).await {
            Ok(mut report) => {
                runner_process::wait_until_gone(&mark, &lock, report.still_alive.take()).await;
                describe_failure(report.end, &log)
            }
            Err(error) => Some(format!("it cannot be started: {}", display_chain(&error))),
        };
        if let Some(owner) = owner.upgrade() {
            // If the owner is gone, the event is on disk, marked as begun.
            let _ = owner.send(WorkerMessage::HookEnded { event: Box::new(event), failure }).await;
        }
    }
}

fn describe_failure(ended: ProgramEnd, log: &Path) -> Option<String> {
    let reason = match ended {
        ProgramEnd::Exited(0) => return None,
        ProgramEnd::Exited(code) => format!("it ended with exit code {code}"),
        ProgramEnd::Signaled(signal) => format!("it was ended by signal {signal}"),
        ProgramEnd::TimedOut | ProgramEnd::Silent => format!("it did not end within {} seconds", TIME_LIMIT.as_secs()),
        ProgramEnd::Stopped => "the daemon ended while it ran".to_owned(),
        ProgramEnd::Lingered | ProgramEnd::SupervisorLost => "it was ended from outside".to_owned(),
    };
    Some(format!("{reason}; what it printed is in {}", log.display()))
}

fn hook_argv(hooks: &HooksConfig, hook: HookName) -> &[String] {
    match hook {
        HookName::OnComplete => &hooks.on_complete,
        HookName::OnStuck => &hooks.on_stuck,
        HookName::OnStop => &hooks.on_stop,
        HookName::OnQuestion => &hooks.on_question,
    }
}

fn question_view(question: questions::AgentQuestion, context: &RunContext) -> QuestionView {
    let questions::AgentQuestion { id, text, answer } = question;
    QuestionView { id, text, answer, path: context.layout.root().into(), run: context.run.clone() }
}

/// Removes old logs to make room for the next.
fn remove_oldest_logs(folder: &Path) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let mut logs: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|end| end == "log")).collect();
    logs.sort();
    for log in logs.iter().take((logs.len() + 1).saturating_sub(MAX_LOGS)) {
        // A log that cannot be removed is removed next time.
        let _ = std::fs::remove_file(log);
    }
}
