//! What a command runs, by what its variables can be.

use std::collections::BTreeMap;

use super::command::{Command, Runs};
use super::paths::{is_check, is_pattern, is_plain, is_told, name_of, normal, spread};
use super::reach::{Accepted, MAX_DEPTH, Place, Walk};
use super::script::commands;
use super::tools::Form;
use super::variables::is_variable;

/// Most commands that one can be, by what its variables can be.
const MAX_READINGS: usize = 64;

/// What a command runs, told from a folder that is not known.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// A script, or scripts that a pattern matches.
    File { path: String, is_optional: bool },
    /// A module of Python, by its name.
    Module(String),
}

impl<A: Accepted> Walk<'_, A> {
    /// Returns what a command runs, given those from whose output it reads, and the paths that are tested for a file,
    /// each with whether all is well without it.
    pub(super) fn targets(
        &mut self,
        place: Place<'_>,
        call: &Command<'_>,
        (feeding, tested): (&[Command<'_>], &BTreeMap<String, bool>),
    ) -> Result<Vec<Target>, A::Error> {
        let mut targets = Vec::new();
        if place.depth > MAX_DEPTH {
            return Ok(targets);
        }
        let inner = Place { depth: place.depth + 1, ..place };
        for reading in self.readings(call) {
            let mut paths = Vec::new();
            if let Some(words) = reading.each() {
                let own = std::slice::from_ref(&reading);
                let listing = if reading.is_find() { own } else { feeding };
                let given = listing.iter().flat_map(Command::prints).flat_map(|path| self.variables.words(&path));
                let given = given.collect();
                let before = std::mem::replace(&mut self.variables.given, given);
                let command = Command { words, ..reading.clone() };
                targets.extend(self.targets(inner, &command, (&[], tested))?);
                self.variables.given = before;
                continue;
            }
            match reading.runs() {
                // One that stands there as a pattern is that of a `case`.
                Some(Runs::Program(path)) => {
                    let is_value = !is_pattern(path) || call.words.iter().all(|word| !word.contains(path));
                    paths.extend(Some(path.to_owned()).filter(|path| is_value && is_plain(path)));
                }
                Some(Runs::Script(words)) => paths.extend(self.script(place, words, call)),
                Some(Runs::Interpreted(words)) => {
                    paths.extend(self.script(place, words, call).into_iter().filter(|path| is_check(path)));
                }
                Some(Runs::Scripts(words)) => {
                    let words: Vec<_> = words.iter().flat_map(|word| self.variables.words(word)).map(spread).collect();
                    if !words.iter().any(|path| is_told(path)) {
                        self.unknown(place.path, call.source);
                    }
                    for path in words.into_iter().filter(|path| is_told(path)) {
                        // A folder, where it has no ending.
                        paths.extend(
                            Some(format!("{}/*.bats", path.trim_end_matches('/')))
                                .filter(|_| !name_of(&path).contains('.')),
                        );
                        paths.push(path);
                    }
                }
                Some(Runs::Module) => {
                    targets.extend(reading.modules().into_iter().map(|name| Target::Module(name.to_owned())));
                }
                Some(Runs::Text(text)) if text.starts_with('$') => {
                    for value in self.variables.values(text) {
                        if value == "$" {
                            self.unknown(place.path, call.source);
                        } else {
                            self.text(inner, &value, Form::Shell)?;
                        }
                    }
                }
                Some(Runs::Text(text)) => self.text(inner, text, Form::Shell)?,
                Some(Runs::Folder(folder)) => {
                    paths.extend(self.variables.words(folder).iter().map(|folder| format!("{folder}/*")));
                }
                Some(Runs::Input) => {
                    let copied: Vec<_> = feeding.iter().flat_map(Command::copies).collect();
                    let said: Vec<_> = feeding.iter().filter_map(Command::says).collect();
                    if !feeding.is_empty() && copied.is_empty() && said.is_empty() {
                        self.unknown(place.path, call.source);
                    }
                    paths.extend(copied.into_iter().flat_map(|word| self.variables.words(word)));
                    said.iter().try_for_each(|text| self.text(inner, text, Form::Shell))?;
                }
                None => {}
            }
            for path in paths {
                if !is_told(&path) {
                    self.unknown(place.path, call.source);
                    continue;
                }
                // What a test must find can be what a task is to write.
                let is_tested = normal("", &path).and_then(|path| tested.get(&path));
                let is_tested = is_tested.is_some_and(|is_well| *is_well || reading.is_source() || is_check(&path));
                targets.push(Target::File { is_optional: is_tested || reading.may_fail(), path });
            }
        }
        Ok(targets)
    }

    /// Returns what a command can be, by what the variables can be in which its program stands.
    fn readings<'b>(&mut self, call: &Command<'b>) -> Vec<Command<'b>> {
        let (mut open, mut readings) = (vec![call.clone()], Vec::new());
        while let Some(call) = open.pop() {
            let program = call.program().filter(|_| open.len() + readings.len() < MAX_READINGS);
            let Some(at) = program.filter(|at| call.words[*at].contains("${") || call.words[*at].contains("$(")) else {
                readings.push(call);
                continue;
            };
            for value in self.variables.values(&call.words[at]) {
                // What is not known is no variable again.
                let bare = |word: &String| word.replace("${", "$").replace('}', "");
                let words = |command: &Command<'_>| command.words.iter().map(bare).collect::<Vec<_>>();
                let mut commands: Vec<_> = if is_variable(&call.words[at]) {
                    commands(&value).iter().map(words).collect()
                } else {
                    vec![vec![value]]
                };
                let last = commands.pop().unwrap_or_else(|| vec!["$".to_owned()]);
                let with = |words: &[String], rest: &[String]| Command {
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
                readings.push(Command { words: vec![".".into(), "$".into()], ..call });
            }
        }
        readings
    }

    /// Returns the paths of the script that stands before its arguments.
    fn script(&mut self, place: Place<'_>, words: &[String], call: &Command<'_>) -> Vec<String> {
        for (at, word) in words.iter().enumerate() {
            let values = self.variables.words(word).into_iter().map(spread);
            let values: Vec<_> = values.filter(|value| !value.trim_matches('$').is_empty()).collect();
            // Behind options in a variable.
            if !values.is_empty() && (at == 0 || values.iter().any(|value| value.contains(['/', '.']))) {
                return values;
            }
        }
        if words.first().is_some_and(|word| word != "${0}") {
            self.unknown(place.path, call.source);
        }
        Vec::new()
    }
}
