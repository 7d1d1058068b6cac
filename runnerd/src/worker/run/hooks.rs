//! Hooks: a person's programs that are told what happened to a run.
//!
//! An event waits for its hook in the same write of `repo.json` that makes it true, and is marked as begun before the
//! program is started: no event is told twice, whatever happens to the daemon. Hooks run one at a time beside the runs,
//! under a shim as guards do, and their failure is told and never fatal.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::event::EventKind;
use protocol::hook::{HookEvent, HookName};
use protocol::view::QuestionView;
use runner_core::questions;
use runner_core::verdict::Task;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use crate::causes::in_one_line;
use crate::config::{HooksConfig, RepoConfig};
use crate::git::Id;
use crate::process::{self, Ended, Farewell, Launcher, Limits, LogFile, Mark, Spec};
use crate::repo::durable::{self, Access};
use crate::repo::layout::Layout;
use crate::store::PendingHook;
use crate::worker::Message;
use crate::worker::context::RunContext;
use crate::worker::hook_calls::event;
use crate::worker::load::{Loaded, load_config};
use crate::worker::run::worker::Worker;

/// Time that a hook has.
const BUDGET: Duration = Duration::from_mins(1);
/// From the request to end to the kill, inside of it.
const GRACE: Duration = Duration::from_secs(5);
/// Most bytes of what a hook prints that are kept.
const MAX_LOG: u64 = 64 * 1024;
/// Logs that are kept.
const MAX_LOGS: usize = 20;

/// Tells what a session has asked, and has its hook called once.
pub(crate) fn tell_questions(worker: &mut Worker, context: &RunContext, task: &Task, loaded: &Loaded) {
    let asked = block_in_place(|| {
        let from: Id = task.from.parse().ok()?;
        let before = context.repository().ok()?.read(&from, Layout::QUESTIONS).ok()?.unwrap_or_default();
        Some(questions::asked(&String::from_utf8_lossy(&before), loaded.text(Layout::QUESTIONS)))
    });
    let asked: Vec<QuestionView> = asked.unwrap_or_default().into_iter().map(|new| view(new, context)).collect();
    let (mut file, iteration) = (worker.queue.file.clone(), format!("{}/{:04}", task.run, task.iter));
    let Some(run) = worker.queue.run(&task.run).cloned().filter(|_| !asked.is_empty()) else { return };
    worker.queue.tell(&task.run, Some(task.iter), EventKind::Questions { asked: asked.clone() });
    if file.hooks.asked.as_ref() == Some(&iteration) {
        return;
    }
    let event = HookEvent { questions: asked, ..event(&file.id, &run, HookName::OnQuestion) };
    file.hooks.asked = Some(iteration);
    file.hooks.queue.push(PendingHook { event, begun: false });
    if let Err(error) = worker.queue.keep(file) {
        tracing::warn!(repo = worker.queue.file.id, error = in_one_line(&error), "no hook is told of questions");
    }
}

/// Gives up hooks that a previous life has begun: whether they came to their end is not known.
pub(crate) fn give_up_begun_hooks(worker: &mut Worker) {
    let begun: Vec<PendingHook> = worker.queue.file.hooks.queue.iter().filter(|hook| hook.begun).cloned().collect();
    for hook in begun {
        worker.queue.hook_ended(&hook.event, Some("the daemon ended while it ran; it is not run again".to_owned()));
    }
}

/// Starts the hook of the oldest event that waits, if none runs.
pub(crate) fn start_hook(worker: &mut Worker) {
    while let Some(waiting) = worker.queue.file.hooks.queue.first().cloned() {
        if waiting.begun || worker.queue.held.is_some() || worker.queue.is_leaving() {
            return;
        }
        match block_in_place(|| prepare_hook(worker, &waiting.event)) {
            Ok(Some(call)) => {
                let mut file = worker.queue.file.clone();
                file.hooks.queue[0].begun = true;
                if worker.queue.keep(file).is_ok() {
                    worker.hook = Some(tokio::spawn(call.run(worker.queue.own.clone(), worker.means.shutdown.clone())));
                }
                return;
            }
            Ok(None) => worker.queue.hook_ended(&waiting.event, None),
            Err(error) => worker.queue.hook_ended(&waiting.event, Some(in_one_line(&error))),
        }
        if worker.queue.file.hooks.queue.first() == Some(&waiting) {
            return;
        }
    }
}

/// Makes a call of the configuration at the tip of the run's branch; none where it names no program.
fn prepare_hook(worker: &Worker, event: &HookEvent) -> Result<Option<Call>, crate::worker::failure::Failure> {
    let Some(run) = worker.queue.run(&event.run) else { return Ok(None) };
    let context = worker.context(run)?;
    let repository = context.repository()?;
    let Some(tip) = repository.branch(&event.branch)? else { return Ok(None) };
    let config: RepoConfig = load_config(&repository, tip)?;
    let argv = argv(&config.hooks, event.hook);
    if argv.is_empty() {
        return Ok(None);
    }
    let folder = worker.queue.store.folder().join("hooks");
    durable::create_dir(&folder, Access::Private)?;
    remove_oldest(&folder);
    let id = format!("{}-{}", event.time.as_millisecond(), event.hook);
    let stdin = serde_json::to_string(event).expect("BUG: an event does not serialize") + "\n";
    let spec = Spec {
        argv: argv.iter().map(OsString::from).collect(),
        cwd: context.layout.root().to_owned(),
        env: context.guard_env(&config.env.guard),
        stdin: context.secrets.redact(&stdin).into_owned().into_bytes(),
        mark: Mark::new(format!("{}-hook-{id}", worker.queue.file.id)),
        lock: folder.join("shim.lock"),
        limits: Limits { budget: BUDGET, idle: None, grace: GRACE },
        log: LogFile { path: folder.join(format!("{id}.log")), cap_bytes: MAX_LOG, secrets: context.secrets.clone() },
        follower: None,
        splits_output: false,
        farewell: Farewell::Terminate,
        output: None,
        no_new_privs: true,
    };
    Ok(Some(Call { event: event.clone(), log: spec.log.path.clone(), spec, launcher: context.launcher.clone() }))
}

/// One call of a hook.
struct Call {
    event: HookEvent,
    spec: Spec<'static>,
    log: PathBuf,
    launcher: Launcher,
}

impl Call {
    /// Runs the program to its end, and reports to whoever owns the queue.
    async fn run(self, owner: tokio::sync::mpsc::WeakSender<Message>, stop: CancellationToken) {
        let Self { event, spec, log, launcher } = self;
        let (mark, lock) = (spec.mark.clone(), spec.lock.clone());
        let failure = match process::run(&launcher, spec, &stop).await {
            Ok(mut report) => {
                process::until_gone(&mark, &lock, report.still_alive.take()).await;
                failure(report.ended, &log)
            }
            Err(error) => Some(format!("it cannot be started: {}", in_one_line(&error))),
        };
        if let Some(owner) = owner.upgrade() {
            // An owner that is gone has the event on disk, as begun.
            let _ = owner.send(Message::HookEnded { event: Box::new(event), failure }).await;
        }
    }
}

fn failure(ended: Ended, log: &Path) -> Option<String> {
    let how = match ended {
        Ended::Exited(0) => return None,
        Ended::Exited(code) => format!("it ended with exit code {code}"),
        Ended::Signaled(signal) => format!("it was ended by signal {signal}"),
        Ended::TimedOut | Ended::Silent => format!("it did not end within {} seconds", BUDGET.as_secs()),
        Ended::Stopped => "the daemon ended while it ran".to_owned(),
        Ended::Lingered | Ended::SupervisorLost => "it was ended from outside".to_owned(),
    };
    Some(format!("{how}; what it printed is in {}", log.display()))
}

fn argv(hooks: &HooksConfig, hook: HookName) -> &[String] {
    match hook {
        HookName::OnComplete => &hooks.on_complete,
        HookName::OnStuck => &hooks.on_stuck,
        HookName::OnStop => &hooks.on_stop,
        HookName::OnQuestion => &hooks.on_question,
    }
}

fn view(question: questions::Question, context: &RunContext) -> QuestionView {
    let questions::Question { id, text, answer } = question;
    QuestionView { id, text, answer, path: context.layout.root().into(), run: context.run.clone() }
}

/// Makes room for the next log.
fn remove_oldest(folder: &Path) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let mut logs: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|end| end == "log")).collect();
    logs.sort();
    for log in logs.iter().take((logs.len() + 1).saturating_sub(MAX_LOGS)) {
        // One that stays is removed by the next.
        let _ = std::fs::remove_file(log);
    }
}
