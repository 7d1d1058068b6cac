//! The kernel's process table as read from `/proc`. A snapshot, which may be outdated when it is returned.

use std::{
    collections::BTreeSet,
    fmt::Display,
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

/// Buffer size that fits nearly every file of a process in one read instead of ten: `/proc` reports no sizes.
const READ_BUFFER: usize = 8 << 10;
/// Size limit in bytes of a file: an environment may be large.
const MAX_BYTES: u64 = 4 << 20;
/// Maximum number of attempts at listing the children of one process, however many it starts and reaps meanwhile.
const MAX_LOOKS: usize = 4;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessEntry {
    /// Process id.
    pub pid: i32,
    /// Process id of the parent.
    pub parent: i32,
    /// Process group id.
    pub group: i32,
    /// Start time in clock ticks since boot; together with the id, distinguishes a process from its successor.
    pub started: u64,
    /// Whether it is dead, and only waits to be reaped by its parent.
    pub is_zombie: bool,
}

/// Reads a file of a process.
///
/// # Errors
///
/// Fails if there is no such process or the file may not be read.
pub fn read(pid: impl Display, file: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(READ_BUFFER);
    File::open(format!("/proc/{pid}/{file}"))?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a text file of a process.
pub fn read_text(pid: impl Display, file: &str) -> io::Result<String> {
    String::from_utf8(read(pid, file)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads an environment variable with which a process was started.
pub fn variable(of: i32, name: &str) -> Option<Vec<u8>> {
    let environment = read(of, "environ").ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    variables.find_map(|variable| Some(variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec()))
}

/// Reads the entry of one process.
pub fn entry(pid: i32) -> Option<ProcessEntry> {
    parse(pid, &read(pid, "stat").ok()?)
}

/// Returns the entries of all processes, each read when the iterator reaches it.
pub fn entries() -> io::Result<impl Iterator<Item = ProcessEntry>> {
    Ok(numbered_entries("/proc")?.filter_map(entry))
}

/// Returns the entries of the children of a process, each read when the iterator reaches it.
///
/// A kernel may be built without lists of children; then all processes are searched.
pub(crate) fn children(of: i32) -> io::Result<impl Iterator<Item = ProcessEntry>> {
    let pids = if lists_children() { listed_children(of)? } else { numbered_entries("/proc")?.collect() };
    Ok(pids.into_iter().filter_map(entry).filter(move |entry| entry.parent == of))
}

/// Whether the kernel lists the children of each thread.
pub(crate) fn lists_children() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

/// Lists the children of a process until two passes agree: a child being reaped can hide another from a pass, and so
/// can an exiting thread, whose children move to another thread.
fn listed_children(of: i32) -> io::Result<Vec<i32>> {
    let mut last = ThreadChildren::read(of)?;
    let mut all = last.children.clone();
    for _ in 1..MAX_LOOKS {
        if last.has_no_children() {
            break;
        }
        // A process that has ended has no children: they have another parent by now.
        let Ok(next) = ThreadChildren::read(of) else {
            break;
        };
        let is_settled = next.children == last.children;
        all.extend(&next.children);
        last = next;
        if is_settled {
            break;
        }
    }
    Ok(all.into_iter().collect())
}

/// One pass over the lists of all threads of a process.
struct ThreadChildren {
    threads: usize,
    children: BTreeSet<i32>,
}

impl ThreadChildren {
    fn read(of: i32) -> io::Result<Self> {
        let mut look = Self { threads: 0, children: BTreeSet::new() };
        for thread in numbered_entries(format!("/proc/{of}/task"))? {
            look.threads += 1;
            // A thread that has ended meanwhile has given its children away.
            let list = read_text(of, &format!("task/{thread}/children")).unwrap_or_default();
            look.children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
        Ok(look)
    }

    /// Whether an empty result is reliable: a single thread cannot receive children from another, and an empty list
    /// hides none.
    fn has_no_children(&self) -> bool {
        self.threads <= 1 && self.children.is_empty()
    }
}

fn numbered_entries(folder: impl AsRef<Path>) -> io::Result<impl Iterator<Item = i32>> {
    Ok(fs::read_dir(folder)?.flatten().filter_map(|item| item.file_name().to_str()?.parse().ok()))
}

/// Returns the id of a process inside its innermost PID namespace.
pub(crate) fn number_inside(pid: i32) -> Option<i32> {
    let status = read_text(pid, "status").ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// Parses a `stat` line. The name in parentheses may hold anything, parentheses too: the fields begin after the last
/// one.
fn parse(pid: i32, stat: &[u8]) -> Option<ProcessEntry> {
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = str::from_utf8(&stat[end_of_name + 1..]).ok()?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(ProcessEntry {
        pid,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        process::{Command, Stdio},
        sync::mpsc,
        thread,
    };

    use super::*;

    #[test]
    fn name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = b"77 (a) R 1 (b) S 5 6 7 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 4242 1 1";
        let entry = parse(77, stat).unwrap();
        assert_eq!((entry.parent, entry.group, entry.started), (5, 6, 4242));
        assert!(!entry.is_zombie);
    }

    #[test]
    fn cut_off_line_is_no_entry() {
        assert_eq!(parse(1, b"1 (init) S 0 1"), None);
    }

    #[test]
    fn table_holds_this_process() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(entries().unwrap().any(|entry| entry.pid == own));
        assert_eq!(number_inside(own), Some(own));
    }

    #[test]
    fn child_is_among_the_children_of_its_parent() {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "cat; :"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut shell = shell.unwrap();
        // The echo comes from the child.
        shell.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = i32::try_from(shell.id()).unwrap();
        let found: Vec<i32> = children(pid).unwrap().map(|entry| entry.parent).collect();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(found, [pid]);
    }

    #[test]
    fn child_that_another_thread_forked_is_among_the_children() {
        let own = i32::try_from(std::process::id()).unwrap();
        let forked = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            forked.0.send(i32::try_from(child.id()).unwrap()).unwrap();
            // A thread's list disappears with the thread.
            ended.recv().unwrap_err();
            drop(child.stdin.take());
            child.wait().unwrap();
        });
        let child = forked.1.recv().unwrap();
        let found: Vec<i32> = children(own).unwrap().map(|entry| entry.pid).collect();
        drop(end);
        other.join().unwrap();
        assert!(found.contains(&child), "{child} is not among {found:?}");
    }
}
