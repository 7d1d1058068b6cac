//! What a scripted agent and a scripted guard do, session by session.
//!
//! Both are programs on the home's `PATH`, so that a configuration contains no path and is identical in every home. The
//! commands available to a step (`answer`, `decompose`, `gate`, `misbehave`…) are in `agent.sh`; `$kit` is the script's
//! folder, `$tree` the task tree, `$n` the number of the session. The prompt is saved before the step runs.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::gate::SessionGate;

/// Misbehaving programs; all their processes share a lock on the file [`ALIVE_LOCK`] next to them.
const MISBEHAVE: &str = include_str!("../../tests/agents/agent.py");
const ALIVE_LOCK: &str = "alive";

/// The script of one agent and one guard.
#[derive(Debug, Clone)]
pub struct Script {
    folder: PathBuf,
    name: String,
}

impl Script {
    /// Creates a script whose agent answers `done` and whose guard passes.
    pub(crate) fn new(home: &Path, name: &str) -> Self {
        let folder = home.join("scripts").join(name);
        for part in ["steps", "guard", "prompts", "deaf", "gates", "files"] {
            fs::create_dir_all(folder.join(part)).expect("the script's folders can be made");
        }
        let script = Self { folder, name: name.to_owned() };
        script.write_file("count", "0\n");
        script.write_file("guarded", "0\n");
        script.write_file("sessions.log", "");
        script.write_file("misbehave.py", MISBEHAVE);
        script.write_file(ALIVE_LOCK, "");
        script.install_program(home, &script.agent_program(), include_str!("agent.sh"));
        script.install_program(home, &script.guard_program(), include_str!("guard.sh"));
        script.always("answer done 'All is done.'");
        script.guard_always("exit 0");
        script
    }

    /// Returns the name of the agent's program.
    pub fn agent_program(&self) -> String {
        format!("agent-{}", self.name)
    }

    /// Returns the name of the guard's program.
    pub fn guard_program(&self) -> String {
        format!("guard-{}", self.name)
    }

    /// Returns the script's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets the step of one session, counted from 1.
    pub fn step(&self, session: u32, text: &str) -> &Self {
        self.write_file(&format!("steps/{session}.sh"), text)
    }

    /// Sets the step of one session that does not read its prompt.
    pub fn deaf_step(&self, session: u32, text: &str) -> &Self {
        self.write_file(&format!("deaf/{session}"), "").step(session, text)
    }

    /// Sets the step of every session without its own step.
    pub fn always(&self, text: &str) -> &Self {
        self.write_file("steps/default.sh", text)
    }

    /// Sets the step of one guard run, counted from 1; the baseline counts as a run.
    pub fn guard_step(&self, run: u32, text: &str) -> &Self {
        self.write_file(&format!("guard/{run}.sh"), text)
    }

    /// Sets the step of every guard run without its own step.
    pub fn guard_always(&self, text: &str) -> &Self {
        self.write_file("guard/default.sh", text)
    }

    /// Puts a file where steps find it as `$kit/files/NAME`.
    pub fn file(&self, name: &str, text: &str) -> &Self {
        self.write_file(&format!("files/{name}"), text)
    }

    /// Creates a gate that a step passes with `gate NAME`.
    pub fn gate(&self, name: &str) -> SessionGate {
        SessionGate::new(&self.folder.join("gates"), name)
    }

    /// Returns the prompt of a session.
    ///
    /// # Panics
    ///
    /// Panics if there was no such session, or if it did not read its prompt.
    pub fn prompt(&self, session: u32) -> String {
        let path = self.folder.join(format!("prompts/{session}.md"));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
    }

    /// Returns how many sessions have started.
    pub fn session_count(&self) -> usize {
        self.log().iter().filter(|line| line.starts_with("begin ")).count()
    }

    /// Returns `begin N` and `end N` of each session, in order; a killed session has no end.
    ///
    /// # Panics
    ///
    /// Panics if the log cannot be read.
    pub fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("sessions.log")).expect("the log of the sessions can be read");
        text.lines().map(str::to_owned).collect()
    }

    /// Returns whether any process of a program started with `misbehave` or `become` is alive, even if it has shed
    /// environment and session it was started with.
    pub fn is_any_alive(&self) -> bool {
        let lock = self.open_alive_lock();
        let is_held = lock.try_lock().is_err();
        // Unlock explicitly: a process that is just being started may hold a copy of the descriptor.
        let _ = lock.unlock();
        is_held
    }

    /// Waits until no such process is alive; false if one still is after `limit`.
    pub fn wait_all_gone(&self, limit: Duration) -> bool {
        let (alive, (sender, gone)) = (self.open_alive_lock(), mpsc::channel());
        thread::spawn(move || sender.send(alive.lock().is_ok()));
        gone.recv_timeout(limit).unwrap_or(false)
    }

    fn open_alive_lock(&self) -> File {
        File::open(self.folder.join(ALIVE_LOCK)).expect("the lock of what is alive can be opened")
    }

    fn write_file(&self, path: &str, text: &str) -> &Self {
        let path = self.folder.join(path);
        fs::write(&path, text).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
        self
    }

    fn install_program(&self, home: &Path, name: &str, text: &str) {
        write_program(&home.join("bin").join(name), &text.replace("NAME", &self.name));
    }
}

/// Writes a program, replacing an existing one.
pub(crate) fn write_program(path: &Path, text: &str) {
    fs::write(path, text).expect("a program can be written");
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a program can be made executable");
}
