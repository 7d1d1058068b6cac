//! Determines what a command runs, given the possible values of its variables.

use std::collections::{BTreeMap, BTreeSet};

use super::command::{CommandTarget, ShellCommand};
use super::paths::{
    after_variable, file_name, glob_in, is_check_script, is_pattern, is_plain, is_shell, is_specific, normalize_path,
    widen_pattern,
};
use super::reached_files::{AcceptedFiles, COMMAND, CommandPlace, FileWalk, MAX_DEPTH};
use super::script::parse_commands;
use super::tools::{self, ScriptForm};
use super::variables::is_variable;

/// Most readings of one command, over the possible values of its variables.
const MAX_EXPANSIONS: usize = 64;

/// What it means that a file is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Absence {
    /// A person accepted that there is none.
    Accepted,
    /// A task may have yet to write it.
    Work,
    /// The project may have yet to build it.
    Build,
}

impl Absence {
    pub(super) const fn accepted_if(is_optional: bool) -> Self {
        if is_optional { Self::Accepted } else { Self::Work }
    }
}

/// What a command runs, relative to an unknown folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReachTarget {
    /// A script, or scripts that a pattern matches.
    File { path: String, absence: Absence },
    /// A Python module, by its name.
    Module(String),
}

impl<A: AcceptedFiles> FileWalk<'_, A> {
    /// Returns what a command runs, given the commands whose output it reads and the paths that are tested for a file,
    /// each with whether a missing file is fine.
    pub(super) fn find_targets(
        &mut self,
        place: CommandPlace<'_>,
        call: &ShellCommand<'_>,
        feeding: &[ShellCommand<'_>],
        tested: &BTreeMap<String, bool>,
    ) -> Result<Vec<ReachTarget>, A::Error> {
        let mut targets = Vec::new();
        if place.depth > MAX_DEPTH {
            return Ok(targets);
        }
        let inner = CommandPlace { depth: place.depth + 1, ..place };
        for expansion in self.expand_program(call) {
            targets.extend(expansion.python_imports().into_iter().map(ReachTarget::Module));
            let mut paths = Vec::new();
            let target = expansion.run_target();
            // The name of a compiled program has no extension.
            let is_program = matches!(target, Some(CommandTarget::Program(path)) if !is_shell(path, b"#!"));
            if let Some(words) = expansion.per_file_command() {
                let own = std::slice::from_ref(&expansion);
                let listing = if expansion.is_find() { own } else { feeding };
                let listed = listing
                    .iter()
                    .flat_map(ShellCommand::printed_paths)
                    .flat_map(|path| self.variables.expand_words(&path));
                let listed = listed.collect();
                let before = std::mem::replace(&mut self.variables.xargs_files, listed);
                let command = ShellCommand { words, ..expansion.clone() };
                targets.extend(self.find_targets(inner, &command, &[], tested)?);
                self.variables.xargs_files = before;
                continue;
            }
            match target {
                // A pattern in the place of a program is that of a `case`.
                Some(CommandTarget::Program(path)) => {
                    let is_value = !is_pattern(path) || call.words.iter().all(|word| !word.contains(path));
                    paths.extend(Some(path.to_owned()).filter(|path| is_value && is_plain(path)));
                }
                Some(CommandTarget::Script(words)) => paths.extend(self.script_paths(place, words, call)),
                Some(CommandTarget::Interpreted(words)) => {
                    let (checks, others): (Vec<_>, Vec<_>) =
                        self.script_paths(place, words, call).into_iter().partition(|path| is_check_script(path));
                    paths.extend(checks);
                    self.report_unwatched(place, call, &others)?;
                }
                Some(CommandTarget::Scripts(words)) => {
                    let words: Vec<_> =
                        words.iter().flat_map(|word| self.variables.expand_words(word)).map(widen_pattern).collect();
                    if !words.iter().any(|path| is_specific(path)) {
                        self.report_unknown(place.path, call.source);
                    }
                    for path in words.into_iter().filter(|path| is_specific(path)) {
                        // Without an extension, it is a folder.
                        paths.extend(
                            Some(format!("{}/*.bats", path.trim_end_matches('/')))
                                .filter(|_| !file_name(&path).contains('.')),
                        );
                        paths.push(path);
                    }
                }
                Some(CommandTarget::Module) => {
                    targets.extend(
                        expansion.python_modules().into_iter().map(|name| ReachTarget::Module(name.to_owned())),
                    );
                }
                Some(CommandTarget::Text(text)) if text.starts_with('$') => {
                    for value in self.variables.expand_word(text) {
                        if value == "$" {
                            self.report_unknown(place.path, call.source);
                        } else {
                            self.scan_text(inner, &value, ScriptForm::Shell)?;
                        }
                    }
                }
                Some(CommandTarget::Text(text)) => self.scan_text(inner, text, ScriptForm::Shell)?,
                Some(CommandTarget::Folder(folder)) => {
                    paths.extend(self.variables.expand_words(folder).iter().map(|folder| format!("{folder}/*")));
                }
                Some(CommandTarget::Input) => {
                    let copied: Vec<_> = feeding.iter().flat_map(ShellCommand::copied_files).collect();
                    let texts: Vec<_> = feeding.iter().filter_map(ShellCommand::printed_text).collect();
                    if !feeding.is_empty() && copied.is_empty() && texts.is_empty() {
                        self.report_unknown(place.path, call.source);
                    }
                    paths.extend(copied.into_iter().flat_map(|word| self.variables.expand_words(word)));
                    texts.iter().try_for_each(|text| self.scan_text(inner, text, ScriptForm::Shell))?;
                }
                None => paths.extend(self.find_on_path(&expansion)),
            }
            for path in paths {
                if !is_specific(&path) {
                    self.report_unknown(place.path, call.source);
                    continue;
                }
                // What a test looks for may be what a task has yet to write.
                let is_tested = normalize_path("", &path).and_then(|path| tested.get(&path));
                let is_tested =
                    is_tested.is_some_and(|is_well| *is_well || expansion.is_source() || is_check_script(&path));
                let absence = match Absence::accepted_if(is_tested || expansion.may_fail()) {
                    Absence::Work if is_program => Absence::Build,
                    absence @ (Absence::Accepted | Absence::Work | Absence::Build) => absence,
                };
                targets.push(ReachTarget::File { path, absence });
            }
        }
        Ok(targets)
    }

    /// Reaches a module that Python runs. A module installed elsewhere can be shadowed by one in the folder in which it
    /// runs.
    pub(super) fn add_module(&mut self, folder: &str, name: &str) -> Result<(), A::Error> {
        let first = name.split('.').next().unwrap_or_default();
        let path = name.replace('.', "/");
        for folder in BTreeSet::from(["", folder]) {
            let mut is_own = false;
            for path in [format!("{path}.py"), format!("{path}/__main__.py"), format!("{path}/__init__.py")] {
                let Some(path) = normalize_path(folder, &path) else { return Ok(()) };
                let is_check = is_check_script(&path);
                let exists = if is_check { self.add_file("", &path, None)? } else { self.is_unwatched_file(&path)? };
                if exists && !is_check {
                    self.report_unknown(COMMAND, &format!("python module {name}"));
                }
                is_own |= exists || self.has_file(&path)?;
            }
            for path in [format!("{first}.py"), format!("{first}/__init__.py")] {
                is_own |= normalize_path(folder, &path).map_or(Ok(false), |path| self.has_file(&path))?;
            }
            if !is_own {
                self.reached
                    .optional_globs
                    .extend(tools::module_globs(first).filter_map(|glob| glob_in(folder, &glob)));
            }
        }
        Ok(())
    }

    /// Reports a command that runs one of these files, which more often are the program than its checks.
    fn report_unwatched(
        &mut self,
        place: CommandPlace<'_>,
        call: &ShellCommand<'_>,
        paths: &[String],
    ) -> Result<(), A::Error> {
        for path in paths {
            for folder in place.folders {
                let near = normalize_path(folder, after_variable(path));
                if near.map_or(Ok(false), |path| self.is_unwatched_file(&path))? {
                    self.report_unknown(place.path, call.source);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns where a program is, if scripts look for it in folders of the repository.
    fn find_on_path(&mut self, call: &ShellCommand<'_>) -> Vec<String> {
        let Some(name) = call.bare_program() else { return Vec::new() };
        let folders: BTreeSet<String> =
            self.variables.expand_word("${PATH}").iter().flat_map(|path| path.split(':')).map(str::to_owned).collect();
        folders.iter().filter(|folder| *folder != "$").map(|folder| format!("{folder}/{name}")).collect()
    }

    /// Returns the possible readings of a command, over the values of the variables in and before its program.
    fn expand_program<'b>(&mut self, call: &ShellCommand<'b>) -> Vec<ShellCommand<'b>> {
        let mut open = vec![call.clone()];
        let mut readings = Vec::new();
        while let Some(call) = open.pop() {
            let program = call.program_position().filter(|_| open.len() + readings.len() < MAX_EXPANSIONS);
            let Some(at) = program.filter(|at| call.words[*at].contains("${") || call.words[*at].contains("$(")) else {
                readings.push(call);
                continue;
            };
            for value in self.variables.expand_word(&call.words[at]) {
                // An unknown value is not expanded again.
                let bare = |word: &String| word.replace("${", "$").replace('}', "");
                let words = |command: &ShellCommand<'_>| command.words.iter().map(bare).collect::<Vec<_>>();
                let mut commands: Vec<_> = if is_variable(&call.words[at]) {
                    parse_commands(&value).iter().map(words).collect()
                } else {
                    vec![vec![value]]
                };
                let last = commands.pop().unwrap_or_else(|| vec!["$".to_owned()]);
                let with = |words: &[String], rest: &[String]| ShellCommand {
                    words: [&call.words[..at], words, rest].concat(),
                    ..call.clone()
                };
                readings.extend(commands.iter().map(|words| with(words, &[])));
                open.push(with(&last, &call.words[at + 1..]));
            }
            if call.is_eval()
                && readings.is_empty()
                && open.iter().all(|call| call.words[at].trim_matches('$').is_empty())
            {
                readings.push(ShellCommand { words: vec![".".into(), "$".into()], ..call });
            }
        }
        readings
    }

    /// Returns the paths of the script that precedes its arguments.
    fn script_paths(&mut self, place: CommandPlace<'_>, words: &[String], call: &ShellCommand<'_>) -> Vec<String> {
        for (at, word) in words.iter().enumerate() {
            let values = self.variables.expand_words(word).into_iter().map(widen_pattern);
            let values: Vec<_> = values.filter(|value| !value.trim_matches('$').is_empty()).collect();
            // The script may follow options in the same variable.
            if !values.is_empty() && (at == 0 || values.iter().any(|value| value.contains(['/', '.']))) {
                return values;
            }
        }
        if words.first().is_some_and(|word| word != "${0}") {
            self.report_unknown(place.path, call.source);
        }
        Vec::new()
    }
}
