//! Flaky guards: red, and then green on the same files. Is the session charged nevertheless?
//!
//! Only names and paths: a receipt has both, so that an audit gives the same answer.

use protocol::flakes::FlakyTest;
use serde::{Deserialize, Serialize};

use crate::message::NameList;
use crate::verdict::SessionTask;

/// Most paths that are named as a reason to charge the session.
const MAX_SUSPECTS: usize = 20;
/// Most tests that are recorded.
const MAX_FLAKES: usize = 50;
/// How the files of programs end: what a name of a test may hold of its file.
const SOURCE_ENDINGS: [&str; 42] = [
    "bash", "bats", "c", "cc", "cjs", "clj", "cpp", "cs", "cts", "dart", "ex", "exs", "go", "groovy", "h", "hpp", "hs",
    "java", "jl", "js", "jsx", "kt", "lua", "m", "mjs", "ml", "mts", "php", "pl", "py", "r", "rb", "rs", "scala", "sh",
    "svelte", "swift", "t", "ts", "tsx", "vue", "zig",
];
/// Directories, and words in the names of files, that say that there are tests.
const TEST_WORDS: [&str; 6] = ["test", "tests", "__tests__", "spec", "specs", "conftest"];
/// What separates the words in the name of a file.
const WORD_ENDS: [char; 3] = ['.', '_', '-'];

/// A guard that was red, and then green on the same files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlakyGuard {
    /// What failed.
    pub failing: NameList,
    /// Paths for which the session is charged.
    pub suspects: Vec<String>,
}

impl FlakyGuard {
    /// Returns the sentence for the next session that a charged guard begins with; `None` if the session is not charged.
    pub(crate) fn charge_notice(&self) -> Option<String> {
        let paths = self.suspects.join(", ");
        (!self.suspects.is_empty()).then(|| {
            format!(
                "[failed, then passed on the same files; counted, because this session changed what failed: {paths}]\n"
            )
        })
    }
}

/// Returns the paths for which a session is charged although the guard was green the second time: files that it changed
/// in which a test failed; if the file of a test is not known, files of tests that it changed.
pub fn find_suspects<'p>(failing: &NameList, changed: impl IntoIterator<Item = &'p str>) -> Vec<String> {
    let names = failing.to_texts();
    let files: Vec<Vec<&str>> = names.iter().map(|name| files_in_name(name)).collect();
    let is_any_unknown = failing.more() > 0 || files.is_empty() || files.iter().any(Vec::is_empty);
    let is_suspect = |path: &&str| {
        files.iter().flatten().any(|file| is_same_file(file, path)) || (is_any_unknown && is_test_path(path))
    };
    changed.into_iter().filter(is_suspect).take(MAX_SUSPECTS).map(str::to_owned).collect()
}

/// Returns the record after an iteration; `flaky` is the guard's red run before a green one.
pub(crate) fn next_flakes(old: &[FlakyTest], flaky: Option<&FlakyGuard>, task: &SessionTask) -> Vec<FlakyTest> {
    let Some(flaky) = flaky else { return old.to_vec() };
    let names = flaky.failing.to_texts();
    let unnamed = names.is_empty().then_some(None);
    let names: Vec<Option<String>> = names.into_iter().map(Some).chain(unnamed).collect();
    let next = |name: &Option<String>| {
        let known = old.iter().find(|known| known.name == *name);
        FlakyTest {
            name: name.clone(),
            count: known.map_or(0, |known| known.count).saturating_add(1),
            first_node: known.map_or(&task.node, |known| &known.first_node).clone(),
            last_iter: task.iter,
        }
    };
    let others = old.iter().filter(|known| !names.contains(&known.name)).cloned();
    names.iter().map(next).chain(others).take(MAX_FLAKES).collect()
}

/// Returns the files that the name of a test holds.
fn files_in_name(name: &str) -> Vec<&str> {
    let words = name.split([' ', '"', '\'', '(', ')', ',', '[', ']', '\\']).flat_map(|word| word.split(':'));
    words.map(|word| word.trim_start_matches("./")).filter(|word| is_source_file(word)).collect()
}

/// Whether a name has a file.
pub(crate) fn has_file(name: &str) -> bool {
    !files_in_name(name).is_empty()
}

/// Whether a word looks like the file of a program.
pub(crate) fn is_source_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && SOURCE_ENDINGS.contains(&end))
}

/// Whether a file that a test runner named is this one: it may know it from another directory.
fn is_same_file(file: &str, path: &str) -> bool {
    let is_end =
        |short: &str, long: &str| long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    is_end(file, path) || is_end(path, file)
}

/// Whether a path is that of a file of tests, by the customs of the known test runners.
fn is_test_path(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.split('.').next().unwrap_or(name);
    let is_test_word = |word: &str| TEST_WORDS.contains(&word.to_ascii_lowercase().as_str());
    folders.split('/').any(is_test_word)
        || name.split(WORD_ENDS).any(is_test_word)
        || ["Test", "Tests", "Spec"].iter().any(|end| stem.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspects(names: &[&str], changed: &[&str]) -> Vec<String> {
        find_suspects(&NameList::new(names), changed.iter().copied())
    }

    #[test]
    fn a_session_is_charged_for_a_failure_in_a_file_that_it_changed() {
        let changed = ["src/shop.py", "tests/test_shop.py"];
        assert_eq!(suspects(&["tests/test_shop.py::test_pay"], &changed), ["tests/test_shop.py"]);
        assert_eq!(suspects(&["tests/test_net.py::test_get"], &changed), Vec::<String>::new());
        assert_eq!(suspects(&["shop/src/shop.py test_pay"], &changed), ["src/shop.py"]);
        assert_eq!(suspects(&["test_shop.py::test_pay"], &changed), ["tests/test_shop.py"]);
        assert_eq!(suspects(&["a_test_shop.py::test_pay"], &changed), Vec::<String>::new());
    }

    #[test]
    fn without_the_file_of_a_test_each_changed_file_of_tests_counts() {
        let changed = ["src/shop.rs", "tests/pay.rs"];
        for names in [&[][..], &["shop::tests::pays"], &["src/net.rs net::gets", "shop::tests::pays"]] {
            assert_eq!(suspects(names, &changed), ["tests/pay.rs"], "{names:?}");
        }
        assert_eq!(suspects(&[], &["src/shop.rs", "docs/testing.md"]), Vec::<String>::new());
        let many: Vec<String> = (0..30).map(|at| format!("src/net.rs t{at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(suspects(&many, &changed), ["tests/pay.rs"]);
    }

    #[test]
    fn files_of_tests_are_known_by_custom() {
        for path in
            ["tests/a.rs", "a_test.go", "src/a.test.ts", "spec/a.rb", "test_a.py", "src/test/java/A.java", "ATest.kt"]
        {
            assert!(is_test_path(path), "{path}");
        }
        for path in ["src/attest.rs", "contest.py", "src/latest.js", "protest/a.go"] {
            assert!(!is_test_path(path), "{path}");
        }
    }
}
