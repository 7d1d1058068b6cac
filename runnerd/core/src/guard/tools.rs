//! The programs that checks are run by, and the files that say what they do.
//!
//! A table; how it is used is `reach`'s.

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
