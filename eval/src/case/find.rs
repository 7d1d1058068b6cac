//! Finds case files in a folder of cases or by path. Each file is read once; the files next to it are hashed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::parse::{is_id, parse};
use super::position::find_nearest;
use super::{Case, CheckRule};
use crate::digest::InputDigest;
use crate::error::EvalError;

const MAX_CASE_BYTES: u64 = 1 << 20;

/// Folders of cases and results.
#[derive(Debug, Clone)]
pub(crate) struct EvalDirs {
    /// The folder of cases, if there is one.
    pub(crate) cases: Option<PathBuf>,
    pub(crate) results: PathBuf,
}

impl EvalDirs {
    /// Uses the given folders; defaults to `eval/cases` here or in a parent folder, and `results` next to it.
    pub(crate) fn find(cases: Option<PathBuf>, results: Option<PathBuf>) -> Result<Self, EvalError> {
        let current_dir =
            std::env::current_dir().map_err(|error| EvalError::new("finding this directory").caused_by(&error))?;
        let cases = match cases.map(|folder_path| current_dir.join(folder_path)) {
            Some(folder_path) if !folder_path.is_dir() => {
                return Err(EvalError::usage(format!("there is no directory of cases {}", folder_path.display())));
            }
            Some(folder_path) => Some(folder_path),
            None => current_dir.ancestors().map(|folder| folder.join("eval/cases")).find(|folder| folder.is_dir()),
        };
        let sibling = cases.as_deref().and_then(Path::parent).map(|folder| folder.join("results"));
        let results = results
            .map(|folder_path| current_dir.join(folder_path))
            .or(sibling)
            .unwrap_or_else(|| current_dir.join("eval-results"));
        Ok(Self { cases, results })
    }

    /// Returns every case of the folder by name, or why it cannot be used.
    pub(crate) fn load_all(&self) -> Result<BTreeMap<String, Result<Case, EvalError>>, EvalError> {
        let folder = self.cases_dir()?;
        let read_error = |error| EvalError::file("reading the directory of cases", folder, &error);
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).map_err(read_error)? {
            let path = entry.map_err(read_error)?.path();
            let is_case = path.extension().is_some_and(|extension| extension == "toml") && path.is_file();
            if let (true, Some(name)) = (is_case, path.file_stem().and_then(|name| name.to_str())) {
                found.insert(name.to_owned(), load_named(&path, name));
            }
        }
        Ok(found)
    }

    /// Returns the case with a name or at a path.
    pub(crate) fn load_one(&self, name_or_path: &str) -> Result<Case, EvalError> {
        if name_or_path.contains('/')
            || Path::new(name_or_path).extension().is_some_and(|extension| extension == "toml")
        {
            return load_case(Path::new(name_or_path));
        }
        let path = self.cases_dir()?.join(format!("{name_or_path}.toml"));
        if is_id(name_or_path) && path.is_file() {
            return load_named(&path, name_or_path);
        }
        let all = self.load_all()?;
        let suggestion = suggest_word(name_or_path, all.keys());
        let message = format!("there is no case `{name_or_path}` in {}{suggestion}", self.cases_dir()?.display());
        Err(EvalError::usage(message).hint("runner-eval list"))
    }

    fn cases_dir(&self) -> Result<&Path, EvalError> {
        let missing =
            || EvalError::usage("there is no directory eval/cases here or above").hint("runner-eval --cases DIR list");
        self.cases.as_deref().ok_or_else(missing)
    }
}

/// Returns a "did you mean" suffix if a known word is similar.
pub(crate) fn suggest_word<'a>(input: &str, known: impl IntoIterator<Item = &'a String>) -> String {
    let suggestion = find_nearest(input, known.into_iter().map(String::as_str));
    suggestion.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
}

/// Loads a case; the case's id must equal its file name.
fn load_named(path: &Path, name: &str) -> Result<Case, EvalError> {
    let case = load_case(path)?;
    if case.id == name {
        return Ok(case);
    }
    Err(EvalError::usage(format!("{}: its id is `{}`, and its name is not", path.display(), case.id)).hint(format!(
        "mv {} {}",
        path.display(),
        path.with_file_name(format!("{}.toml", case.id)).display()
    )))
}

fn load_case(path: &Path) -> Result<Case, EvalError> {
    let read_error = |error: &std::io::Error| EvalError::file("reading the case", path, error);
    let size = fs::metadata(path).map_err(|error| read_error(&error))?.len();
    if size > MAX_CASE_BYTES {
        return Err(EvalError::usage(format!(
            "{}: a case has at most 1 MiB, this one has {size} bytes",
            path.display()
        )));
    }
    let text = fs::read_to_string(path).map_err(|error| read_error(&error))?;
    let mut case = parse(&text, path)?;
    let mut digest = InputDigest::new();
    digest.add("case", text.as_bytes());
    if let Some(template) = &case.template {
        digest.add_folder(template)?;
    }
    for check in &case.checks {
        if let CheckRule::CommandSucceeds { overlay: Some(overlay), .. } = &check.rule {
            digest.add_folder(overlay)?;
        }
    }
    case.digest = digest.finish();
    Ok(case)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs_at(folder: &Path) -> EvalDirs {
        EvalDirs { cases: Some(folder.to_owned()), results: folder.join("results") }
    }

    fn write(folder: &Path, name: &str, id: &str) {
        fs::write(folder.join(name), format!("[case]\nid = \"{id}\"\ngoal = \"g\"\n")).expect("writes");
    }

    #[test]
    fn a_name_that_is_wrong_is_told_with_the_one_that_was_meant() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "calculator.toml", "calculator");
        let error = dirs_at(folder.path()).load_one("calculater").expect_err("is refused").to_string();
        assert!(error.contains("did you mean `calculator`?"), "{error}");
        assert!(dirs_at(folder.path()).load_one("calculator").is_ok());
    }

    #[test]
    fn a_file_is_called_as_its_case() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "a.toml", "b");
        assert!(dirs_at(folder.path()).load_one("a").is_err());
        let by_path = folder.path().join("a.toml").display().to_string();
        assert_eq!(dirs_at(folder.path()).load_one(&by_path).expect("a path is enough").id, "b");
    }

    #[test]
    fn a_digest_changes_with_the_template() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("seed")).expect("a folder");
        fs::write(folder.path().join("a.toml"), "[case]\nid = \"a\"\ngoal = \"g\"\ntemplate = \"seed\"\n")
            .expect("writes");
        let first = dirs_at(folder.path()).load_one("a").expect("loads").digest;
        fs::write(folder.path().join("seed/x"), "x").expect("writes");
        let second = dirs_at(folder.path()).load_one("a").expect("loads").digest;
        assert_ne!(first, second);
    }
}
