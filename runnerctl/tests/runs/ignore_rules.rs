//! A person's ignore rules apply: ignored files are in no commit of a run, whatever a session does to the rules.

use runner_testkit::Home;

use crate::play::{RUN, RunPlay, sample};

const REWRITE: &str = ": > .gitignore; mkdir -p deps; echo x > deps/lib; echo x > more.db; \
                       echo new > new.txt; answer retry 'Not yet.'";

#[test]
fn what_a_person_ignores_stays_out_until_a_person_commits_other_rules() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 9"));
    play.repo.write(".gitignore", "*.db\ndeps/\n").commit("Rules");
    play.repo.write("data.db", "mine\n");
    play.script().step(1, REWRITE);
    play.script().step(2, "echo 2 > new.txt; answer retry 'Not yet.'");
    play.script().step(3, "echo 3 > new.txt; answer retry 'Not yet.'");
    play.home.ctl_in(&play.repo, &["start", "--yes", "--id", RUN, "--queue-only"]).exits(0);
    for iter in [1, 2] {
        play.home.ctl_in(&play.repo, &["step"]).exits(0);
        assert_eq!(play.iteration_at(iter).receipt.trailer("Runner-Held-Back"), Some("data.db, deps/, more.db"));
        assert_eq!(play.repo.git(&["ls-files", "*.db", "deps", "new.txt"]), "new.txt");
        assert_eq!(play.repo.run_state("HEAD").held_back, ["data.db", "deps/", "more.db"]);
    }
    assert_eq!(play.repo.show("HEAD", ".gitignore"), "", "the session's own file is its work");
    let status = play.home.ctl_in(&play.repo, &["status"]);
    assert!(status.exits(0).stdout.contains("held back (3)\n    data.db\n    deps/\n    more.db"), "{}", status.stdout);
    play.repo.write(".gitignore", "deps/\n/data.db\n").commit("Databases of the run count");
    play.home.ctl_in(&play.repo, &["step"]).exits(3);
    assert_eq!(play.repo.git(&["ls-files", "*.db", "deps"]), "more.db");
    assert_eq!(play.repo.run_state("HEAD").held_back, Vec::<String>::new());
    assert_eq!(play.repo.read("data.db"), "mine\n");
    play.home.ctl_in(&play.repo, &["verify", "--strict"]).exits(0);
}

#[test]
fn what_a_person_ignores_stays_out_of_an_isolated_run() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.repo_with_tree("one", &sample(), |config| config.top("max_iterations = 1"));
    repo.write(".gitignore", "*.db\ndeps/\n").commit("Rules");
    repo.write(".git/info/exclude", "/secret\n");
    repo.script().step(1, &format!("echo x > secret; {REWRITE}"));
    home.run(&repo, &["--isolated", "--id", RUN]).exits(4);
    let branch = format!("runner/{RUN}");
    assert_eq!(repo.git(&["ls-tree", "-r", "--name-only", &branch, "more.db", "deps", "new.txt", "secret"]), "new.txt");
    assert_eq!(repo.run_state(&branch).held_back, ["deps/", "more.db"]);
}
