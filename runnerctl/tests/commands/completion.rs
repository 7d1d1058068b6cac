//! Shell completion, requested as a shell does: through the variables of its script, and by a real bash.

use std::process::{Command, Stdio};
use std::time::Instant;

use runner_testkit::{Daemon, Home, Repo};

const RUN: &str = "port-it";

/// A run that was split, worked on once, and has an open question.
struct CompletionFixture {
    _daemon: Daemon,
    repo: Repo,
    home: Home,
}

impl CompletionFixture {
    fn new() -> Self {
        let home = Home::new();
        let repo = home.scripted_repo("one");
        let script = repo.script();
        script.step(1, "decompose 'Two parts.' one two");
        script.step(2, "echo '- Which port?' >> .runner/state/questions.md\nanswer retry 'Not yet.'");
        let daemon = home.daemon();
        home.ctl_in(&repo, &["start", "--yes", "--queue-only", "--id", RUN]).exits(0);
        home.ctl_in(&repo, &["step"]).exits(0);
        home.ctl_in(&repo, &["step"]).exits(0);
        Self { home, repo, _daemon: daemon }
    }

    fn completions(&self, words: &[&str]) -> Vec<String> {
        completions_in(&self.home, &self.repo, words)
    }
}

/// Requests completions as the bash script does: the last word is being typed. Leaves out options, which come last.
fn completions_in(home: &Home, repo: &Repo, words: &[&str]) -> Vec<String> {
    let mut command = home.command("runnerctl");
    command.env("COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_COMP_TYPE", "9");
    command.env("_CLAP_COMPLETE_SPACE", "false").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.args(["--", "runnerctl"]).args(words).current_dir(repo.path());
    let output = command.output().expect("the client can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "a shell has no place for words");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    stdout.lines().map(|line| line.trim_end().to_owned()).filter(|value| !value.starts_with('-')).collect()
}

#[test]
fn ids_of_the_repository_are_offered_where_they_are_typed() {
    let begun = CompletionFixture::new();
    let path = begun.repo.path().display().to_string();
    assert_eq!(begun.completions(&["status", "--run", "p"]), [RUN]);
    assert_eq!(begun.completions(&["retry", ""]), ["root", "root.1", "root.2"]);
    assert_eq!(begun.completions(&["retry", "root.2"]), ["root.2"]);
    assert_eq!(begun.completions(&["log", ""]), ["1", "2", RUN]);
    assert_eq!(begun.completions(&["fork", "--from", ""]), ["1", "2"]);
    assert_eq!(begun.completions(&["export", ""]), ["html", "otlp", "prometheus", "1", "2", RUN]);
    assert_eq!(begun.completions(&["export", "html", "p"]), [RUN]);
    assert_eq!(begun.completions(&["--host", ""]), [""; 0]);
    let settings = begun.home.path().join("config/runnerctl");
    std::fs::create_dir_all(&settings).expect("a folder can be made");
    std::fs::write(settings.join("config.toml"), "[hosts]\ngpu = \"ssh://gpu\"\n").expect("it can be written");
    assert_eq!(begun.completions(&["status", "--host", ""]), ["gpu"]);
    assert_eq!(begun.completions(&["repos", "--remove", ""]), [path.as_str()]);
    assert_eq!(begun.completions(&["config", "get", "guard.ba"]), ["guard.baseline"]);
    assert_eq!(begun.completions(&["config", "set", "guard.baseline", ""]), ["true", "false"]);
    assert_eq!(begun.completions(&["config", "set", "executor.kind", "c"]), ["codex", "claude", "command"]);
    let questions = begun.home.ctl_in(&begun.repo, &["questions", "--json"]).exits(0).json();
    assert_eq!(begun.completions(&["answer", ""]), [questions["questions"][0]["id"].as_str().expect("an id")]);
}

#[test]
fn another_folder_of_the_command_line_is_the_one_that_counts() {
    let begun = CompletionFixture::new();
    let other = begun.home.scripted_repo("two");
    let path = begun.repo.path().display().to_string();
    assert_eq!(completions_in(&begun.home, &other, &["status", "--run", ""]), [""; 0]);
    assert_eq!(completions_in(&begun.home, &other, &["-C", &path, "status", "--run", ""]), [RUN]);
}

#[test]
fn without_a_daemon_nothing_is_offered_and_none_is_started() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    assert_eq!(completions_in(&home, &repo, &["retry", ""]), [""; 0]);
    assert_eq!(completions_in(&home, &repo, &["vali"]), ["validate"]);
    assert!(!home.socket().exists(), "a daemon was started");
}

#[test]
fn a_listener_that_does_not_answer_is_given_up_within_a_second() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _silent = std::os::unix::net::UnixListener::bind(home.socket()).expect("a socket can be made");
    let before = Instant::now();
    assert_eq!(completions_in(&home, &repo, &["retry", ""]), [""; 0]);
    // The client itself times out after 10 seconds: less than half of that distinguishes the two on any machine.
    assert!(before.elapsed().as_secs() < 5, "{:?}", before.elapsed());
}

#[test]
fn bash_completes_with_the_script_of_the_command() {
    let begun = CompletionFixture::new();
    let session = r#"
        source <(runnerctl completions bash)
        COMP_WORDS=(runnerctl status --run p) COMP_CWORD=3 COMP_TYPE=9
        "$(complete -p runnerctl | sed 's/.*-F \([^ ]*\) .*/\1/')" runnerctl p --run 2>/dev/null
        echo "offered: ${COMPREPLY[*]}"
    "#;
    let programs = begun.home.command("runnerctl").get_program().to_owned();
    let programs = std::path::Path::new(&programs).parent().expect("a folder").display().to_string();
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", session]).env_clear().envs(begun.home.env().iter().cloned());
    bash.env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap_or_default()));
    let output = bash.current_dir(begun.repo.path()).stdin(Stdio::null()).output().expect("bash can be started");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains(&format!("offered: {RUN}")), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_shell_gets_a_script_that_asks_the_program() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.ctl(&["completions", shell]).exits(0).stdout.clone();
        assert!(script.contains("COMPLETE") && script.contains("runnerctl"), "{shell}: {script}");
    }
    home.ctl(&["completions", "tcsh"]).exits(2);
}
