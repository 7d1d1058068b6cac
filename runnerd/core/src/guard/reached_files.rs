//! Finds the files that the guard's command reaches: those it names, those read by the programs it calls, and so on
//! from file to file.
//!
//! Missing files are not reached: a script that a task has yet to write is work, not a check yet. What a program reads
//! in addition to its own files is named by a glob, because the absence of such a file is part of what was accepted.

use std::collections::{BTreeMap, BTreeSet};

use super::command::{ShellCommand, pipeline_input};
use super::make_targets::find_unprotected_targets;
use super::paths::{
    after_variable, escape_glob, file_name, glob_in, is_check_script, is_generated, is_pattern, is_plain, is_shell,
    normalize_path, widen_pattern,
};
use super::script::parse_commands;
use super::targets::{Absence, ReachTarget};
use super::tools::{self, CheckTool, ScriptForm};
use super::variables::VariableTable;

/// Most files that are followed.
const MAX_FILES: usize = 200;
/// Most paths that are looked up: a text can name any number.
const MAX_LOOKUPS: usize = 20_000;
/// Most globs that are expanded.
const MAX_GLOBS: usize = 200;
/// Largest file that is followed, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// How deep nested commands are followed.
pub(super) const MAX_DEPTH: u8 = 8;
/// How often all files are read again, for variables that another file assigns.
const MAX_ROUNDS: usize = 3;
/// Most links to folders on the way to one file.
const MAX_LINKS: usize = 8;
/// Most unknown commands that are reported, and most characters of each.
const MAX_UNKNOWN: usize = 10;
const MAX_SHOWN: usize = 80;
/// Name of the guard's command where messages expect a file name.
pub(super) const COMMAND: &str = "guard.command";
/// Options whose value is a file or a folder that a program reads.
const FILE_OPTIONS: [&str; 8] =
    ["--config", "--config-file", "--rcfile", "--justfile", "--makefile", "--file", "--manifest-path", "--rootdir"];
const FOLDER_OPTIONS: [&str; 5] = ["--directory", "--working-directory", "--prefix", "--cwd", "--dir"];
/// The repository's files as a person has accepted them.
pub(super) trait AcceptedFiles {
    /// Why a file cannot be read.
    type Error;

    /// Returns the file at a path, or `None` if there is none.
    fn read_file(&mut self, path: &str) -> Result<Option<AcceptedFile>, Self::Error>;

    /// Returns the submodule that a path is in, if it is in one.
    fn submodule_above(&mut self, path: &str) -> Result<Option<String>, Self::Error>;

    /// Returns the paths of all files with this name, in any folder.
    fn find_named(&mut self, name: &str) -> Result<Vec<String>, Self::Error>;

    /// Returns the paths of all files that the glob matches.
    fn find_matching(&mut self, glob: &str) -> Result<Vec<String>, Self::Error>;
}

/// A file as it was accepted.
#[derive(Debug)]
pub(super) enum AcceptedFile {
    /// A regular file, with its content.
    Content(Vec<u8>),
    /// A symbolic link, with its target.
    Link(String),
}

/// What the guard's command reaches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReachedFiles {
    /// Files that exist.
    pub files: BTreeSet<String>,
    /// Globs of files that would be read if they existed, or that are in a submodule, of which no commit has files.
    pub optional_globs: BTreeSet<String>,
    /// Files that would be read if they existed, and that a task may have yet to write. Git may ignore one that is there.
    pub missing: BTreeSet<String>,
    /// Commands that run something that cannot be determined, each with the file that contains it.
    pub unknown: BTreeSet<String>,
}

/// Follows a command from file to file.
pub(super) fn find_reached_files<A: AcceptedFiles>(
    command: &[String],
    files: &mut A,
) -> Result<ReachedFiles, A::Error> {
    let mut walk = FileWalk {
        files,
        reached: ReachedFiles::default(),
        texts: Vec::new(),
        variables: VariableTable::default(),
        matched: BTreeMap::new(),
        named: BTreeSet::new(),
        links: BTreeMap::new(),
        lookups: 0,
    };
    for _ in 0..MAX_ROUNDS {
        let count = walk.variables.len();
        walk.variables.reset_lookups();
        walk.reached.unknown.clear();
        walk.lookups = 0;
        walk.add_command(command)?;
        walk.follow_files()?;
        if walk.variables.len() == count {
            break;
        }
    }
    if walk.variables.is_exhausted() {
        walk.report_unknown(COMMAND, "it leads to too many variables");
    }
    Ok(walk.reached)
}

/// A walk from file to file.
#[derive(Debug)]
pub(super) struct FileWalk<'a, A> {
    files: &'a mut A,
    pub reached: ReachedFiles,
    /// The files to follow.
    texts: Vec<(String, Vec<u8>, ScriptForm)>,
    pub variables: VariableTable,
    /// The files matched by each glob that was expanded.
    matched: BTreeMap<String, Vec<String>>,
    /// The names that were looked up in all folders.
    named: BTreeSet<&'static str>,
    /// The targets of folders that are links; `None` for any other folder.
    links: BTreeMap<String, Option<String>>,
    /// Number of paths looked up.
    lookups: usize,
}

/// Where a command is written, and where it runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandPlace<'a> {
    /// The file that contains it.
    pub path: &'a str,
    /// The folders in which it may run.
    pub folders: &'a BTreeSet<String>,
    /// How deep it is nested in other commands.
    pub depth: u8,
}

impl<A: AcceptedFiles> FileWalk<'_, A> {
    fn add_command(&mut self, command: &[String]) -> Result<(), A::Error> {
        let folders = BTreeSet::from([String::new()]);
        let place = CommandPlace { path: COMMAND, folders: &folders, depth: 0 };
        for word in command {
            // Any file it names is watched, whatever the file is.
            let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
            self.add_file("", value, None)?;
            if word.contains(char::is_whitespace) {
                self.scan_text(place, word, ScriptForm::Shell)?;
            }
        }
        let text = command.join(" ");
        self.variables.read_assignments(&text, ScriptForm::Shell);
        let call = ShellCommand::new(command.to_vec(), &text);
        self.scan_commands(place, &[call], &text)
    }

    fn follow_files(&mut self) -> Result<(), A::Error> {
        let mut at = 0;
        while let Some((path, bytes, form)) = self.texts.get_mut(at) {
            let path = path.clone();
            let bytes = std::mem::take(bytes);
            let folders = BTreeSet::from([path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()]);
            let (text, form) = form.extract_commands(&bytes);
            self.scan_text(CommandPlace { path: &path, folders: &folders, depth: 0 }, &text, form)?;
            self.texts[at].1 = bytes;
            at += 1;
        }
        Ok(())
    }

    /// Follows a text that contains commands.
    pub(super) fn scan_text(&mut self, place: CommandPlace<'_>, text: &str, form: ScriptForm) -> Result<(), A::Error> {
        if form == ScriptForm::Data || place.depth > MAX_DEPTH || self.lookups > MAX_LOOKUPS {
            return Ok(());
        }
        self.variables.read_assignments(text, form);
        if matches!(form, ScriptForm::Make | ScriptForm::Just) {
            for line in text.replace("\\\n", " ").lines() {
                place.folders.iter().try_for_each(|folder| self.add_includes(folder, line, form))?;
            }
        }
        if form == ScriptForm::Make {
            for target in find_unprotected_targets(text) {
                place.folders.iter().try_for_each(|folder| self.add_absent(folder, &target))?;
            }
        }
        self.scan_commands(place, &parse_commands(text), text)
    }

    /// Reaches what the commands of a text run, the files that their options name, and what the programs it names read.
    fn scan_commands(
        &mut self,
        place: CommandPlace<'_>,
        calls: &[ShellCommand<'_>],
        text: &str,
    ) -> Result<(), A::Error> {
        let mut folders = place.folders.clone();
        let mut tested = BTreeMap::new();
        for call in calls {
            folders.extend(self.run_folders(call)?);
            let (words, is_well) = call.tested_files();
            for word in words {
                for path in self.variables.expand_words(word).iter().filter_map(|path| normalize_path("", path)) {
                    *tested.entry(path).or_default() |= is_well;
                }
            }
        }
        let place = CommandPlace { folders: &folders, ..place };
        let mut targets = BTreeSet::new();
        for (at, call) in calls.iter().enumerate() {
            self.add_option_files(&folders, call)?;
            if call.sets_exit_code {
                targets.extend(self.find_targets(place, call, pipeline_input(calls, at), &tested)?);
            }
        }
        for (folder, target) in folders.iter().flat_map(|folder| targets.iter().map(move |target| (folder, target))) {
            if self.lookups > MAX_LOOKUPS {
                break;
            }
            self.add_target(folder, target)?;
        }
        self.scan_tools(&folders, text)
    }

    /// Returns the folders in which a command runs programs; if a variable names the folder, only those that contain
    /// files.
    fn run_folders(&mut self, call: &ShellCommand<'_>) -> Result<Vec<String>, A::Error> {
        let mut folders = Vec::new();
        for (at, word) in call.words.iter().enumerate() {
            let (option, value) = word.split_once('=').unwrap_or((word, ""));
            if !FOLDER_OPTIONS.contains(&option) && !matches!(word.as_str(), "-C" | "-d" | "cd" | "pushd") {
                continue;
            }
            let next = call.words.get(at + 1).map_or("", String::as_str);
            let value = if value.is_empty() { next } else { value };
            for path in self.variables.expand_word(value) {
                let Some(path) = normalize_path("", after_variable(&path)).filter(|path| !path.contains('$')) else {
                    continue;
                };
                let glob = format!("/{}/**", escape_glob(&path));
                if !value.contains('$') || path.is_empty() || is_plain(&path) && !self.match_glob(&glob)?.is_empty() {
                    folders.push(path);
                }
            }
        }
        Ok(folders)
    }

    /// Returns the files that a glob matches; an empty list once too many globs have been expanded.
    fn match_glob(&mut self, glob: &str) -> Result<Vec<String>, A::Error> {
        if let Some(paths) = self.matched.get(glob) {
            return Ok(paths.clone());
        }
        if self.matched.len() >= MAX_GLOBS {
            self.report_unknown(COMMAND, "it leads to too many patterns");
            return Ok(Vec::new());
        }
        let paths = self.files.find_matching(glob)?;
        self.matched.insert(glob.to_owned(), paths.clone());
        Ok(paths)
    }

    /// Reaches what the programs named in a text read, in every folder in which they may run.
    fn scan_tools(&mut self, folders: &BTreeSet<String>, text: &str) -> Result<(), A::Error> {
        for tool in tools::mentioned_tools(text) {
            for folder in BTreeSet::from([String::new()]).union(folders) {
                self.add_tool(folder, tool)?;
            }
            for name in tool.nested.iter().filter(|name| !self.named.contains(*name)).collect::<Vec<_>>() {
                self.named.insert(name);
                for path in self.files.find_named(name)? {
                    self.add_file("", &path, Some(tool.form))?;
                }
            }
        }
        Ok(())
    }

    fn add_tool(&mut self, folder: &str, tool: &CheckTool) -> Result<(), A::Error> {
        let rooted = |name: &str| match (folder, name.strip_prefix('/')) {
            ("", _) | (_, None) => name.to_owned(),
            (folder, Some(name)) => format!("/{}/{name}", escape_glob(folder)),
        };
        let mut exists = false;
        for name in tool.files {
            exists |= self.add_file(folder, name, Some(tool.form))?;
        }
        if tool.shadows && exists {
            self.reached.optional_globs.extend(tool.files.iter().map(|name| rooted(&format!("/{name}"))));
        }
        self.reached.optional_globs.extend(tool.optional_globs.iter().map(|glob| rooted(glob)));
        Ok(())
    }

    /// Reaches the files that the options of a command name.
    fn add_option_files(&mut self, folders: &BTreeSet<String>, call: &ShellCommand<'_>) -> Result<(), A::Error> {
        if call.names_package() {
            for path in self.files.find_named("package.json")? {
                self.add_file("", &path, Some(ScriptForm::Scripts))?;
            }
        }
        for (at, word) in call.words.iter().enumerate() {
            let (option, value) = word.split_once('=').unwrap_or((word, ""));
            let tool = || call.words[..at].iter().find_map(|word| tools::find_tool(file_name(word)));
            // `test`, `rm` and the program under test give these options another meaning.
            let is_file = FILE_OPTIONS.contains(&option) || matches!(word.as_str(), "-f" | "-c");
            let Some(tool) = is_file.then(tool).flatten() else { continue };
            let value = if value.is_empty() { call.words.get(at + 1).map_or("", String::as_str) } else { value };
            for value in self.variables.expand_word(value) {
                let form = tools::script_form(file_name(&value)).or(tool.commands_form());
                let pattern = widen_pattern(value);
                folders.iter().try_for_each(|folder| self.add_path(folder, &pattern, form, Absence::Work))?;
            }
        }
        Ok(())
    }

    /// Watches that there is nothing at a path, if there is nothing now.
    fn add_absent(&mut self, folder: &str, name: &str) -> Result<(), A::Error> {
        let Some(path) = normalize_path(folder, name) else { return Ok(()) };
        let globs = [format!("/{}", escape_glob(&path)), format!("/{}/**", escape_glob(&path))];
        if !self.has_file(&path)? && self.match_glob(&globs[1])?.is_empty() {
            self.reached.optional_globs.extend(globs);
        }
        Ok(())
    }

    fn add_target(&mut self, folder: &str, target: &ReachTarget) -> Result<(), A::Error> {
        match target {
            ReachTarget::File { path, absence } => self.add_path(folder, path, None, *absence),
            ReachTarget::Module(name) => self.add_module(folder, name),
        }
    }

    pub(super) fn has_file(&mut self, path: &str) -> Result<bool, A::Error> {
        self.lookups += 1;
        let path = self.resolve_links(path.to_owned())?.filter(|_| self.lookups <= MAX_LOOKUPS);
        Ok(path.map_or(Ok(None), |path| self.files.read_file(&path))?.is_some())
    }

    /// Returns the path of a file without the links to folders on the way to it, which are reached too; `None` if they
    /// lead outside the repository, or in a circle.
    fn resolve_links(&mut self, mut path: String) -> Result<Option<String>, A::Error> {
        let mut links = 0;
        let mut begin = 0;
        while let Some(at) = path[begin..].find('/').map(|at| begin + at) {
            let folder = path[..at].to_owned();
            let target = match self.links.get(&folder) {
                Some(target) => target.clone(),
                None => match self.files.read_file(&folder)? {
                    Some(AcceptedFile::Link(target)) => Some(target),
                    Some(AcceptedFile::Content(_)) | None => None,
                },
            };
            self.links.insert(folder.clone(), target.clone());
            begin = at + 1;
            if let Some(target) = target {
                links += 1;
                let parent = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
                let resolved =
                    normalize_path(parent, &format!("{target}/{}", &path[begin..])).filter(|_| links < MAX_LINKS);
                self.reached.files.insert(folder);
                let Some(resolved) = resolved else { return Ok(None) };
                path = resolved;
                begin = 0;
            }
        }
        Ok(Some(path))
    }

    /// Whether there is a file that nothing has reached so far.
    pub(super) fn is_unwatched_file(&mut self, path: &str) -> Result<bool, A::Error> {
        Ok(!self.reached.files.contains(path) && self.has_file(path)?)
    }

    /// Reaches a file, or the files of a pattern.
    pub(super) fn add_path(
        &mut self,
        folder: &str,
        path: &str,
        form: Option<ScriptForm>,
        absence: Absence,
    ) -> Result<(), A::Error> {
        let path = after_variable(path);
        if is_pattern(path) && is_plain(path) {
            return self.add_pattern(folder, path, form);
        }
        if self.add_near(folder, path, form)? || !is_plain(path) || path.contains('$') || is_generated(path) {
            return Ok(());
        }
        let paths = BTreeSet::from(["", folder]).into_iter().filter_map(|folder| normalize_path(folder, path));
        for path in paths.filter(|path| !path.is_empty()) {
            match absence {
                Absence::Accepted => drop(self.reached.optional_globs.insert(format!("/{}", escape_glob(&path)))),
                Absence::Work if self.reached.missing.len() < MAX_FILES => drop(self.reached.missing.insert(path)),
                Absence::Work => self.report_unknown(COMMAND, "it leads to too many missing files"),
                Absence::Build => {}
            }
        }
        Ok(())
    }

    /// Reaches the files that a pattern matches, relative to a folder or to the root, whichever of the two matches.
    fn add_pattern(&mut self, folder: &str, pattern: &str, form: Option<ScriptForm>) -> Result<(), A::Error> {
        let mut globs = BTreeSet::new();
        for glob in BTreeSet::from(["", folder]).into_iter().filter_map(|folder| glob_in(folder, pattern)) {
            globs.extend(self.resolve_links(glob[1..].to_owned())?.map(|glob| format!("/{glob}")));
        }
        let mut matching = BTreeSet::new();
        for glob in &globs {
            self.lookups += 1;
            let paths = self.match_glob(glob)?;
            matching.extend(Some(glob.clone()).filter(|_| !paths.is_empty()));
            paths.iter().try_for_each(|path| self.add_file("", path, form).map(drop))?;
        }
        let globs = if matching.is_empty() { globs } else { matching };
        self.reached.optional_globs.extend(globs.into_iter().filter(|glob| !is_generated(glob)));
        Ok(())
    }

    /// Reaches a file whose path is relative to a folder or to the root, and returns whether one exists. A variable in
    /// front of the path stands for one of the two.
    fn add_near(&mut self, folder: &str, path: &str, form: Option<ScriptForm>) -> Result<bool, A::Error> {
        let mut exists = false;
        for folder in BTreeSet::from(["", folder]) {
            exists |= self.add_file(folder, after_variable(path), form)?;
        }
        Ok(exists)
    }

    /// Reaches a file if it exists; an unknown form is detected by the name or the first line.
    pub(super) fn add_file(&mut self, folder: &str, path: &str, form: Option<ScriptForm>) -> Result<bool, A::Error> {
        let Some(path) = normalize_path(folder, path).filter(|path| !path.is_empty()) else { return Ok(false) };
        let Some(path) = self.resolve_links(path)? else { return Ok(false) };
        if self.reached.files.contains(&path) {
            return Ok(true);
        }
        self.lookups += 1;
        if self.lookups > MAX_LOOKUPS {
            self.report_unknown(COMMAND, "it leads to too many paths");
            return Ok(false);
        }
        let Some(file) = self.files.read_file(&path)? else {
            if let Some(submodule) = self.files.submodule_above(&path)? {
                self.reached.optional_globs.insert(format!("/{}", escape_glob(&path)));
                self.report_unknown(COMMAND, &format!("more of submodule {submodule}"));
            }
            return Ok(false);
        };
        if self.reached.files.len() >= MAX_FILES {
            self.report_unknown(COMMAND, "it leads to too many files");
            return Ok(true);
        }
        self.reached.files.insert(path.clone());
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        // Another module next to a check can shadow what the check imports.
        if file_name(&path).rsplit('.').next() == Some("py") && is_check_script(folder) {
            let folder = escape_glob(folder);
            let modules = ["*.py", "*.pyc", "*.so", "*/__init__.py"].map(|module| format!("/{folder}/{module}"));
            self.reached.optional_globs.extend(modules);
        }
        match file {
            AcceptedFile::Link(target) => drop(self.add_file(folder, &target, form)?),
            AcceptedFile::Content(bytes) => {
                let form = form.or_else(|| tools::script_form(file_name(&path)));
                let form =
                    form.unwrap_or_else(|| if is_shell(&path, &bytes) { ScriptForm::Shell } else { ScriptForm::Data });
                if bytes.len() <= MAX_BYTES {
                    self.texts.push((path, bytes, form));
                } else if form != ScriptForm::Data {
                    self.report_unknown(&path, "it has more than a mebibyte");
                }
            }
        }
        Ok(true)
    }

    /// Records that a file runs something that cannot be determined.
    pub(super) fn report_unknown(&mut self, path: &str, what: &str) {
        let words: Vec<&str> = what.split_whitespace().collect();
        let command = words.join(" ").trim_start_matches(['@', '-']).chars().take(MAX_SHOWN).collect::<String>();
        let unknown = &mut self.reached.unknown;
        let more = "guard.command: it leads to more of these";
        let what = if unknown.len() < MAX_UNKNOWN { format!("{path}: {command}") } else { more.to_owned() };
        unknown.insert(what);
    }
}
