//! The grammar of ids, shared by node ids and run ids.
//!
//! An id becomes part of branch names, folder names and commit subjects; the grammar is what all of them allow.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Longest id, in bytes.
pub const MAX_ID_BYTES: usize = 200;

/// Longest id that is made from a goal, in bytes, without the number of another run.
const TITLE_ID_LIMIT: usize = 40;
/// The end of the id of a fork.
const FORK_SUFFIX: &str = "-fork";

/// What is wrong with an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The id is empty.
    #[error("id is empty")]
    Empty,
    /// The id is longer than [`MAX_ID_BYTES`].
    #[error("id is longer than {MAX_ID_BYTES} bytes")]
    TooLong,
    /// The id begins with something other than a letter or a digit.
    #[error("id `{0}` does not begin with a letter or a digit")]
    Start(String),
    /// The id has a character that is not allowed.
    #[error("id `{0}` has a character other than letters, digits, `.`, `_` and `-`")]
    Character(String),
    /// The id has two dots in a row.
    #[error("id `{0}` has `..` in it")]
    DoubleDot(String),
    /// The id ends in `.` or `.lock`.
    #[error("id `{0}` ends in `.` or `.lock`")]
    End(String),
}

/// Checks an id against the grammar.
pub fn check_id(id: &str) -> Result<(), IdError> {
    let first = id.bytes().next().ok_or(IdError::Empty)?;
    if id.len() > MAX_ID_BYTES {
        return Err(IdError::TooLong);
    }
    if !first.is_ascii_alphanumeric() {
        return Err(IdError::Start(id.to_owned()));
    }
    if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
        return Err(IdError::Character(id.to_owned()));
    }
    if id.contains("..") {
        return Err(IdError::DoubleDot(id.to_owned()));
    }
    let is_lock = |end: &[u8]| end.eq_ignore_ascii_case(b".lock");
    if id.ends_with('.') || id.as_bytes().last_chunk::<5>().is_some_and(|end| is_lock(end)) {
        return Err(IdError::End(id.to_owned()));
    }
    Ok(())
}

/// Returns the id of a new run whose goal has this title: its first words in ASCII, without accents; `None` if it has
/// fewer than two.
pub fn id_from_title(title: &str) -> Option<String> {
    id_within(title, TITLE_ID_LIMIT)
}

/// Returns the id of a fork of a run whose goal has this title; `None` if the title makes none.
pub fn fork_id_from_title(title: &str) -> Option<String> {
    Some(id_within(title, TITLE_ID_LIMIT - FORK_SUFFIX.len())? + FORK_SUFFIX)
}

/// Returns the first words of a title, at most `limit` bytes.
fn id_within(title: &str, limit: usize) -> Option<String> {
    let lower: String = title.to_lowercase().nfd().filter(|char| !is_combining_mark(*char)).collect();
    let words = lower.split(|char: char| !char.is_alphanumeric());
    let mut words = words.filter(|word| !word.is_empty() && word.is_ascii());
    let mut id = words.next().filter(|first| first.len() <= limit)?.to_owned();
    let first = id.len();
    for word in words {
        if id.len() + 1 + word.len() > limit {
            break;
        }
        id = format!("{id}-{word}");
    }
    (id.len() > first).then_some(id)
}

/// Returns the id of the run that a reference belongs to: a branch here or in a remote, or what is kept of a run.
pub fn run_of_ref(name: &str) -> Option<&str> {
    let rest = match (name.strip_prefix("refs/heads/runner/"), name.strip_prefix("refs/runner/")) {
        (Some(rest), _) => rest,
        (None, Some(rest)) => rest.split_once('/')?.1,
        (None, None) => name.strip_prefix("refs/remotes/")?.split_once("/runner/")?.1,
    };
    rest.split('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_fork_says_so_and_is_as_short() {
        assert_eq!(fork_id_from_title("Port storage layer").as_deref(), Some("port-storage-layer-fork"));
        let long = fork_id_from_title("Make each of the answers shorter than it was before");
        assert_eq!(long.as_deref(), Some("make-each-of-the-answers-shorter-fork"));
        assert_eq!(fork_id_from_title("Tidy"), None);
    }

    #[test]
    fn the_first_words_of_a_goal_are_its_id() {
        for (title, id) in [
            ("Port storage layer", Some("port-storage-layer")),
            ("`Fix`  the_bug #12!", Some("fix-the-bug-12")),
            ("Make each of the answers shorter than it was before", Some("make-each-of-the-answers-shorter-than-it")),
            ("Tidy", None),
            ("修正する", None),
            ("Почини сборку", None),
            ("Größe ändern", None),
            ("Réécrire la liste", Some("reecrire-la-liste")),
            ("Größe der Karte ändern", Some("der-karte-andern")),
            ("--help", None),
        ] {
            assert_eq!(id_from_title(title).as_deref(), id, "{title}");
            assert!(id_from_title(title).is_none_or(|id| check_id(&id).is_ok() && id.len() <= TITLE_ID_LIMIT));
        }
        assert_eq!(id_from_title(&format!("{} b", "a".repeat(41))), None);
    }

    #[test]
    fn a_reference_names_its_run() {
        for (name, run) in [
            ("refs/heads/runner/tidy-up", Some("tidy-up")),
            ("refs/heads/runner/tidy-up/x", Some("tidy-up")),
            ("refs/remotes/fork/of/runner/tidy-up", Some("tidy-up")),
            ("refs/runner/rescue/tidy-up/0001", Some("tidy-up")),
            ("refs/runner/reserved/tidy-up", Some("tidy-up")),
            ("refs/heads/main", None),
            ("refs/tags/runner/tidy-up", None),
        ] {
            assert_eq!(run_of_ref(name), run, "{name}");
        }
    }

    #[test]
    fn ids_of_the_grammar_are_accepted() {
        for id in ["a", "7", "root", "root.1", "run-1a2b3c4d-2", "A_b.c-d", &"x".repeat(200)] {
            assert_eq!(check_id(id), Ok(()), "{id}");
        }
    }

    #[test]
    fn other_ids_are_refused_with_the_reason() {
        assert_eq!(check_id(""), Err(IdError::Empty));
        assert_eq!(check_id(&"x".repeat(201)), Err(IdError::TooLong));
        for id in [".a", "-a", "_a", "/a", "äb"] {
            assert!(matches!(check_id(id), Err(IdError::Start(_))), "{id}");
        }
        for id in ["a b", "a/b", "a\nb", "aä", "a~1", "a:b"] {
            assert!(matches!(check_id(id), Err(IdError::Character(_))), "{id}");
        }
        assert!(matches!(check_id("a..b"), Err(IdError::DoubleDot(_))));
        for id in ["a.", "a.lock", "a.LOCK"] {
            assert!(matches!(check_id(id), Err(IdError::End(_))), "{id}");
        }
    }
}
