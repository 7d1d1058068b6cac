//! Hooks: a person's programs that are told what happened to a run.
//!
//! An event waits for its hook in the same write of `repo.json` that makes it true, and is marked as begun before the
//! program is started: no event is told twice, whatever happens to the daemon. Hooks run one at a time beside the runs,
//! under a shim as guards do, and their failure is told and never fatal.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::event::EventKind;
use protocol::hook::{HOOK_SCHEMA, HookEvent, HookName};
use protocol::view::QuestionView;
use runner_core::verdict::Task;
use runner_core::{hook, questions};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::Message;
use super::desk::Desk;
use super::life::Life;
use super::load::{Loaded, load_config};
use super::site::Site;
use crate::causes::in_one_line;
use crate::clock;
use crate::config::{HooksConfig, RepoConfig};
use crate::git::Id;
use crate::process::{self, Ended, Farewell, Launcher, Limits, LogFile, Mark, Spec};
use crate::repo::durable::{self, Access};
use crate::repo::layout::Layout;
use crate::store::{PendingHook, RepoFile};
use runner_core::run::RunRecord;

/// Time that a hook has.
const BUDGET: Duration = Duration::from_mins(1);
/// From the request to end to the kill, inside of it.
const GRACE: Duration = Duration::from_secs(5);
/// Most bytes of what a hook prints that are kept.
const MAX_LOG: u64 = 64 * 1024;
/// Logs that are kept.
const MAX_LOGS: usize = 20;
/// Most events that wait; older ones are dropped for newer.
const MAX_WAITING: usize = 100;

/// Adds the hooks that the changes of states between two records call.
pub(super) fn called_by(before: &RepoFile, after: &mut RepoFile) {
    for run in &after.runs {
        let was = before.runs.iter().find(|old| old.id == run.id).map(|old| old.state.status());
        let Some(hook) = hook::of_state(run.state.status()).filter(|_| was != Some(run.state.status())) else {
            continue;
        };
        let event = HookEvent { reason: run.reason.clone(), ..event(&after.id, run, hook) };
        after.hooks.queue.push(PendingHook { event, begun: false });
    }
    let surplus = after.hooks.queue.len().saturating_sub(MAX_WAITING);
    after.hooks.queue.drain(..surplus);
}

/// Makes an event of what a run is like now.
fn event(repo: &str, run: &RunRecord, hook: HookName) -> HookEvent {
    HookEvent {
        schema: HOOK_SCHEMA.to_owned(),
        hook,
        time: clock::now(),
        repo: repo.to_owned(),
        path: run.path.clone(),
        run: run.id.clone(),
        branch: format!("runner/{}", run.id),
        state: run.state.status(),
        reason: None,
        questions: Vec::new(),
    }
}

impl Life {
    /// Tells what a session has asked, and has its hook called once.
    pub(super) fn tell_questions(&mut self, site: &Site, task: &Task, loaded: &Loaded) {
        let asked = block_in_place(|| {
            let from: Id = task.from.parse().ok()?;
            let before = site.repository().ok()?.read(&from, Layout::QUESTIONS).ok()?.unwrap_or_default();
            Some(questions::asked(&String::from_utf8_lossy(&before), loaded.text(Layout::QUESTIONS)))
        });
        let asked: Vec<QuestionView> = asked.unwrap_or_default().into_iter().map(|new| view(new, site)).collect();
        let (mut file, iteration) = (self.desk.file.clone(), format!("{}/{:04}", task.run, task.iter));
        let Some(run) = self.desk.run(&task.run).cloned().filter(|_| !asked.is_empty()) else { return };
        self.desk.tell(&task.run, Some(task.iter), EventKind::Questions { asked: asked.clone() });
        if file.hooks.asked.as_ref() == Some(&iteration) {
            return;
        }
        let event = HookEvent { questions: asked, ..event(&file.id, &run, HookName::OnQuestion) };
        file.hooks.asked = Some(iteration);
        file.hooks.queue.push(PendingHook { event, begun: false });
        if let Err(error) = self.desk.keep(file) {
            tracing::warn!(repo = self.desk.file.id, error = in_one_line(&error), "no hook is told of questions");
        }
    }

    /// Gives up hooks that a previous life has begun: whether they came to their end is not known.
    pub(super) fn give_up_begun_hooks(&mut self) {
        let begun: Vec<PendingHook> = self.desk.file.hooks.queue.iter().filter(|hook| hook.begun).cloned().collect();
        for hook in begun {
            self.desk.hook_ended(&hook.event, Some("the daemon ended while it ran; it is not run again".to_owned()));
        }
    }

    /// Starts the hook of the oldest event that waits, if none runs.
    pub(super) fn start_hook(&mut self) {
        while let Some(waiting) = self.desk.file.hooks.queue.first().cloned() {
            if waiting.begun || self.desk.held.is_some() || self.desk.is_leaving() {
                return;
            }
            match block_in_place(|| self.prepare_hook(&waiting.event)) {
                Ok(Some(call)) => {
                    let mut file = self.desk.file.clone();
                    file.hooks.queue[0].begun = true;
                    if self.desk.keep(file).is_ok() {
                        self.hook = Some(tokio::spawn(call.run(self.desk.own.clone(), self.means.shutdown.clone())));
                    }
                    return;
                }
                Ok(None) => self.desk.hook_ended(&waiting.event, None),
                Err(error) => self.desk.hook_ended(&waiting.event, Some(in_one_line(&error))),
            }
            if self.desk.file.hooks.queue.first() == Some(&waiting) {
                return;
            }
        }
    }

    /// Makes a call of the configuration at the tip of the run's branch; none where it names no program.
    fn prepare_hook(&self, event: &HookEvent) -> Result<Option<Call>, super::failure::Failure> {
        let Some(run) = self.desk.run(&event.run) else { return Ok(None) };
        let site = self.site(run)?;
        let repository = site.repository()?;
        let Some(tip) = repository.branch(&event.branch)? else { return Ok(None) };
        let config: RepoConfig = load_config(&repository, tip)?;
        let argv = argv(&config.hooks, event.hook);
        if argv.is_empty() {
            return Ok(None);
        }
        let folder = self.desk.store.folder().join("hooks");
        durable::create_dir(&folder, Access::Private)?;
        remove_oldest(&folder);
        let id = format!("{}-{}", event.time.as_millisecond(), event.hook);
        let stdin = serde_json::to_string(event).expect("BUG: an event does not serialize") + "\n";
        let spec = Spec {
            argv: argv.iter().map(OsString::from).collect(),
            cwd: site.layout.root().to_owned(),
            env: site.guard_env(&config.env.guard),
            stdin: site.secrets.redact(&stdin).into_owned().into_bytes(),
            mark: Mark::new(format!("{}-hook-{id}", self.desk.file.id)),
            lock: folder.join("shim.lock"),
            limits: Limits { budget: BUDGET, idle: None, grace: GRACE },
            log: LogFile { path: folder.join(format!("{id}.log")), cap_bytes: MAX_LOG, secrets: site.secrets.clone() },
            follower: None,
            splits_output: false,
            farewell: Farewell::Terminate,
            output: None,
            no_new_privs: true,
        };
        Ok(Some(Call { event: event.clone(), log: spec.log.path.clone(), spec, launcher: site.launcher.clone() }))
    }
}

impl Desk {
    /// Forgets an event whose hook has ended, and tells why it failed.
    pub(super) fn hook_ended(&mut self, event: &HookEvent, failure: Option<String>) {
        if let Some(failure) = failure {
            let message = format!("{} of run {}: {failure}", event.hook, event.run);
            tracing::warn!(repo = self.file.id, message, "a hook failed");
            self.tell(&event.run, None, EventKind::Warning { message });
        }
        let mut file = self.file.clone();
        file.hooks.queue.retain(|waiting| waiting.event != *event);
        if let Err(error) = self.keep(file) {
            tracing::warn!(repo = self.file.id, error = in_one_line(&error), "the event of a hook stays");
        }
    }
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

fn view(question: questions::Question, site: &Site) -> QuestionView {
    let questions::Question { id, text, answer } = question;
    QuestionView { id, text, answer, path: site.layout.root().into(), run: site.run.clone() }
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
