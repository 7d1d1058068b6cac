//! The programs that checks are run by, and the files that say what they do.
//!
//! A table; how it is used is `reach`'s.

use std::borrow::Cow;

use serde_json::Value;

/// A program that reads files of the repository.
#[derive(Debug)]
pub(super) struct Tool {
    /// By which names it is called.
    pub names: &'static [&'static str],
    /// What it reads in the folder in which it runs. The first that is there counts for some, so that another one beside
    /// it can take its place: see `shadows`.
    pub files: &'static [&'static str],
    /// Whether one of these files can take the place of another.
    pub shadows: bool,
    /// What it reads beside them where it is there, as globs: that it is not there says something too.
    pub beside: &'static [&'static str],
    /// Names of files that it reads in any folder, and of which those that are there count.
    pub nested: &'static [&'static str],
    /// What stands in its files.
    pub form: Form,
}

/// What of a file's text is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Nothing that is looked for.
    Data,
    /// Lines of shell.
    Shell,
    /// Recipes of just, with imports and modules.
    Just,
    /// Rules of make, with includes.
    Make,
    /// A JSON document with `scripts`.
    Scripts,
    /// Lines of shell behind a key.
    Keys,
}

impl Form {
    /// Returns the commands of a file of this form, and the form that they have.
    pub(super) fn commands(self, bytes: &[u8]) -> (Cow<'_, str>, Self) {
        let text = String::from_utf8_lossy(bytes);
        match self {
            Self::Scripts => (scripts(&text).into(), Self::Shell),
            Self::Keys => (without_keys(&text).into(), Self::Shell),
            Self::Data | Self::Shell | Self::Just | Self::Make => (text, self),
        }
    }
}

const NONE: Tool = Tool { names: &[], files: &[], shadows: false, beside: &[], nested: &[], form: Form::Data };

/// All that are known.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        names: &["just"],
        files: &["justfile", "Justfile", "JUSTFILE", ".justfile"],
        shadows: true,
        form: Form::Just,
        ..NONE
    },
    Tool {
        names: &["make", "gmake", "MAKE"],
        files: &["GNUmakefile", "makefile", "Makefile"],
        shadows: true,
        form: Form::Make,
        ..NONE
    },
    Tool {
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
        form: Form::Keys,
        ..NONE
    },
    Tool {
        names: &["npm", "pnpm", "yarn", "bun", "npx", "bunx", "lerna", "nx", "turbo"],
        files: &["package.json"],
        beside: &["/.npmrc", "/.yarnrc", "/.yarnrc.yml", "/.pnpmfile.cjs", "/bunfig.toml"],
        form: Form::Scripts,
        ..NONE
    },
    Tool { names: &["nx", "turbo", "lerna"], files: &["nx.json", "turbo.json", "lerna.json"], ..NONE },
    Tool { names: &["composer", "phpunit", "pest"], files: &["composer.json"], form: Form::Scripts, ..NONE },
    Tool { names: &["phpunit", "pest"], beside: &["/phpunit.xml", "/phpunit.xml.dist", "/phpunit.dist.xml"], ..NONE },
    Tool { names: &["deno"], files: &["deno.json", "deno.jsonc"], shadows: true, form: Form::Keys, ..NONE },
    Tool {
        names: &["jest"],
        files: &["package.json"],
        beside: &["/jest.config.*", "/babel.config.*"],
        form: Form::Scripts,
        ..NONE
    },
    Tool { names: &["vitest"], beside: &["/vitest.config.*", "/vitest.workspace.*", "/vite.config.*"], ..NONE },
    Tool { names: &["mocha"], files: &["package.json"], beside: &["/.mocharc.*"], form: Form::Scripts, ..NONE },
    Tool { names: &["ava"], files: &["package.json"], beside: &["/ava.config.*"], form: Form::Scripts, ..NONE },
    Tool { names: &["tap"], beside: &["/.taprc"], ..NONE },
    Tool { names: &["karma"], beside: &["/karma.conf.*"], ..NONE },
    Tool { names: &["playwright"], beside: &["/playwright.config.*"], ..NONE },
    Tool { names: &["cypress"], beside: &["/cypress.config.*"], ..NONE },
    Tool { names: &["eslint"], beside: &["/eslint.config.*", "/.eslintrc*", "/.eslintignore"], ..NONE },
    Tool { names: &["biome"], beside: &["/biome.json", "/biome.jsonc"], ..NONE },
    Tool { names: &["tsc", "ts-node", "tsx"], beside: &["/tsconfig*.json"], ..NONE },
    Tool {
        names: &["pytest", "py.test"],
        files: &["pyproject.toml"],
        beside: &[
            "/pytest.ini",
            "/.pytest.ini",
            "/pytest.toml",
            "/.pytest.toml",
            "/tox.ini",
            "/setup.cfg",
            "conftest.py",
            "/.coveragerc",
        ],
        ..NONE
    },
    Tool {
        names: &["tox"],
        files: &["tox.ini", "tox.toml", "pyproject.toml", "setup.cfg"],
        shadows: true,
        form: Form::Keys,
        ..NONE
    },
    Tool { names: &["nox"], files: &["noxfile.py"], form: Form::Keys, ..NONE },
    Tool {
        names: &["hatch", "pdm", "poe", "invoke", "inv"],
        files: &["pyproject.toml", "tasks.py", "hatch.toml"],
        form: Form::Keys,
        ..NONE
    },
    Tool { names: &["uv", "poetry", "pipenv"], files: &["pyproject.toml"], ..NONE },
    Tool { names: &["coverage"], beside: &["/.coveragerc"], files: &["pyproject.toml"], ..NONE },
    Tool { names: &["ruff"], files: &["pyproject.toml"], beside: &["/ruff.toml", "/.ruff.toml"], ..NONE },
    Tool { names: &["mypy"], files: &["pyproject.toml"], beside: &["/mypy.ini", "/.mypy.ini", "/setup.cfg"], ..NONE },
    Tool { names: &["flake8"], beside: &["/.flake8", "/setup.cfg", "/tox.ini"], ..NONE },
    Tool { names: &["pylint"], files: &["pyproject.toml"], beside: &["/.pylintrc", "/pylintrc"], ..NONE },
    Tool {
        names: &["python", "python3", "pytest", "tox", "nox"],
        beside: &["/sitecustomize.py", "/usercustomize.py"],
        ..NONE
    },
    Tool { names: &["pre-commit", "prek"], files: &[".pre-commit-config.yaml"], form: Form::Keys, ..NONE },
    Tool {
        names: &["cargo", "cross"],
        files: &["Cargo.toml"],
        beside: &[
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
        ..NONE
    },
    Tool { names: &["go"], beside: &["/go.work"], ..NONE },
    Tool { names: &["golangci-lint"], beside: &["/.golangci.*"], ..NONE },
    Tool {
        names: &["rake"],
        files: &["Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb"],
        shadows: true,
        form: Form::Shell,
        ..NONE
    },
    Tool { names: &["rspec"], files: &["spec/spec_helper.rb", "spec/rails_helper.rb"], beside: &["/.rspec"], ..NONE },
    Tool {
        names: &["mvn", "mvnw"],
        files: &["pom.xml"],
        beside: &["/.mvn/maven.config", "/.mvn/jvm.config", "/.mvn/extensions.xml"],
        ..NONE
    },
    Tool {
        names: &["gradle", "gradlew"],
        files: &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
        beside: &["/gradle.properties"],
        ..NONE
    },
    Tool {
        names: &["bazel", "bazelisk"],
        files: &["WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel"],
        beside: &["/.bazelrc", "/.bazelversion", "/tools/bazel"],
        ..NONE
    },
    Tool { names: &["act"], beside: &["/.github/workflows/*"], ..NONE },
];

/// Returns those that a text names, comments and all: a file that is watched for nothing harms nobody.
pub(super) fn named(text: &str) -> impl Iterator<Item = &'static Tool> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let words: std::collections::BTreeSet<&str> =
        text.split(|c| !is_part(c)).map(|word| word.trim_matches(['.', '-'])).collect();
    TOOLS.iter().filter(move |tool| tool.names.iter().any(|name| words.contains(name)))
}

/// Tells whether a program is one of them.
pub(super) fn is_tool(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.names.contains(&name))
}

/// Returns what is run in a file of this name, where one of the programs reads it.
pub(super) fn form_of(name: &str) -> Option<Form> {
    TOOLS.iter().find(|tool| tool.files.contains(&name)).map(|tool| tool.form)
}

/// Modules of Python that checks are run by, each with those of its own that it imports.
const MODULES: &[(&str, &[&str])] = &[
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

/// Returns globs of the files that would take the place of a module; none where it is no tool's.
pub(super) fn module_globs(name: &str) -> impl Iterator<Item = String> {
    let tool = MODULES.iter().find(|(tool, _)| *tool == name);
    let names = tool.into_iter().flat_map(|(tool, inner)| [*tool].into_iter().chain(inner.iter().copied()));
    names.flat_map(|name| {
        ["py", "pyc", "*so", "__"].map(|ending| match ending {
            "__" => format!("{name}/__init__.*"),
            ending => format!("{name}.{ending}"),
        })
    })
}

/// Returns the commands of a JSON document's `scripts`.
fn scripts(text: &str) -> String {
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let mut lines = String::new();
    for script in document.get("scripts").and_then(Value::as_object).into_iter().flatten() {
        let one = script.1.as_str().into_iter();
        let several = script.1.as_array().into_iter().flatten().filter_map(Value::as_str);
        one.chain(several).for_each(|line| lines.extend([line, "\n"]));
    }
    lines
}

/// Returns lines without the key, the dash or the quotes before a command.
fn without_keys(text: &str) -> String {
    let is_key = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.\" ".contains(c));
    let command = |line: &str| {
        let line = line.trim().trim_start_matches("- ");
        let behind = line.split_once([':', '=']).filter(|(key, _)| is_key(key)).map_or(line, |(_, behind)| behind);
        behind.trim().trim_matches(['"', '\'', ',', '[', ']']).to_owned()
    };
    text.lines().map(command).collect::<Vec<_>>().join("\n")
}
