//! Neutralizes text by agents for commit messages, so that no program that reads messages (a tracker, a forge, a CI
//! system, a mailer, git itself) finds a command in it. The text stays readable: nothing is hidden, and little is
//! changed.
//!
//! Messages are not Markdown, so nothing can be escaped. A sign is separated from the name after it, brackets become
//! round, and a line that would be a command or a trailer becomes a quote.

/// Signs that introduce a name or a number.
const NAME_SIGNS: [char; 2] = ['#', '@'];
/// Signs that introduce a number only.
const NUMBER_SIGNS: [char; 2] = ['!', '&'];
/// Parts of URLs that precede the number of something that can be closed.
const CLOSABLE_PATHS: [&str; 7] =
    ["/issues/", "/issue/", "/pull/", "/pulls/", "/merge_requests/", "/work_items/", "/epics/"];
/// Words before a ticket's name that close it.
const CLOSING_WORDS: [&str; 18] = [
    "close",
    "closes",
    "closed",
    "closing",
    "fix",
    "fixes",
    "fixed",
    "fixing",
    "resolve",
    "resolves",
    "resolved",
    "resolving",
    "implement",
    "implements",
    "implemented",
    "implementing",
    "complete",
    "completes",
];
/// Trailers whose names are a single word.
const TRAILERS: [&str; 6] = ["cc", "bug", "fixes", "closes", "refs", "link"];
/// A footer of Conventional Commits that git does not treat as a trailer, but that makes a release tool raise the
/// version.
const BREAKING: &str = "breaking change";
/// Prefixes that make `git rebase --autosquash` fold a commit into another one.
const AUTOSQUASH_PREFIXES: [&str; 3] = ["fixup!", "squash!", "amend!"];
/// A command to CI systems that has no brackets.
const NO_CI: &str = "***no_ci***";
/// Most bytes between the brackets of a command.
const ORDER_LIMIT: usize = 60;

/// Returns paragraphs without any commands.
pub(super) fn sanitize_paragraphs(text: &str) -> String {
    let text = separate_signs(&round_brackets(&strip_no_ci(text)));
    text.split('\n').map(quote_line).collect::<Vec<_>>().join("\n")
}

/// Returns a first line without any commands.
pub(super) fn sanitize_subject(line: &str) -> String {
    let line = sanitize_paragraphs(line);
    if AUTOSQUASH_PREFIXES.iter().any(|word| starts_with(line.trim_start(), word)) { format!("> {line}") } else { line }
}

/// Replaces brackets with round ones around what tells CI to do nothing: `[skip ci]`, `[ci skip]`, `[no ci]` and
/// others.
fn round_brackets(text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let mut opened = Vec::new();
    for at in 0..chars.len() {
        if chars[at] == '[' {
            opened.push(at);
        } else if chars[at] == ']'
            && let Some(begin) = opened.pop()
            && is_ci_order(&chars[begin + 1..at])
        {
            (chars[begin], chars[at]) = ('(', ')');
        }
    }
    chars.into_iter().collect()
}

fn is_ci_order(inside: &[char]) -> bool {
    let inside: String = inside.iter().map(char::to_ascii_lowercase).collect();
    let mut words = inside.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    let denies = words.peek() == Some(&"no");
    inside.len() <= ORDER_LIMIT && (denies || words.any(|word| word.contains("skip") || ["ci", "noci"].contains(&word)))
}

fn strip_no_ci(text: &str) -> String {
    let mut left = text;
    let mut shown = String::with_capacity(text.len());
    while let Some(at) = left.to_ascii_lowercase().find(NO_CI) {
        shown.extend([&left[..at], "(", &left[at + 3..at + NO_CI.len() - 3], ")"]);
        left = &left[at + NO_CI.len()..];
    }
    shown + left
}

/// Separates signs from what they refer to: `# 12`, `@ alice`, `GH- 7`, `/issues/ 3`.
fn separate_signs(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let before = shown.chars().next_back();
        shown.push(c);
        let next = rest.as_str().chars().next();
        let is_name = next.is_some_and(|next| next.is_alphanumeric() || next == '_');
        let is_number = next.is_some_and(|next| next.is_ascii_digit());
        let is_in_address = c == '@' && before.is_some_and(|before| before.is_ascii_alphanumeric());
        let refers = (NAME_SIGNS.contains(&c) && is_name && !is_in_address)
            || (NUMBER_SIGNS.contains(&c) && is_number)
            || (c == '/' && is_number && CLOSABLE_PATHS.iter().any(|part| ends_with(&shown, part)))
            || (c == '-' && is_number && ends_with_ticket(&shown));
        if refers {
            shown.push(' ');
        }
    }
    shown
}

/// Whether text ends like `GH-`, or with a closing word and the beginning of a ticket's name: `Closes STORE-`.
pub(crate) fn ends_with_ticket(shown: &str) -> bool {
    if ends_with(shown, "gh-") {
        return true;
    }
    let head = shown.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let key = &shown[head.len()..shown.len() - 1];
    let head = head.trim_end();
    let head = ["issue", "issues"].iter().find_map(|word| strip_last_word(head, word)).unwrap_or(head);
    let head = head.trim_end().trim_end_matches(':').trim_end();
    !key.is_empty() && CLOSING_WORDS.iter().any(|word| strip_last_word(head, word).is_some())
}

/// Returns the text before `word` if that is the last word.
fn strip_last_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = ends_with(text, word).then(|| &text[..text.len() - word.len()])?;
    (!head.ends_with(|c: char| c.is_alphanumeric())).then_some(head)
}

/// Puts `> ` in front of a line that is a trailer, or a command to a forge: `/merge`.
fn quote_line(line: &str) -> String {
    let text = line.trim_start();
    if is_trailer(text) || is_command(text) { format!("> {line}") } else { line.to_owned() }
}

fn is_trailer(line: &str) -> bool {
    let Some((name, _)) = line.split_once(':') else { return false };
    let name = name.trim_end();
    let is_token = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    name.eq_ignore_ascii_case(BREAKING)
        || is_token && (name.contains('-') || TRAILERS.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

fn is_command(line: &str) -> bool {
    let word = line.strip_prefix('/').and_then(|rest| rest.split(char::is_whitespace).next());
    word.is_some_and(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_'))
}

fn starts_with(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn ends_with(text: &str, word: &str) -> bool {
    let begin = text.len().checked_sub(word.len());
    begin.and_then(|begin| text.get(begin..)).is_some_and(|end| end.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_others_would_obey_is_text_that_can_be_read() {
        let table = [
            ("Closes #1, fixes owner/repo#2", "Closes # 1, fixes owner/repo# 2"),
            ("Fixes GH-7 and gh-8, Resolves: STORE-12", "Fixes GH- 7 and gh- 8, Resolves: STORE- 12"),
            ("closes issues STORE-12", "closes issues STORE- 12"),
            ("Fixes https://forge/o/r/issues/12", "Fixes https://forge/o/r/issues/ 12"),
            ("See !4, &5 and AB#6, STORE-1 #close", "See ! 4, & 5 and AB# 6, STORE-1 # close"),
            ("[skip ci] [CI  Skip] [no ci] [skip-ci]", "(skip ci) (CI  Skip) (no ci) (skip-ci)"),
            ("[skip azurepipelines] [actions\nskip]", "(skip azurepipelines) (actions\nskip)"),
            ("a ***NO_CI*** b ***no_ci***", "a (NO_CI) b (no_ci)"),
            ("Thanks @alice and @org/team, @@bob", "Thanks @ alice and @ org/team, @@ bob"),
            ("Done.\nskip-checks: true", "Done.\n> skip-checks: true"),
            (
                "Co-authored-by: A <a@x>\nSigned-off-by : B <b@x>",
                "> Co-authored-by: A <a@x>\n> Signed-off-by : B <b@x>",
            ),
            ("Done.\nBREAKING CHANGE: all of it", "Done.\n> BREAKING CHANGE: all of it"),
            ("Change-Id: I0\n  Cc: c@x", "> Change-Id: I0\n>   Cc: c@x"),
            ("/merge\n/label ~x\n /approve", "> /merge\n> /label ~x\n>  /approve"),
        ];
        for (given, expected) in table {
            assert_eq!(sanitize_paragraphs(given), expected, "{given:?}");
        }
        assert_eq!(sanitize_subject("fixup! The schema"), "> fixup! The schema");
        assert_eq!(
            sanitize_subject("feat!: drop `[old]` for a@b.org, UTF-8"),
            "feat!: drop `[old]` for a@b.org, UTF-8"
        );
    }

    #[test]
    fn what_nobody_would_obey_stays_as_it_is() {
        for text in [
            "Note: in C# and F# a[0] is the first; 5 & 6, not !x.",
            "Moved /etc/hosts, a/b and RFC-2119's list.\n/etc/hosts is read first.",
            "Written to a@b.org: see https://x.org/issues and e-mail to me: now.",
            "- a list\n    indented code();\n> a quote",
        ] {
            assert_eq!(sanitize_paragraphs(text), text);
        }
    }

    /// Returns the command found in the text by any of these programs' own patterns.
    fn find_order(text: &str) -> Option<String> {
        let lower = text.to_ascii_lowercase();
        let found = |what: &str| Some(format!("{what} in {text:?}"));
        let orders = ["[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[skip-ci]", "***no_ci***"];
        if let Some(order) = orders.iter().find(|order| lower.contains(**order)) {
            return found(order);
        }
        let all: Vec<char> = lower.chars().collect();
        for pair in all.windows(2) {
            if pair[0] == '#' && pair[1].is_alphanumeric() || pair[0] == '!' && pair[1].is_ascii_digit() {
                return found("a reference");
            }
        }
        let is_mention =
            |part: &[char]| part[1] == '@' && part[2].is_alphanumeric() && !part[0].is_ascii_alphanumeric();
        if all.windows(3).any(is_mention) || all.starts_with(&['@', 'a']) {
            return found("a mention");
        }
        if lower.contains("gh-1") || lower.contains("/issues/1") || lower.contains("closes gh-1") {
            return found("a name");
        }
        let names = ["co-authored-by:", "signed-off-by:", "change-id:", "skip-checks:"];
        let is_order = |line: &str| {
            let line = line.trim_start();
            names.iter().any(|name| line.starts_with(name)) || line.split_whitespace().next() == Some("/merge")
        };
        lower.lines().find(|line| is_order(line)).and_then(|_| found("a line"))
    }

    proptest! {
        #[test]
        fn nothing_is_obeyed_and_doing_it_twice_changes_nothing_more(
            text in "(\\[|\\]|skip|ci|no| |\n|-|#|@|!|&|1|a|gh|Closes |STORE|\\*\\*\\*|NO_CI|/|issues/|merge|Co-authored-by|Signed-off-by|Change-Id|skip-checks|:|fixup!|> |é){0,24}",
        ) {
            let once = sanitize_paragraphs(&text);
            prop_assert_eq!(find_order(&once), None);
            prop_assert_eq!(sanitize_paragraphs(&once), &*once);
            prop_assert_eq!(sanitize_subject(&sanitize_subject(&text)), sanitize_subject(&text));
        }

        #[test]
        fn words_of_letters_alone_stay_as_they_are(text in "[b-z,.()\n \t]{0,60}") {
            prop_assert_eq!(sanitize_paragraphs(&text), text);
        }

        #[test]
        fn no_text_is_lost(text in any::<String>()) {
            let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
            prop_assert_eq!(letters(&sanitize_paragraphs(&text)), letters(&text));
        }
    }
}
