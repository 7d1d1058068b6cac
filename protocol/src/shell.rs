//! Words as typed in a shell: quoted if necessary.

use std::path::Path;

/// Quotes a word for a shell if necessary.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // A shell takes line breaks away at the end of what a command prints.
    if word.contains(char::is_control) && !word.ends_with('\n') {
        return format!("\"$(printf '{}')\"", word.chars().map(escape_char).collect::<String>());
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Quotes a path for a shell if necessary.
pub fn quote_path(path: &Path) -> String {
    quote(&path.display().to_string())
}

/// Returns a character as it stands in a format of `printf`, which keeps a word in one line.
fn escape_char(c: char) -> String {
    match c {
        '%' => "%%".to_owned(),
        '\\' => r"\\".to_owned(),
        '\n' => r"\n".to_owned(),
        '\'' | '-' => format!(r"\{:03o}", u32::from(c)),
        c if c.is_ascii_control() => format!(r"\{:03o}", u32::from(c)),
        c => c.to_string(),
    }
}

/// Returns commands for a person to confirm: each on its own line, after the preceding text.
pub fn list_commands<'a>(commands: impl IntoIterator<Item = &'a Vec<String>>) -> String {
    let mut text = String::new();
    for argv in commands {
        text += "\n  ";
        text += &join_args(argv.iter().map(String::as_str));
    }
    text
}

/// Returns words as typed in a shell, separated by spaces.
pub fn join_args<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_line_break_stays_in_one_line() {
        assert_eq!(quote("new\nline's \x1b %"), r#""$(printf 'new\nline\047s \033 %%')""#);
    }

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(join_args(["git", "a b", "", "it's", "$HOME", "x/y.rs"]), r"git 'a b' '' 'it'\''s' '$HOME' x/y.rs");
    }
}
