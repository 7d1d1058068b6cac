//! Reaches the files that makefiles and justfiles include.

use super::reached_files::{AcceptedFiles, FileWalk};
use super::script::parse_commands;
use super::targets::Absence;
use super::tools::ScriptForm;

impl<A: AcceptedFiles> FileWalk<'_, A> {
    /// Reaches what a line of a file includes.
    pub(super) fn add_includes(&mut self, folder: &str, line: &str, form: ScriptForm) -> Result<(), A::Error> {
        let first = line.split_whitespace().next().unwrap_or_default();
        let words = || parse_commands(line).into_iter().map(|call| call.words).find(|words| words[0] == first);
        match (form, first) {
            (ScriptForm::Make, "include" | "-include" | "sinclude") => {
                for word in words().iter().flatten().skip(1) {
                    let is_optional = first != "include" || word.starts_with("$(wildcard");
                    let absence = |path: &str| Absence::accepted_if(is_optional && !path.contains('$'));
                    for path in self.variables.expand_words(word) {
                        self.add_path(folder, &path, Some(ScriptForm::Make), absence(&path))?;
                        // By a rule that is built in, make writes the file again from this one.
                        self.add_path(folder, &format!("{path}.sh"), None, Absence::Accepted)?;
                    }
                }
                Ok(())
            }
            (ScriptForm::Just, "import" | "import?") => {
                let path = words().and_then(|words| words.get(1).cloned()).unwrap_or_default();
                self.add_path(folder, &path, Some(ScriptForm::Just), Absence::accepted_if(first == "import?"))
            }
            (ScriptForm::Just, "mod" | "mod?") => {
                let words = words().unwrap_or_default();
                let name = words.get(1).map_or("", String::as_str);
                let inner = ["mod.just", "justfile", "Justfile", ".justfile"].map(|file| format!("{name}/{file}"));
                let paths = match words.get(2) {
                    Some(path) => vec![path.clone()],
                    None => inner.into_iter().chain([format!("{name}.just")]).collect(),
                };
                let absence = Absence::accepted_if(first == "mod?");
                paths.iter().try_for_each(|path| self.add_path(folder, path, Some(ScriptForm::Just), absence))
            }
            _ => Ok(()),
        }
    }
}
