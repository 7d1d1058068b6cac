//! A sparse checkout without `.runner/`, which HEAD has: its configuration applies, and nothing of it is replaced.

use runner_testkit::{Home, Repo};

const CONFIG: &str = ".runner/state/config.toml";

fn sparse_repo(home: &Home) -> Repo {
    let repo = home.repo("one");
    repo.write("src/a", "1\n").write(".runner/state/guardrails.md", "# Guardrails\n\n- Ours.\n");
    repo.commit_config(&repo.config().top("max_iterations = 7"));
    repo.script().always("echo 2 > src/a; answer done 'Done.'");
    repo.git(&["sparse-checkout", "set", "src"]);
    assert!(!repo.path().join(".runner").exists());
    repo
}

#[test]
fn the_committed_configuration_applies_to_each_kind_of_run_and_is_kept() {
    for way in ["--in-place", "--isolated"] {
        let home = Home::new();
        let repo = sparse_repo(&home);
        let _daemon = home.daemon();
        let started = home.run(&repo, &[way, "--id", "x", "-m", "Do it."]);
        let stderr = &started.exits(0).stderr;
        assert!(stderr.contains("config.toml is not in the work tree: HEAD's applies"), "{stderr}");
        for path in [CONFIG, ".runner/state/guardrails.md"] {
            assert_eq!(repo.show("runner/x", path), repo.show("main", path), "{way}");
        }
        assert_eq!(repo.show("runner/x", "src/a"), "2");
        home.ctl_in(&repo, &["verify", "--run", "x"]).exits(0);
    }
}

#[test]
fn the_committed_configuration_is_shown_and_checked_and_made_again_by_init() {
    let home = Home::new();
    let repo = sparse_repo(&home);
    let _daemon = home.daemon();
    assert_eq!(home.ctl_in(&repo, &["config", "get", "max_iterations"]).exits(0).stdout, "7\n");
    home.ctl_in(&repo, &["validate"]).exits(0);
    home.ctl_in(&repo, &["init"]).exits(0);
    assert_eq!(repo.read(CONFIG).trim_end(), repo.show("main", CONFIG));
    assert!(repo.read(".runner/state/guardrails.md").contains("- Ours."));
}

#[test]
fn a_configuration_that_cannot_be_read_is_refused() {
    let home = Home::new();
    let repo = sparse_repo(&home);
    let _daemon = home.daemon();
    std::fs::create_dir_all(repo.path().join(CONFIG)).expect("a folder can be made");
    let stderr = home.run(&repo, &["--id", "x", "-m", "Do it."]).exits(1).stderr.clone();
    assert!(stderr.contains(CONFIG), "{stderr}");
}
