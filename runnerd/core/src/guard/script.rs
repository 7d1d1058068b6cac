//! What a shell script runs, as far as its text tells without running it.
//!
//! Reads any text, also what only has lines of shell in it (a makefile, a justfile): what is no command comes out as one
//! that names nothing. Not a shell: nothing is expanded here, see `variables`.

use super::command::{Command, Next};

/// How deep substitutions are followed into each other.
const MAX_DEPTH: u8 = 8;

/// Takes a text apart into its commands, in order; those whose output another one takes come before it.
pub(super) fn commands(text: &str) -> Vec<Command<'_>> {
    commands_at(0, text)
}

fn commands_at(depth: u8, text: &str) -> Vec<Command<'_>> {
    let (words, word, is_quiet) = (Vec::new(), None, false);
    let mut reader = Reader { rest: text, begin: text, left: 0, commands: Vec::new(), words, word, is_quiet, depth };
    reader.read();
    reader.commands
}

struct Reader<'a> {
    rest: &'a str,
    /// What follows the last command.
    begin: &'a str,
    /// How many bytes follow the command that is being read.
    left: usize,
    commands: Vec<Command<'a>>,
    words: Vec<String>,
    /// The word that is being read.
    word: Option<String>,
    is_quiet: bool,
    /// In how many substitutions it stands.
    depth: u8,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        loop {
            self.left = self.rest.len();
            let Some(c) = self.next() else { break };
            match c {
                '\\' => self.escaped(),
                '\'' => self.quoted(),
                '"' => self.in_double_quotes(),
                '$' | '`' => self.expansion(c),
                '{' if self.rest.starts_with('{') => self.of_just(),
                '(' if self.word.as_ref().is_some_and(|word| word.ends_with('=')) => self.list(),
                '#' if self.word.is_none() => self.skip_line(),
                ' ' | '\t' | '\r' => self.end_word(),
                '>' | '<' => self.redirection(c),
                '|' if self.rest.starts_with('|') => {
                    self.rest = &self.rest[1..];
                    self.end_command(true, self.next_or());
                }
                '|' => {
                    self.rest = self.rest.strip_prefix('&').unwrap_or(self.rest);
                    self.end_command(self.is_copied(), Next::Pipe);
                }
                '&' if self.rest.starts_with('>') => {}
                '&' => {
                    self.rest = self.rest.strip_prefix(c).unwrap_or(self.rest);
                    self.end_command(true, Next::Any);
                }
                '\n' | ';' | '(' | ')' => self.end_command(true, Next::Any),
                c => self.push(c),
            }
        }
        self.end_command(true, Next::Any);
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn escaped(&mut self) {
        match self.next() {
            Some('\n') => self.end_word(),
            Some(c) => self.push(c),
            None => {}
        }
    }

    fn quoted(&mut self) {
        let end = self.rest.find('\'').unwrap_or(self.rest.len());
        let (inner, rest) = self.rest.split_at(end);
        // just replaces its expressions in them too.
        self.extend([inner.replace("{{", "${").replace("}}", "}").as_str()]);
        self.rest = rest.strip_prefix('\'').unwrap_or(rest);
    }

    fn in_double_quotes(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '\\' => self.escaped(),
                '$' | '`' => self.expansion(c),
                '{' if self.rest.starts_with('{') => self.of_just(),
                c => self.push(c),
            }
        }
    }

    /// Takes over what is expanded. What a substitution runs is a command whose output is taken.
    fn expansion(&mut self, begin: char) {
        // What a makefile hands on to the shell.
        let is_doubled = begin == '$' && self.rest.starts_with('$');
        if is_doubled && self.rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || "_({".contains(c)) {
            self.rest = &self.rest[1..];
        }
        let (open, close) = match (begin, self.rest.chars().next()) {
            ('`', _) => (None, '`'),
            (_, Some('(')) => (Some('('), ')'),
            (_, Some('{')) => (Some('{'), '}'),
            _ => return self.name(),
        };
        let inner = self.until(open, close);
        if close == '}' {
            self.extend(["${", inner, "}"]);
            return;
        }
        self.extend(["$(", inner, ")"]);
        if self.depth < MAX_DEPTH {
            let inner = commands_at(self.depth + 1, inner);
            self.commands.extend(inner.into_iter().map(|inner| Command { decides: false, ..inner }));
        }
    }

    fn name(&mut self) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = match self.rest.chars().next() {
            Some(c) if "@?*#".contains(c) || c.is_ascii_digit() => 1,
            _ => self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len()),
        };
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        if name.is_empty() { self.push('$') } else { self.extend(["${", name, "}"]) }
    }

    /// Takes over an expression of a justfile.
    fn of_just(&mut self) {
        let line = self.rest.split('\n').next().unwrap_or_default();
        match line.find("}}") {
            Some(end) => {
                let inner = &self.rest[1..end];
                self.rest = &self.rest[end + 2..];
                self.extend(["${", inner.trim(), "}"]);
            }
            None => self.push('{'),
        }
    }

    /// Takes over the words of an array as one value.
    fn list(&mut self) {
        let inner = self.until(None, ')');
        let words: Vec<String> = commands_at(MAX_DEPTH, inner).into_iter().flat_map(|command| command.words).collect();
        self.extend([words.join(" ").as_str()]);
    }

    fn extend<const N: usize>(&mut self, parts: [&str; N]) {
        self.word.get_or_insert_default().extend(parts);
    }

    /// Returns what stands before the end of an expansion, which may have others in it, and passes over both.
    fn until(&mut self, open: Option<char>, close: char) -> &'a str {
        let (mut depth, mut end) = (usize::from(open.is_none()), self.rest.len());
        for (at, c) in self.rest.char_indices() {
            depth = match c {
                c if Some(c) == open => depth + 1,
                c if c == close => depth.saturating_sub(1),
                _ => depth,
            };
            if depth == 0 {
                end = at;
                break;
            }
        }
        let (inner, rest) = self.rest.split_at(end);
        self.rest = rest.strip_prefix(close).unwrap_or(rest);
        open.and_then(|open| inner.strip_prefix(open)).unwrap_or(inner)
    }

    fn skip_line(&mut self) {
        self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
    }

    /// A file that is read or written is no word of the command.
    fn redirection(&mut self, c: char) {
        let number = self.word.take_if(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        let is_joined = self.begin[..self.begin.len() - self.rest.len()].ends_with("&>");
        self.end_word();
        let is_copy = self.rest.starts_with('&');
        self.rest = self.rest.trim_start_matches(['>', '<', '&', '-', ' ']);
        let end = self.rest.find(|c: char| c.is_whitespace() || ";|&()".contains(c)).unwrap_or(self.rest.len());
        let (file, rest) = self.rest.split_at(end);
        self.rest = rest;
        let is_of_errors = c == '>' && (is_joined || number.as_deref() == Some("2"));
        // Errors that go where the output goes: nowhere, where that stands before.
        self.is_quiet |= is_of_errors && (file == "/dev/null" || is_copy && file == "1" && self.is_thrown_away());
    }

    fn is_thrown_away(&self) -> bool {
        self.begin[..self.begin.len() - self.rest.len()].contains("/dev/null")
    }

    /// What follows `||`.
    fn next_or(&self) -> Next {
        let line = self.rest.trim_start().split([';', '\n', '&', '|', '}', ')', '#']).next().unwrap_or_default();
        let makes_good = matches!(line.trim(), "true" | ":" | "continue" | "return" | "return 0" | "exit 0");
        if makes_good { Next::OrElse } else { Next::Or }
    }

    /// Whether what follows a pipe hands on what it is given, as in a log.
    fn is_copied(&self) -> bool {
        self.rest.trim_start().starts_with("tee ")
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self, decides: bool, next: Next) {
        self.end_word();
        let source = &self.begin[..self.begin.len() - self.left];
        self.begin = self.rest;
        let (words, is_quiet) = (std::mem::take(&mut self.words), std::mem::take(&mut self.is_quiet));
        if !words.is_empty() {
            self.commands.push(Command { words, decides, next, is_quiet, source: source.trim() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::Runs;
    use super::*;

    /// What the commands of a script that can decide run.
    fn run(text: &str) -> Vec<String> {
        let commands = commands(text);
        let deciding = commands.iter().filter(|command| command.decides);
        let first = |runs| match runs {
            Runs::Program(path) => format!("Program({path:?})"),
            Runs::Script(words) => format!("Script({:?})", words[0]),
            Runs::Interpreted(words) => format!("Interpreted({:?})", words[0]),
            Runs::Scripts(_) | Runs::Module | Runs::Text(_) | Runs::Input | Runs::Folder(_) => format!("{runs:?}"),
        };
        deciding.filter_map(Command::runs).map(first).collect()
    }

    #[test]
    fn scripts_that_decide_are_told_from_programs_whose_output_is_looked_at() {
        for (text, expected) in [
            ("sh check.sh", vec![r#"Script("check.sh")"#]),
            (
                "set -e\n./ci/lint.sh && bash -eu 'ci/a b.sh' --all",
                vec![r#"Program("./ci/lint.sh")"#, r#"Script("ci/a b.sh")"#],
            ),
            ("\t@CI=1 timeout 60 ./ci.sh", vec![r#"Program("./ci.sh")"#]),
            ("if ! ./ci.sh; then exit 1; fi", vec![r#"Program("./ci.sh")"#]),
            (". \"$(dirname \"$0\")/lib.sh\"", vec![r#"Script("$(dirname \"$0\")/lib.sh")"#]),
            ("test \"$(sh greet.sh)\" = hello", vec![]),
            ("sh greet.sh | grep -q hello", vec![]),
            ("./all.sh 2>&1 | tee log.txt", vec![r#"Program("./all.sh")"#]),
            ("./all.sh >log 2>&1 </dev/null", vec![r#"Program("./all.sh")"#]),
            ("uv run python3.12 -B tools/check.py", vec![r#"Interpreted("tools/check.py")"#]),
            ("python -c 'import x'", vec![]),
            ("bash -ec 'make test'", vec![r#"Text("make test")"#]),
            ("# sh not.sh\necho sh also-not.sh # nor.sh", vec![]),
            ("./a.sh \\\n  --long", vec![r#"Program("./a.sh")"#]),
            ("`./a.sh` '", vec![r#"Program("$(./a.sh)")"#]),
            ("bash -eo pipefail -c 'make test'", vec![r#"Text("make test")"#]),
            ("bash -n ci.sh", vec![]),
            ("cat ci.sh | sh -s -- x", vec!["Input"]),
            ("bats a.bats b.bats", vec![r#"Scripts(["a.bats", "b.bats"])"#]),
            ("run-parts --regex x ci", vec![r#"Folder("x")"#]),
            ("coverage run --source a -m pytest -m slow", vec!["Module"]),
            (&"$(".repeat(100_000), vec![]),
            ("\"$ROOT\"/ci.sh || exit", vec![r#"Program("${ROOT}/ci.sh")"#]),
        ] {
            assert_eq!(run(text), expected, "{text}");
        }
    }
}
