//! An input of the prompt trials: a node to work on, the existing files, what a previous session has left, and the
//! expected decision.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::role::{Decision, LabRole};
use crate::case::SourceText;
use crate::error::EvalError;

/// Path of the runner's task tree.
const TREE_PATH: &str = ".runner/state/tree.json";

/// An input.
#[derive(Debug, Clone)]
pub(super) struct PromptInput {
    /// Name of the input's file.
    pub(super) name: String,
    /// Text of the input's file.
    pub(super) text: String,
    pub(super) goal: String,
    pub(super) acceptance: Vec<String>,
    /// The guard command; if empty, the guard always passes.
    pub(super) guard: Vec<String>,
    pub(super) expect: Option<Decision>,
    pub(super) files: BTreeMap<String, String>,
    pub(super) prior_work: PriorWork,
}

/// What a previous session has left.
#[derive(Debug, Clone)]
pub(super) enum PriorWork {
    /// There was no previous session.
    Nothing,
    /// Files of work that the session claims is done.
    Work(BTreeMap<String, String>),
    /// An invalid task tree.
    Tree(String),
}

impl PriorWork {
    fn fits_role(&self, role: LabRole) -> bool {
        match self {
            Self::Nothing => matches!(role, LabRole::Planner | LabRole::Worker),
            Self::Work(_) => role == LabRole::Reviewer,
            Self::Tree(_) => role == LabRole::Repair,
        }
    }

    /// Returns the files that the previous session left, by path.
    pub(super) fn files(&self) -> BTreeMap<&str, &str> {
        match self {
            Self::Nothing => BTreeMap::new(),
            Self::Work(files) => files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect(),
            Self::Tree(text) => BTreeMap::from([(TREE_PATH, text.as_str())]),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputForm {
    goal: String,
    #[serde(default)]
    acceptance: Vec<String>,
    #[serde(default)]
    guard: Vec<String>,
    expect: Option<Spanned<Decision>>,
    tree: Option<Spanned<String>>,
    #[serde(default)]
    files: BTreeMap<Spanned<String>, String>,
    work: Option<BTreeMap<Spanned<String>, String>>,
}

impl PromptInput {
    /// Reads every input of a folder that fits a role, by name.
    pub(super) fn load_all(folder: &Path, role: LabRole) -> Result<Vec<Self>, EvalError> {
        let read_error = |error| EvalError::file("reading the directory", folder, &error);
        let mut inputs = Vec::new();
        for entry in fs::read_dir(folder).map_err(read_error)? {
            let path = entry.map_err(read_error)?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                inputs.push(Self::read(&path)?);
            }
        }
        inputs.retain(|input| input.prior_work.fits_role(role));
        if inputs.is_empty() {
            let what = match role {
                LabRole::Planner | LabRole::Worker => "has neither `[work]` nor `tree`",
                LabRole::Reviewer => "has `[work]`, what is to be reviewed",
                LabRole::Repair => "has `tree`, what is to be repaired",
            };
            let message =
                format!("there are no inputs for {} in {}: such an input {what}", role.as_str(), folder.display());
            return Err(EvalError::usage(message));
        }
        inputs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(inputs)
    }

    fn read(path: &Path) -> Result<Self, EvalError> {
        let text = fs::read_to_string(path).map_err(|error| EvalError::file("reading the input", path, &error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::parse(name, text, path)
    }

    fn parse(name: String, text: String, path: &Path) -> Result<Self, EvalError> {
        let source = SourceText { text: &text, file: path };
        let form: InputForm = toml::from_str(&text).map_err(|error| source.toml_error(&error))?;
        let prior_work = match (form.work, form.tree) {
            (None, None) => PriorWork::Nothing,
            (Some(work), None) => PriorWork::Work(check_paths(source, work)?),
            (None, Some(tree)) => PriorWork::Tree(tree.into_inner()),
            (Some(_), Some(tree)) => {
                let why = "`tree` is for a repair and `[work]` for a reviewer: an input has one of them";
                return Err(source.error_at(tree.span(), why));
            }
        };
        let is_review = matches!(prior_work, PriorWork::Work(_));
        if let Some(expect) = form.expect.as_ref().filter(|expect| expect.get_ref().is_review_verdict() != is_review) {
            let known = if is_review { "`accept` or `reject`" } else { "`done`, `retry` or `decomposed`" };
            let why = format!("`{}` is never decided here, but {known}", expect.get_ref().as_str());
            return Err(source.error_at(expect.span(), why));
        }
        let files = check_paths(source, form.files)?;
        let InputForm { goal, acceptance, guard, .. } = form;
        Ok(Self {
            name,
            goal,
            acceptance,
            guard,
            expect: form.expect.map(Spanned::into_inner),
            files,
            prior_work,
            text,
        })
    }
}

/// Accepts files whose paths stay inside the repository.
fn check_paths(
    source: SourceText<'_>,
    files: BTreeMap<Spanned<String>, String>,
) -> Result<BTreeMap<String, String>, EvalError> {
    let checked = |(path, text): (Spanned<String>, String)| {
        source.check_path(path.get_ref(), path.span())?;
        Ok((path.into_inner(), text))
    };
    files.into_iter().map(checked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Result<PromptInput, String> {
        let text = format!("goal = \"g\"\n{rest}");
        PromptInput::parse("a".into(), text, Path::new("a.toml")).map_err(|fault| fault.to_string())
    }

    #[test]
    fn an_input_is_for_the_roles_that_begin_with_what_it_has() {
        let roles = [LabRole::Planner, LabRole::Worker, LabRole::Repair, LabRole::Reviewer];
        let fits = |rest: &str| {
            let input = parse(rest).expect("parses");
            roles.into_iter().filter(|role| input.prior_work.fits_role(*role)).collect::<Vec<_>>()
        };
        assert_eq!(fits("[files]\na = \"\"\n"), [LabRole::Planner, LabRole::Worker]);
        assert_eq!(fits("[work]\na = \"\"\n"), [LabRole::Reviewer]);
        assert_eq!(fits("tree = \"{\"\n"), [LabRole::Repair]);
    }

    #[test]
    fn a_decision_that_the_role_does_not_make_is_refused_with_its_place() {
        let error = parse("expect = \"reject\"\n").expect_err("is refused");
        assert_eq!(error, "a.toml:2:10: `reject` is never decided here, but `done`, `retry` or `decomposed`");
        let error = parse("expect = \"done\"\n[work]\n").expect_err("is refused");
        assert_eq!(error, "a.toml:2:10: `done` is never decided here, but `accept` or `reject`");
        let error = parse("tree = \"\"\n[work]\n").expect_err("is refused");
        assert!(error.starts_with("a.toml:2:8: `tree` is for a repair"), "{error}");
    }

    #[test]
    fn work_stays_inside_of_the_repository() {
        let error = parse("[work]\n\"../a\" = \"\"\n").expect_err("is refused");
        assert!(error.starts_with("a.toml:3:1: the path `../a`"), "{error}");
    }
}
