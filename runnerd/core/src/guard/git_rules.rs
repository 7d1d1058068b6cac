//! The files by which git stores, lays out and ignores others, where they lie on the way to watched ones: what is laid out
//! for the guard follows from them.
//!
//! Two of them count as the same where the lines that may concern a watched file are. Whether a line does is told by names
//! alone, and in doubt it does.

use super::definition::GuardDefinition;
use super::watched_files::GlobMatcher;

/// Their names.
const RULES_FILES: [&str; 2] = [".gitattributes", ".gitignore"];
/// Attributes that say nothing of what is stored or laid out.
const IRRELEVANT_ATTRIBUTES: [&str; 8] =
    ["diff", "merge", "whitespace", "delta", "encoding", "conflict-marker-size", "export-ignore", "export-subst"];

/// Tells whether a path is one's.
pub(super) fn is_rules_file(path: &str) -> bool {
    RULES_FILES.contains(&path.rsplit('/').next().unwrap_or(path))
}

/// Returns where they are on the way to a path, whether there are any or not.
pub(super) fn rules_files_for(path: &str) -> impl Iterator<Item = String> {
    let folders = [""].into_iter().chain(path.match_indices('/').map(|(at, _)| &path[..=at]));
    folders.flat_map(|folder| RULES_FILES.map(|name| format!("{folder}{name}")))
}

/// Returns what one says, line by line, without what says nothing.
pub(super) fn effective_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

/// Tells whether two say the same of watched files.
pub(super) fn has_same_effect(path: &str, (one, other): (&str, &str), (watched, matches): (&GuardDefinition, GlobMatcher)) -> bool {
    let name = RULES_FILES.into_iter().find(|name| path.ends_with(name)).unwrap_or_default();
    let folder = path.strip_suffix(name).unwrap_or_default();
    let below = watched.keys().filter(|path| !is_rules_file(path)).filter_map(|path| path.strip_prefix(folder));
    let below: Vec<String> = below.map(str::to_lowercase).collect();
    let concerning = |text: &str| {
        let concerns = |line: &&str| below.iter().any(|path| may_match_path(name, (line, path), matches));
        text.lines().filter(concerns).map(str::to_owned).collect::<Vec<_>>()
    };
    concerning(one) == concerning(other)
}

/// Tells whether a line may concern a path below the folder of its file.
fn may_match_path(name: &str, (line, path): (&str, &str), matches: GlobMatcher) -> bool {
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
    // What a name does not tell plainly.
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
        let said = |text: &str| effective_lines(text.as_bytes());
        has_same_effect(path, (&said(one), &said(other)), (&watched, matches))
    }

    #[test]
    fn lines_about_other_files_change_nothing() {
        assert!(has_same_effect_on_watched(".gitignore", "", "target\n# ci/check.sh\n\n/node_modules/\n"));
        assert!(has_same_effect_on_watched("ci/.gitignore", "x\n", "y\n"));
        assert!(has_same_effect_on_watched(".gitattributes", "*.png binary\n", "*.png -text\n*.sh diff=sh linguist-language=Shell\n"));
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
