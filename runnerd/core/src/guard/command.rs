//! Commands of the shell: what they run, list and print.

use super::paths::file_name;

/// A command, as words without their quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellCommand<'a> {
    /// Its words. A variable in a word is `${NAME}`, including those of a justfile; the output of a command, or the
    /// result of a make function, is `$(TEXT)`; an unknown positional parameter is `$`.
    pub words: Vec<String>,
    /// Whether its exit code can become the script's; that of a command whose output is captured cannot.
    pub sets_exit_code: bool,
    /// What follows the command.
    pub separator: CommandSeparator,
    /// Whether its errors are thrown away.
    pub is_quiet: bool,
    /// Source text of the command.
    pub source: &'a str,
}

/// What follows a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandSeparator {
    /// Another command, or nothing.
    Any,
    /// A command that reads its output.
    Pipe,
    /// A command that runs only if this one fails, and then fails too.
    Or,
    /// A command that runs only if this one fails, and makes up for the failure.
    OrElse,
}

/// Programs that run the program named in their arguments.
const PREFIXES: [&str; 47] = [
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "@", "-", "+", "exec", "eval", "time", "env",
    "command", "builtin", "nohup", "nice", "ionice", "setsid", "stdbuf", "taskset", "chrt", "flock", "doas", "sudo",
    "timeout", "xvfb-run", "uv", "poetry", "pdm", "hatch", "pipenv", "rye", "bundle", "npx", "pnpm", "yarn", "bunx",
    "mise", "direnv", "run", "dlx", "x", "--",
];
/// Those of them that take options before that program.
const PREFIXES_WITH_OPTIONS: [&str; 14] = [
    "env", "command", "time", "nohup", "nice", "ionice", "setsid", "stdbuf", "taskset", "chrt", "flock", "doas",
    "sudo", "timeout",
];
/// Their options that take a value, without the dash.
const PREFIX_OPTIONS_WITH_VALUE: [&str; 6] = ["u", "C", "g", "s", "o", "e"];
/// Programs that run the shell script in their arguments; bats runs several.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "bats", ".", "source"];
/// Other programs that run a script.
const INTERPRETERS: [&str; 13] = [
    "python", "python3", "node", "nodejs", "ruby", "perl", "php", "deno", "bun", "tsx", "ts-node", "Rscript",
    "coverage",
];
/// Python modules that run another module.
const MODULE_RUNNERS: [&str; 4] = ["coverage", "cProfile", "trace", "pdb"];
/// Options of `xargs` that take a value.
const XARGS_VALUE_OPTIONS: [&str; 7] = ["-n", "-P", "-L", "-d", "-a", "-s", "-E"];

/// Programs that print variables of the environment for `eval`.
const ENVIRONMENT_PRINTERS: [&str; 8] = ["ssh-agent", "direnv", "pyenv", "rbenv", "opam", "brew", "mise", "fnm"];

/// What a command runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommandTarget<'a> {
    /// A program at a path.
    Program(&'a str),
    /// A shell script: the first word, followed by its arguments.
    Script(&'a [String]),
    /// A script in another language, likewise.
    Interpreted(&'a [String]),
    /// Several scripts, one per word.
    Scripts(&'a [String]),
    /// Python modules: see `modules`.
    Module,
    /// Text passed to a shell.
    Text(&'a str),
    /// A script that a shell reads from its input.
    Input,
    /// All files of a folder.
    Folder(&'a str),
}

impl<'a> ShellCommand<'a> {
    /// Builds a command from its words.
    pub(super) fn new(words: Vec<String>, source: &'a str) -> Self {
        Self { words, sets_exit_code: true, separator: CommandSeparator::Any, is_quiet: false, source }
    }

    /// Returns the index of the program among the words.
    pub(super) fn program_position(&self) -> Option<usize> {
        let is_prefix = |word: &String| {
            let bare = word.trim_start_matches(['@', '-', '+', '$']);
            bare.is_empty() || PREFIXES.contains(&bare) || is_assignment(bare) || is_number(word)
        };
        let mut at = 0;
        let mut takes_options = false;
        let mut operands = 0;
        loop {
            let word = self.words.get(at)?;
            at += match word.strip_prefix('-') {
                _ if is_prefix(word) => {
                    takes_options |= PREFIXES_WITH_OPTIONS.contains(&word.trim_start_matches('@'));
                    operands += usize::from(word == "flock");
                    1
                }
                Some(option) if takes_options => 1 + usize::from(PREFIX_OPTIONS_WITH_VALUE.contains(&option)),
                None if operands > 0 => {
                    operands -= 1;
                    1
                }
                _ => return Some(at),
            };
        }
    }

    /// Returns the name of the program and the words after it.
    fn name_and_args(&self) -> Option<(&str, &[String])> {
        let at = self.program_position()?;
        let program = self.words[at].trim_start_matches(['@', '-']);
        // The name may follow an unknown variable, as in `$(Q)sh`.
        let bare = program.strip_prefix('$').filter(|bare| bare.starts_with(|c: char| c.is_ascii_alphabetic()));
        Some((bare.unwrap_or(program), &self.words[at + 1..]))
    }

    /// Returns what it runs, if that can be in the repository.
    pub(super) fn run_target(&self) -> Option<CommandTarget<'_>> {
        let (program, words) = self.name_and_args()?;
        let name = program.rsplit('/').next().unwrap_or(program);
        let is_interpreter = is_interpreter(name);
        if !SHELLS.contains(&name) && !is_interpreter {
            // The arguments of an unknown program have no known meaning.
            let is_known = !self.words[..self.program_position()?].iter().any(|word| word == "$");
            return match name {
                "run-parts" => words.iter().find(|word| !word.starts_with('-')).map(|word| CommandTarget::Folder(word)),
                _ => (is_known && program.contains('/')).then_some(CommandTarget::Program(program)),
            };
        }
        let reads_text = !is_interpreter && !matches!(name, "bats" | "." | "source");
        let mut takes_text = false;
        let mut is_value = false;
        for (at, word) in words.iter().enumerate() {
            if std::mem::take(&mut is_value) {
                continue;
            }
            let Some(option) = word.strip_prefix(['-', '+']) else {
                return match () {
                    () if takes_text => (!is_interpreter).then_some(CommandTarget::Text(word)),
                    () if is_interpreter && word == "run" => continue,
                    () if is_interpreter => Some(CommandTarget::Interpreted(&words[at..])),
                    () if name == "bats" => Some(CommandTarget::Scripts(&words[at..])),
                    () => Some(CommandTarget::Script(&words[at..])),
                };
            };
            let has = |letter: char| !option.starts_with('-') && option.contains(letter);
            is_value = if is_interpreter { matches!(word.as_str(), "-W" | "-X" | "--source") } else { has('o') };
            match () {
                () if has('m') && (name.starts_with("python") || name == "coverage") => {
                    return Some(CommandTarget::Module);
                }
                // The script is only read, not run.
                () if reads_text && has('n') => return None,
                () if reads_text && has('s') => return Some(CommandTarget::Input),
                () => takes_text |= has('c') || is_interpreter && has('e'),
            }
        }
        (reads_text && !takes_text).then_some(CommandTarget::Input)
    }

    /// Returns the modules that `python -m` runs: the first, and those that it runs in turn.
    pub(super) fn python_modules(&self) -> Vec<&str> {
        let mut modules: Vec<&str> = Vec::new();
        // In isolated mode the working folder is not searched.
        let is_apart = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains(['I', 'P']);
        if self.words.iter().take_while(|word| *word != "-m").any(is_apart) {
            return modules;
        }
        for pair in self.words.windows(2).filter(|pair| pair[0].starts_with('-') && pair[0].ends_with('m')) {
            if modules.last().is_none_or(|last| MODULE_RUNNERS.contains(last)) {
                modules.push(&pair[1]);
            }
        }
        modules
    }

    /// Returns the modules that a text of Python imports: this command is a line of it, or passes it to Python.
    pub(super) fn python_imports(&self) -> Vec<String> {
        let is_python = self.name_and_args().is_some_and(|(program, _)| file_name(program).starts_with("python"));
        let text = self.words.iter().skip_while(|word| *word != "-c").nth(1).filter(|_| is_python);
        let line = self.words.join(" ");
        let statements =
            text.unwrap_or(&line).split([';', '\n']).map(|line| line.split_whitespace().collect::<Vec<_>>());
        let names = statements.flat_map(|words| match words.as_slice() {
            ["import", names @ ..] => names.join(" ").split(',').map(str::to_owned).collect(),
            ["from", name, "import", ..] => vec![(*name).to_owned()],
            _ => Vec::new(),
        });
        // Behind `as` is another name for it.
        let names = names.filter_map(|name| name.split_whitespace().next().map(str::to_owned));
        names.filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.')).collect()
    }

    /// Returns the name of the program, if it is looked for in the folders of `PATH`.
    pub(super) fn bare_program(&self) -> Option<&str> {
        self.name_and_args().map(|(program, _)| program).filter(|program| !program.contains(['/', '$', '=', '(']))
    }

    /// Whether it runs the scripts of another package of the repository.
    pub(super) fn names_package(&self) -> bool {
        let is_manager = |word: &String| matches!(file_name(word), "npm" | "pnpm" | "yarn" | "bun");
        let options = ["-w", "-r", "-F", "--filter", "--recursive", "workspace", "workspaces"];
        let names = |word: &str| options.contains(&word) || word.starts_with("--workspace");
        let mut words = self.words.iter().skip_while(|word| !is_manager(word)).skip(1);
        words.any(|word| names(word.split('=').next().unwrap_or_default()))
    }

    /// Returns the paths it tests for a file, provided that what follows runs only if one exists, and whether a missing
    /// file is fine.
    pub(super) fn tested_files(&self) -> (&[String], bool) {
        let Some((_, words)) = self.name_and_args().filter(|(program, _)| matches!(*program, "[" | "[[" | "test"))
        else {
            return (&[], false);
        };
        let is_negated = self.words.iter().any(|word| word == "!");
        let is_tested = match self.separator {
            CommandSeparator::Or => is_negated,
            CommandSeparator::OrElse => true,
            CommandSeparator::Any | CommandSeparator::Pipe => !is_negated,
        };
        let is_test = |word: &String| matches!(word.as_str(), "-f" | "-e" | "-r" | "-x" | "-s");
        let is_condition =
            is_negated || self.separator == CommandSeparator::OrElse || matches!(self.words[0].as_str(), "if" | "elif");
        (if is_tested && words.iter().any(is_test) { words } else { &[] }, is_condition)
    }

    /// Whether it sources a script into the shell.
    pub(super) fn is_source(&self) -> bool {
        self.name_and_args().is_some_and(|(program, _)| matches!(program, "." | "source"))
    }

    /// Whether a file that it reads may be missing.
    pub(super) fn may_fail(&self) -> bool {
        self.is_source() && (self.is_quiet || self.separator == CommandSeparator::OrElse)
    }

    /// Returns the command that `xargs` or `find` runs for each of some files, which appear in it as `${{}}`.
    pub(super) fn per_file_command(&self) -> Option<Vec<String>> {
        let (program, words) = self.name_and_args()?;
        let (words, name) = match program {
            "xargs" => {
                let mut at = 0;
                let mut name = None;
                while let Some(option) = words.get(at).filter(|word| word.starts_with('-')) {
                    if let Some(value) = option.strip_prefix("-I").or_else(|| option.strip_prefix("-i")) {
                        let value = if value.is_empty() { words.get(at + 1).map_or("", String::as_str) } else { value };
                        name = Some(value.to_owned()).filter(|name| !name.is_empty());
                    }
                    at += if XARGS_VALUE_OPTIONS.contains(&option.as_str()) || option == "-I" { 2 } else { 1 };
                }
                (words.get(at..)?, name)
            }
            "find" => {
                let is_begin = |word: &String| matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
                let begin = words.iter().position(is_begin)?;
                let is_end = |word: &String| word == ";" || word == "+";
                let end = words[begin..].iter().position(is_end).map_or(words.len(), |end| begin + end);
                (&words[begin + 1..end], Some("{}".to_owned()))
            }
            _ => return None,
        };
        let Some(name) = name else {
            return Some(words.iter().cloned().chain(["${{}}".to_owned()]).collect());
        };
        Some(words.iter().map(|word| word.replace(&name, "${{}}")).collect())
    }

    /// Returns the paths that it prints, as patterns.
    pub(super) fn printed_paths(&self) -> Vec<String> {
        let Some((program, words)) = self.name_and_args() else { return Vec::new() };
        let paths = || words.iter().filter(|word| !word.starts_with('-')).cloned();
        match program {
            "find" => find_patterns(words),
            "git" if words.first().is_some_and(|word| word == "ls-files") => {
                paths().skip(1).flat_map(ls_files_patterns).collect()
            }
            // Only the names within the folder.
            "ls" => paths().map(|path| if path.contains(['*', '?', '$']) { path } else { "*".into() }).collect(),
            "echo" | "printf" | "wildcard" | "sort" | "strip" => paths().filter(|path| !path.contains('%')).collect(),
            // A make function that contains a command.
            "shell" => ShellCommand::new(words.to_vec(), "").printed_paths(),
            _ => Vec::new(),
        }
    }

    /// Returns the files whose content it prints.
    pub(super) fn copied_files(&self) -> &[String] {
        self.name_and_args().filter(|(program, _)| *program == "cat").map_or(&[], |(_, words)| words)
    }

    /// Returns the text that it prints.
    pub(super) fn printed_text(&self) -> Option<String> {
        let (_, words) = self.name_and_args().filter(|(program, _)| matches!(*program, "echo" | "printf"))?;
        Some(words.join(" "))
    }

    /// Whether it is `find`.
    pub(super) fn is_find(&self) -> bool {
        self.name_and_args().is_some_and(|(program, _)| program == "find")
    }

    /// Whether it is an `eval` of something unknown.
    pub(super) fn is_eval(&self) -> bool {
        let Some(at) = self.program_position() else { return false };
        let is_eval = self.words[..at].last().is_some_and(|word| word.trim_start_matches(['@', '-']) == "eval");
        let names = |program: &str| self.words[at].starts_with(&format!("$({program}"));
        is_eval && self.words[at].starts_with('$') && !ENVIRONMENT_PRINTERS.iter().any(|program| names(program))
    }
}

/// Returns the commands whose output the command at this index reads.
pub(super) fn pipeline_input<'a, 'b>(commands: &'b [ShellCommand<'a>], at: usize) -> &'b [ShellCommand<'a>] {
    let before = commands.get(..at).unwrap_or_default();
    let count = before.iter().rev().take_while(|command| command.separator == CommandSeparator::Pipe).count();
    &before[before.len() - count..]
}

/// Returns patterns of what `find` finds.
fn find_patterns(words: &[String]) -> Vec<String> {
    let is_option = |word: &String| word.starts_with(['-', '(', '!']);
    let mut folders: Vec<&str> = words.iter().take_while(|word| !is_option(word)).map(String::as_str).collect();
    if folders.is_empty() {
        folders.push(".");
    }
    let mut names: Vec<&str> = Vec::new();
    for (at, pair) in words.windows(2).enumerate() {
        let is_negated = at > 0 && matches!(words[at - 1].as_str(), "!" | "-not");
        if matches!(pair[0].as_str(), "-name" | "-iname") && !is_negated {
            names.push(&pair[1]);
        }
    }
    if names.is_empty() {
        names.push("*");
    }
    folders.iter().flat_map(|folder| names.iter().map(move |name| format!("{folder}/**/{name}"))).collect()
}

/// Returns what `git ls-files` lists for a pattern, in which `*` matches folders too.
fn ls_files_patterns(path: String) -> Vec<String> {
    match path.rsplit_once('/') {
        _ if path.starts_with(':') => Vec::new(),
        _ if !path.contains(['*', '?']) => vec![format!("{path}/**"), path],
        Some((folder, name)) => vec![format!("{folder}/**/{name}")],
        None => vec![format!("**/{path}")],
    }
}

/// Whether a program runs scripts.
pub(super) fn is_script_runner(name: &str) -> bool {
    SHELLS.contains(&name) || is_interpreter(name)
}

fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.iter().any(|known| name == *known || is_version_of(name, known))
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
