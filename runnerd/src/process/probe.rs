//! Finds out what a machine offers to hold programs with, by doing it: a program is started at a level, says where it is,
//! and is killed.

use std::{
    error::Error,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::unistd::geteuid;
use protocol::words::Containment;
use runner_core::redact::Secrets;
use supervisor::{FOLDER, GroupPlace, Namespaces, NoGroupPlace, PROBE_COMMAND, identity};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Farewell, Launcher, Limits, LogFile, Mark, Missing, Offer, Piece, Report, SpawnError, Spec, offer::Walls};

/// The file of the shim that starts it.
const SHIMS_OWN: &str = "/proc/self/exe";
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

/// Why a level is not used.
#[derive(Debug, thiserror::Error)]
enum Unused {
    /// The settings say so.
    #[error("the daemon's config.toml has containment = \"{0}\"")]
    Unwanted(Containment),
    /// There is no place for control groups.
    #[error(transparent)]
    NoGroupPlace(#[from] NoGroupPlace),
    /// There is no room for the files of the probe.
    #[error("creating {}: {error}", folder.display())]
    Files { folder: PathBuf, error: io::Error },
    /// What is to be hidden cannot be seen.
    #[error("looking at the private folder: {0}")]
    Hidden(io::Error),
    /// No program can be started there.
    #[error("{}", with_cause(.0))]
    Spawn(SpawnError),
    /// A program was started there, and was not held.
    #[error(transparent)]
    Open(#[from] Leak),
}

/// What a program of a probe could do that its walls should have kept it from.
#[derive(Debug, Clone, Copy, thiserror::Error)]
enum Leak {
    /// It has outlived its kill.
    #[error("a program was not ended by its kill")]
    Alive,
    /// It saw other processes.
    #[error("a program was not in its namespace")]
    Namespace,
    /// It could leave nothing behind that the group's kill reaches.
    #[error("a program was not in its control group")]
    Group,
    /// Something of it is still in its group.
    #[error("a control group could not be removed")]
    GroupStays,
    /// It saw what steers the daemon.
    #[error("the daemon's private folder was not hidden from a program")]
    PrivateFolder,
}

/// Finds what the machine offers; also ends what a dead daemon of the same owner has left in control groups.
pub async fn probe(launcher: &Launcher, wanted: Wanted<'_>) -> Offer {
    let place = tokio::task::spawn_blocking({
        let owner = wanted.owner.to_owned();
        move || {
            let place = GroupPlace::find(&owner)?;
            place.end_leftovers(LEFTOVERS_LIMIT);
            Ok(place)
        }
    });
    let place: Result<GroupPlace, NoGroupPlace> = place.await.expect("BUG: looking for a control group does not panic");
    let probe = Probe { launcher, folder: wanted.folder, owner: wanted.owner };
    // As a rule one program shows all of it.
    if wanted.strongest == Containment::Pidns
        && let Ok(place) = &place
        && let Some(namespaces) = probe.privileged(Some(place)).await
    {
        return offer(Ok(place.clone()), Ok(namespaces), wanted.strongest);
    }
    let place = match place {
        _ if wanted.strongest < Containment::Cgroup => Err(Unused::Unwanted(wanted.strongest)),
        Ok(place) => probe.trial(Walls { place: Some(place.clone()), namespaces: None }).await.map(|()| place),
        Err(why) => Err(why.into()),
    };
    let namespaces = match wanted.strongest {
        Containment::Pidns => probe.namespaces(place.as_ref().ok()).await,
        strongest => Err(Unused::Unwanted(strongest)),
    };
    offer(place, namespaces, wanted.strongest)
}

fn offer(place: Result<GroupPlace, Unused>, namespaces: Result<Namespaces, Unused>, strongest: Containment) -> Offer {
    let missing = |level, why: Option<&Unused>| {
        Some(Missing { level, why: why?.to_string(), raise: raise(level, strongest < level) })
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
    async fn namespaces(&self, place: Option<&GroupPlace>) -> Result<Namespaces, Unused> {
        match self.privileged(place).await {
            Some(privileged) => Ok(privileged),
            None => self.inside(place, Namespaces::WithUser).await,
        }
    }

    /// Tries namespaces that root can make without a user namespace.
    async fn privileged(&self, place: Option<&GroupPlace>) -> Option<Namespaces> {
        if !geteuid().is_root() {
            return None;
        }
        self.inside(place, Namespaces::Privileged).await.ok()
    }

    async fn inside(&self, place: Option<&GroupPlace>, namespaces: Namespaces) -> Result<Namespaces, Unused> {
        self.trial(Walls { place: place.cloned(), namespaces: Some(namespaces) }).await.map(|()| namespaces)
    }

    /// Starts a program inside of these walls, hears from it that it is there, and ends it.
    async fn trial(&self, walls: Walls) -> Result<(), Unused> {
        let files = self.folder.join("containment");
        fs::create_dir_all(&files).map_err(|error| Unused::Files { folder: files.clone(), error })?;
        let (sender, mut words) = mpsc::channel(4);
        let hidden = walls.namespaces.and(self.launcher.hidden());
        let hidden = hidden.map(identity).transpose().map_err(Unused::Hidden)?;
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
        Ok(expected.check(&report.map_err(Unused::Spawn)?, &String::from_utf8_lossy(&heard))?)
    }

    fn spec(&self, files: &Path, output: mpsc::Sender<Piece>) -> Spec<'static> {
        let hidden = self.launcher.hidden().map(OsString::from);
        Spec {
            argv: [SHIMS_OWN, PROBE_COMMAND].map(OsString::from).into_iter().chain(hidden).collect(),
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
    fn check(&self, report: &Report, said: &str) -> Result<(), Leak> {
        let is_inside = |group: &PathBuf| {
            let name = group.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            said.lines().any(|line| line.starts_with("0::") && line.ends_with(name))
        };
        // One that says nothing of the folder has not shown that it does not see it.
        let sees = |folder: &String| !said.lines().any(|line| line.starts_with(FOLDER) && line != folder);
        let failed = [
            (report.still_alive.is_some(), Leak::Alive),
            (self.walls.namespaces.is_some() && !said.starts_with("parent 1\n"), Leak::Namespace),
            (self.group.as_ref().is_some_and(|group| !is_inside(group)), Leak::Group),
            (self.group.as_ref().is_some_and(|group| group.exists()), Leak::GroupStays),
            (self.hidden.as_ref().is_some_and(sees), Leak::PrivateFolder),
        ];
        failed.iter().find(|(is_so, _)| *is_so).map_or(Ok(()), |(_, leak)| Err(*leak))
    }
}

fn with_cause(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
