//! What is typed wrong: the message says what and where, the exit code which kind, and the hint what to type.

use runner_testkit::Home;

#[test]
fn a_folder_that_is_not_there_is_refused_by_every_command() {
    let home = Home::new();
    let repo = home.repo("one");
    let _daemon = home.daemon();
    for (folder, cause) in [("/nonexistent", "No such file"), ("README.md", "not a directory")] {
        repo.write("README.md", "A file.");
        for command in ["status", "repos", "queue", "init"] {
            let said = home.ctl_in(&repo, &["-C", folder, command]);
            said.exits(2);
            assert!(said.stderr.starts_with(&format!("error: cannot work in {folder}\n")), "{}", said.stderr);
            assert!(said.stderr.contains(cause) && said.stderr.contains("hint: "), "{}", said.stderr);
        }
    }
}
