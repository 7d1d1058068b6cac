//! The files watched for the guard: determined by its command, and read only from accepted files.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use runner_core::guard::definition::GuardDefinition;
use runner_core::guard::watched_files::{CommitFiles, WatchConfig, WatchQuery, WatchedFiles, find_watched};

/// The files of a commit: the content of a file says what it is.
#[derive(Clone, Default)]
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    fn with(&self, path: &str, text: &str) -> Self {
        let mut tree = self.clone();
        tree.0.insert(path.to_owned(), text.to_owned());
        tree
    }
}

impl CommitFiles for Tree {
    type Error = Infallible;

    fn form_at(&mut self, path: &str) -> Result<Option<String>, Infallible> {
        Ok(self.0.get(path).cloned())
    }

    fn all_forms(&mut self) -> Result<GuardDefinition, Infallible> {
        Ok(self.0.clone())
    }

    fn is_submodule(&mut self, path: &str) -> Result<bool, Infallible> {
        Ok(path == "lib")
    }

    fn read_content(&mut self, form: &str) -> Result<Vec<u8>, Infallible> {
        Ok(form.rsplit("120000:").next().unwrap_or(form).into())
    }
}

/// The subset of globs needed here: relative to the root, or a name in any folder; `*` within a folder, and `**/`.
pub(crate) fn matches(globs: &[String], path: &str) -> bool {
    let is_match = |glob: &str| match glob.strip_prefix('/') {
        Some(rooted) => is_like(rooted, path),
        None => path.rsplit('/').next() == Some(glob),
    };
    let verdict = |glob: &String| match glob.strip_prefix('!') {
        Some(glob) => is_match(glob).then_some(false),
        None => is_match(glob).then_some(true),
    };
    globs.iter().rev().find_map(verdict).unwrap_or(false)
}

fn is_like(glob: &str, path: &str) -> bool {
    if let Some(rest) = glob.strip_prefix("**/") {
        return is_like(rest, path) || path.split_once('/').is_some_and(|(_, inner)| is_like(glob, inner));
    }
    match (glob.chars().next(), path.chars().next()) {
        (Some('*'), next) => {
            is_like(&glob[1..], path) || next.is_some_and(|c| c != '/' && is_like(glob, &path[c.len_utf8()..]))
        }
        (Some('?'), Some(c)) if c != '/' => is_like(&glob[1..], &path[c.len_utf8()..]),
        (Some(a), Some(b)) => a == b && is_like(&glob[a.len_utf8()..], &path[b.len_utf8()..]),
        (None, None) => true,
        _ => false,
    }
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// What a run that begins with these files watches.
pub(crate) fn begun(command: &[String], configured: &[String], tree: &Tree) -> WatchedFiles {
    let kept = GuardDefinition::new();
    let configured = Some(configured).filter(|globs| !globs.is_empty());
    let now = WatchConfig { command, configured, accepted: &kept };
    let query = WatchQuery { now, before: None, changed: &BTreeSet::new(), matches };
    let Ok(watched) = find_watched(&query, &mut tree.clone());
    watched
}

/// What is watched after people have changed these paths, with an unchanged configuration.
fn later(command: &[String], kept: &GuardDefinition, (tree, changed): (&Tree, &[&str])) -> WatchedFiles {
    let set = WatchConfig { command, configured: None, accepted: kept };
    let changed = changed.iter().map(|path| (*path).to_owned()).collect();
    let query = WatchQuery { now: set, before: Some(set), changed: &changed, matches };
    let Ok(watched) = find_watched(&query, &mut tree.clone());
    watched
}

pub(crate) fn paths(watched: &WatchedFiles) -> Vec<&str> {
    watched.accepted.keys().map(String::as_str).collect()
}

#[test]
fn what_a_command_names_and_what_that_calls_is_watched() {
    for (command, files, expected) in [
        ("sh check.sh", vec![("check.sh", "test -f hello.txt"), ("hello.sh", "")], vec!["check.sh"]),
        (
            "./check.sh --all",
            vec![("check.sh", "#!/bin/sh\n. ci/lib.sh\n"), ("ci/lib.sh", "")],
            vec!["check.sh", "ci/lib.sh"],
        ),
        ("python3 tests/all.py", vec![("tests/all.py", "import app"), ("app.py", "")], vec!["tests/all.py"]),
        (
            "just ci",
            vec![
                ("justfile", "import 'ci.just'\nci: lint\n"),
                ("ci.just", "lint:\n  ./scripts/lint\n"),
                ("scripts/lint", "#!/bin/bash\nmake -C native test"),
                ("native/Makefile", "test:\n\ttrue"),
                ("Makefile", ""),
            ],
            vec!["Makefile", "ci.just", "justfile", "native/Makefile", "scripts/lint"],
        ),
        (
            "make test",
            vec![("Makefile", "include mk/a.mk\ntest:\n\t@sh t/run.sh\n"), ("mk/a.mk", ""), ("t/run.sh", "")],
            vec!["Makefile", "mk/a.mk", "t/run.sh"],
        ),
        (
            "npm test",
            vec![
                ("package.json", r#"{"scripts": {"test": "jest --config ci/jest.json && bash ci/more.sh"}}"#),
                ("ci/jest.json", "{}"),
                ("ci/more.sh", ""),
                ("jest.config.js", ""),
            ],
            vec!["ci/jest.json", "ci/more.sh", "jest.config.js", "package.json"],
        ),
        (
            "uv run pytest -q",
            vec![("pyproject.toml", ""), ("conftest.py", ""), ("tests/conftest.py", ""), ("tests/test_a.py", "")],
            vec!["conftest.py", "pyproject.toml", "tests/conftest.py"],
        ),
        (
            "tox",
            vec![("tox.ini", "[testenv]\ncommands =\n    pytest\n    sh tools/lint.sh\n"), ("tools/lint.sh", "")],
            vec!["tools/lint.sh", "tox.ini"],
        ),
        (
            "cargo test --workspace",
            vec![("Cargo.toml", ""), ("a/Cargo.toml", ""), ("a/src/lib.rs", ""), (".cargo/config.toml", "")],
            vec![".cargo/config.toml", "Cargo.toml", "a/Cargo.toml"],
        ),
        ("bash -lc make\tall", vec![("GNUmakefile", "")], vec!["GNUmakefile"]),
        ("sh -c cd\tsub;make", vec![("sub/Makefile", "")], vec!["sub/Makefile"]),
        ("sh check.sh", vec![("check.sh", "make -f ci/all.mk test"), ("ci/all.mk", "")], vec!["check.sh", "ci/all.mk"]),
        ("sh check.sh", vec![("check.sh", "cd sub && ./t.sh"), ("sub/t.sh", "")], vec!["check.sh", "sub/t.sh"]),
        ("sh check.sh", vec![("check.sh", "120000:real.sh"), ("real.sh", "")], vec!["check.sh", "real.sh"]),
    ] {
        let command: Vec<String> = words(command).into_iter().map(|word| word.replace('\t', " ")).collect();
        assert_eq!(paths(&begun(&command, &[], &Tree::of(&files))), expected, "{command:?}");
    }
}

#[test]
fn what_is_checked_is_not_watched() {
    for (command, files, expected) in [
        (
            "sh check.sh",
            vec![
                ("check.sh", "test -f a.txt && rm -f b.txt && grep -f c.txt a.txt && ./app --config c.txt"),
                ("a.txt", ""),
                ("b.txt", ""),
                ("c.txt", ""),
            ],
            vec!["check.sh"],
        ),
        (
            "sh check.sh",
            vec![("check.sh", "test \"$(python3 app.py)\" = hi\n./app.sh | grep hi"), ("app.py", ""), ("app.sh", "")],
            vec!["check.sh"],
        ),
    ] {
        assert_eq!(paths(&begun(&words(command), &[], &Tree::of(&files))), expected, "{command:?}");
    }
}

#[test]
fn files_of_a_submodule_that_the_guard_reads_are_watched_as_they_stand() {
    let tree = Tree::of(&[("check.sh", "sh lib/check.sh; make -C lib; sh other/check.sh")]);
    let watched = begun(&words("sh check.sh"), &[], &tree);
    assert_eq!(watched.unknown, ["guard.command: more of submodule lib"]);
    assert_eq!(watched.accepted.keys().collect::<Vec<_>>(), ["check.sh"], "no commit has the others");
    for path in ["lib/check.sh", "lib/Makefile", "lib/GNUmakefile"] {
        assert!(matches(&watched.globs, path), "{path}: {:?}", watched.globs);
    }
    assert!(!matches(&watched.globs, "lib/src.c"));
    let direct = begun(&words("sh lib/check.sh"), &[], &tree);
    assert!(!direct.is_blind && matches(&direct.globs, "lib/check.sh"));
}

#[test]
fn a_guard_that_reads_nothing_that_is_known_is_blind_and_one_from_elsewhere_is_not() {
    for (command, is_blind) in [("sh check.sh", true), ("true", true), ("/opt/ci/run", false), ("/usr/bin/make", true)]
    {
        assert_eq!(begun(&words(command), &[], &Tree::default()).is_blind, is_blind, "{command}");
    }
    let tree = Tree::of(&[("check.sh", "")]);
    assert!(!begun(&words("sh check.sh"), &[], &tree).is_blind);
}

#[test]
fn what_a_session_has_made_is_neither_followed_nor_accepted() {
    let command = words("sh check.sh");
    let base = Tree::of(&[("check.sh", "sh work.sh; pytest")]);
    let kept = begun(&command, &[], &base).accepted;
    assert_eq!(kept.keys().collect::<Vec<_>>(), ["check.sh"], "a file that is yet to be written is not a check");
    let worked = base.with("work.sh", "x").with("check.sh", "true").with("conftest.py", "exit").with("evil.sh", "");
    let watched = later(&command, &kept, (&worked, &[]));
    assert_eq!(watched.accepted, kept);
    assert!(matches(&watched.globs, "tests/conftest.py"), "as the accepted check runs pytest: {:?}", watched.globs);
    assert!(!matches(&watched.globs, "work.sh"));
}

#[test]
fn what_a_person_has_a_check_call_is_watched_from_then_on() {
    let command = words("sh check.sh");
    let base = Tree::of(&[("check.sh", "true"), ("conftest.py", "theirs"), ("more.sh", "")]);
    let kept = begun(&command, &[], &base).accepted;
    let changed = base.with("check.sh", "sh more.sh && pytest");
    let watched = later(&command, &kept, (&changed, &["check.sh"]));
    assert_eq!(paths(&watched), ["check.sh", "conftest.py", "more.sh"]);
    assert_eq!(later(&command, &kept, (&changed, &["README"])).accepted, kept, "the change is a session's");
    let grown = later(&command, &watched.accepted, (&changed.with("tests/conftest.py", "session's"), &["check.sh"]));
    assert_eq!(grown.accepted, watched.accepted, "a new file at a watched path is not a person's");
}

#[test]
fn the_configuration_adds_files_and_takes_them_out() {
    let tree = Tree::of(&[("check.sh", "sh a.sh"), ("a.sh", ""), ("ci/b", "")]);
    let configured = ["/ci/*".to_owned(), "!/a.sh".to_owned()];
    assert_eq!(paths(&begun(&words("sh check.sh"), &configured, &tree)), ["check.sh", "ci/b"]);
}

#[test]
fn manifests_that_differ_in_dependencies_alone_are_as_accepted() {
    let old = "[package]\nname = \"a\"\n";
    let new = "[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\n";
    let command = words("cargo test");
    let kept = begun(&command, &[], &Tree::of(&[("Cargo.toml", old)])).accepted;
    for (now, settled) in [(new, old), ("[lib]\ntest = false\n", "[lib]\ntest = false\n")] {
        let tree = Tree::of(&[("Cargo.toml", now)]);
        let watched = later(&command, &kept, (&tree, &[]));
        let settled = GuardDefinition::from([("Cargo.toml".to_owned(), settled.to_owned())]);
        assert_eq!(watched.checks.normalize_forms(&watched.accepted, tree.0, matches), settled);
    }
}
