//! Which files the guard's command reaches: those that it names, those that the programs which it calls read, and so on
//! from file to file.
//!
//! Files that are not there are not reached: a script that a task is to write is work, and no check yet. What a program
//! reads beside its own files is named by a glob, for that such a file is not there is a part of what was accepted.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;

use super::script::{Command, Runs, commands};
use super::tools::{self, Form, Tool};

/// Most files that are followed.
const MAX_FILES: usize = 200;
/// Most paths that are looked for: a text can name any number.
const MAX_LOOKUPS: usize = 20_000;
/// Most bytes of a file that is followed.
const MAX_BYTES: usize = 1024 * 1024;
/// Options whose value is a file or a folder that a program reads.
const OF_FILE: [&str; 8] =
    ["--config", "--config-file", "--rcfile", "--justfile", "--makefile", "--file", "--manifest-path", "--rootdir"];
const OF_FOLDER: [&str; 5] = ["--directory", "--working-directory", "--prefix", "--cwd", "--dir"];
/// Parts of a path by which a script that is no shell's is a check, and not what is checked.
const OF_CHECKS: [&str; 13] = [
    "ci", "scripts", "script", "tools", "hack", "checks", "check", "lint", "verify", "guard", "github", "devtools",
    "bin",
];

/// The files of the repository as a person has accepted them.
pub(super) trait Accepted {
    /// Why a file cannot be read.
    type Error;

    /// Returns what stands at a path; none where no file does.
    fn file(&mut self, path: &str) -> Result<Option<File>, Self::Error>;

    /// Returns the paths of all files of a name, in any folder.
    fn named(&mut self, name: &str) -> Result<Vec<String>, Self::Error>;
}

/// A file.
#[derive(Debug)]
pub(super) enum File {
    /// With its content.
    Content(Vec<u8>),
    /// A link, with what it leads to.
    Link(String),
}

/// What the guard's command reaches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reached {
    /// Files that are there.
    pub files: BTreeSet<String>,
    /// What would be read if it were there, as globs.
    pub beside: BTreeSet<String>,
}

/// Follows a command from file to file.
pub(super) fn reach<A: Accepted>(command: &[String], files: &mut A) -> Result<Reached, A::Error> {
    let mut walk = Walk { files, reached: Reached::default(), queue: VecDeque::new(), lookups: 0 };
    for word in command {
        // What it names is watched, whatever that is.
        let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
        walk.file("", value, None)?;
        if word.contains(char::is_whitespace) {
            walk.text("", word, Form::Shell)?;
        }
    }
    let call = Command { words: command.to_vec(), decides: true };
    walk.call("", &call)?;
    walk.tools(&folders(&call).into_iter().collect(), &command.join(" "))?;
    walk.follow()?;
    Ok(walk.reached)
}

struct Walk<'a, A> {
    files: &'a mut A,
    reached: Reached,
    queue: VecDeque<(String, Vec<u8>, Form)>,
    /// How many paths were looked for.
    lookups: usize,
}

impl<A: Accepted> Walk<'_, A> {
    fn follow(&mut self) -> Result<(), A::Error> {
        while let Some((path, bytes, form)) = self.queue.pop_front() {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let text = String::from_utf8_lossy(&bytes);
            match form {
                Form::Data => {}
                Form::Scripts => self.text(folder, &scripts(&text), Form::Shell)?,
                Form::Keys => self.text(folder, &without_keys(&text), Form::Shell)?,
                Form::Shell | Form::Just | Form::Make => self.text(folder, &text, form)?,
            }
        }
        Ok(())
    }

    /// Looks through a text with commands, of a file in this folder.
    fn text(&mut self, folder: &str, text: &str, form: Form) -> Result<(), A::Error> {
        for line in text.lines() {
            self.included(folder, line, form)?;
        }
        let calls = commands(text);
        let folders: BTreeSet<String> = [folder.to_owned()].into_iter().chain(calls.iter().flat_map(folders)).collect();
        for folder in &folders {
            for call in &calls {
                self.call(folder, call)?;
            }
        }
        self.tools(&folders, text)
    }

    /// Reaches what the programs read that a text names, in all folders in which they may run.
    fn tools(&mut self, folders: &BTreeSet<String>, text: &str) -> Result<(), A::Error> {
        for tool in tools::named(text) {
            for folder in BTreeSet::from([String::new()]).union(folders) {
                self.tool(folder, tool)?;
            }
            for name in tool.nested {
                for path in self.files.named(name)? {
                    self.file("", &path, Some(tool.form))?;
                }
            }
        }
        Ok(())
    }

    fn tool(&mut self, folder: &str, tool: &Tool) -> Result<(), A::Error> {
        let rooted = |name: &str| match (folder, name.strip_prefix('/')) {
            ("", _) | (_, None) => name.to_owned(),
            (folder, Some(name)) => format!("/{}/{name}", escaped(folder)),
        };
        let mut is_there = false;
        for name in tool.files {
            is_there |= self.file(folder, name, Some(tool.form))?;
        }
        if tool.shadows && is_there {
            self.reached.beside.extend(tool.files.iter().map(|name| rooted(&format!("/{name}"))));
        }
        self.reached.beside.extend(tool.beside.iter().map(|glob| rooted(glob)));
        Ok(())
    }

    /// Reaches what a command runs, and the files that its options name.
    fn call(&mut self, folder: &str, call: &Command) -> Result<(), A::Error> {
        for (at, word) in call.words.iter().enumerate() {
            let (option, value) = word.split_once('=').unwrap_or((word, ""));
            let value = if value.is_empty() { call.words.get(at + 1).map_or("", String::as_str) } else { value };
            let is_tools = || call.words[..at].iter().any(|word| tools::is_tool(name_of(word)));
            // To `test`, `rm` and the program that is checked they mean something else.
            if (OF_FILE.contains(&option) || matches!(word.as_str(), "-f" | "-c")) && is_tools() {
                self.near(folder, value, tools::form_of(name_of(value)))?;
            }
        }
        match call.runs().filter(|_| call.decides) {
            Some(Runs::Text(text)) => self.text(folder, text, Form::Shell),
            Some(Runs::Script(path)) => self.near(folder, path, None),
            Some(Runs::Interpreted(path)) if is_check(path) => self.near(folder, path, None),
            Some(Runs::Interpreted(_)) | None => Ok(()),
        }
    }

    /// Reaches what a line of a file includes.
    fn included(&mut self, folder: &str, line: &str, form: Form) -> Result<(), A::Error> {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        match (form, first.trim_end_matches('?')) {
            (Form::Make, "include" | "-include" | "sinclude") => {
                for word in words {
                    self.near(folder, word, Some(Form::Make))?;
                    if word.contains('*') {
                        self.reached.beside.extend(normal("", word).map(|path| format!("/{path}")));
                    }
                }
                Ok(())
            }
            (Form::Just, "import") => {
                let path = words.next().unwrap_or_default().trim_matches(['\'', '"']);
                self.near(folder, path, Some(Form::Just))
            }
            (Form::Just, "mod") => self.module(folder, words.next().unwrap_or_default(), words.next()),
            _ => Ok(()),
        }
    }

    /// Reaches the file of a module of a justfile.
    fn module(&mut self, folder: &str, name: &str, path: Option<&str>) -> Result<(), A::Error> {
        if let Some(path) = path.map(|path| path.trim_matches(['\'', '"'])) {
            return self.near(folder, path, Some(Form::Just));
        }
        for file in ["mod.just", "justfile", "Justfile", ".justfile"] {
            self.near(folder, &format!("{name}/{file}"), Some(Form::Just))?;
        }
        self.near(folder, &format!("{name}.just"), Some(Form::Just))
    }

    /// Reaches a file whose path is told from a folder or from the root. What stands before it in a variable is one of
    /// the two.
    fn near(&mut self, folder: &str, path: &str, form: Option<Form>) -> Result<(), A::Error> {
        let path = match path.split_once('/') {
            Some((start, rest)) if start.contains('$') => rest,
            _ => path,
        };
        for folder in BTreeSet::from(["", folder]) {
            self.file(folder, path, form)?;
        }
        Ok(())
    }

    /// Reaches a file, where one is there; its form is told by its name or its first line where it is not known.
    fn file(&mut self, folder: &str, path: &str, form: Option<Form>) -> Result<bool, A::Error> {
        let Some(path) = normal(folder, path).filter(|path| !path.is_empty()) else { return Ok(false) };
        if self.reached.files.contains(&path) {
            return Ok(true);
        }
        self.lookups += 1;
        if self.lookups > MAX_LOOKUPS {
            return Ok(false);
        }
        let Some(file) = self.files.file(&path)? else { return Ok(false) };
        if self.reached.files.len() >= MAX_FILES {
            return Ok(true);
        }
        self.reached.files.insert(path.clone());
        match file {
            File::Link(target) => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                self.file(folder, &target, form)?;
            }
            File::Content(bytes) if bytes.len() <= MAX_BYTES => {
                let form = form.or_else(|| tools::form_of(name_of(&path)));
                let form = form.unwrap_or_else(|| if is_shell(&path, &bytes) { Form::Shell } else { Form::Data });
                self.queue.push_back((path, bytes, form));
            }
            File::Content(_) => {}
        }
        Ok(true)
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the folders in which a command has programs run.
fn folders(call: &Command) -> Vec<String> {
    let of = |(at, word): (usize, &String)| {
        let (option, value) = word.split_once('=').unwrap_or((word, ""));
        let takes = OF_FOLDER.contains(&option) || matches!(word.as_str(), "-C" | "-d" | "cd" | "pushd");
        let value = if value.is_empty() { call.words.get(at + 1)?.as_str() } else { value };
        takes.then(|| normal("", value)).flatten()
    };
    call.words.iter().enumerate().filter_map(of).collect()
}

fn is_shell(path: &str, bytes: &[u8]) -> bool {
    let name = name_of(path);
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let is_run = first.starts_with("#!") && first.split(['/', ' ']).any(|word| word.ends_with("sh"));
    is_run
        || [".sh", ".bash", ".zsh", ".ksh", ".bats"].iter().any(|ending| name.ends_with(ending))
        || (!name.contains('.') && !first.starts_with("#!"))
}

fn is_check(path: &str) -> bool {
    path.split(['/', '.', '_', '-']).any(|part| OF_CHECKS.contains(&part))
}

/// Returns a path from the root of the repository; none where it leads out of it.
fn normal(folder: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~', '-']) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns a glob that matches this path.
pub(super) fn escaped(path: &str) -> String {
    path.replace(['*', '?', '[', ']', '!'], "?")
}

/// Returns the commands of a JSON document's `scripts`.
fn scripts(text: &str) -> String {
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let mut lines = String::new();
    for script in document.get("scripts").and_then(Value::as_object).into_iter().flatten() {
        let one = script.1.as_str().into_iter();
        let several = script.1.as_array().into_iter().flatten().filter_map(Value::as_str);
        one.chain(several).for_each(|line| lines.extend([line, "\n"]));
    }
    lines
}

/// Returns lines without the key, the dash or the quotes before a command.
fn without_keys(text: &str) -> String {
    let is_key = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.\" ".contains(c));
    let command = |line: &str| {
        let line = line.trim().trim_start_matches("- ");
        let behind = line.split_once([':', '=']).filter(|(key, _)| is_key(key)).map_or(line, |(_, behind)| behind);
        behind.trim().trim_matches(['"', '\'', ',', '[', ']']).to_owned()
    };
    text.lines().map(command).collect::<Vec<_>>().join("\n")
}
