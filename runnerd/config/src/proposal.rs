//! Suggests `[workspace]` settings for known kinds of projects, from the names at the root of a work tree. Pure: no
//! folder is listed here, and nothing is set.

/// A kind of project, known by its lock file.
struct ProjectKind {
    lock: &'static str,
    /// The folder of its dependencies, if a copy of it works in another place.
    folder: Option<&'static str>,
    /// The command that installs its dependencies, exactly as in the lock file.
    setup: &'static [&'static str],
}

const PROJECT_KINDS: &[ProjectKind] = &[
    ProjectKind { lock: "package-lock.json", folder: Some("node_modules"), setup: &["npm", "ci"] },
    ProjectKind { lock: "pnpm-lock.yaml", folder: None, setup: &["pnpm", "install", "--frozen-lockfile"] },
    ProjectKind { lock: "yarn.lock", folder: Some("node_modules"), setup: &["yarn", "install", "--frozen-lockfile"] },
    ProjectKind { lock: "bun.lock", folder: Some("node_modules"), setup: &["bun", "install", "--frozen-lockfile"] },
    ProjectKind { lock: "composer.lock", folder: Some("vendor"), setup: &["composer", "install"] },
    // A virtual environment contains the path of its own folder.
    ProjectKind { lock: "uv.lock", folder: None, setup: &["uv", "sync", "--frozen"] },
    ProjectKind { lock: "poetry.lock", folder: None, setup: &["poetry", "install"] },
    ProjectKind { lock: "Pipfile.lock", folder: None, setup: &["pipenv", "sync"] },
    ProjectKind { lock: "Gemfile.lock", folder: None, setup: &["bundle", "install"] },
];
/// Settings files that are usually not committed.
const ENV_FILES: [&str; 3] = [".env", ".env.local", ".envrc"];

/// Suggested settings, and what they are based on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetupProposal {
    /// The names at the root that they are based on.
    pub detected: Vec<&'static str>,
    /// For `workspace.copy`.
    pub copy: Vec<&'static str>,
    /// For `workspace.setup`: a single program's command, for the first kind that needs one.
    pub setup: Vec<&'static str>,
}

impl SetupProposal {
    /// Returns suggestions for these names at the root of a work tree; `None` if none is known.
    pub fn detect(names: &[String]) -> Option<Self> {
        let has = |name: &str| names.iter().any(|found| found == name);
        let mut proposal = Self::default();
        for setting in ENV_FILES.into_iter().filter(|name| has(name)) {
            proposal.detected.push(setting);
            proposal.copy.push(setting);
        }
        for kind in PROJECT_KINDS.iter().filter(|kind| has(kind.lock)) {
            proposal.detected.push(kind.lock);
            match kind.folder.filter(|folder| has(folder)) {
                Some(folder) if !proposal.copy.contains(&folder) => proposal.copy.push(folder),
                Some(_) => {}
                None if proposal.setup.is_empty() => proposal.setup = kind.setup.to_vec(),
                None => {}
            }
        }
        (!proposal.detected.is_empty()).then_some(proposal)
    }

    /// Returns the lines of `[workspace]` as in the file.
    pub fn config_lines(&self) -> Vec<String> {
        let keys = [("copy", &self.copy), ("setup", &self.setup)];
        keys.into_iter()
            .filter(|(_, words)| !words.is_empty())
            .map(|(key, words)| format!("{key} = {words:?}"))
            .collect()
    }
}

/// Adds a suggestion to the default file, as comments.
pub(super) fn append_proposal(text: &str, proposal: &SetupProposal) -> String {
    let header = "[workspace]\n";
    let lines: String = proposal.config_lines().iter().flat_map(|line| ["#   ", line, "\n"]).collect();
    let added = format!("{header}\n# Perhaps, as there is {} here:\n{lines}", proposal.detected.join(" and "));
    text.replacen(header, &added, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        SetupProposal::detect(&names).map_or_else(Vec::new, |proposal| proposal.config_lines())
    }

    #[test]
    fn what_is_there_is_copied_and_what_is_not_is_fetched() {
        assert_eq!(lines(&["package-lock.json", "node_modules", ".env"]), [r#"copy = [".env", "node_modules"]"#]);
        assert_eq!(lines(&["package-lock.json"]), [r#"setup = ["npm", "ci"]"#]);
        assert_eq!(lines(&["uv.lock", ".venv"]), [r#"setup = ["uv", "sync", "--frozen"]"#]);
        assert!(lines(&["README.md", "node_modules"]).is_empty());
    }

    #[test]
    fn what_is_proposed_can_be_set_and_changes_nothing_as_a_comment() {
        let names = ["yarn.lock", "composer.lock", "vendor", ".env"].map(str::to_owned);
        let proposal = SetupProposal::detect(&names).unwrap();
        let text = super::super::default_text_with(Some(&proposal));
        let read = |text: &str| super::super::parse(text, std::path::Path::new("config.toml")).unwrap();
        assert!(text.contains("#   copy = [\".env\", \"vendor\"]\n"), "{text}");
        assert_eq!(read(&text), read(""));
        let set = read(&format!("[workspace]\n{}\n", proposal.config_lines().join("\n")));
        assert_eq!(set.workspace.copy.as_slice(), [".env", "vendor"]);
        assert_eq!(set.workspace.setup, ["yarn", "install", "--frozen-lockfile"]);
    }
}
