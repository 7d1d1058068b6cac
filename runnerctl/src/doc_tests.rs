//! Checks the documents and the daemon's hints against the command line: every command they show must parse.
//!
//! Tests only. Whether a command does what the text says is not checked here.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process;

use clap::{CommandFactory as _, Parser as _};
use protocol::command::{Command, KNOWN_COMMANDS};

use crate::args::Cli;

/// Commands named for a state that this version never reaches: reviews are refused when a run is started.
const NOT_BUILT: [&str; 1] = ["approve"];

fn repo_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the files below a folder that end in `end`, except tests.
fn list_files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() && !name.starts_with("tests") {
            found.extend(list_files(&entry, end));
        } else if name.ends_with(end) && name != "tests.rs" {
            found.push(entry);
        }
    }
    found.sort();
    found
}

fn list_documents() -> Vec<PathBuf> {
    let mut pages = list_files(&repo_root().join("docs"), ".md");
    pages.extend(
        ["ARCHITECTURE.md", "README.md"].map(|page| repo_root().join(page)).into_iter().filter(|page| page.exists()),
    );
    pages
}

fn read_file(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the command lines of a page: lines of its `sh` blocks, and inline code.
fn commands_in(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut language = None;
    for line in page.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            language = language.is_none().then(|| fence.to_owned());
        } else if language.as_deref() == Some("sh") {
            let code = line.split(" #").next().unwrap_or(line);
            lines.extend(code.split("&&").map(|part| part.trim().to_owned()));
        } else if language.is_none() {
            lines.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    lines.retain(|line| line.starts_with("runnerctl ") && !line.contains(['…', '<', '|']));
    lines
}

/// Splits a line like a shell: quoted text is one word.
pub(crate) fn split_words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, left) = match first {
            '"' | '\'' => rest[1..].split_once(first).unwrap_or((&rest[1..], "")),
            _ => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word);
        rest = left.trim_start();
    }
    words
}

#[test]
fn commands_in_the_documents_can_be_typed() {
    let mut count = 0;
    for path in list_documents() {
        for line in commands_in(&read_file(&path)) {
            count += 1;
            let parsed = Cli::try_parse_from(split_words(&line));
            let is_help = parsed.as_ref().err().is_some_and(|error| !error.use_stderr());
            let is_group = parsed
                .as_ref()
                .err()
                .is_some_and(|error| error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
            assert!(parsed.is_ok() || is_help || is_group, "{}: `{line}`", path.display());
        }
    }
    assert!(count > 40, "only {count} commands were found");
}

#[test]
fn commands_in_the_messages_of_the_daemon_exist() {
    let folders = ["runnerd/src", "runnerd/core/src", "runnerd/core/templates", "protocol/src"];
    let known = Cli::command();
    let known: Vec<&str> = known.get_subcommands().map(clap::Command::get_name).chain(NOT_BUILT).collect();
    let mut count = 0;
    for path in folders
        .iter()
        .flat_map(|folder| [list_files(&repo_root().join(folder), ".rs"), list_files(&repo_root().join(folder), ".md")])
    {
        for (file, text) in path.iter().map(|file| (file, read_file(file))) {
            for rest in text.split("runnerctl ").skip(1) {
                let word: String = rest.chars().take_while(char::is_ascii_lowercase).collect();
                let is_command = rest[word.len()..].starts_with([' ', '"', '`', '\n', '{', ';', ',', '.', ')']);
                let is_prose =
                    matches!(word.as_str(), "" | "is" | "or" | "with" | "and" | "makes" | "starts" | "beside" | "in");
                if is_command && !is_prose {
                    count += 1;
                    assert!(known.contains(&word.as_str()), "{}: runnerctl {word}", file.display());
                }
            }
        }
    }
    assert!(count > 30, "only {count} commands were found");
}

/// Text that a shell would split or execute.
const HOSTILE: &str = "it's $(touch pwned) `id`; rm -rf ~ & \"x\" \n*";

/// Every command that can be suggested: those without arguments, and each constructor with arguments from the case.
fn sample_commands() -> Vec<Command> {
    let known_commands =
        KNOWN_COMMANDS.iter().map(|(_, line)| Command::from_known_line(line).expect("a known line is a command"));
    let built = [
        Command::retry("parser.lex"),
        Command::start_again("run-1"),
        Command::approve("port", 7),
        Command::list_iterations("run-1"),
        Command::verify("run-1"),
        Command::show_diff("port", 7),
        Command::set_config("max_cost_usd", "12", "tidy"),
        Command::resume("tidy"),
        Command::show_run("tidy"),
        Command::fetch("refs/heads/runner/*:refs/heads/runner/*"),
        Command::trust(HOSTILE),
        Command::switch("runner/run-1"),
        Command::restore_file(HOSTILE),
        Command::show_files("refs/runner/rescue/run-1/0007"),
        Command::show_changes(),
        Command::stage([HOSTILE, "b"]),
        Command::stash([HOSTILE, "b"]),
    ];
    let source = read_file(&repo_root().join("protocol/src/command.rs"));
    // `new`, `known` and `at` are not constructors.
    assert_eq!(
        source.matches(") -> Self {\n        Self::new(").count(),
        built.len(),
        "a constructor is not listed here"
    );
    known_commands.chain(built).collect()
}

#[test]
fn every_command_that_is_offered_is_one_of_the_client_or_of_git() {
    const GIT: [&str; 12] =
        ["add", "commit", "config", "fetch", "fsck", "init", "log", "restore", "show", "stash", "status", "switch"];
    for command in sample_commands().iter().flat_map(|command| [command.clone(), command.in_directory("/srv/a b")]) {
        let argv: Vec<&str> = command.argv.iter().map(String::as_str).collect();
        assert!(!command.label.is_empty(), "{argv:?}");
        match argv.as_slice() {
            ["runnerctl", ..] => assert!(Cli::try_parse_from(&argv).is_ok(), "{argv:?}"),
            ["git", "-C", _, verb, ..] | ["git", verb, ..] => assert!(GIT.contains(verb), "{argv:?}"),
            _ => panic!("{argv:?} is neither"),
        }
    }
}

#[test]
fn every_command_that_is_offered_is_what_a_shell_makes_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["runnerctl", "git"] {
        let program = folder.path().join(name);
        fs::write(&program, "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" \"$@\"\n").expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("its mode");
    }
    let commands = sample_commands();
    let places = ["/srv/a b", HOSTILE];
    for command in
        commands.iter().flat_map(|one| places.iter().map(|place| one.in_directory(place)).chain([one.clone()]))
    {
        let mut shell = process::Command::new("/bin/sh");
        shell.arg("-c").arg(command.to_shell()).env("PATH", folder.path()).current_dir(folder.path());
        let output = shell.output().expect("a shell");
        let argv: Vec<u8> = command.argv.iter().flat_map(|word| [word.as_bytes(), &[0]].concat()).collect();
        assert_eq!(output.stdout, argv, "{}", command.to_shell());
    }
    assert!(!folder.path().join("pwned").exists());
}

#[test]
fn links_between_documents_lead_somewhere() {
    for path in list_documents() {
        let page = read_file(&path);
        for target in page.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let is_local = !target.is_empty() && !target.contains("://") && !target.contains(' ');
            let file = path.parent().expect("a folder").join(target);
            assert!(!is_local || file.exists(), "{} links to {target}", path.display());
        }
    }
}

/// Returns the number of a decision record, from its file name.
fn record_number(name: &str) -> u32 {
    name.get(..4).and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{name} begins with no number"))
}

#[test]
fn every_decision_record_says_whether_it_holds_and_is_listed_with_its_title() {
    let folder = repo_root().join("docs/decisions");
    let names: Vec<String> = list_files(&folder, ".md")
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .filter(|name| name != "README.md")
        .collect();
    let mut rows = Vec::new();
    for name in &names {
        let record = read_file(&folder.join(name));
        let number = record_number(name);
        let lines: Vec<&str> = record.lines().take(4).collect();
        let &[title, "", status, ""] = lines.as_slice() else {
            panic!("{name}: a title, a status, and text after each")
        };
        let title = title.strip_prefix(&format!("# {number}. ")).unwrap_or_else(|| panic!("{name}: {title}"));
        let by = match status.strip_prefix("Status: superseded by ") {
            None => {
                assert_eq!(status, "Status: accepted", "{name}");
                " ".to_owned()
            }
            Some(by) => {
                let targets = by.split("](").skip(1).filter_map(|link| link.split(')').next());
                let newer: Vec<String> = targets
                    .map(record_number)
                    .inspect(|by| assert!(*by > number, "{name}: {by}"))
                    .map(|by| by.to_string())
                    .collect();
                assert!(!newer.is_empty(), "{name}: {status}");
                format!(" superseded by {} ", newer.join(", "))
            }
        };
        rows.push(format!("| [{number}]({name}) | {title} |{by}|"));
    }
    let list = read_file(&folder.join("README.md"));
    let listed: Vec<&str> = list.lines().filter(|line| line.starts_with("| [")).collect();
    for (listed, row) in listed.iter().zip(&rows) {
        assert_eq!(listed, row);
    }
    assert_eq!(listed.len(), rows.len());
}
