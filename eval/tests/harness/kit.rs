//! A home with a folder of cases, the harness in it, and assertions for when it is over.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use runner_testkit::{Home, ProgramOutput};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct EvalKit {
    pub(crate) home: Home,
    shipped: bool,
}

/// A harness that runs.
pub(crate) struct RunningHarness(Child);

impl EvalKit {
    /// A home with an empty folder of cases.
    pub(crate) fn new() -> Self {
        let home = toolchains().into_iter().fold(Home::new(), |home, (name, value)| home.export(name, &value));
        fs::create_dir(home.path().join("cases")).expect("a folder");
        mkfifo(&home.path().join("arrivals"), Mode::S_IRWXU).expect("a pipe");
        Self { home, shipped: false }
    }

    /// A home that uses the cases of the workspace.
    pub(crate) fn with_shipped_cases() -> Self {
        Self { shipped: true, ..Self::new() }
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.home.path().join("results")
    }

    /// Writes a case; the argument follows its head.
    pub(crate) fn case(&self, id: &str, rest: &str) {
        self.write_case(id, &format!("[case]\nid = \"{id}\"\ngoal = \"There is a file.\"\n{rest}"));
    }

    pub(crate) fn write_case(&self, id: &str, text: &str) {
        fs::write(self.home.path().join(format!("cases/{id}.toml")), text).expect("a case can be written");
    }

    /// The pipe through which scripts report that they have started.
    pub(crate) fn arrivals(&self) -> PathBuf {
        self.home.path().join("arrivals")
    }

    /// Waits until a script has started.
    pub(crate) fn wait_arrived(&self) {
        let mut pipe = fs::File::open(self.arrivals()).expect("the pipe can be opened");
        pipe.read_exact(&mut [0]).expect("the pipe can be read");
    }

    pub(crate) fn eval(&self, arguments: &[&str]) -> ProgramOutput {
        self.start(arguments).wait()
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> RunningHarness {
        let mut command = self.home.command("runner-eval");
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
        let cases = if self.shipped { Path::new(shipped).to_owned() } else { self.home.path().join("cases") };
        command.arg("--cases").arg(cases).arg("--results").arg(self.results()).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        RunningHarness(command.spawn().expect("the harness can be started"))
    }

    /// Whether a program is on the path of this home.
    pub(crate) fn has_program(&self, program: &str) -> bool {
        let path = self.home.env().iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        std::env::split_paths(&path.unwrap_or_default()).any(|folder| folder.join(program).is_file())
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> bool {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(self.home.path());
        command.env_clear().envs(self.home.env().iter().cloned());
        command.status().is_ok_and(|status| status.success())
    }

    /// Checks a value against a checked-in schema.
    #[track_caller]
    pub(crate) fn assert_valid(schema: &str, value: &Value) {
        let file = format!("{}/../schemas/{schema}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let schema: Value = serde_json::from_str(&fs::read_to_string(file).expect("a schema")).expect("JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let errors: Vec<String> =
            validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }

    /// Waits until no process belongs to this home any more.
    pub(crate) fn wait_all_gone(&self) {
        self.home.wait_all_gone(PATIENCE);
    }

    /// Asserts that no process is alive, and that only the folder of results is left.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        assert!(self.home.processes().is_empty(), "{:?}", self.home.processes());
        let leftovers: Vec<_> =
            fs::read_dir(self.home.path().join("tmp")).expect("a folder").flatten().map(|entry| entry.path()).collect();
        assert!(leftovers.is_empty(), "{leftovers:?}");
    }
}

/// Toolchains installed in the user's home, which differs from a test's home.
fn toolchains() -> Vec<(&'static str, String)> {
    let home = std::env::var("HOME").unwrap_or_default();
    let variable_or_home = |(name, folder): (&'static str, &str)| {
        let in_home = Path::new(&home).join(folder);
        let in_home = in_home.is_dir().then(|| in_home.display().to_string());
        Some((name, std::env::var(name).ok().or(in_home)?))
    };
    [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo"), ("PYENV_ROOT", ".pyenv")]
        .into_iter()
        .filter_map(variable_or_home)
        .collect()
}

impl RunningHarness {
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("the harness lives");
    }

    /// Waits for it to exit; a harness that hangs is killed at the profile's time limit.
    pub(crate) fn wait(self) -> ProgramOutput {
        let output = self.0.wait_with_output().expect("the harness can be waited for");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ProgramOutput {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}
