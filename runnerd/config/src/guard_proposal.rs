//! Suggests `guard.command` for known kinds of projects, from files at the root of a work tree. Pure: files are read by
//! the caller, and nothing is set.

/// A suggested guard, and what it is based on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardSuggestion {
    /// The command.
    pub command: Vec<String>,
    /// The file, and what in it led to the command.
    pub reason: String,
}

/// Names that `just` reads its recipes from.
const JUSTFILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];
/// Names that `make` reads its targets from.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// The test script that `npm init` writes, which always fails.
const NPM_PLACEHOLDER: &str = "no test specified";
/// Package managers other than npm, each with its lock file and its command for the script `test`.
const PACKAGE_MANAGERS: [(&str, &str, &[&str]); 3] = [
    ("pnpm", "pnpm-lock.yaml", &["pnpm", "test"]),
    ("yarn", "yarn.lock", &["yarn", "test"]),
    ("bun", "bun.lock", &["bun", "run", "test"]),
];
/// Files, and what in them is the configuration of pytest or tox; an empty text stands for the file itself.
const PYTHON_CONFIGS: [(&str, &str, &str); 6] = [
    ("pytest.ini", "", "pytest"),
    ("pyproject.toml", "[tool.pytest", "pytest"),
    ("setup.cfg", "[tool:pytest]", "pytest"),
    ("tox.ini", "[pytest]", "pytest"),
    ("tox.ini", "[testenv", "tox"),
    ("pyproject.toml", "[tool.tox", "tox"),
];

impl GuardSuggestion {
    /// Returns the suggestion for a work tree whose files `read` returns; `None` if no kind of project is known.
    pub fn detect(read: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let has_rule = |names: &[&'static str], rule: &str| {
            names
                .iter()
                .copied()
                .find(|name| read(name).is_some_and(|text| text.lines().any(|line| begins_rule(line, rule))))
        };
        if let Some(file) = has_rule(&JUSTFILES, "ci") {
            return Some(Self::new(&["just", "ci"], format!("{file} has the recipe `ci`")));
        }
        if read("Cargo.toml").is_some() {
            return Some(Self::new(&["cargo", "test"], "Cargo.toml".into()));
        }
        if let Some(text) = read("package.json").filter(|text| has_test_script(text)) {
            let named = package_manager(&text);
            let manager = PACKAGE_MANAGERS.iter().find(|(name, lock, _)| match &named {
                Some(named) => named == name,
                None => read(lock).is_some(),
            });
            let command = manager.map_or(&["npm", "test"][..], |(_, _, command)| *command);
            let named = named.map(|named| format!(" and the package manager {named}")).unwrap_or_default();
            return Some(Self::new(command, format!("package.json has the script `test`{named}")));
        }
        for (file, section, program) in PYTHON_CONFIGS {
            if read(file).is_some_and(|text| text.contains(section)) {
                return Some(Self::new(&[program], format!("{file} configures {program}")));
            }
        }
        if read("go.mod").is_some() {
            return Some(Self::new(&["go", "test", "./..."], "go.mod".into()));
        }
        ["check", "test"].into_iter().find_map(|target| {
            let file = has_rule(&MAKEFILES, target)?;
            Some(Self::new(&["make", target], format!("{file} has the target `{target}`")))
        })
    }

    fn new(command: &[&str], reason: String) -> Self {
        Self { command: command.iter().map(|word| (*word).to_owned()).collect(), reason }
    }
}

/// Whether a line begins a recipe of `just` or a target of `make` with this name.
fn begins_rule(line: &str, name: &str) -> bool {
    let line = line.strip_prefix('@').unwrap_or(line);
    let Some(rest) = line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '\t', ':'])) else { return false };
    rest.split_once(':').is_some_and(|(_, after)| !after.starts_with('='))
}

/// Returns the package manager that a `package.json` names, without its version.
fn package_manager(text: &str) -> Option<String> {
    let package: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(package["packageManager"].as_str()?.split('@').next().unwrap_or_default().to_owned())
}

fn has_test_script(text: &str) -> bool {
    let package: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    package["scripts"]["test"].as_str().is_some_and(|script| !script.is_empty() && !script.contains(NPM_PLACEHOLDER))
}

/// Returns the first commands that a workflow of a CI service runs, at most `limit`.
pub fn workflow_commands(text: &str, limit: usize) -> Vec<String> {
    let mut commands = Vec::new();
    // The column of the key whose block follows: the lines of that are commands.
    let mut block = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words = line.trim();
        let line = line.trim_end();
        if block.is_some_and(|column| line.len() - words.len() > column) {
            commands.extend((!words.starts_with('#')).then(|| words.to_owned()));
            continue;
        }
        let key = words.trim_start_matches("- ");
        let command = key.strip_prefix("run:").map(str::trim);
        block = command.filter(|command| command.starts_with(['|', '>'])).map(|_| line.len() - key.len());
        commands.extend(command.filter(|command| block.is_none() && !command.is_empty()).map(str::to_owned));
    }
    commands.truncate(limit);
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(files: &[(&str, &str)]) -> String {
        let read = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned());
        GuardSuggestion::detect(read)
            .map_or_else(String::new, |found| format!("{}: {}", found.command.join(" "), found.reason))
    }

    #[test]
    fn a_guard_is_suggested_from_what_a_project_has() {
        let cargo = ("Cargo.toml", "[package]");
        let package = ("package.json", r#"{"scripts": {"test": "vitest"}}"#);
        let managed =
            ("package.json", r#"{"scripts": {"test": "vitest"}, "packageManager": "yarn@4.5.0+sha224.953c"}"#);
        let found = [
            detect(&[("justfile", "set shell\n\nci: lint\n  cargo test\n"), cargo]),
            detect(&[("justfile", "cite:\nci := 'x'\n"), cargo]),
            detect(&[package]),
            detect(&[package, ("pnpm-lock.yaml", "")]),
            detect(&[managed, ("pnpm-lock.yaml", "")]),
            detect(&[("package.json", r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#)]),
            detect(&[("pyproject.toml", "[tool.pytest.ini_options]\n")]),
            detect(&[("pyproject.toml", "[project]\n"), ("tox.ini", "[testenv]\n")]),
            detect(&[("go.mod", "module x\n")]),
            detect(&[("Makefile", "all:\ntest: all\n\tsh t.sh\n")]),
            detect(&[("Makefile", "test:\ncheck: test\n")]),
            detect(&[("README.md", "")]),
        ];
        insta::assert_snapshot!(found.join("\n"), @r"
        just ci: justfile has the recipe `ci`
        cargo test: Cargo.toml
        npm test: package.json has the script `test`
        pnpm test: package.json has the script `test`
        yarn test: package.json has the script `test` and the package manager yarn

        pytest: pyproject.toml configures pytest
        tox: tox.ini configures tox
        go test ./...: go.mod
        make test: Makefile has the target `test`
        make check: Makefile has the target `check`
        ");
    }

    #[test]
    fn commands_of_a_workflow_are_those_on_one_line_and_those_of_a_block() {
        let text = "jobs:\n  a:\n    steps:\n      - uses: x\n      - run: cargo test\n      - run: |\n          # a\n          b\n\n            c\n        shell: sh\n      - name: d\n        run: make\n";
        assert_eq!(workflow_commands(text, 5), ["cargo test", "b", "c", "make"]);
        assert_eq!(workflow_commands(text, 1), ["cargo test"]);
    }
}
