//! The blocks of the quick start, typed as written, in each common shell.
//!
//! A shell that is not installed is skipped with a message; in CI each of them is required.

use std::fs;
use std::path::Path;

use runner_testkit::{Home, binary};

use crate::place::RepoPlace;

/// Replaces the agent of the quick start.
const AGENT: &str = "cat > /dev/null; printf 'A first try.\\nNothing else.\\n' > NOTES.md; \
                     printf '{\"status\": \"done\", \"summary\": \"Wrote NOTES.md.\"}' > \"$RUNNER_OUTPUT\"";

/// Returns the block of a page marked with this word.
fn code_block(page: &str, mark: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    let text = fs::read_to_string(page).expect("the page can be read");
    let (_, after) = text.split_once(&format!("```sh {mark}\n")).expect("the page has the block");
    after.split_once("```").expect("the block ends").0.to_owned()
}

fn first_run() -> String {
    code_block("docs/quick-start.md", "first-run")
}

/// The agent chosen there needs a login, so it is replaced.
fn quick_start(agent: &Path) -> String {
    let chosen = "runnerctl config set executor.kind codex\n";
    let block = code_block("docs/quick-start.md", "quick-start");
    assert!(block.contains(chosen), "{block}");
    let command = format!("runnerctl config set executor.command '[\"sh\", \"{}\"]'\n", agent.display());
    block.replace(chosen, &(command + "runnerctl config set executor.kind command\n"))
}

#[expect(clippy::print_stderr, reason = "the harness captures it")]
fn is_installed(shell: &str) -> bool {
    let is_installed =
        ["/bin", "/usr/bin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(shell).exists());
    assert!(is_installed || std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{shell} is not installed");
    if !is_installed {
        eprintln!("LEFT OUT: {shell} is not installed");
    }
    is_installed
}

/// Types a block in a shell, in a folder of a home; returns the output.
fn type_block(home: &Home, (shell, name): (&str, &str), block: &str) -> String {
    let place = RepoPlace::folder(home, name.as_bytes());
    let programs = binary("runnerctl");
    let folder = programs.parent().expect("the program is in a folder").display();
    let path = home.env().iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()).expect("a PATH");
    let mut command = place.command(shell);
    // fish continues after a failed line: later assertions notice.
    let options = if shell == "fish" { "-c" } else { "-euc" };
    let output = command.args([options, block]).env("PATH", format!("{folder}:{path}")).output().expect("runs");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shell}: {stdout}{}", String::from_utf8_lossy(&output.stderr));
    stdout
}

/// Types both blocks, with and without the user's own identity.
fn assert_both_typed_in(shell: &str) {
    if !is_installed(shell) {
        return;
    }
    for author in ["Kit <kit@localhost>", "First Run <first-run@localhost>"] {
        let home = Home::new();
        if author.starts_with("First") {
            fs::remove_file(home.path().join(".gitconfig")).expect("git's configuration can be removed");
        }
        let agent = home.path().join("agent.sh");
        fs::write(&agent, AGENT).expect("the agent can be written");
        let daemon = home.daemon();
        let text = type_block(&home, (shell, "typed"), &first_run());
        assert!(text.contains("completed on branch runner/"), "{shell}: {text}");
        let greeter = RepoPlace::folder(&home, b"typed/greeter");
        let log = greeter.git(&["log", "--format=%s", "--reverse", "main.."]);
        let ends: Vec<&str> = log.lines().filter_map(|line| line.split_once("status=")).map(|(_, end)| end).collect();
        assert_eq!(ends, ["done guard=fail", "done guard=pass"], "{shell}: {log}");
        assert_eq!(fs::read_to_string(greeter.path.join("greeting.txt")).expect("it is there"), "Hello, world\n");
        assert_eq!(authors(&greeter), author, "{shell}");
        greeter.assert_sound();

        let text = type_block(&home, (shell, "quick"), &quick_start(&agent));
        for fact in ["completed on branch runner/", "finished  ", "0 violations"] {
            assert!(text.contains(fact), "{shell}: {fact:?} is missing:\n{text}");
        }
        assert_eq!(authors(&RepoPlace::folder(&home, b"quick/first")), author, "{shell}");
        drop(daemon);
    }
}

/// Returns the authors of the commits, each once.
fn authors(place: &RepoPlace<'_>) -> String {
    let log = place.git(&["log", "--format=%an <%ae>"]);
    let mut authors: Vec<&str> = log.lines().collect();
    authors.sort_unstable();
    authors.dedup();
    authors.join("\n")
}

#[test]
fn what_is_typed_in_bash_completes_after_one_failed_guard() {
    assert_both_typed_in("bash");
}

#[test]
fn what_is_typed_in_zsh_completes_after_one_failed_guard() {
    assert_both_typed_in("zsh");
}

#[test]
fn what_is_typed_in_fish_completes_after_one_failed_guard() {
    assert_both_typed_in("fish");
}

#[test]
fn a_block_has_no_comments_since_zsh_takes_them_for_arguments_where_they_are_pasted() {
    for block in [first_run(), code_block("docs/quick-start.md", "quick-start")] {
        assert!(!block.contains('#'), "{block}");
    }
}
