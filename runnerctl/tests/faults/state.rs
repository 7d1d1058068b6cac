//! State that is damaged, missing, of another version, or half written at a power failure. Rows 55 and 64 to 70.
//!
//! Row 55 is enumerated on a simulated disk, next to the journal it is about (`worker/tests/power.rs`).

mod forged;

use std::fs::{self, File, Permissions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use protocol::words::RunStatus;
use runner_testkit::invariants::{killed_mid_session, list_verdicts};
use runner_testkit::{Daemon, Home, PATIENCE, Repo};

use crate::checks::{assert_explains, assert_survived};

/// Maximum memory of a daemon that is given too large a file.
const MEMORY: u64 = 200 * 1024 * 1024;

/// A run whose daemon was killed in its first session, after the session had done some work.
struct InterruptedRun {
    home: Home,
    repo: Repo,
}

impl InterruptedRun {
    fn new() -> Self {
        let home = Home::new();
        let repo = killed_mid_session(&home);
        Self { home, repo }
    }

    /// Returns the path of a file in the daemon's folder of the repository.
    fn file(&self, name: &str) -> PathBuf {
        self.home.registered_dir().join(name)
    }

    /// Asserts that damage to a file holds the repository, that the damaged file is named, and that it stays as it is;
    /// restores the file at the end.
    fn assert_held(&self, name: &str, damage: FileDamage) {
        let path = self.file(name);
        let right = fs::read(&path).expect("the file was written");
        damage.inflict(&path);
        let wrong = FileFingerprint::of_file(&path);
        let daemon = self.home.daemon();
        let held = self.home.ctl_in(&self.repo, &["resume"]);
        assert_explains(&held, &[name, "runnerctl resume"]);
        assert_eq!(FileFingerprint::of_file(&path), wrong, "{damage:?}: what cannot be understood is not written to");
        assert!(memory(&daemon) < MEMORY, "{damage:?}: the daemon takes {} bytes", memory(&daemon));
        drop(daemon);
        fs::write(&path, right).expect("the file can be put right");
    }

    /// Asserts that the run completes with nothing lost.
    fn assert_continues(&self, daemon: Daemon) {
        let resumed = self.home.ctl_in(&self.repo, &["resume"]);
        assert!(resumed.code == 0 || resumed.stderr.contains("is running"), "{}", resumed.stderr);
        self.home.client().wait_for(self.repo.path(), RunStatus::Completed);
        assert_eq!(list_verdicts(&self.repo), ["Interrupted", "Accepted"]);
        assert_survived(&self.home, &self.repo, &["half\n"]);
        drop(daemon);
    }
}

/// Metadata that shows whether a file was written to, without reading it.
#[derive(Debug, PartialEq, Eq)]
struct FileFingerprint {
    len: u64,
    written_at: std::time::SystemTime,
    inode: u64,
}

impl FileFingerprint {
    fn of_file(path: &Path) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let found = fs::metadata(path).expect("the file stays");
        Self { len: found.len(), written_at: found.modified().expect("a file has a time"), inode: found.ino() }
    }
}

/// Returns a daemon's peak memory in bytes.
fn memory(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("the daemon lives");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the system tells");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number");
    kib * 1024
}

/// A kind of damage to a file.
#[derive(Debug, Clone, Copy)]
enum FileDamage {
    Empty,
    Half,
    Zeros,
    BitFlip,
    Garbage,
    Doubled,
    ByteOrderMark,
    Trailing,
    Deep,
    Huge,
    Newer,
}

impl FileDamage {
    fn inflict(self, path: &Path) {
        let mut bytes = fs::read(path).expect("the file was written");
        match self {
            Self::Empty => bytes.clear(),
            Self::Half => bytes.truncate(bytes.len() / 2),
            Self::Zeros => bytes.fill(0),
            Self::BitFlip => {
                // Inside a string, where any parser accepts it.
                let at = bytes.windows(5).position(|five| five == b"do-it").expect("it names the run") + 3;
                bytes[at] ^= 1;
            }
            Self::Garbage => bytes = (0..4096_u32).map(|number| (number * 37 % 251) as u8).collect(),
            Self::Doubled => bytes = bytes.repeat(2),
            Self::ByteOrderMark => bytes.splice(0..0, *b"\xef\xbb\xbf").for_each(drop),
            Self::Trailing => bytes.extend_from_slice(b"}\n"),
            Self::Deep => bytes = b"[".repeat(100_000),
            Self::Huge => {
                let mut file = File::options().write(true).open(path).expect("the file can be opened");
                file.set_len(1 << 30).expect("a file with a hole can be made");
                file.seek(SeekFrom::End(-1)).and_then(|_| file.write_all(b"\n")).expect("its end can be written");
                return;
            }
            Self::Newer => {
                let text = String::from_utf8(bytes).expect("it is text");
                let newer = text.replacen("\"version\":1", "\"version\":9", 1);
                bytes = newer.replacen("\"version\": 1", "\"version\": 9", 1).into_bytes();
            }
        }
        fs::write(path, bytes).expect("the file can be damaged");
    }
}

/// Various kinds of damage, one after another, to one file of one repository, which continues at the end.
fn assert_held_for_each(name: &str, damages: &[FileDamage]) {
    let died = InterruptedRun::new();
    for damage in damages {
        died.assert_held(name, *damage);
    }
    let daemon = died.home.daemon();
    died.assert_continues(daemon);
}

#[test]
fn row_64_queue_that_is_damaged_holds_its_repository() {
    use FileDamage::{BitFlip, Empty, Garbage, Half, Zeros};
    assert_held_for_each("repo.json", &[Empty, Half, Zeros, Garbage, BitFlip]);
}

#[test]
fn row_64_journal_that_is_damaged_holds_its_repository() {
    use FileDamage::{BitFlip, Empty, Garbage, Zeros};
    assert_held_for_each("journal.jsonl", &[Empty, Zeros, Garbage, BitFlip]);
}

#[test]
fn row_65_queue_of_a_form_that_is_never_written_is_refused() {
    use FileDamage::{ByteOrderMark, Deep, Doubled, Huge, Trailing};
    assert_held_for_each("repo.json", &[Doubled, ByteOrderMark, Trailing, Deep, Huge]);
}

#[test]
fn row_65_journal_of_a_form_that_is_never_written_is_refused_with_its_place() {
    use FileDamage::{ByteOrderMark, Deep, Doubled, Huge, Trailing};
    assert_held_for_each("journal.jsonl", &[Doubled, ByteOrderMark, Trailing, Deep, Huge]);
}

#[test]
fn row_66_state_of_a_newer_version_is_refused_and_stays() {
    let died = InterruptedRun::new();
    for name in ["repo.json", "journal.jsonl"] {
        let path = died.file(name);
        let right = fs::read(&path).expect("the file was written");
        FileDamage::Newer.inflict(&path);
        let wrong = fs::read(&path).expect("the file stays");
        assert_ne!(wrong, right);
        let daemon = died.home.daemon();
        let held = died.home.ctl_in(&died.repo, &["resume"]);
        assert_explains(&held, &[name, "version 9", "runnerctl resume"]);
        assert_eq!(fs::read(&path).expect("the file stays"), wrong);
        drop(daemon);
        fs::write(&path, right).expect("the file can be put right");
    }
    let daemon = died.home.daemon();
    died.assert_continues(daemon);
}

#[test]
fn row_64_damaged_environment_is_reported_and_written_again_by_resume() {
    let died = InterruptedRun::new();
    let path = died.file("env.json");
    fs::write(&path, "{\"PATH\"").expect("the file can be damaged");
    let _daemon = died.home.daemon();
    let run = died.home.client().wait_for(died.repo.path(), RunStatus::Held);
    let why = run.summary.reason.expect("it says why");
    assert!(why.message.contains("env.json") && why.message.contains("seal"), "{}", why.message);
    assert!(why.command.is_some_and(|command| command.ends_with("runnerctl resume")));
    died.home.ctl_in(&died.repo, &["resume"]).exits(0);
    died.home.client().wait_for(died.repo.path(), RunStatus::Completed);
    assert_survived(&died.home, &died.repo, &["half\n"]);
}

#[test]
fn row_64_configuration_that_is_damaged_is_refused_with_its_place() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    repo.script().step(1, "echo mine > mine.txt; answer done 'It is done.'");
    let right = repo.read(".runner/state/config.toml");
    for wrong in ["max_iterations = ", "\0\0\0\0", "max_iteratoins = 3\n"] {
        repo.write(".runner/state/config.toml", wrong).commit("Damage it");
        let refused = home.run(&repo, &["-m", "Do it"]);
        assert_explains(&refused, &["config.toml:1:", "hint:"]);
    }
    repo.write(".runner/state/config.toml", &right).commit("Put it right");
    home.run(&repo, &["-m", "Do it"]).exits(0);
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_67_stale_temporary_files_are_removed_and_never_committed() {
    let died = InterruptedRun::new();
    let stale = [died.file(".repo.json.abc.runnerd-tmp"), died.file("live/.r-0001-upon.abc.runnerd-tmp")];
    for path in &stale {
        fs::write(path, "half").expect("a file can be made");
        fs::set_permissions(path, Permissions::from_mode(0o400)).expect("a mode can be set");
    }
    let folder = died.file(".journal.jsonl.abc.runnerd-tmp");
    fs::create_dir(&folder).expect("a folder can be made");
    died.repo.write(".runner/state/.tree.json.abc.runnerd-tmp", "half");
    let daemon = died.home.daemon();
    died.assert_continues(daemon);
    assert!(!stale.iter().any(|path| path.exists()), "they stay");
    assert!(folder.is_dir(), "what the daemon has not made is not removed");
    let committed = died.repo.git(&["log", "--all", "--name-only", "--format="]);
    assert!(!committed.contains("runnerd-tmp"), "{committed}");
}

#[test]
fn row_68_journal_that_is_damaged_after_the_branch_moved_loses_no_commit() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    repo.script().step(1, "echo first > first.txt; answer retry 'Not yet.'");
    let gate = repo.script().gate("second");
    repo.script().step(2, "echo second > second.txt; gate second");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    let committed = repo.head();
    daemon.kill();
    home.wait_all_gone(PATIENCE);
    let journal = home.registered_dir().join("journal.jsonl");
    FileDamage::Garbage.inflict(&journal);
    let _daemon = home.daemon();
    let held = home.ctl_in(&repo, &["resume"]);
    assert_explains(&held, &["journal.jsonl", "byte", "move it away"]);
    assert_eq!(repo.head(), committed);
    // As described in `docs/troubleshooting.md`.
    fs::rename(&journal, home.path().join("journal.damaged")).expect("it can be moved");
    repo.commit("What the session did");
    home.ctl_in(&repo, &["resume"]).exits(0);
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert_eq!(list_verdicts(&repo), ["Retry", "Accepted"]);
    assert_survived(&home, &repo, &["first\n", "second\n"]);
}

#[test]
fn row_69_state_that_may_not_be_read_is_named() {
    let died = InterruptedRun::new();
    let path = died.file("repo.json");
    let right = fs::read(&path).expect("the file was written");
    // Root can read a file with any mode, but not a folder in place of the file.
    fs::remove_file(&path).and_then(|()| fs::create_dir(&path)).expect("a folder can take its place");
    let daemon = died.home.daemon();
    let held = died.home.ctl_in(&died.repo, &["resume"]);
    assert_explains(&held, &["repo.json", "runnerctl resume"]);
    assert!(path.is_dir(), "it stays as it is");
    fs::remove_dir(&path).and_then(|()| fs::write(&path, right)).expect("the file can be put right");
    died.assert_continues(daemon);
}

#[test]
fn row_70_record_that_was_removed_is_missed_by_nobody() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let records = repo.path().join(".runner/iterations");
    repo.script().step(1, "echo first > first.txt; answer retry 'Not yet.'");
    let remove = format!("rm -rf {}/*/0001", records.display());
    repo.script().step(2, &format!("echo second > second.txt; {remove}; answer done 'It is done.'"));
    let _daemon = home.daemon();
    home.run(&repo, &["-m", "Do it"]).exits(0);
    fs::remove_dir_all(&records).expect("the last record is there");
    home.ctl_in(&repo, &["status"]).exits(0);
    let output = home.ctl_in(&repo, &["log", "1"]);
    assert!(output.exits(0).stdout.contains("handed over"), "git has it: {}", output.stdout);
    assert_explains(&home.ctl_in(&repo, &["log", "1", "--prompt"]), &["0001", "hint:"]);
    assert_survived(&home, &repo, &["first\n", "second\n"]);
}

#[test]
fn row_70_record_that_cannot_be_written_does_not_hold_up_the_commit() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    repo.script().step(1, "echo mine > mine.txt; answer done 'It is done.'");
    let records = repo.path().join(".runner/iterations").display().to_string();
    repo.script().guard_step(1, &format!("for it in {records}/*/0001; do rm -r $it && touch $it; done"));
    let _daemon = home.daemon();
    home.run(&repo, &["-m", "Do it"]).exits(0);
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_survived(&home, &repo, &["mine\n"]);
}
