//! The order in which a commit reaches the disk: a power failure must not leave a reference without its objects, an
//! empty reference, or a journal that names a missing commit. Observed with strace, since otherwise only a power
//! failure would show it.

mod slow {
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use runner_testkit::invariants::list_verdicts;

    use super::super::{prepare, run_one};

    /// Starts to trace what a process flushes and renames. Keep the reader: writing to a closed pipe would kill strace.
    fn watch(pid: i32, into: &str) -> (Child, impl BufRead) {
        let calls = "trace=fsync,fdatasync,syncfs,rename,renameat,renameat2";
        let mut strace = Command::new("strace")
            .args(["-f", "-y", "-e", calls, "-o", into, "-p", &pid.to_string()])
            .stderr(Stdio::piped())
            .spawn()
            .expect("strace can be started");
        let mut stderr = BufReader::new(strace.stderr.take().expect("a pipe"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("strace says that it is attached");
        assert!(line.contains("attached"), "{line}");
        (strace, stderr)
    }

    #[test]
    fn objects_come_before_their_reference_and_both_before_the_journal() {
        let (home, repo) = prepare();
        let log = home.path().join("calls").display().to_string();
        let daemon = home.daemon();
        let (mut strace, _said) = watch(daemon.pid(), &log);
        run_one(&home, &repo, "");
        assert_eq!(list_verdicts(&repo), ["Accepted"]);
        drop(daemon);
        strace.wait().expect("strace ends with the daemon");
        let text = fs::read_to_string(&log).expect("the calls can be read");
        let calls: Vec<&str> = text.lines().collect();
        let last = |what: &[&str]| calls.iter().rposition(|call| what.iter().all(|part| call.contains(part)));
        let moved = last(&["rename", "refs/heads/runner/x.lock"])
            .unwrap_or_else(|| panic!("the branch does not move: {calls:#?}"));
        let commit = repo.head();
        let (folder, file) = commit.split_at(2);
        let written = last(&["rename", &format!("objects/{folder}/{file}\"")]).expect("the commit is written");
        // One flush of the file system covers the objects, their folders and the work tree.
        for flushed in ["syncfs(", "runner/x.lock>"] {
            let at = calls[..moved].iter().rposition(|call| call.contains("sync") && call.contains(flushed));
            assert!(at > Some(written), "{flushed} is not flushed before the branch moves: {calls:#?}");
        }
        let named = last(&["fsync(", "refs/heads/runner>"]).expect("the folder of the branch is flushed");
        let known = last(&["sync(", "journal.jsonl"]).expect("the journal is flushed");
        assert!(moved < named && named < known, "{moved} {named} {known}");
    }
}
