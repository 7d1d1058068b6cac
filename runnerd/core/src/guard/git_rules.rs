//! The files that tell git how to store, check out and ignore other files, on the paths to watched ones: what is
//! checked out for the guard depends on them.
//!
//! Two versions count as the same if the lines that may concern a watched file are the same. Whether a line may is
//! decided by names alone; in doubt, it may.

use super::definition::GuardDefinition;
use super::watched_files::GlobMatcher;

/// Names of the files.
const RULES_FILES: [&str; 2] = [".gitattributes", ".gitignore"];
/// Attributes that affect neither what is stored nor what is checked out.
const IRRELEVANT_ATTRIBUTES: [&str; 8] =
    ["diff", "merge", "whitespace", "delta", "encoding", "conflict-marker-size", "export-ignore", "export-subst"];

/// Whether a path is that of such a file.
pub(super) fn is_rules_file(path: &str) -> bool {
    RULES_FILES.contains(&path.rsplit('/').next().unwrap_or(path))
}

/// Returns where such files may be on the way to a path, whether they exist or not.
pub(super) fn rules_files_for(path: &str) -> impl Iterator<Item = String> {
    let folders = [""].into_iter().chain(path.match_indices('/').map(|(at, _)| &path[..=at]));
    folders.flat_map(|folder| RULES_FILES.map(|name| format!("{folder}{name}")))
}

/// Returns the lines of such a file that have an effect.
pub(super) fn effective_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether two versions of a file say the same about watched files.
pub(super) fn has_same_effect(
    path: &str,
    versions: [&str; 2],
    watched: &GuardDefinition,
    matches: GlobMatcher,
) -> bool {
    let name = RULES_FILES.into_iter().find(|name| path.ends_with(name)).unwrap_or_default();
    let folder = path.strip_suffix(name).unwrap_or_default();
    let below = watched.keys().filter(|path| !is_rules_file(path)).filter_map(|path| path.strip_prefix(folder));
    let below: Vec<String> = below.map(str::to_lowercase).collect();
    let concerning = |text: &str| {
        let concerns = |line: &&str| below.iter().any(|path| may_match_path(name, line, path, matches));
        text.lines().filter(concerns).map(str::to_owned).collect::<Vec<_>>()
    };
    concerning(versions[0]) == concerning(versions[1])
}

/// Whether a line may concern a path below the folder of its file.
fn may_match_path(name: &str, line: &str, path: &str, matches: GlobMatcher) -> bool {
    let pattern = if name == ".gitignore" {
        line.trim_start_matches('!')
    } else {
        let mut words = line.split_whitespace();
        let pattern = words.next().unwrap_or_default();
        let of_looks = |word: &str| {
            let attribute = word.trim_start_matches(['-', '!']).split('=').next().unwrap_or_default();
            IRRELEVANT_ATTRIBUTES.contains(&attribute) || attribute.starts_with("linguist-")
        };
        if !pattern.starts_with("[attr]") && words.all(of_looks) {
            return false;
        }
        pattern
    };
    // A pattern that is too complex to compare by name.
    if pattern.contains(['[', '\\', '"']) {
        return true;
    }
    let pattern = [pattern.trim_end_matches('/').to_lowercase()];
    let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
    folders.chain([path]).any(|part| matches(&pattern, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(globs: &[String], path: &str) -> bool {
        globs.iter().any(|glob| {
            glob.trim_start_matches('/') == path || glob == "*" || path.ends_with(glob.trim_start_matches('*'))
        })
    }

    fn has_same_effect_on_watched(path: &str, one: &str, other: &str) -> bool {
        let watched = ["ci/check.sh", ".gitattributes"].map(|path| (path.to_owned(), "1".to_owned())).into();
        let lines = |text: &str| effective_lines(text.as_bytes());
        has_same_effect(path, [&lines(one), &lines(other)], &watched, matches)
    }

    #[test]
    fn lines_about_other_files_change_nothing() {
        assert!(has_same_effect_on_watched(".gitignore", "", "target\n# ci/check.sh\n\n/node_modules/\n"));
        assert!(has_same_effect_on_watched("ci/.gitignore", "x\n", "y\n"));
        assert!(has_same_effect_on_watched(
            ".gitattributes",
            "*.png binary\n",
            "*.png -text\n*.sh diff=sh linguist-language=Shell\n"
        ));
        assert!(has_same_effect_on_watched("other/.gitattributes", "", "* text eol=crlf\n"), "it is not on the way");
    }

    #[test]
    fn lines_that_may_concern_a_watched_file_do() {
        for line in ["ci", "ci/", "/ci/check.sh", "*.sh", "!*.SH", "*", "ch[e]ck.sh"] {
            assert!(!has_same_effect_on_watched(".gitignore", "", &format!("{line}\n")), "{line}");
        }
        for line in
            ["*.sh eol=crlf", "* text=auto", "*.sh diff filter=x", "[attr]odd text", "\"ci/check.sh\" -text", "* odd"]
        {
            assert!(!has_same_effect_on_watched(".gitattributes", "", &format!("{line}\n")), "{line}");
        }
        assert!(!has_same_effect_on_watched("ci/.gitattributes", "check.sh text\n", "check.sh -text\n"));
    }

    #[test]
    fn they_lie_in_each_folder_above_a_path() {
        let found: Vec<String> = rules_files_for("a/b/c").collect();
        let expected =
            ["", "a/", "a/b/"].map(|folder| [".gitattributes", ".gitignore"].map(|name| format!("{folder}{name}")));
        assert_eq!(found, expected.concat());
        assert!(is_rules_file("a/.gitignore") && !is_rules_file("gitignore"));
    }
}
