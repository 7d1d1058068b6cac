//! An input of the prompt lab: a node to work on, the files that are there, and what is expected to be decided.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use protocol::answer::AnswerStatus;
use serde::Deserialize;

use crate::case::refuse_toml;
use crate::fault::Fault;

/// An input.
#[derive(Debug, Clone)]
pub(super) struct Input {
    /// Name of its file.
    pub(super) name: String,
    /// Its file as it is.
    pub(super) text: String,
    pub(super) goal: String,
    pub(super) expect: Option<AnswerStatus>,
    pub(super) files: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    goal: String,
    expect: Option<AnswerStatus>,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

impl Input {
    /// Reads every input of a folder, by name.
    pub(super) fn all(folder: &Path) -> Result<Vec<Self>, Fault> {
        let failed = |error| Fault::file("reading the folder", folder, &error);
        let mut inputs = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                inputs.push(Self::read(&path)?);
            }
        }
        if inputs.is_empty() {
            return Err(Fault::usage(format!("there are no inputs in {}", folder.display())));
        }
        inputs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(inputs)
    }

    fn read(path: &Path) -> Result<Self, Fault> {
        let text = fs::read_to_string(path).map_err(|error| Fault::file("reading the input", path, &error))?;
        let Form { goal, expect, files } = toml::from_str(&text).map_err(|error| refuse_toml(&text, path, &error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, text, goal, expect, files })
    }
}
