//! Inspects the machine without a daemon: files, programs, disk, clock. Judges nothing, changes nothing.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, User, access, getuid};
use protocol::paths::Paths;
use protocol::service::SERVICE_UNIT;

use super::probe::{self, ProbeResult};

/// Program names of known agents.
pub(crate) const KNOWN_AGENTS: [&str; 4] = ["codex", "claude", "opencode", "gemini"];

/// Ownership and permissions of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileAccess {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Whether it belongs to this user.
    pub(crate) is_own: bool,
    /// Its permission bits.
    pub(crate) mode: u32,
    /// Whether it is a socket.
    pub(crate) is_socket: bool,
    /// Whether this user may write to it.
    pub(crate) is_writable: bool,
}

/// Inspects a file or folder; `None` if it does not exist.
pub(crate) fn inspect_file(path: &Path) -> Option<FileAccess> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some(FileAccess {
        path: path.to_owned(),
        is_own: metadata.uid() == getuid().as_raw(),
        mode: metadata.mode() & 0o777,
        is_socket: metadata.file_type().is_socket(),
        is_writable: access(path, AccessFlags::W_OK).is_ok(),
    })
}

/// Returns the process that holds the lock of the state folder, if the system provides that.
pub(crate) fn lock_holder(paths: &Paths) -> Option<LockHolder> {
    let lock = fs::metadata(paths.state_lock()).ok()?;
    let pid = find_lock_holder(&fs::read_to_string("/proc/locks").ok()?, &lock)?;
    // The holder writes its process id and its socket there, one line each.
    let text = fs::read_to_string(paths.state_lock()).unwrap_or_default();
    Some(LockHolder { pid, socket: text.lines().nth(1).map(PathBuf::from) })
}

/// The process that holds the daemon's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockHolder {
    pub(crate) pid: i32,
    /// The socket on which it listens, if it says so.
    pub(crate) socket: Option<PathBuf>,
}

/// Other systems have no such table.
#[cfg(not(target_os = "linux"))]
fn find_lock_holder(_: &str, _: &fs::Metadata) -> Option<i32> {
    None
}

#[cfg(target_os = "linux")]
fn find_lock_holder(table: &str, lock: &fs::Metadata) -> Option<i32> {
    let major = nix::sys::stat::major(lock.dev());
    let minor = nix::sys::stat::minor(lock.dev());
    let device_and_inode = format!("{major:02x}:{minor:02x}:{}", lock.ino());
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let columns = lines.find(|words| !words.contains(&"->") && words.contains(&device_and_inode.as_str()))?;
    // A process of another PID namespace has no id here.
    columns.get(4)?.parse().ok().filter(|pid| *pid > 0)
}

/// Returns the bytes available to this user on the disk of a path, or of its nearest existing parent.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let existing = path.ancestors().find(|folder| folder.exists())?;
    let disk = statvfs(existing).ok()?;
    #[expect(clippy::useless_conversion, reason = "it is narrower on other systems")]
    let blocks = u64::from(disk.blocks_available());
    #[expect(clippy::useless_conversion, reason = "it is narrower on other systems")]
    let bytes = u64::from(disk.fragment_size());
    Some(blocks.saturating_mul(bytes))
}

/// What keeps the daemon running while the user is logged out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceStatus {
    /// The user's systemd unit, if installed.
    pub(crate) unit: Option<PathBuf>,
    /// Whether this user's services outlive the last login (lingering).
    pub(crate) lingers: bool,
}

/// Looks for the service; `None` if the machine has no systemd.
pub(crate) fn find_service(paths: &Paths) -> Option<ServiceStatus> {
    Path::new("/run/systemd/system").is_dir().then(|| {
        // The folder of the daemon's settings is next to that of the units.
        let home = paths.config.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let units = [home.join("systemd/user"), "/etc/systemd/user".into(), "/usr/lib/systemd/user".into()];
        let unit = units.iter().map(|folder| folder.join(SERVICE_UNIT)).find(|unit| unit.is_file());
        let user = User::from_uid(getuid()).ok().flatten().map(|user| user.name);
        let lingers = user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists());
        ServiceStatus { unit, lingers }
    })
}

/// State of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockState {
    /// What it shows.
    pub(crate) now: Timestamp,
    /// Whether it is synchronized, if the system says so.
    pub(crate) is_synchronised: Option<bool>,
}

/// Reads the clock.
pub(crate) async fn read_clock() -> ClockState {
    let result =
        probe::run_probe("timedatectl", &["show", "--property=NTPSynchronized", "--value"], Path::new("/")).await;
    let is_synchronised = match result {
        ProbeResult::Success(word) if word == "yes" => Some(true),
        ProbeResult::Success(word) if word == "no" => Some(false),
        _ => None,
    };
    ClockState { now: Timestamp::now(), is_synchronised }
}

/// Runs `git --version`.
pub(crate) async fn git_version() -> ProbeResult {
    probe::run_probe("git", &["--version"], Path::new("/")).await
}

/// Asks the daemon's program whether it would start with its settings.
pub(crate) async fn check_settings(program: &Path, paths: &Paths) -> ProbeResult {
    let socket = paths.socket_named.then_some(paths.socket.as_os_str());
    let socket = socket.into_iter().flat_map(|socket| [OsStr::new("--socket"), socket]);
    let args: Vec<&OsStr> = std::iter::once(OsStr::new("--check")).chain(socket).collect();
    probe::run_probe(program, &args, Path::new("/")).await
}

/// Asks known agents for their versions, concurrently.
pub(crate) async fn agent_versions() -> Vec<(&'static str, ProbeResult)> {
    let ask_version = |name| probe::run_probe(name, &["--version"], Path::new("/"));
    let [codex, claude, opencode, gemini] = KNOWN_AGENTS.map(ask_version);
    let (codex, claude, opencode, gemini) = tokio::join!(codex, claude, opencode, gemini);
    KNOWN_AGENTS.into_iter().zip([codex, claude, opencode, gemini]).collect()
}

/// Asks `just` whether a recipe is defined; `None` if the guard is not a just recipe.
pub(crate) async fn find_recipe(guard: &[String], folder: &Path) -> Option<(String, ProbeResult)> {
    let (program, rest) = guard.split_first()?;
    if Path::new(program).file_name()? != "just" {
        return None;
    }
    // Arguments before the recipe may name the justfile.
    let at = rest.iter().position(|word| !word.starts_with('-') && !word.contains('='))?;
    let recipe = rest[at].clone();
    let args = [&rest[..at], &["--show".to_owned(), recipe.clone()]].concat();
    let program = if program.contains('/') { folder.join(program).display().to_string() } else { program.clone() };
    Some((recipe, probe::run_probe(&program, &args, folder).await))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_read_from_the_table_of_the_system() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let metadata = file.as_file().metadata().expect("its metadata");
        let major = nix::sys::stat::major(metadata.dev());
        let minor = nix::sys::stat::minor(metadata.dev());
        let line = format!("{major:02x}:{minor:02x}:{} 0 EOF", metadata.ino());
        let table = format!(
            "1: POSIX ADVISORY WRITE 12 00:01:1 0 EOF\n2: -> FLOCK ADVISORY WRITE 8 {line}\n2: FLOCK ADVISORY WRITE 4711 {line}\n"
        );
        assert_eq!(find_lock_holder(&table, &metadata), Some(4711));
        assert_eq!(find_lock_holder("", &metadata), None);
    }

    #[test]
    fn a_disk_is_known_by_a_folder_that_is_not_there_yet() {
        assert!(free_bytes(Path::new("/tmp/not/there/yet")).is_some_and(|bytes| bytes > 0));
    }
}
