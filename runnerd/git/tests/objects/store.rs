//! A repository into which objects are written unchecked, well-formed or not, and git's verdict on them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The findings of git's check, as message names by object id.
pub(crate) type Said = BTreeMap<String, BTreeSet<String>>;

/// The repository; its folder is removed on drop.
pub(crate) struct Store {
    folder: TempDir,
}

impl Store {
    pub(crate) fn new() -> Self {
        let store = Self { folder: tempfile::tempdir().expect("a folder can be made") };
        store.git(&["init", "-q", "--bare", "."], b"");
        store
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn git(&self, args: &[&str], input: &[u8]) -> Vec<u8> {
        let output = self.run(args, input);
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn run(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = Command::new("git");
        command.env_clear().env("PATH", path()).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.current_dir(self.folder.path()).args(["-c", "core.fsync=none"]).args(args).env("LC_ALL", "C");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("git can be started");
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().expect("git can be waited for");
        feeder.join().expect("nothing panics there").expect("git reads what it is given");
        output
    }

    /// Writes files into a new folder, and returns their paths.
    pub(crate) fn files<'a>(&self, name: &str, contents: impl IntoIterator<Item = &'a [u8]>) -> Vec<PathBuf> {
        let folder = self.folder.path().join(name);
        fs::create_dir(&folder).expect("the folder can be made");
        let write = |(at, content): (usize, &[u8])| {
            let path = folder.join(at.to_string());
            fs::write(&path, content).expect("the file can be written");
            path
        };
        contents.into_iter().enumerate().map(write).collect()
    }

    /// Stores objects of a type without checking them, and returns their ids.
    pub(crate) fn store<'a>(&self, kind: &str, objects: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let paths = self.files(kind, objects);
        let list: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let ids =
            self.git(&["hash-object", "-t", kind, "-w", "--literally", "--stdin-paths"], list.join("\n").as_bytes());
        let ids: Vec<String> = String::from_utf8_lossy(&ids).lines().map(str::to_owned).collect();
        assert_eq!(ids.len(), paths.len(), "each has an id");
        ids
    }

    /// Has git check every object, as strictly as when it receives objects.
    pub(crate) fn fsck(&self) -> Said {
        let output = self.run(&["fsck", "--strict", "--no-dangling", "--no-progress"], b"");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        // The exit status depends on the findings; only a signal gives a higher one.
        assert!(output.status.code().is_some_and(|code| code < 128), "git fsck: {text}");
        let mut by_id = Said::new();
        let mut put = |id: &str, name: &str| by_id.entry(id.to_owned()).or_default().insert(name.to_owned());
        for line in text.lines() {
            if let Some((id, _)) = line.split_once(": object could not be parsed") {
                put(id.trim_start_matches("error: "), "unparsable");
            }
            let found = line.split_once(" in tree ").or_else(|| line.split_once(" in commit "));
            if let Some((id, rest)) = found.and_then(|(_, rest)| rest.split_once(": ")) {
                put(id, rest.split(": ").next().unwrap_or_default());
            }
        }
        by_id
    }
}

fn path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}
