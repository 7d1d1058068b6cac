//! What must hold of a branch whatever happened to the daemon meanwhile.

use runner_testkit::{Home, Receipt, Repo};

/// A session that depends on the task tree alone, so that it may be repeated: it splits the root, then does leaf by
/// leaf. Its work is a line in `log.txt`; two sessions at once would be seen in `$kit/overlap`.
pub(crate) const SPLIT_AND_DO: &str = r#"
exec 9> "$kit/lock"
flock -n 9 || echo "$n" >> "$kit/overlap"
echo "session $n" >> log.txt
if [ "$(grep -c '"id"' "$tree")" = 1 ]; then
    decompose 'Split in three.' first second third
else
    answer done 'One part is done.'
fi
"#;

/// Makes a repository whose sessions are [`SPLIT_AND_DO`].
pub(crate) fn splitting(home: &Home, name: &str) -> Repo {
    let repo = home.scripted(name);
    repo.script().always(SPLIT_AND_DO);
    repo
}

/// Asserts that the iterations are numbered without gap and without repetition, that HEAD and bookkeeping agree, that
/// no work of a session that ended is missing, and that no two sessions ran at once.
#[track_caller]
pub(crate) fn assert_consistent(repo: &Repo) {
    let run = repo.run_state("HEAD").run_id.expect("a run has begun");
    let is_its = |receipt: &Receipt| receipt.subject.contains(&format!(" run {run} "));
    let receipts: Vec<Receipt> = repo.receipts().into_iter().filter(is_its).collect();
    let numbers: Vec<String> = receipts.iter().map(|receipt| number(&receipt.subject)).collect();
    let expected: Vec<String> = (1..=receipts.len()).map(|number| format!("{number:04}")).collect();
    assert_eq!(numbers, expected, "an iteration is lost or counted twice");
    let next = repo.run_state("HEAD").next_iter;
    assert_eq!(
        usize::try_from(next).expect("BUG: a u32 is no usize"),
        receipts.len() + 1,
        "HEAD and bookkeeping disagree"
    );
    assert!(!repo.script().folder().join("overlap").exists(), "two sessions ran at once");
    repo.assert_sound();
}

/// Asserts that the work of every session that came to its end is in HEAD, once.
#[track_caller]
pub(crate) fn assert_work_kept(repo: &Repo) {
    let log = repo.show("HEAD", "log.txt");
    for session in repo.script().log().iter().filter_map(|line| line.strip_prefix("end ")) {
        let line = format!("session {session}");
        assert_eq!(log.lines().filter(|kept| *kept == line).count(), 1, "the work of {line}: {log}");
    }
}

fn number(subject: &str) -> String {
    subject.split(" iter ").nth(1).unwrap_or_default().chars().take(4).collect()
}

/// Returns the names of the verdicts of all iterations on HEAD's branch, oldest first.
pub(crate) fn verdicts(repo: &Repo) -> Vec<String> {
    repo.receipts().iter().map(|receipt| receipt.verdict().to_owned()).collect()
}

/// Notes a figure for whoever runs the tests with `--nocapture`, or looks at one that failed.
#[expect(clippy::print_stderr, reason = "the harness captures it")]
pub(crate) fn note(figure: &str) {
    eprintln!("{figure}");
}
