//! Rules about the source: which module may use which, which words have one home, and how long a file may be.
//!
//! Reads source text, not types: a rule says that a word may appear only in some files. Code that compiles without the
//! word is not covered.

mod names;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of lines in a file, without its tests.
const LONGEST_FILE: usize = 500;

/// The modules of the daemon, each with the modules that it may use. `main` and `daemon` assemble everything.
const ARROWS: &[(&str, &[&str])] = &[
    ("admit", &["containment_check", "repo", "worker"]),
    ("call_context", &[]),
    ("daemon_config", &[]),
    ("containment_check", &[]),
    ("events", &[]),
    ("guard", &["repo"]),
    ("log_redactor", &[]),
    ("landing", &["admit", "repo", "store", "verify", "worker"]),
    ("job", &["logging", "registry", "repo", "upstream", "worker", "workspace"]),
    ("isolation", &["publish", "repo", "store", "worker", "workspace"]),
    ("logging", &["log_redactor"]),
    ("memory", &[]),
    (
        "methods",
        &[
            "admit",
            "call_context",
            "events",
            "landing",
            "isolation",
            "logging",
            "memory",
            "state_dir",
            "publish",
            "registry",
            "repo",
            "rpc",
            "startup",
            "store",
            "verify",
            "worker",
            "workspace",
        ],
    ),
    ("state_dir", &["repo", "store"]),
    ("publish", &["repo", "store"]),
    ("registry", &["repo", "store", "worker"]),
    ("repo", &[]),
    ("review", &[]),
    ("rpc", &["call_context", "events"]),
    ("service", &["registry", "worker"]),
    ("ssh_signature", &[]),
    ("startup", &["service"]),
    ("store", &["repo"]),
    ("upstream", &[]),
    ("verify", &["admit", "guard", "repo", "ssh_signature", "worker", "workspace"]),
    (
        "worker",
        &[
            "containment_check",
            "events",
            "guard",
            "log_redactor",
            "publish",
            "repo",
            "review",
            "ssh_signature",
            "store",
            "upstream",
        ],
    ),
    ("workspace", &["repo"]),
];

/// A word in the code, and the only files or folders of `within` that may contain it.
struct Home {
    word: &'static str,
    within: &'static str,
    homes: &'static [&'static str],
    why: &'static str,
}

const HOMES: &[Home] = &[
    Home {
        word: "gix",
        within: "",
        homes: &["runnerd/git/src/"],
        why: "its releases break monthly, and it trusts what a repository says",
    },
    Home {
        word: "jsonrpsee",
        within: "runnerd/src/",
        homes: &[
            "runnerd/src/rpc/",
            "runnerd/src/methods/",
            "runnerd/src/logging/filter.rs", // the name of a log target
        ],
        why: "the engine knows no wire",
    },
    Home {
        word: "Timestamp::now",
        within: "runnerd/",
        homes: &["runnerd/os/src/clock.rs"],
        why: "a decision must not read a clock in passing",
    },
    Home {
        word: "SystemTime",
        within: "",
        homes: &["runnerd/git/src/worktree/content.rs", "runnerd/src/repo/records.rs"], // the time of a file
        why: "times are jiff's, and come from `clock`",
    },
    Home { word: "ClockId::", within: "", homes: &["runnerd/supervisor/src/clock.rs"], why: "one clock measures" },
    Home {
        word: "Instant::now",
        within: "runnerd/",
        homes: &["runnerd/src/rpc/guarded_io.rs"], // a connection's own timer: nothing is decided from it
        why: "budgets count a machine's sleep, and this clock does not",
    },
    Home {
        word: "Command::new",
        within: "",
        homes: &[
            "runnerd/process/src/",
            "runnerd/git/src/repository/program.rs",
            "runnerd/src/upstream/user_git.rs",     // the user's git, towards a remote
            "runnerd/src/state_dir/signing_key.rs", // ssh-keygen, which makes a key in a moment and asks nothing
            "runnerd/src/ssh_signature.rs",         // the same, which looks at a signature
            "runnerd/supervisor/src/leader.rs",
            "runnerd/testkit/",
            "bench/",                           // controls, beside what is measured
            "scripts/link.rs",                  // a build asks the compiler, and waits for its answer
            "protocol/src/client/start.rs",     // the daemon, by its clients
            "protocol/src/client/ssh.rs",       // the user's ssh, to a daemon on another machine
            "runnerctl/src/commands/daemon.rs", // the daemon, in the foreground
            "runnerctl/src/program.rs",         // the user's git, and the programs of forges
            "runnerctl/src/doc_tests.rs",       // the shell of a test, which reads what is offered
            "runnerctl/src/editor.rs",          // the user's editor
            "runnerctl/src/doctor/probe.rs",    // programs that say their version
            "runnerctl/src/commands/ui.rs",     // the server of the web view, and the user's browser
            "runnerctl/src/commands/service/",  // the service manager's programs
            "runnerctl/src/pager.rs",           // the user's pager
            "runnerctl/src/temp_daemon.rs",     // the daemon of one command
            "runnerctl/src/commands/demo/",     // the demo's scratch repository
            "eval/src/process/",                // keepers, and what they keep
        ],
        why: "what is started must be ended",
    },
    Home { word: "tokio", within: "runnerd/supervisor/", homes: &[], why: "a shim forks, so it has one thread" },
    Home { word: "tokio", within: "runnerd/git/", homes: &[], why: "it is called from threads that may wait" },
    Home { word: "std::fs", within: "runnerd/config/src/", homes: &[], why: "the caller reads the file" },
    Home { word: "std::fs", within: "runnerd/core/src/", homes: &[], why: "the rules read no file" },
    Home { word: "std::env", within: "runnerd/core/src/", homes: &[], why: "the rules know no environment" },
    Home { word: "std::process", within: "runnerd/core/src/", homes: &[], why: "the rules start nothing" },
    Home { word: "Instant", within: "runnerd/core/src/", homes: &[], why: "the rules have no clock" },
    Home { word: "SystemTime", within: "runnerd/core/src/", homes: &[], why: "the rules have no clock" },
    Home { word: "HashMap", within: "runnerd/core/src/", homes: &[], why: "hash order enters no decision" },
    Home { word: "runnerd::", within: "runnerctl/", homes: &[], why: "the client knows the protocol alone" },
    Home { word: "runner_core::", within: "runnerctl/", homes: &[], why: "the client knows the protocol alone" },
    Home { word: "runnerd::", within: "eval/src/", homes: &[], why: "the client knows the protocol alone" },
    Home { word: "runner_core::", within: "eval/", homes: &[], why: "the client knows the protocol alone" },
    Home { word: "runner_core::", within: "protocol/src/", homes: &[], why: "the protocol is at the bottom" },
    Home { word: "todo!(", within: "", homes: &[], why: "it is not done" },
    Home { word: "unimplemented!(", within: "", homes: &[], why: "it is not done" },
    Home { word: "#[allow(", within: "", homes: &[], why: "`#[expect(…, reason)]` says when it has no use any more" },
    Home {
        word: "#[ignore",
        within: "",
        homes: &[
            "runnerd/tests/process/daemon.rs", // the daemon that another test kills
            "runnerd/tests/process/hidden.rs", // the ordinary user of a test of root's
            "runnerd/tests/socket/peers.rs",   // the other process of a test
        ],
        why: "a test that is not run shows nothing",
    },
];

/// A source file: its path from the root of the workspace, and its text.
struct Source {
    path: String,
    text: String,
}

/// Returns numbered lines of code without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter_map(|(at, line)| line.split("//").next().map(|code| (at, code)))
}

impl Source {
    /// Returns the text that is compiled into the product: the lines of test-only items are empty.
    fn product(&self) -> String {
        let mut product = String::new();
        let mut in_tests = false;
        let mut is_head = false;
        for line in self.text.lines() {
            if line.starts_with("#[cfg(test)]") {
                (in_tests, is_head) = (true, true);
            } else if in_tests {
                let is_attribute = line.starts_with("#[");
                // An item ends at a brace in the first column, or is a single line.
                in_tests = !(line.starts_with('}') || is_head && !is_attribute && line.ends_with(';'));
                is_head &= is_attribute;
            } else {
                product.push_str(line);
            }
            product.push('\n');
        }
        product
    }

    /// Whether the whole file is for tests.
    fn is_test(&self) -> bool {
        let is_for_tests =
            ["runnerd/testkit/", "runnerd/simulation/"].iter().any(|folder| self.path.starts_with(folder));
        is_for_tests || self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// Returns the module of the daemon that it belongs to.
    fn module(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("runnerd/src/")?;
        Some(inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs"))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above").to_owned()
}

/// Returns the sources of the workspace, except these tests, which contain every name.
fn sources() -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    for folder in fs::read_dir(&root).expect("the workspace can be read") {
        let folder = folder.expect("an entry").path();
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if folder.is_dir() && name != "target" && !name.starts_with('.') {
            collect(&root, &folder, &mut found);
        }
    }
    found.retain(|source| !source.path.starts_with("runnerd/tests/tidy/"));
    assert!(found.len() > 100, "only {} sources were found", found.len());
    found
}

fn collect(root: &Path, folder: &Path, into: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(root, &path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source is text");
            let path = path.strip_prefix(root).expect("it is below").display().to_string();
            into.push(Source { path, text });
        }
    }
}

/// Whether a line contains the word, and not only as the end of a longer one: `GitCommand::new` is not `Command::new`.
fn names_word(code: &str, word: &str) -> bool {
    let continues = |at: usize| code[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
    code.match_indices(word).any(|(at, _)| !continues(at))
}

/// Fails with all findings together.
#[track_caller]
fn none(findings: &str, rule: &str) {
    assert!(findings.is_empty(), "{rule}:\n{findings}");
}

/// Returns the modules that a piece of code names as `crate::module` or in `crate::{…}`.
fn module_names(code: &str) -> Vec<&str> {
    let mut modules = Vec::new();
    for after in code.split("crate::").skip(1) {
        let list = match after.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => after.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default(),
        };
        modules.extend(list.split(',').map(|item| item.trim().split("::").next().unwrap_or_default()));
    }
    modules
}

#[test]
fn modules_use_only_what_is_below_them() {
    let mut findings = String::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        let Some(module) = source.module().filter(|module| !["main", "bin", "daemon", "lib"].contains(module)) else {
            continue;
        };
        let Some((_, below)) = ARROWS.iter().find(|(name, _)| *name == module) else {
            let _ = writeln!(findings, "  {}: module `{module}` is not in the table", source.path);
            continue;
        };
        for (line, code) in code(&source.product()) {
            let modules = module_names(code).into_iter().filter(|name| ARROWS.iter().any(|(module, _)| module == name));
            for name in modules.filter(|name| *name != module && !below.contains(name)) {
                let _ = writeln!(findings, "  {}:{line}: `{module}` uses `{name}`", source.path);
            }
        }
    }
    none(&findings, "a module may use what ARROWS says");
}

#[test]
fn the_arrows_have_no_cycle() {
    let mut left: Vec<_> = ARROWS.iter().collect();
    while !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|(name, _)| *name).collect();
        left.retain(|(_, below)| below.iter().any(|name| names.contains(name)));
        assert!(left.len() < names.len(), "these use each other: {names:?}");
    }
}

#[test]
fn no_example_of_the_documentation_is_code_that_nobody_runs() {
    let mut findings = String::new();
    for Source { path, text } in sources() {
        let fence =
            |line: &str| line.trim().strip_prefix("//").map(|line| line.trim_start_matches(['/', '!', ' ']).to_owned());
        let fences = text.lines().filter_map(fence).filter(|line| line.starts_with("```"));
        for opening in fences.step_by(2).filter(|line| line != "```text") {
            let _ = writeln!(findings, "  {path}: {opening}");
        }
    }
    none(&findings, "tests of the documentation are not run: make it a test, or text");
}

#[test]
fn each_thing_has_one_home() {
    let mut findings = String::new();
    let sources = sources();
    for home in HOMES {
        let is_guest = |source: &&Source| {
            source.path.starts_with(home.within) && !home.homes.iter().any(|allowed| source.path.starts_with(allowed))
        };
        let about_tests = home.word.starts_with("#[");
        for source in sources.iter().filter(is_guest).filter(|source| about_tests || !source.is_test()) {
            let text = if about_tests { source.text.clone() } else { source.product() };
            for (line, _) in code(&text).filter(|(_, code)| names_word(code, home.word)) {
                let _ = writeln!(findings, "  {}:{line}: `{}`: {}", source.path, home.word, home.why);
            }
        }
    }
    none(&findings, "a word stands in a file that is not its home");
}

#[test]
fn every_home_is_still_needed() {
    let sources = sources();
    for home in HOMES {
        for allowed in home.homes {
            let has_word = |source: &Source| source.path.starts_with(allowed) && source.text.contains(home.word);
            assert!(sources.iter().any(has_word), "nothing in {allowed} says `{}`", home.word);
        }
    }
}

#[test]
fn every_file_begins_with_what_it_is() {
    let mut findings = String::new();
    for source in sources().iter().filter(|source| !source.text.starts_with("//! ")) {
        let _ = writeln!(findings, "  {}", source.path);
    }
    none(&findings, "a file does not begin with `//!`");
}

#[test]
fn no_file_is_too_long() {
    let mut findings = String::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        let lines = source.product().trim_end().lines().count();
        if lines > LONGEST_FILE {
            let _ = writeln!(findings, "  {}: {lines} lines", source.path);
        }
    }
    none(&findings, "a file is longer than 500 lines without its tests");
}

#[test]
fn no_line_waits_to_be_mended() {
    let mut findings = String::new();
    for source in &sources() {
        for (at, line) in source.text.lines().enumerate() {
            for word in ["FIXME", "XXX", "TODO"] {
                if line.contains(word) {
                    let _ = writeln!(findings, "  {}:{}: {word}", source.path, at + 1);
                }
            }
        }
    }
    none(&findings, "a line is not for the reader");
}

/// Pages that say where something is in the source, with its path from the root of the workspace.
const MAPS: [&str; 6] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/agents.md",
    "docs/limits.md",
    "docs/contributing/attacks.md",
    "docs/contributing/faults.md",
];

#[test]
fn every_path_that_a_map_names_exists() {
    let root = root();
    let mut findings = String::new();
    let mut count = 0;
    for page in MAPS {
        let text = fs::read_to_string(root.join(page)).expect("a page can be read");
        for path in text.split('`').skip(1).step_by(2) {
            let is_path = ["runnerd/", "runnerctl/", "runner-ui/", "protocol/", "eval/", "fuzz/", "bench/"]
                .iter()
                .any(|folder| path.starts_with(folder))
                && !path.contains([' ', '*', '<', '{']);
            count += usize::from(is_path);
            if is_path && !root.join(path.split("::").next().unwrap_or(path)).exists() {
                let _ = writeln!(findings, "  {page}: {path}");
            }
        }
    }
    assert!(count > 50, "only {count} paths were found");
    none(&findings, "a page names what is not there");
}
