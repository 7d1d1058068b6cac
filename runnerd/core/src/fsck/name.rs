//! Names that some file system treats as `.git`, `.gitmodules` or `.runner`, in every spelling known to git's check.

/// Characters that HFS+ ignores in comparisons.
const HFS_IGNORED: [std::ops::RangeInclusive<char>; 4] =
    ['\u{200c}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{206a}'..='\u{206f}', '\u{feff}'..='\u{feff}'];

/// Whether a name, or the part after a backslash in it, is `.git` on some file system.
pub fn is_dot_git(name: &[u8]) -> bool {
    matches_hfs(name, "git") || name_parts(name).any(|part| matches_ntfs(part, [b".git", b"git~1"]))
}

/// Whether a name, or the part after a backslash in it, is `.runner` on some file system, but not on every one.
fn is_like_dot_runner(name: &[u8]) -> bool {
    let is_like =
        matches_hfs(name, "runner") || name_parts(name).any(|part| matches_ntfs(part, [b".runner", b"runner~1"]));
    is_like && name != b".runner"
}

/// Whether a path begins with a name that is `.runner` on some file system, but not on every one.
pub fn is_like_runner_path(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').next().is_some_and(is_like_dot_runner)
}

/// Whether a name, or the part after a backslash in it, is `.gitmodules` on some file system.
pub fn is_dot_gitmodules(name: &[u8]) -> bool {
    matches_hfs(name, "gitmodules") || name_parts(name).any(matches_ntfs_gitmodules)
}

/// The name, and the part after each of its backslashes.
fn name_parts(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = name.iter().enumerate().filter(|(_, byte)| **byte == b'\\');
    std::iter::once(name).chain(ends.map(|(at, _)| &name[at + 1..]))
}

/// HFS+ ignores case and some characters; to git, invalid UTF-8 ends a name.
fn matches_hfs(name: &[u8], word: &str) -> bool {
    let text = name.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let mut letters = text.chars().filter(|c| !HFS_IGNORED.iter().any(|ignored| ignored.contains(c)));
    letters.next() == Some('.')
        && word.chars().all(|letter| letters.next().is_some_and(|c| c.eq_ignore_ascii_case(&letter)))
        && letters.next().is_none_or(|c| c == '/')
}

/// NTFS ignores spaces and dots at the end, a colon ends a name, and there is a short form of it.
fn matches_ntfs(name: &[u8], forms: [&[u8]; 2]) -> bool {
    let after = forms.into_iter().find_map(|form| strip_word(name, form));
    after.is_some_and(|rest| {
        let end = rest.iter().find(|byte| !matches!(byte, b'.' | b' '));
        end.is_none_or(|byte| matches!(byte, b'\\' | b'/' | b':'))
    })
}

fn matches_ntfs_gitmodules(name: &[u8]) -> bool {
    let long = strip_word(name, b".gitmodules").or_else(|| {
        let (digit, rest) = strip_word(name, b"gitmod~")?.split_first()?;
        matches!(digit, b'1'..=b'4').then_some(rest)
    });
    long.or_else(|| strip_hashed_short_name(name)).is_some_and(|rest| {
        let end = rest.iter().find(|byte| !matches!(byte, b'.' | b' '));
        end.is_none_or(|byte| *byte == b':')
    })
}

/// Returns what follows the short form of a name whose beginning is common: up to six characters of a fixed word, a
/// tilde and digits, eight characters in total.
fn strip_hashed_short_name(name: &[u8]) -> Option<&[u8]> {
    let (short, rest) = name.split_at_checked(8)?;
    let tilde = short.iter().position(|byte| *byte == b'~').filter(|at| *at <= 6)?;
    let word = &short[..tilde];
    let digits = &short[tilde + 1..];
    let is_short = word.eq_ignore_ascii_case(&b"gi7eba"[..tilde])
        && matches!(digits.first(), Some(b'1'..=b'9'))
        && digits.iter().all(u8::is_ascii_digit);
    is_short.then_some(rest)
}

fn strip_word<'a>(name: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = name.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_some_file_system_takes_for_the_runners_folder_are_known() {
        for name in
            [".RUNNER", ".Runner", ".runner\u{200c}", ".run\u{feff}ner", ".runner.", ".runner ", ".runner::$INDEX"]
        {
            assert!(is_like_dot_runner(name.as_bytes()), "{name}");
        }
        for name in ["RUNNER~1", "runner~1.", "x\\.runner"] {
            assert!(is_like_dot_runner(name.as_bytes()), "{name}");
        }
        for name in [".runner", "runner", ".runners", ".runner-old", "runner~2", ".run", ".runnerd.toml"] {
            assert!(!is_like_dot_runner(name.as_bytes()), "{name}");
        }
    }
}
