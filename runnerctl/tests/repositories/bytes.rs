//! Files below `.runner/` are stored and read byte for byte, whatever git's rules say: a session's, a repository's or a
//! person's own.

use std::fs;
use std::path::{Path, PathBuf};

use protocol::words::RunStatus;
use runner_testkit::invariants::list_verdicts;
use runner_testkit::{Home, Repo};

/// What a session writes where its content is arbitrary: every rule would store it differently.
const ODD: &str = "+ACI- $Id: x $ plain\r\n";

/// Both kinds of runs: in place and isolated.
const WAYS: [&str; 2] = ["--in-place", "--isolated"];

/// Starts a run, waits for its end, and returns its work tree.
fn run(home: &Home, repo: &Repo, way: &str) -> PathBuf {
    home.run(repo, &[way, "--id", "x", "-m", "Do it."]).exits(0);
    PathBuf::from(home.ctl_in(repo, &["path", "x"]).exits(0).stdout.trim_end())
}

/// Compares each file written by the runner and its sessions with the branch's content, byte for byte.
fn assert_stored_verbatim(repo: &Repo, place: &Path) {
    for path in [
        ".runner/GOAL.md",
        ".runner/state/tree.json",
        ".runner/state/run_state.json",
        ".runner/state/feedback.json",
        ".runner/state/tests.json",
        ".runner/state/progress.md",
        ".runner/state/config.toml",
        ".runner/state/guardrails.md",
        ".runner/nodes/root/context.md",
        ".runner/nodes/root/artifacts/odd.json",
    ] {
        let stored = repo.git_bytes(&["cat-file", "blob", &format!("runner/x:{path}")]);
        let content = fs::read(place.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(String::from_utf8_lossy(&stored), String::from_utf8_lossy(&content), "{path}");
    }
}

/// A session that writes content that each rule would store differently, together with these rules.
fn odd_repo(repo: &Repo, rules: &str) -> String {
    repo.script().file("odd", ODD);
    format!(
        "mkdir -p .runner/nodes/root/artifacts\n\
         for file in state/guardrails.md nodes/root/context.md nodes/root/artifacts/odd.json; do \
         cat \"$kit/files/odd\" >> .runner/$file; done\n\
         {rules}\n\
         echo x >> work; answer retry 'Not yet: +ACI-, $Id: x $.'"
    )
}

fn attributes(lines: &str) -> String {
    format!("printf '%s\\n' {lines} > .gitattributes")
}

#[test]
fn attributes_of_a_session_say_nothing_of_the_runners_files() {
    let home = Home::new();
    let _daemon = home.daemon();
    for (at, (rules, way)) in [
        "'.runner/** working-tree-encoding=UTF-7'",
        "'* ident'",
        "'* text eol=crlf'",
        "'* filter=loud'",
        "'[attr]odd text ident filter=loud' '*.json odd' '*.md odd'",
    ]
    .into_iter()
    .zip(WAYS.into_iter().cycle())
    .enumerate()
    {
        let repo = home.scripted_repo(&format!("odd{at}"));
        repo.git(&["config", "filter.loud.clean", "tr a-z A-Z"]);
        repo.script().step(1, &odd_repo(&repo, &attributes(rules))).step(2, "echo y >> work; answer done 'Done.'");
        let place = run(&home, &repo, way);
        assert_stored_verbatim(&repo, &place);
        assert_eq!(repo.git_bytes(&["show", "runner/x:.runner/nodes/root/context.md"]), ODD.as_bytes(), "{rules}");
        assert!(repo.script().prompt(2).contains("Not yet: +ACI-, $Id: x $."), "{rules}");
        home.ctl_in(&repo, &["verify", "--run", "x", "--strict"]).exits(0);
    }
}

#[test]
fn encoding_of_a_session_passes_no_leaf() {
    for way in WAYS {
        let home = Home::new();
        let repo = home.scripted_repo("forged");
        repo.script().guard_always("exit 1");
        repo.script().step(1, "decompose 'Two parts.' One Two");
        let forged = "+ACI-,+ACI-acceptance+ACI-:[],+ACI-passes+ACI-:true,+ACI-attempts+ACI-:0,+ACI-max_attempts+ACI-:3,+ACI-notes+ACI-:+ACI-";
        repo.script().step(
            2,
            &format!(
                "sed -i 's/Do Two[.]/Do Two.{forged}/' $tree\n\
                 echo '.runner/state/tree.json working-tree-encoding=UTF-7' > .gitattributes; answer retry 'Later.'"
            ),
        );
        repo.script().always("echo more >> work; answer retry 'Later.'");
        let _daemon = home.daemon();
        home.run(&repo, &[way, "--id", "x", "-m", "Do it."]);
        let tree = repo.show("runner/x", ".runner/state/tree.json");
        assert!(tree.contains(forged) && !tree.contains("\"passes\": true"), "{tree}");
        home.ctl_in(&repo, &["verify", "--run", "x"]).exits(0);
    }
}

#[test]
fn ignored_files_of_the_runner_are_stored_all_the_same() {
    for way in WAYS {
        let home = Home::new();
        fs::write(home.path().join("ignored"), "*.json\n*.md\n.runner\n").expect("a file of the home's");
        let repo = home.scripted_repo("ignored");
        repo.git(&["config", "core.excludesFile", &home.path().join("ignored").display().to_string()]);
        repo.script().step(1, &odd_repo(&repo, "printf '.runner\\n*\\n!work\\n' > .gitignore"));
        repo.script().step(2, "echo y >> work; answer done 'Done.'");
        let _daemon = home.daemon();
        let place = run(&home, &repo, way);
        assert_stored_verbatim(&repo, &place);
        assert!(
            repo.git_bytes(&["ls-tree", "-r", "--name-only", "runner/x", ".runner/context", ".runner/iterations"])
                .is_empty()
        );
        home.ctl_in(&repo, &["verify", "--run", "x", "--strict"]).exits(0);
    }
}

/// Rules of a repository or a person under which an honest run continues as it would without them.
#[test]
fn an_honest_run_continues_under_rules_for_all_files() {
    for ((rules, setting), way) in [
        ("* text=auto\n", ["core.autocrlf", "true"]),
        ("* text eol=crlf\n", ["core.eol", "lf"]),
        ("* ident\n", ["core.eol", "lf"]),
        ("* filter=coat\n", ["filter.coat.required", "true"]),
        ("*.json working-tree-encoding=UTF-16\n", ["core.eol", "lf"]),
    ]
    .into_iter()
    .zip(WAYS.into_iter().cycle())
    {
        let home = Home::new();
        let _daemon = home.daemon();
        let repo = home.scripted_repo("honest");
        // A filter that adds a prefix to everything stored, and removes it from everything checked out.
        repo.git(&["config", "--global", "filter.coat.clean", "sed '1s/^/coat:/'"]);
        repo.git(&["config", "--global", "filter.coat.smudge", "sed '1s/^coat://'"]);
        repo.git(&["config", "--global", setting[0], setting[1]]);
        home.ctl_in(&repo, &["init"]).exits(0);
        repo.commit("Make the layout");
        repo.write(".gitattributes", rules).write("a.txt", "a $Id$\n").commit("Rules");
        repo.script().step(
            1,
            "mkdir -p .runner/nodes/root; echo one > .runner/nodes/root/context.md; \
             echo two >> .runner/state/guardrails.md; echo x >> work; answer retry 'Half.'",
        );
        repo.script().step(2, "test -z \"$(git status --porcelain a.txt)\" && echo y >> work; answer done 'Done.'");
        run(&home, &repo, way);
        assert_eq!(verdicts_of(&repo), ["Retry", "Accepted"], "{rules}");
        home.ctl_in(&repo, &["verify", "--run", "x", "--strict"]).exits(0);
        for receipt in repo.git(&["log", "--format=%B", "main..runner/x"]).lines() {
            assert!(
                !receipt.starts_with("Runner-Reverted") && !receipt.starts_with("Runner-Guard-Changed"),
                "{rules}{receipt}"
            );
        }
    }
}

fn verdicts_of(repo: &Repo) -> Vec<String> {
    repo.git(&["checkout", "-q", "--force", "runner/x"]);
    list_verdicts(repo)
}

#[test]
fn a_checkout_under_rules_for_all_files_lays_out_the_runners_files_as_they_are() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("first");
    repo.write(".gitattributes", "* text eol=crlf\n").commit("Rules");
    repo.script().step(1, "echo two >> .runner/state/guardrails.md; echo x >> work; answer retry 'Half.'");
    repo.script().always("echo y >> work; answer done 'Done.'");
    home.ctl_in(&repo, &["start", "--yes", "--id", "x", "-m", "Do it.", "--queue-only"]).exits(0);
    home.ctl_in(&repo, &["step"]).exits(0);
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["checkout", "-q", "runner/x"]);
    assert!(!repo.read(".runner/state/guardrails.md").contains('\r'), "git lays out what is stored");
    home.ctl_in(&repo, &["resume", "--yes", "--wait"]).exits(0);
    assert_eq!(home.client().run(repo.path()).summary.state, RunStatus::Completed);
    assert!(!repo.show("HEAD", ".runner/state/guardrails.md").contains('\r'));
    home.ctl_in(&repo, &["verify", "--strict"]).exits(0);
}

#[test]
fn the_runners_files_are_stored_where_a_sparse_checkout_leaves_them_out() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.scripted_repo("sparse");
    repo.write("wide/file.txt", "wide\n").write("narrow/file.txt", "narrow\n").commit("Folders");
    repo.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/wide/", "!/.runner/nodes/", "!/.runner/state/*.md"]);
    repo.script().step(1, &odd_repo(&repo, "true")).step(2, "echo y >> work; answer done 'Done.'");
    let place = run(&home, &repo, "--in-place");
    assert_stored_verbatim(&repo, &place);
    assert!(!repo.path().join("wide").exists() && repo.show("HEAD", "wide/file.txt") == "wide");
    home.ctl_in(&repo, &["verify", "--strict"]).exits(0);
}
