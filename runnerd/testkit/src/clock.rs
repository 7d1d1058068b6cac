//! A daemon whose clocks a test controls, together with its shims and everything they start: a library is loaded into
//! each of these processes.
//!
//! Shims have their own environment, so the library is named in `/etc/ld.so.preload`, of which the daemon gets a
//! private view. Without root that requires a user namespace, out of which a daemon cannot see its clients; in that
//! case the library is loaded only into the daemon.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::daemon::Daemon;
use crate::home::Home;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/clock.c");
/// Becomes the daemon, in a mount namespace where every program loads `$1`.
const PRELOAD_SCRIPT: &str = r#"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$2/upper,workdir=$2/work" /etc || exit 9
echo "$1" > /etc/ld.so.preload
shift 2
exec "$@"
"#;

/// The clocks of one home.
#[derive(Debug)]
pub struct FakeClock {
    shifts: PathBuf,
    library: PathBuf,
    layers: PathBuf,
}

impl FakeClock {
    /// Builds the library.
    ///
    /// # Panics
    ///
    /// Panics if there is no C compiler.
    pub fn new(home: &Home) -> Self {
        let at = |name: &str| home.path().join("tmp").join(name);
        let clock = Self { shifts: at("shifts"), library: at("clock.so"), layers: at("layers") };
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&clock.library).arg(SOURCE);
        compiler.arg(format!("-DSHIFTS=\"{}\"", clock.shifts.display()));
        assert!(compiler.status().expect("a C compiler can be started").success(), "the library cannot be built");
        for layer in ["upper", "work"] {
            fs::create_dir_all(clock.layers.join(layer)).expect("a folder for a layer can be made");
        }
        clock
    }

    /// Starts a daemon that reads these clocks.
    ///
    /// # Panics
    ///
    /// Panics if it does not come up.
    pub fn daemon(&self, home: &Home) -> Daemon {
        let is_allowed = self.unshare_command().arg("true").status().is_ok_and(|status| status.success());
        let daemon = home.command("runnerd");
        let mut command = if is_allowed { self.unshare_command() } else { home.command("runnerd") };
        if is_allowed {
            command.arg(daemon.get_program()).env_clear().envs(home.env().iter().cloned()).current_dir(home.path());
        } else {
            command.env("LD_PRELOAD", &self.library);
        }
        home.daemon_from_command(command)
    }

    /// Sets how long the machine has slept and how far the wall clock was moved, in seconds. Readers see both change at
    /// once.
    ///
    /// # Panics
    ///
    /// Panics if they cannot be set.
    pub fn set(&self, slept: i64, day_offset: i64) {
        let next = self.shifts.with_extension("next");
        let result = fs::write(&next, format!("{slept} {day_offset}\n")).and_then(|()| fs::rename(next, &self.shifts));
        result.expect("the clocks can be set");
    }

    fn unshare_command(&self) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", PRELOAD_SCRIPT, "sh"]).arg(&self.library).arg(&self.layers);
        command
    }
}
