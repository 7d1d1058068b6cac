//! Instructions of the repository, such as `AGENTS.md`: which files every prompt quotes.

use std::os::unix::fs::symlink;

use runner_testkit::{Home, Repo};

/// Runs a task of two sessions, the first of which runs `script`, and checks every receipt.
fn play(home: &Home, repo: &Repo, script: &str) {
    repo.script().step(1, &format!("{script}; echo x > work; answer retry 'Half.'"));
    repo.script().step(2, "echo y >> work; answer done 'Done.'");
    home.run(repo, &["--id", "x", "-m", "Do it."]).exits(0);
    home.ctl_in(repo, &["verify", "--run", "x", "--strict"]).exits(0);
}

#[test]
fn every_prompt_quotes_the_files_of_the_commit_at_which_it_begins() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    repo.write("AGENTS.md", "Use tabs.\n").write("CLAUDE.md", "Use tabs.\n");
    repo.write("CONTRIBUTING.md", "Sign off.\n")
        .write("docs/AGENTS.md", "Never seen.\n")
        .write("README.md", "Unseen.\n");
    repo.commit("Say how to work here");
    play(&home, &repo, "printf 'Use spaces.\\n' > AGENTS.md");
    let first = repo.script().prompt(1);
    assert!(first.contains("## How this project is worked on"), "{first}");
    assert!(first.contains("`AGENTS.md`:\n\nUse tabs.\n\n`CONTRIBUTING.md`:\n\nSign off.\n"), "{first}");
    assert!(!first.contains("`CLAUDE.md`") && !first.contains("nseen.") && !first.contains("Never seen."), "{first}");
    let second = repo.script().prompt(2);
    assert!(second.contains("`AGENTS.md`:\n\nUse spaces.\n\n`CLAUDE.md`:\n\nUse tabs.\n"), "{second}");
}

#[test]
fn links_and_large_files_are_not_quoted() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    repo.write("secret.txt", "Beyond.\n").write("GEMINI.md", &"Large.\n".repeat(200_000));
    symlink("secret.txt", repo.path().join("AGENTS.md")).expect("a link can be made");
    repo.commit("Say how to work here");
    play(&home, &repo, "rm AGENTS.md; mkdir AGENTS.md; echo x > AGENTS.md/x; ln -s work CLAUDE.md");
    for session in [1, 2] {
        assert!(!repo.script().prompt(session).contains("How this project"), "session {session}");
    }
}

#[test]
fn an_empty_list_quotes_nothing() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("plain");
    repo.commit_config(&repo.config().section("[prompt]\ninstructions = []"));
    repo.write("AGENTS.md", "Use tabs.\n").commit("Say how to work here");
    play(&home, &repo, "true");
    assert!(!repo.script().prompt(1).contains("Use tabs."));
    let refused = home.ctl_in(&repo, &["config", "set", "prompt.instructions", "[\"docs/AGENTS.md\"]"]);
    assert!(refused.exits(2).stderr.contains("names that end in .md, without directories"), "{}", refused.stderr);
}
