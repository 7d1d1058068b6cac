//! Finds out what a machine offers to hold programs with, by doing it: a program is started at a level, says where it is,
//! and is killed.

use std::{
    env,
    error::Error,
    ffi::OsString,
    fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use nix::{
    sys::signal::SigSet,
    unistd::{geteuid, getppid, pause},
};
use protocol::words::Containment;
use runner_core::redact::Secrets;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Farewell, Launcher, Limits, LogFile, Mark, Missing, Offer, Piece, Report, Spec, cgroup::Place,
    namespace::Namespaces, offer::Walls,
};

/// First argument that makes the daemon's binary the program of a probe.
pub const PROBE_COMMAND: &str = "__probe";

/// Before what tells a folder, in the words of a probe.
const FOLDER: &str = "folder ";
/// Longest probe, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(20);
/// Time for the leftovers of a dead daemon to end.
const LEFTOVERS_LIMIT: Duration = Duration::from_secs(5);

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The strongest level that is used.
    pub strongest: Containment,
    /// A text that is unique to the daemon on this machine; its earlier lives had the same.
    pub owner: &'a str,
    /// A folder for the files of the probe.
    pub folder: &'a Path,
}

/// Finds what the machine offers; also ends what a dead daemon of the same owner has left in control groups.
pub async fn probe(launcher: &Launcher, wanted: Wanted<'_>) -> Offer {
    let place = tokio::task::spawn_blocking({
        let owner = wanted.owner.to_owned();
        move || {
            let place = Place::find(&owner)?;
            place.end_leftovers(LEFTOVERS_LIMIT);
            Ok(place)
        }
    });
    let place: Result<Place, String> = place.await.expect("BUG: looking for a control group does not panic");
    let probe = Probe { launcher, folder: wanted.folder, owner: wanted.owner };
    let place = match place {
        _ if wanted.strongest < Containment::Cgroup => Err(unwanted(wanted.strongest)),
        Ok(place) => probe.trial(Walls { place: Some(place.clone()), namespaces: None }).await.map(|()| place),
        Err(why) => Err(why),
    };
    let namespaces = match wanted.strongest {
        Containment::Pidns => probe.namespaces(place.as_ref().ok()).await,
        strongest => Err(unwanted(strongest)),
    };
    offer(place, namespaces, wanted.strongest)
}

fn unwanted(strongest: Containment) -> String {
    format!("the daemon's config.toml has containment = \"{strongest}\"")
}

fn offer(place: Result<Place, String>, namespaces: Result<Namespaces, String>, strongest: Containment) -> Offer {
    let missing = |level, why: Option<&String>| {
        Some(Missing { level, why: why?.clone(), raise: raise(level, strongest < level) })
    };
    let of_place = missing(Containment::Cgroup, place.as_ref().err());
    let of_namespaces = missing(Containment::Pidns, namespaces.as_ref().err());
    Offer {
        missing: of_place.into_iter().chain(of_namespaces).collect(),
        walls: Walls { place: place.ok(), namespaces: namespaces.ok() },
    }
}

/// Says what a person can do to have a level.
fn raise(level: Containment, is_unwanted: bool) -> String {
    let is_set = |name: &str, value: &str| {
        fs::read_to_string(format!("/proc/sys/{name}")).is_ok_and(|text| text.trim() == value)
    };
    let how = match level {
        _ if is_unwanted => "raise `containment` in the daemon's config.toml and start it again",
        Containment::Walk | Containment::Cgroup => {
            "start the daemon with: systemd-run --user --scope -p Delegate=yes runnerd"
        }
        Containment::Pidns if is_set("kernel/apparmor_restrict_unprivileged_userns", "1") => {
            "give runnerd an AppArmor profile that allows `userns`"
        }
        Containment::Pidns if is_set("kernel/unprivileged_userns_clone", "0") => {
            "sysctl kernel.unprivileged_userns_clone=1"
        }
        Containment::Pidns if is_set("user/max_user_namespaces", "0") => "sysctl user.max_user_namespaces=10000",
        Containment::Pidns => "allow this user, or this container, to make user namespaces",
    };
    format!("{how}; see docs/operations.md")
}

struct Probe<'a> {
    launcher: &'a Launcher,
    folder: &'a Path,
    owner: &'a str,
}

impl Probe<'_> {
    /// Finds a way to make PID namespaces, together with a control group where there are any.
    async fn namespaces(&self, place: Option<&Place>) -> Result<Namespaces, String> {
        let mut ways = vec![Namespaces::WithUser];
        if geteuid().is_root() {
            ways.insert(0, Namespaces::Privileged);
        }
        let mut why = String::new();
        for namespaces in ways {
            match self.trial(Walls { place: place.cloned(), namespaces: Some(namespaces) }).await {
                Ok(()) => return Ok(namespaces),
                Err(refused) => why = refused,
            }
        }
        Err(why)
    }

    /// Starts a program inside of these walls, hears from it that it is there, and ends it.
    async fn trial(&self, walls: Walls) -> Result<(), String> {
        let files = self.folder.join("containment");
        fs::create_dir_all(&files).map_err(|error| format!("creating {}: {error}", files.display()))?;
        let (sender, mut words) = mpsc::channel(4);
        let hidden = walls.namespaces.and(self.launcher.hidden());
        let hidden =
            hidden.map(identity).transpose().map_err(|error| format!("looking at the private folder: {error}"))?;
        let spec = self.spec(&files, sender);
        let group = walls.place.as_ref().map(|place| place.group_of(&spec.mark));
        let expected = Expected { walls: &walls, group, hidden };
        let launcher = self.launcher.clone().within(Offer { walls: walls.clone(), missing: Vec::new() });
        let stop = CancellationToken::new();
        let heard = async {
            let words = words.recv().await.map(|piece| piece.bytes).unwrap_or_default();
            stop.cancel();
            words
        };
        let (report, heard) = tokio::join!(super::run(&launcher, spec, &stop), heard);
        // What is left of the files says nothing, and the next probe replaces them.
        let _ = fs::remove_dir_all(&files);
        expected.check(&report.map_err(|error| with_cause(&error))?, &String::from_utf8_lossy(&heard))
    }

    fn spec(&self, files: &Path, output: mpsc::Sender<Piece>) -> Spec<'static> {
        let program = OsString::from(self.launcher.program.clone());
        let hidden = self.launcher.hidden().map(OsString::from);
        Spec {
            argv: [program, OsString::from(PROBE_COMMAND)].into_iter().chain(hidden).collect(),
            cwd: "/".into(),
            env: Vec::new(),
            stdin: Vec::new(),
            mark: Mark::new(format!("probe-{}", self.owner)),
            lock: files.join("lock"),
            limits: Limits { budget: LIMIT, idle: None, grace: Duration::ZERO },
            log: LogFile { path: files.join("log"), cap_bytes: 4096, secrets: Secrets::default() },
            follower: None,
            splits_output: false,
            farewell: Farewell::Terminate,
            output: Some(output),
            no_new_privs: true,
        }
    }
}

/// What a program of a probe must say.
struct Expected<'a> {
    walls: &'a Walls,
    group: Option<PathBuf>,
    /// What tells the folder that it must not see.
    hidden: Option<String>,
}

impl Expected<'_> {
    fn check(&self, report: &Report, said: &str) -> Result<(), String> {
        let is_inside = |group: &PathBuf| {
            let name = group.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            said.lines().any(|line| line.starts_with("0::") && line.ends_with(name))
        };
        // One that says nothing of the folder has not shown that it does not see it.
        let sees = |folder: &String| !said.lines().any(|line| line.starts_with(FOLDER) && line != folder);
        let failed = [
            (report.still_alive.is_some(), "a program was not ended by its kill"),
            (self.walls.namespaces.is_some() && !said.starts_with("parent 1\n"), "a program was not in its namespace"),
            (self.group.as_ref().is_some_and(|group| !is_inside(group)), "a program was not in its control group"),
            (self.group.as_ref().is_some_and(|group| group.exists()), "a control group could not be removed"),
            (self.hidden.as_ref().is_some_and(sees), "the daemon's private folder was not hidden from a program"),
        ];
        failed.iter().find(|(is_so, _)| *is_so).map_or(Ok(()), |(_, what)| Err((*what).to_owned()))
    }
}

/// Returns what tells a folder from another one that is mounted in its place.
fn identity(folder: &Path) -> io::Result<String> {
    let found = fs::symlink_metadata(folder)?;
    Ok(format!("{FOLDER}{} {}", found.dev(), found.ino()))
}

fn with_cause(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Is the program of a probe: all of `main` when the first argument is [`PROBE_COMMAND`].
///
/// It says where it is, and stays until it is killed.
pub fn probe_main() -> ExitCode {
    let place = || -> io::Result<()> {
        SigSet::all().thread_block()?;
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let folder = env::args_os().nth(2).map(|folder| identity(Path::new(&folder))).transpose()?;
        let folder = folder.unwrap_or_default();
        io::stdout().write_all(format!("parent {}\n{groups}{folder}\n", getppid()).as_bytes())
    };
    if place().is_err() {
        return ExitCode::FAILURE;
    }
    loop {
        pause();
    }
}
