//! Assertions about a branch that must hold no matter what happened to the daemon meanwhile.

use std::path::Path;

use crate::{Home, PATIENCE, ReceiptCommit, Repo};

/// A session that depends only on the task tree, so that it may be repeated: it splits the root, then completes leaf by
/// leaf. Its work is a line in `log.txt`; two concurrent sessions would be recorded in `$kit/overlap`.
pub const SPLIT_AND_DO: &str = r#"
exec 9> "$kit/lock"
flock -n 9 || echo "$n" >> "$kit/overlap"
echo "session $n" >> log.txt
if [ "$(grep -c '"id"' "$tree")" = 1 ]; then
    decompose 'Split in three.' first second third
else
    answer done 'One part is done.'
fi
"#;

/// Creates a repository whose sessions are [`SPLIT_AND_DO`].
pub fn splitting_repo(home: &Home, name: &str) -> Repo {
    let repo = home.scripted_repo(name);
    repo.script().always(SPLIT_AND_DO);
    repo
}

/// Creates a repository whose daemon was killed in the first session, after the session wrote `half.txt`.
pub fn killed_mid_session(home: &Home) -> Repo {
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, "echo half > half.txt; gate session");
    let daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    daemon.kill();
    home.wait_all_gone(PATIENCE);
    repo
}

/// Asserts that iterations are numbered without gaps or repetitions, that HEAD and bookkeeping agree, that no work of a
/// finished session is missing, and that no two sessions ran at once.
///
/// # Panics
///
/// Panics if one of these does not hold.
#[track_caller]
pub fn assert_consistent(repo: &Repo) {
    let run = repo.run_state("HEAD").run_id.expect("a run has begun");
    let is_of_run = |receipt: &ReceiptCommit| receipt.subject.contains(&format!(" run {run} "));
    let receipts: Vec<ReceiptCommit> = repo.receipts().into_iter().filter(is_of_run).collect();
    let numbers: Vec<String> = receipts.iter().map(|receipt| iteration_number(&receipt.subject)).collect();
    let expected: Vec<String> = (1..=receipts.len()).map(|number| format!("{number:04}")).collect();
    assert_eq!(numbers, expected, "an iteration is lost or counted twice");
    let next = repo.run_state("HEAD").next_iter;
    assert_eq!(
        usize::try_from(next).expect("BUG: a u32 is not a usize"),
        receipts.len() + 1,
        "HEAD and bookkeeping disagree"
    );
    assert!(!repo.script().folder().join("overlap").exists(), "two sessions ran at once");
    repo.assert_sound();
}

/// Asserts that the work of every session that ran to completion is in HEAD exactly once.
///
/// # Panics
///
/// Panics if one of these does not hold.
#[track_caller]
pub fn assert_work_kept(repo: &Repo) {
    let log = repo.show("HEAD", "log.txt");
    for session in repo.script().log().iter().filter_map(|line| line.strip_prefix("end ")) {
        let line = format!("session {session}");
        assert_eq!(log.lines().filter(|other| *other == line).count(), 1, "the work of {line}: {log}");
    }
}

fn iteration_number(subject: &str) -> String {
    subject.split(" iter ").nth(1).unwrap_or_default().chars().take(4).collect()
}

/// Asserts that the bytes of a piece of work are somewhere in the repository: in the work tree, or in a commit that is
/// reachable from a ref, either a branch or a rescue ref.
///
/// # Panics
///
/// Panics if they are nowhere.
#[track_caller]
pub fn assert_kept(repo: &Repo, work: &[u8]) {
    let id = repo.git(&["hash-object", "--no-filters", &write_work(repo, work)]);
    let objects = repo.git(&["rev-list", "--objects", "--all"]);
    let is_stored = objects.lines().any(|line| line.starts_with(&id));
    assert!(is_stored || dir_contains(repo.path(), work), "lost: {}", String::from_utf8_lossy(work));
}

/// Writes bytes to a file outside the work tree, so that git can compute their object id.
fn write_work(repo: &Repo, work: &[u8]) -> String {
    let path = repo.script().folder().join("files/witnessed");
    std::fs::write(&path, work).expect("a file can be written");
    path.display().to_string()
}

/// Returns whether a file in the work tree, git's own folder excluded, contains exactly these bytes.
fn dir_contains(folder: &Path, work: &[u8]) -> bool {
    let entries = std::fs::read_dir(folder).expect("the work tree can be listed").flatten();
    entries.filter(|entry| entry.file_name() != ".git").any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => dir_contains(&entry.path(), work),
        Ok(kind) if kind.is_file() => std::fs::read(entry.path()).is_ok_and(|bytes| bytes == work),
        _ => false,
    })
}

/// Returns the names of the verdicts of all iterations on HEAD's branch, oldest first.
pub fn list_verdicts(repo: &Repo) -> Vec<String> {
    repo.receipts().iter().map(|receipt| receipt.verdict().to_owned()).collect()
}

/// Prints a figure that is visible with `--nocapture` or in the output of a failed test.
#[expect(clippy::print_stderr, reason = "the harness captures it")]
pub fn print_figure(figure: &str) {
    eprintln!("{figure}");
}
