//! What a shell script runs, as far as its text tells without running it.
//!
//! Reads any text, also what only has lines of shell in it (a makefile, a justfile): what is no command comes out as one
//! that names nothing. Not a shell: nothing is expanded, and what stands in a variable is not known.

/// A command, as words without their quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// Its words; what is expanded in one is `$`.
    pub words: Vec<String>,
    /// Whether its exit code can be the script's: that of a command whose output is taken is not.
    pub decides: bool,
}

/// Programs behind which another program stands.
const PREFIXES: [&str; 40] = [
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "@", "-", "+", "exec", "eval", "time", "env",
    "command", "builtin", "nohup", "nice", "sudo", "timeout", "xvfb-run", "uv", "poetry", "pdm", "hatch", "pipenv",
    "rye", "bundle", "npx", "pnpm", "yarn", "bunx", "mise", "direnv", "run", "dlx", "x", "--",
];
/// Programs that run the shell script that they are given.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "bats", ".", "source"];
/// Other programs that run a script.
const INTERPRETERS: [&str; 12] =
    ["python", "python3", "node", "nodejs", "ruby", "perl", "php", "deno", "bun", "tsx", "ts-node", "Rscript"];

/// What a command runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Runs<'a> {
    /// A program at a path, or a shell script.
    Script(&'a str),
    /// A script of another language.
    Interpreted(&'a str),
    /// Text that a shell is given.
    Text(&'a str),
}

impl Command {
    /// Tells what it runs, where that can be in the repository.
    pub(super) fn runs(&self) -> Option<Runs<'_>> {
        let is_prefix = |word: &&String| {
            let bare = word.trim_start_matches(['@', '-', '+']);
            bare.is_empty() || PREFIXES.contains(&bare) || is_assignment(bare) || is_number(word)
        };
        let mut words = self.words.iter().skip_while(is_prefix);
        let program = words.next()?.trim_start_matches(['@', '-']);
        let name = program.rsplit('/').next().unwrap_or(program);
        let is_interpreter = INTERPRETERS.iter().any(|known| name == *known || is_version_of(name, known));
        if !SHELLS.contains(&name) && !is_interpreter {
            return program.contains('/').then_some(Runs::Script(program));
        }
        let of_text: &[char] = if is_interpreter { &['c', 'e'] } else { &['c'] };
        let mut takes_text = false;
        for word in words {
            match word.strip_prefix(['-', '+']) {
                Some(option) => takes_text |= !option.starts_with('-') && option.contains(of_text),
                None if takes_text && is_interpreter => return None,
                None if takes_text => return Some(Runs::Text(word)),
                None if is_interpreter && word == "run" => {}
                None if is_interpreter => return Some(Runs::Interpreted(word)),
                None => return Some(Runs::Script(word)),
            }
        }
        None
    }
}

fn is_version_of(name: &str, program: &str) -> bool {
    name.strip_prefix(program).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_number(word: &str) -> bool {
    word.trim_end_matches(['s', 'm', 'h']).parse::<f64>().is_ok()
}

/// How deep substitutions are followed into each other.
const MAX_DEPTH: u8 = 8;

/// Takes a text apart into its commands, in order; those whose output another one takes come before it.
pub(super) fn commands(text: &str) -> Vec<Command> {
    commands_at(0, text)
}

fn commands_at(depth: u8, text: &str) -> Vec<Command> {
    let mut reader = Reader { rest: text, commands: Vec::new(), words: Vec::new(), word: None, depth };
    reader.read();
    reader.commands
}

struct Reader<'a> {
    rest: &'a str,
    commands: Vec<Command>,
    words: Vec<String>,
    /// The word that is being read.
    word: Option<String>,
    /// In how many substitutions it stands.
    depth: u8,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\\' => self.escaped(),
                '\'' => self.quoted(),
                '"' => self.in_double_quotes(),
                '$' | '`' => self.expansion(c),
                '#' if self.word.is_none() => self.skip_line(),
                ' ' | '\t' | '\r' => self.end_word(),
                '>' | '<' => self.redirection(),
                '|' if !self.rest.starts_with('|') => self.end_command(self.is_copied()),
                '|' | '&' => {
                    self.rest = self.rest.strip_prefix(c).unwrap_or(self.rest);
                    self.end_command(true);
                }
                '\n' | ';' | '(' | ')' => self.end_command(true),
                c => self.push(c),
            }
        }
        self.end_command(true);
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
        self.word.get_or_insert_default().push_str(inner);
        self.rest = rest.strip_prefix('\'').unwrap_or(rest);
    }

    fn in_double_quotes(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '\\' => self.escaped(),
                '$' | '`' => self.expansion(c),
                c => self.push(c),
            }
        }
    }

    /// Passes over what is expanded. What a substitution runs is a command whose output is taken.
    fn expansion(&mut self, begin: char) {
        let (open, close) = match (begin, self.rest.chars().next()) {
            ('`', _) => (None, Some('`')),
            (_, Some('(')) => (Some('('), Some(')')),
            (_, Some('{')) => (Some('{'), Some('}')),
            _ => (None, None),
        };
        self.push('$');
        let Some(close) = close else {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_@?*#".contains(c));
            return;
        };
        let inner = self.until(open, close);
        if close != '}' && self.depth < MAX_DEPTH {
            let inner = commands_at(self.depth + 1, inner);
            self.commands.extend(inner.into_iter().map(|inner| Command { decides: false, ..inner }));
        }
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
    fn redirection(&mut self) {
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.rest = self.rest.trim_start_matches(['>', '<', '&', '-', ' ']);
        self.rest = self.rest.trim_start_matches(|c: char| !c.is_whitespace() && !";|&()".contains(c));
    }

    /// Whether what follows a pipe hands on what it is given, as in a log.
    fn is_copied(&self) -> bool {
        self.rest.trim_start().starts_with("tee ")
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self, decides: bool) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.commands.push(Command { words, decides });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the commands of a script that can decide run.
    fn run(text: &str) -> Vec<String> {
        let commands = commands(text);
        let deciding = commands.iter().filter(|command| command.decides);
        deciding.filter_map(Command::runs).map(|runs| format!("{runs:?}")).collect()
    }

    #[test]
    fn scripts_that_decide_are_told_from_programs_whose_output_is_looked_at() {
        for (text, expected) in [
            ("sh check.sh", vec![r#"Script("check.sh")"#]),
            (
                "set -e\n./ci/lint.sh && bash -eu 'ci/a b.sh' --all",
                vec![r#"Script("./ci/lint.sh")"#, r#"Script("ci/a b.sh")"#],
            ),
            ("\t@CI=1 timeout 60 ./ci.sh", vec![r#"Script("./ci.sh")"#]),
            ("if ! ./ci.sh; then exit 1; fi", vec![r#"Script("./ci.sh")"#]),
            (". \"$(dirname \"$0\")/lib.sh\"", vec![r#"Script("$/lib.sh")"#]),
            ("test \"$(sh greet.sh)\" = hello", vec![]),
            ("sh greet.sh | grep -q hello", vec![]),
            ("./all.sh 2>&1 | tee log.txt", vec![r#"Script("./all.sh")"#]),
            ("./all.sh >log 2>&1 </dev/null", vec![r#"Script("./all.sh")"#]),
            ("uv run python3.12 -B tools/check.py", vec![r#"Interpreted("tools/check.py")"#]),
            ("python -c 'import x'", vec![]),
            ("bash -ec 'make test'", vec![r#"Text("make test")"#]),
            ("# sh not.sh\necho sh also-not.sh # nor.sh", vec![]),
            ("./a.sh \\\n  --long", vec![r#"Script("./a.sh")"#]),
            ("`./a.sh` '", vec![]),
            (&"$(".repeat(100_000), vec![]),
            ("\"$ROOT\"/ci.sh || exit", vec![r#"Script("$/ci.sh")"#]),
        ] {
            assert_eq!(run(text), expected, "{text}");
        }
    }
}
