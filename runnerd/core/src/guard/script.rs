//! Finds the commands that a shell script runs, as far as its text shows without running it.
//!
//! Reads any text, including files that merely contain lines of shell (a makefile, a justfile): anything that is not a
//! command yields one that names nothing. Not a shell: nothing is expanded here, see `variables`.

use super::command::{CommandSeparator, ShellCommand};

/// How deep nested substitutions are followed.
const MAX_DEPTH: u8 = 8;
/// Most bytes of an expression of a justfile: the end of each is looked for.
const MAX_EXPRESSION: usize = 4096;

/// Splits a text into its commands, in order; a command whose output is captured comes before the one that captures it.
pub(super) fn parse_commands(text: &str) -> Vec<ShellCommand<'_>> {
    parse_commands_at_depth(0, text)
}

fn parse_commands_at_depth(depth: u8, text: &str) -> Vec<ShellCommand<'_>> {
    let words = Vec::new();
    let word = None;
    let is_quiet = false;
    let mut reader = ScriptReader {
        rest: text,
        after_command: text,
        bytes_left: 0,
        commands: Vec::new(),
        words,
        word,
        is_quiet,
        depth,
    };
    reader.read_all();
    reader.commands
}

struct ScriptReader<'a> {
    rest: &'a str,
    /// The text after the last command.
    after_command: &'a str,
    /// Bytes remaining after the command that is being read.
    bytes_left: usize,
    commands: Vec<ShellCommand<'a>>,
    words: Vec<String>,
    /// The word that is being read.
    word: Option<String>,
    is_quiet: bool,
    /// How deep it is nested in substitutions.
    depth: u8,
}

impl<'a> ScriptReader<'a> {
    fn read_all(&mut self) {
        loop {
            self.bytes_left = self.rest.len();
            let Some(c) = self.next_char() else { break };
            match c {
                '\\' => self.read_escape(),
                '\'' => self.read_single_quoted(),
                '"' => self.read_double_quoted(),
                '$' | '`' => self.read_expansion(c),
                '{' if self.rest.starts_with('{') => self.read_just_expression(),
                '(' if self.word.as_ref().is_some_and(|word| word.ends_with('=')) => self.read_array(),
                '#' if self.word.is_none() => self.skip_line(),
                ' ' | '\t' | '\r' => self.end_word(),
                '>' | '<' => self.skip_redirection(c),
                '|' if self.rest.starts_with('|') => {
                    self.rest = &self.rest[1..];
                    self.end_command(true, self.separator_after_or());
                }
                '|' => {
                    self.rest = self.rest.strip_prefix('&').unwrap_or(self.rest);
                    self.end_command(self.is_passed_through(), CommandSeparator::Pipe);
                }
                '&' if self.rest.starts_with('>') => {}
                '&' => {
                    self.rest = self.rest.strip_prefix(c).unwrap_or(self.rest);
                    self.end_command(true, CommandSeparator::Any);
                }
                '\n' | ';' | '(' | ')' => self.end_command(true, CommandSeparator::Any),
                c => self.push_char(c),
            }
        }
        self.end_command(true, CommandSeparator::Any);
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn push_char(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn read_escape(&mut self) {
        match self.next_char() {
            Some('\n') => self.end_word(),
            Some(c) => self.push_char(c),
            None => {}
        }
    }

    fn read_single_quoted(&mut self) {
        let end = self.rest.find('\'').unwrap_or(self.rest.len());
        let (inner, rest) = self.rest.split_at(end);
        // just also replaces its expressions inside quotes.
        self.append_parts([inner.replace("{{", "${").replace("}}", "}").as_str()]);
        self.rest = rest.strip_prefix('\'').unwrap_or(rest);
    }

    fn read_double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.next_char() {
            match c {
                '"' => return,
                '\\' => self.read_escape(),
                '$' | '`' => self.read_expansion(c),
                '{' if self.rest.starts_with('{') => self.read_just_expression(),
                c => self.push_char(c),
            }
        }
    }

    /// Reads an expansion. A command in a substitution has its output captured.
    fn read_expansion(&mut self, begin: char) {
        // `$$` is how a makefile passes `$` to the shell.
        let is_doubled = begin == '$' && self.rest.starts_with('$');
        if is_doubled && self.rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || "_({".contains(c)) {
            self.rest = &self.rest[1..];
        }
        let (open, close) = match (begin, self.rest.chars().next()) {
            ('`', _) => (None, '`'),
            (_, Some('(')) => (Some('('), ')'),
            (_, Some('{')) => (Some('{'), '}'),
            _ => return self.read_name(),
        };
        let inner = self.take_until(open, close);
        if close == '}' {
            self.append_parts(["${", inner, "}"]);
            return;
        }
        self.append_parts(["$(", inner, ")"]);
        if self.depth < MAX_DEPTH {
            let inner = parse_commands_at_depth(self.depth + 1, inner);
            self.commands.extend(inner.into_iter().map(|inner| ShellCommand { sets_exit_code: false, ..inner }));
        }
    }

    fn read_name(&mut self) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = match self.rest.chars().next() {
            Some(c) if "@?*#".contains(c) || c.is_ascii_digit() => 1,
            _ => self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len()),
        };
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        if name.is_empty() { self.push_char('$') } else { self.append_parts(["${", name, "}"]) }
    }

    /// Reads an expression of a justfile.
    fn read_just_expression(&mut self) {
        let rest = &self.rest[..self.rest.floor_char_boundary(MAX_EXPRESSION)];
        let line = rest.split('\n').next().unwrap_or_default();
        match line.find("}}") {
            Some(end) => {
                let inner = &self.rest[1..end];
                self.rest = &self.rest[end + 2..];
                self.append_parts(["${", inner.trim(), "}"]);
            }
            None => self.push_char('{'),
        }
    }

    /// Reads the words of an array as one value.
    fn read_array(&mut self) {
        let inner = self.take_until(None, ')');
        let words: Vec<String> =
            parse_commands_at_depth(MAX_DEPTH, inner).into_iter().flat_map(|command| command.words).collect();
        self.append_parts([words.join(" ").as_str()]);
    }

    fn append_parts<const N: usize>(&mut self, parts: [&str; N]) {
        self.word.get_or_insert_default().extend(parts);
    }

    /// Returns the text before the end of an expansion, which may contain others, and skips both.
    fn take_until(&mut self, open: Option<char>, close: char) -> &'a str {
        let mut depth = usize::from(open.is_none());
        let mut end = self.rest.len();
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

    /// Skips a file that is read or written: it is not a word of the command.
    fn skip_redirection(&mut self, c: char) {
        let number = self.word.take_if(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        let is_joined = self.after_command[..self.after_command.len() - self.rest.len()].ends_with("&>");
        self.end_word();
        let is_copy = self.rest.starts_with('&');
        let is_input = c == '<' && !self.rest.starts_with(['<', '&', '(', '>']);
        self.rest = self.rest.trim_start_matches(['>', '<', '&', '-', ' ']);
        let end = self.rest.find(|c: char| c.is_whitespace() || ";|&()".contains(c)).unwrap_or(self.rest.len());
        let (file, rest) = self.rest.split_at(end);
        self.rest = rest;
        if is_input && !file.is_empty() {
            // As if another command printed the file.
            self.commands.push(ShellCommand {
                words: vec!["cat".to_owned(), file.trim_matches(['"', '\'']).to_owned()],
                sets_exit_code: false,
                separator: CommandSeparator::Pipe,
                is_quiet: false,
                source: file,
            });
        }
        let is_of_errors = c == '>' && (is_joined || number.as_deref() == Some("2"));
        // Errors redirected to the output are discarded if the output already is.
        self.is_quiet |= is_of_errors && (file == "/dev/null" || is_copy && file == "1" && self.is_output_discarded());
    }

    fn is_output_discarded(&self) -> bool {
        self.after_command[..self.after_command.len() - self.rest.len()].contains("/dev/null")
    }

    /// Returns what follows `||`.
    fn separator_after_or(&self) -> CommandSeparator {
        let line = self.rest.trim_start().split([';', '\n', '&', '|', '}', ')', '#']).next().unwrap_or_default();
        let makes_good = matches!(line.trim(), "true" | ":" | "continue" | "return" | "return 0" | "exit 0");
        if makes_good { CommandSeparator::OrElse } else { CommandSeparator::Or }
    }

    /// Whether the command after a pipe passes its input through, as for a log.
    fn is_passed_through(&self) -> bool {
        self.rest.trim_start().starts_with("tee ")
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self, decides: bool, next: CommandSeparator) {
        self.end_word();
        let source = &self.after_command[..self.after_command.len() - self.bytes_left];
        self.after_command = self.rest;
        let words = std::mem::take(&mut self.words);
        let is_quiet = std::mem::take(&mut self.is_quiet);
        if !words.is_empty() {
            self.commands.push(ShellCommand {
                words,
                sets_exit_code: decides,
                separator: next,
                is_quiet,
                source: source.trim(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::CommandTarget;
    use super::*;

    /// Returns what is run by those commands of a script whose exit code counts.
    fn deciding_targets(text: &str) -> Vec<String> {
        let commands = parse_commands(text);
        let deciding = commands.iter().filter(|command| command.sets_exit_code);
        let first = |runs| match runs {
            CommandTarget::Program(path) => format!("Program({path:?})"),
            CommandTarget::Script(words) => format!("Script({:?})", words[0]),
            CommandTarget::Interpreted(words) => format!("Interpreted({:?})", words[0]),
            CommandTarget::Scripts(_)
            | CommandTarget::Module
            | CommandTarget::Text(_)
            | CommandTarget::Input
            | CommandTarget::Folder(_) => format!("{runs:?}"),
        };
        deciding.filter_map(ShellCommand::run_target).map(first).collect()
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
            assert_eq!(deciding_targets(text), expected, "{text}");
        }
    }
}
