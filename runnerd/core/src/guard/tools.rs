//! The programs that run checks, and the files that tell them what to do.
//!
//! A table; its use is in `reach`.

use std::borrow::Cow;

use serde_json::Value;

/// A program that reads files of the repository.
#[derive(Debug)]
pub(super) struct CheckTool {
    /// Names under which it is called.
    pub names: &'static [&'static str],
    /// Files that it reads in the folder in which it runs. Some programs read only the first that exists, so that
    /// another one can take its place: see `shadows`.
    pub files: &'static [&'static str],
    /// Whether one of these files can take the place of another.
    pub shadows: bool,
    /// Globs of further files that it reads if they exist: their absence matters too.
    pub optional_globs: &'static [&'static str],
    /// Names of files that it reads in any folder; only those that exist count.
    pub nested: &'static [&'static str],
    /// Form of the commands in its files.
    pub form: ScriptForm,
}

impl CheckTool {
    /// Returns the form of the file with commands that an option names.
    pub(super) fn commands_form(&self) -> Option<ScriptForm> {
        Some(self.form).filter(|form| matches!(form, ScriptForm::Make | ScriptForm::Just))
    }
}

/// Which part of a file's text is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptForm {
    /// Nothing that can be followed.
    Data,
    /// Lines of shell.
    Shell,
    /// Recipes of just, with imports and modules.
    Just,
    /// Rules of make, with includes.
    Make,
    /// A JSON document with `scripts`.
    Scripts,
    /// Lines of shell after a key.
    Keys,
}

impl ScriptForm {
    /// Returns the commands in a file of this form, and the form of those commands.
    pub(super) fn extract_commands(self, bytes: &[u8]) -> (Cow<'_, str>, Self) {
        let text = String::from_utf8_lossy(bytes);
        match self {
            Self::Scripts => (package_scripts(&text).into(), Self::Shell),
            Self::Keys => (strip_keys(&text).into(), Self::Shell),
            Self::Data | Self::Shell | Self::Just | Self::Make => (text, self),
        }
    }
}

const NO_TOOL: CheckTool =
    CheckTool { names: &[], files: &[], shadows: false, optional_globs: &[], nested: &[], form: ScriptForm::Data };

/// All known programs.
pub(super) const TOOLS: &[CheckTool] = &[
    CheckTool {
        names: &["just"],
        files: &["justfile", "Justfile", "JUSTFILE", ".justfile"],
        shadows: true,
        form: ScriptForm::Just,
        ..NO_TOOL
    },
    CheckTool {
        names: &["make", "gmake", "MAKE"],
        files: &["GNUmakefile", "makefile", "Makefile"],
        shadows: true,
        // From these it writes its own files again, by rules that are built in.
        optional_globs: &["/*akefile.sh", "/*akefile,v", "/s.*akefile", "/RCS/*akefile,v", "/SCCS/s.*akefile"],
        form: ScriptForm::Make,
        ..NO_TOOL
    },
    CheckTool {
        names: &["task", "go-task"],
        files: &[
            "Taskfile.yml",
            "taskfile.yml",
            "Taskfile.yaml",
            "taskfile.yaml",
            "Taskfile.dist.yml",
            "Taskfile.dist.yaml",
        ],
        shadows: true,
        form: ScriptForm::Keys,
        ..NO_TOOL
    },
    CheckTool {
        names: &["npm", "pnpm", "yarn", "bun", "npx", "bunx", "lerna", "nx", "turbo"],
        files: &["package.json"],
        optional_globs: &["/.npmrc", "/.yarnrc", "/.yarnrc.yml", "/.pnpmfile.cjs", "/bunfig.toml"],
        form: ScriptForm::Scripts,
        ..NO_TOOL
    },
    CheckTool { names: &["nx", "turbo", "lerna"], files: &["nx.json", "turbo.json", "lerna.json"], ..NO_TOOL },
    CheckTool {
        names: &["composer", "phpunit", "pest"],
        files: &["composer.json"],
        form: ScriptForm::Scripts,
        ..NO_TOOL
    },
    CheckTool {
        names: &["phpunit", "pest"],
        optional_globs: &["/phpunit.xml", "/phpunit.xml.dist", "/phpunit.dist.xml"],
        ..NO_TOOL
    },
    CheckTool {
        names: &["deno"],
        files: &["deno.json", "deno.jsonc"],
        shadows: true,
        form: ScriptForm::Keys,
        ..NO_TOOL
    },
    CheckTool {
        names: &["jest"],
        files: &["package.json"],
        optional_globs: &["/jest.config.*", "/babel.config.*"],
        form: ScriptForm::Scripts,
        ..NO_TOOL
    },
    CheckTool {
        names: &["vitest"],
        optional_globs: &["/vitest.config.*", "/vitest.workspace.*", "/vite.config.*"],
        ..NO_TOOL
    },
    CheckTool {
        names: &["mocha"],
        files: &["package.json"],
        optional_globs: &["/.mocharc.*"],
        form: ScriptForm::Scripts,
        ..NO_TOOL
    },
    CheckTool {
        names: &["ava"],
        files: &["package.json"],
        optional_globs: &["/ava.config.*"],
        form: ScriptForm::Scripts,
        ..NO_TOOL
    },
    CheckTool { names: &["tap"], optional_globs: &["/.taprc"], ..NO_TOOL },
    CheckTool { names: &["karma"], optional_globs: &["/karma.conf.*"], ..NO_TOOL },
    CheckTool { names: &["playwright"], optional_globs: &["/playwright.config.*"], ..NO_TOOL },
    CheckTool { names: &["cypress"], optional_globs: &["/cypress.config.*"], ..NO_TOOL },
    CheckTool { names: &["eslint"], optional_globs: &["/eslint.config.*", "/.eslintrc*", "/.eslintignore"], ..NO_TOOL },
    CheckTool { names: &["biome"], optional_globs: &["/biome.json", "/biome.jsonc"], ..NO_TOOL },
    CheckTool { names: &["tsc", "ts-node", "tsx"], optional_globs: &["/tsconfig*.json"], ..NO_TOOL },
    CheckTool {
        names: &["pytest", "py.test"],
        files: &["pyproject.toml"],
        optional_globs: &[
            "/pytest.ini",
            "/.pytest.ini",
            "/pytest.toml",
            "/.pytest.toml",
            "/tox.ini",
            "/setup.cfg",
            "conftest.py",
            "/.coveragerc",
        ],
        ..NO_TOOL
    },
    CheckTool {
        names: &["tox"],
        files: &["tox.ini", "tox.toml", "pyproject.toml", "setup.cfg"],
        shadows: true,
        form: ScriptForm::Keys,
        ..NO_TOOL
    },
    CheckTool { names: &["nox"], files: &["noxfile.py"], form: ScriptForm::Keys, ..NO_TOOL },
    CheckTool {
        names: &["hatch", "pdm", "poe", "invoke", "inv"],
        files: &["pyproject.toml", "tasks.py", "hatch.toml"],
        form: ScriptForm::Keys,
        ..NO_TOOL
    },
    CheckTool { names: &["uv", "poetry", "pipenv"], files: &["pyproject.toml"], ..NO_TOOL },
    CheckTool { names: &["coverage"], optional_globs: &["/.coveragerc"], files: &["pyproject.toml"], ..NO_TOOL },
    CheckTool {
        names: &["ruff"],
        files: &["pyproject.toml"],
        optional_globs: &["/ruff.toml", "/.ruff.toml"],
        ..NO_TOOL
    },
    CheckTool {
        names: &["mypy"],
        files: &["pyproject.toml"],
        optional_globs: &["/mypy.ini", "/.mypy.ini", "/setup.cfg"],
        ..NO_TOOL
    },
    CheckTool { names: &["flake8"], optional_globs: &["/.flake8", "/setup.cfg", "/tox.ini"], ..NO_TOOL },
    CheckTool {
        names: &["pylint"],
        files: &["pyproject.toml"],
        optional_globs: &["/.pylintrc", "/pylintrc"],
        ..NO_TOOL
    },
    CheckTool {
        names: &["python", "python3", "pytest", "tox", "nox"],
        optional_globs: &["/sitecustomize.py", "/usercustomize.py"],
        ..NO_TOOL
    },
    CheckTool {
        names: &["pre-commit", "prek"],
        files: &[".pre-commit-config.yaml"],
        form: ScriptForm::Keys,
        ..NO_TOOL
    },
    CheckTool {
        names: &["cargo", "cross"],
        files: &["Cargo.toml"],
        optional_globs: &[
            "/.cargo/config.toml",
            "/.cargo/config",
            "/clippy.toml",
            "/.clippy.toml",
            "/rustfmt.toml",
            "/.rustfmt.toml",
            "/rust-toolchain.toml",
            "/rust-toolchain",
            "/.config/nextest.toml",
        ],
        nested: &["Cargo.toml"],
        ..NO_TOOL
    },
    CheckTool { names: &["go"], optional_globs: &["/go.work"], ..NO_TOOL },
    CheckTool { names: &["golangci-lint"], optional_globs: &["/.golangci.*"], ..NO_TOOL },
    CheckTool {
        names: &["rake"],
        files: &["Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb"],
        shadows: true,
        form: ScriptForm::Shell,
        ..NO_TOOL
    },
    CheckTool {
        names: &["rspec"],
        files: &["spec/spec_helper.rb", "spec/rails_helper.rb"],
        optional_globs: &["/.rspec"],
        ..NO_TOOL
    },
    CheckTool {
        names: &["mvn", "mvnw"],
        files: &["pom.xml"],
        optional_globs: &["/.mvn/maven.config", "/.mvn/jvm.config", "/.mvn/extensions.xml"],
        ..NO_TOOL
    },
    CheckTool {
        names: &["gradle", "gradlew"],
        files: &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
        optional_globs: &["/gradle.properties"],
        ..NO_TOOL
    },
    CheckTool {
        names: &["bazel", "bazelisk"],
        files: &["WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel"],
        optional_globs: &["/.bazelrc", "/.bazelversion", "/tools/bazel"],
        ..NO_TOOL
    },
    CheckTool { names: &["act"], optional_globs: &["/.github/workflows/*"], ..NO_TOOL },
];

/// Returns the programs that a text names, including in comments: watching a file needlessly does no harm.
pub(super) fn mentioned_tools(text: &str) -> impl Iterator<Item = &'static CheckTool> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let words: std::collections::BTreeSet<&str> =
        text.split(|c| !is_part(c)).map(|word| word.trim_matches(['.', '-'])).collect();
    TOOLS.iter().filter(move |tool| tool.names.iter().any(|name| words.contains(name)))
}

/// Returns the program with this name.
pub(super) fn find_tool(name: &str) -> Option<&'static CheckTool> {
    TOOLS.iter().find(|tool| tool.names.contains(&name))
}

/// Returns the form of a file with this name, if one of the programs reads it.
pub(super) fn script_form(name: &str) -> Option<ScriptForm> {
    TOOLS.iter().find(|tool| tool.files.contains(&name)).map(|tool| tool.form)
}

/// Python modules that run checks, each with its own modules that it imports.
const PYTHON_MODULES: &[(&str, &[&str])] = &[
    ("pytest", &["_pytest", "pluggy", "iniconfig"]),
    ("unittest", &[]),
    ("doctest", &[]),
    ("coverage", &[]),
    ("tox", &[]),
    ("nox", &[]),
    ("mypy", &[]),
    ("pyright", &[]),
    ("ruff", &[]),
    ("black", &[]),
    ("isort", &[]),
    ("flake8", &["pycodestyle", "pyflakes"]),
    ("pylint", &["astroid"]),
    ("bandit", &[]),
    ("pip", &[]),
    ("build", &[]),
    ("twine", &[]),
    ("hatch", &[]),
    ("poetry", &[]),
    ("pdm", &[]),
    ("invoke", &[]),
    ("pre_commit", &[]),
    ("compileall", &["py_compile"]),
    ("py_compile", &[]),
    ("cProfile", &[]),
    ("trace", &[]),
    ("nose2", &[]),
    ("behave", &[]),
    ("sphinx", &[]),
];

/// Returns globs of the files that would shadow a module; empty if the module belongs to no tool.
pub(super) fn module_globs(name: &str) -> impl Iterator<Item = String> {
    let tool = PYTHON_MODULES.iter().find(|(tool, _)| *tool == name);
    let names = tool.into_iter().flat_map(|(tool, inner)| [*tool].into_iter().chain(inner.iter().copied()));
    names.flat_map(|name| {
        ["py", "pyc", "*so", "__"].map(|ending| match ending {
            "__" => format!("{name}/__init__.*"),
            ending => format!("{name}.{ending}"),
        })
    })
}

/// Returns the commands in the `scripts` of a JSON document.
fn package_scripts(text: &str) -> String {
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let mut lines = String::new();
    for script in document.get("scripts").and_then(Value::as_object).into_iter().flatten() {
        let one = script.1.as_str().into_iter();
        let several = script.1.as_array().into_iter().flatten().filter_map(Value::as_str);
        one.chain(several).for_each(|line| lines.extend([line, "\n"]));
    }
    lines
}

/// Returns the lines without the key, the dash or the quotes before a command.
fn strip_keys(text: &str) -> String {
    let is_key = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.\" ".contains(c));
    let command = |line: &str| {
        let line = line.trim().trim_start_matches("- ");
        let behind = line.split_once([':', '=']).filter(|(key, _)| is_key(key)).map_or(line, |(_, behind)| behind);
        behind.trim().trim_matches(['"', '\'', ',', '[', ']']).to_owned()
    };
    text.lines().map(command).collect::<Vec<_>>().join("\n")
}
