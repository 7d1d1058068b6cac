//! Determines what a machine offers to contain programs by trying it: a program is started at a level, reports where it
//! is running, and is killed.

use std::{
    error::Error,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::unistd::geteuid;
use protocol::words::Containment;
use runner_core::text::redact::Secrets;
use supervisor::{FOLDER, GroupPlace, NamespaceMode, NoGroupPlace, PROBE_COMMAND, identity};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    HostCapabilities, Launcher, LogFile, Mark, OutputPiece, ProgramReport, ProgramSpec, SpawnError, StopPolicy,
    TimeLimits, UnusedLevel, capabilities::ProcessIsolation,
};

/// The path of the shim that starts the probe's program.
const SHIM_PROGRAM: &str = "/proc/self/exe";
/// Time limit of a probe, however busy the machine is.
const PROBE_LIMIT: Duration = Duration::from_secs(20);
/// Time limit for the leftovers of a dead daemon to exit.
const LEFTOVERS_LIMIT: Duration = Duration::from_secs(5);

/// What to probe for.
#[derive(Debug, Clone, Copy)]
pub struct ProbeOptions<'a> {
    /// The strongest level that may be used.
    pub strongest: Containment,
    /// A text that is unique to the daemon on this machine; its earlier processes had the same.
    pub owner: &'a str,
    /// A folder for the files of the probe.
    pub folder: &'a Path,
}

/// Why a level is not used.
#[derive(Debug, thiserror::Error)]
enum UnusedReason {
    /// The settings exclude it.
    #[error("the daemon's config.toml has containment = \"{0}\"")]
    NotWanted(Containment),
    /// There is no place for control groups.
    #[error(transparent)]
    NoGroupPlace(#[from] NoGroupPlace),
    /// The files of the probe cannot be created.
    #[error("creating {}: {error}", folder.display())]
    Files { folder: PathBuf, error: io::Error },
    /// The folder to hide cannot be read.
    #[error("looking at the private directory: {0}")]
    PrivateFolder(io::Error),
    /// No program can be started at the level.
    #[error("{}", describe_with_cause(.0))]
    Spawn(SpawnError),
    /// A program was started, and was not contained.
    #[error(transparent)]
    Escaped(#[from] IsolationEscape),
}

/// How a program of a probe was not contained as it should have been.
#[derive(Debug, Clone, Copy, thiserror::Error)]
enum IsolationEscape {
    /// It survived its kill.
    #[error("a program was not ended by its kill")]
    Alive,
    /// It saw other processes.
    #[error("a program was not in its namespace")]
    Namespace,
    /// It was not in the group that the kill reaches.
    #[error("a program was not in its control group")]
    Group,
    /// Something of it is still in its group.
    #[error("a control group could not be removed")]
    GroupStays,
    /// It saw the daemon's private folder.
    #[error("the daemon's private directory was not hidden from a program")]
    PrivateFolder,
}

/// Determines what the machine offers; also kills what a dead daemon of the same owner has left in control groups.
pub async fn probe_host(launcher: &Launcher, options: ProbeOptions<'_>) -> HostCapabilities {
    let group_place = tokio::task::spawn_blocking({
        let owner = options.owner.to_owned();
        move || {
            let place = GroupPlace::find(&owner)?;
            place.kill_leftovers(LEFTOVERS_LIMIT);
            Ok(place)
        }
    });
    let group_place: Result<GroupPlace, NoGroupPlace> =
        group_place.await.expect("BUG: looking for a control group does not panic");
    let probe = ContainmentProbe { launcher, folder: options.folder, owner: options.owner };
    // As a rule one program proves all of it.
    if options.strongest == Containment::Pidns
        && let Ok(place) = &group_place
        && let Some(namespaces) = probe.try_privileged(Some(place)).await
    {
        return capabilities_of(Ok(place.clone()), Ok(namespaces), options.strongest);
    }
    let group_place = match group_place {
        _ if options.strongest < Containment::Cgroup => Err(UnusedReason::NotWanted(options.strongest)),
        Ok(place) => probe
            .try_isolation(ProcessIsolation { group_place: Some(place.clone()), namespaces: None })
            .await
            .map(|()| place),
        Err(why) => Err(why.into()),
    };
    let namespaces = match options.strongest {
        Containment::Pidns => probe.find_namespaces(group_place.as_ref().ok()).await,
        strongest => Err(UnusedReason::NotWanted(strongest)),
    };
    capabilities_of(group_place, namespaces, options.strongest)
}

fn capabilities_of(
    group_place: Result<GroupPlace, UnusedReason>,
    namespaces: Result<NamespaceMode, UnusedReason>,
    strongest: Containment,
) -> HostCapabilities {
    let unused_level = |level, why: Option<&UnusedReason>| {
        Some(UnusedLevel { level, why: why?.to_string(), hint: raise_hint(level, strongest < level) })
    };
    let missing_groups = unused_level(Containment::Cgroup, group_place.as_ref().err());
    let missing_namespaces = unused_level(Containment::Pidns, namespaces.as_ref().err());
    HostCapabilities {
        unused_levels: missing_groups.into_iter().chain(missing_namespaces).collect(),
        isolation: ProcessIsolation { group_place: group_place.ok(), namespaces: namespaces.ok() },
    }
}

/// Says what a person can do to enable a level.
fn raise_hint(level: Containment, is_unwanted: bool) -> String {
    let is_set = |name: &str, value: &str| {
        fs::read_to_string(format!("/proc/sys/{name}")).is_ok_and(|text| text.trim() == value)
    };
    let hint = match level {
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
    format!("{hint}; see docs/daemon.md")
}

struct ContainmentProbe<'a> {
    launcher: &'a Launcher,
    folder: &'a Path,
    owner: &'a str,
}

impl ContainmentProbe<'_> {
    /// Finds a way to create PID namespaces, together with a control group if available.
    async fn find_namespaces(&self, group_place: Option<&GroupPlace>) -> Result<NamespaceMode, UnusedReason> {
        match self.try_privileged(group_place).await {
            Some(privileged) => Ok(privileged),
            None => self.try_namespaces(group_place, NamespaceMode::WithUser).await,
        }
    }

    /// Tries namespaces that root can create without a user namespace.
    async fn try_privileged(&self, group_place: Option<&GroupPlace>) -> Option<NamespaceMode> {
        if !geteuid().is_root() {
            return None;
        }
        self.try_namespaces(group_place, NamespaceMode::Privileged).await.ok()
    }

    async fn try_namespaces(
        &self,
        group_place: Option<&GroupPlace>,
        namespaces: NamespaceMode,
    ) -> Result<NamespaceMode, UnusedReason> {
        self.try_isolation(ProcessIsolation { group_place: group_place.cloned(), namespaces: Some(namespaces) })
            .await
            .map(|()| namespaces)
    }

    /// Starts a program with this isolation, checks its report, and kills it.
    async fn try_isolation(&self, isolation: ProcessIsolation) -> Result<(), UnusedReason> {
        let files = self.folder.join("containment");
        fs::create_dir_all(&files).map_err(|error| UnusedReason::Files { folder: files.clone(), error })?;
        let (sender, mut pieces) = mpsc::channel(4);
        let hidden_identity = isolation.namespaces.and(self.launcher.hidden_path());
        let hidden_identity = hidden_identity.map(identity).transpose().map_err(UnusedReason::PrivateFolder)?;
        let spec = self.probe_spec(&files, sender);
        let group = isolation.group_place.as_ref().map(|place| place.group_of(&spec.mark));
        let expected = ExpectedOutput { isolation: &isolation, group, hidden_folder: hidden_identity };
        let launcher = self
            .launcher
            .clone()
            .with_capabilities(HostCapabilities { isolation: isolation.clone(), unused_levels: Vec::new() });
        let stop = CancellationToken::new();
        let output = async {
            let bytes = pieces.recv().await.map(|piece| piece.bytes).unwrap_or_default();
            stop.cancel();
            bytes
        };
        let (report, output) = tokio::join!(super::run_program(&launcher, spec, &stop), output);
        // Remaining files do no harm, and the next probe replaces them.
        let _ = fs::remove_dir_all(&files);
        Ok(expected.check_report(&report.map_err(UnusedReason::Spawn)?, &String::from_utf8_lossy(&output))?)
    }

    fn probe_spec(&self, files: &Path, output: mpsc::Sender<OutputPiece>) -> ProgramSpec<'static> {
        let hidden = self.launcher.hidden_path().map(OsString::from);
        ProgramSpec {
            argv: [SHIM_PROGRAM, PROBE_COMMAND].map(OsString::from).into_iter().chain(hidden).collect(),
            cwd: "/".into(),
            env: Vec::new(),
            stdin: Vec::new(),
            mark: Mark::new(format!("probe-{}", self.owner)),
            lock: files.join("lock"),
            limits: TimeLimits { budget: PROBE_LIMIT, idle: None, grace: Duration::ZERO },
            log: LogFile { path: files.join("log"), cap_bytes: 4096, secrets: Secrets::default() },
            follower: None,
            separates_output: false,
            stop_policy: StopPolicy::Terminate,
            output: Some(output),
            no_new_privs: true,
        }
    }
}

/// What a program of a probe must report.
struct ExpectedOutput<'a> {
    isolation: &'a ProcessIsolation,
    group: Option<PathBuf>,
    /// The identity of the folder that it must not see.
    hidden_folder: Option<String>,
}

impl ExpectedOutput<'_> {
    fn check_report(&self, report: &ProgramReport, output: &str) -> Result<(), IsolationEscape> {
        let is_inside = |group: &PathBuf| {
            let name = group.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            output.lines().any(|line| line.starts_with("0::") && line.ends_with(name))
        };
        // A program that reports nothing about the folder has not proved that it does not see it.
        let sees = |folder: &String| !output.lines().any(|line| line.starts_with(FOLDER) && line != folder);
        let escapes = [
            (report.still_alive.is_some(), IsolationEscape::Alive),
            (self.isolation.namespaces.is_some() && !output.starts_with("parent 1\n"), IsolationEscape::Namespace),
            (self.group.as_ref().is_some_and(|group| !is_inside(group)), IsolationEscape::Group),
            (self.group.as_ref().is_some_and(|group| group.exists()), IsolationEscape::GroupStays),
            (self.hidden_folder.as_ref().is_some_and(sees), IsolationEscape::PrivateFolder),
        ];
        escapes.iter().find(|(is_so, _)| *is_so).map_or(Ok(()), |(_, leak)| Err(*leak))
    }
}

fn describe_with_cause(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
