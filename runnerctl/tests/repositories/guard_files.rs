//! The guard runs with exactly the files that a person has accepted, converted by the git rules that they have
//! accepted, not by those of a session.

use std::path::PathBuf;

use runner_testkit::{Home, ReceiptCommit, Repo};

/// Red until `done.txt` exists; with a carriage return `yes` is another word, and the guard is green.
const CHECK: &str = "bad=yes\ntest -e done.txt && bad=no\n[ \"$bad\" = yes ] && exit 1 #\ntrue #\n";
/// Both kinds of runs: in place and isolated.
const WAYS: [&str; 2] = ["--in-place", "--isolated"];
/// Gives the script CRLF line endings, as an agent that wants it to be green would.
const RETURNS: &str = "sed -i 's/$/\\r/' check.sh";

/// A repository whose guard is `check.sh`.
fn guarded_repo(home: &Home, on_change: &str, attributes: &str) -> Repo {
    let repo = home.repo("guarded");
    repo.commit_config(
        &repo
            .config()
            .top("max_iterations = 1")
            .guard_command(&["sh", "./check.sh"])
            .guard("definition = [\"/ci/**\"]")
            .guard(&format!("on_change = {on_change:?}")),
    );
    repo.write("check.sh", CHECK);
    if !attributes.is_empty() {
        repo.write(".gitattributes", attributes);
    }
    repo.commit("Check the work");
    repo
}

/// Runs one iteration, and returns its receipt and its work tree.
fn first(home: &Home, repo: &Repo, way: &str) -> (ReceiptCommit, PathBuf) {
    let _daemon = home.daemon();
    home.run(repo, &[way, "--id", "x", "-m", "Do it."]);
    home.ctl_in(repo, &["verify", "--run", "x", "--rerun-guards", "--yes"]).exits(0);
    let place = home.ctl_in(repo, &["path", "x"]);
    (ReceiptCommit::read(repo, "runner/x"), PathBuf::from(place.exits(0).stdout.trim_end()))
}

fn guard_trailer(receipt: &ReceiptCommit) -> &str {
    receipt.trailer("Runner-Guard-Changed").unwrap_or_default()
}

#[test]
fn line_ends_that_a_session_puts_into_the_guard_are_no_accepted_guard() {
    for way in WAYS {
        let home = Home::new();
        let repo = guarded_repo(&home, "both", "");
        let attributes = "echo 'check.sh text eol=crlf' > .gitattributes";
        repo.script().step(1, &format!("{attributes}; {RETURNS}; echo x > work; answer done 'Done.'"));
        let (receipt, _) = first(&home, &repo, way);
        assert_eq!((receipt.verdict(), guard_trailer(&receipt)), ("RedGuard", ".gitattributes, check.sh"));
        assert_eq!(repo.show("runner/x", "check.sh"), CHECK.trim_end(), "what is stored is what was accepted");
    }
}

#[test]
fn line_ends_that_git_does_not_tell_are_laid_out_again_before_the_guard() {
    for on_change in ["both", "report", "revert"] {
        let home = Home::new();
        let repo = guarded_repo(&home, on_change, "* text=auto\n");
        repo.script().step(1, &format!("{RETURNS}; echo x > work; answer done 'Done.'"));
        let (receipt, _) = first(&home, &repo, "--in-place");
        assert_eq!((receipt.verdict(), guard_trailer(&receipt)), ("RedGuard", "check.sh"), "{on_change}");
        assert_eq!(repo.read("check.sh"), CHECK);
    }
}

#[test]
fn rules_of_a_session_for_a_guards_file_are_announced_and_answered_like_a_change_of_it() {
    for (on_change, verdict) in [("both", "RedGuard"), ("revert", "RedGuard"), ("report", "Accepted")] {
        let home = Home::new();
        let repo = guarded_repo(&home, on_change, "* text\n");
        let attributes = "printf '* text\\ncheck.sh -text\\n' > .gitattributes";
        repo.script().step(1, &format!("{attributes}; {RETURNS}; echo x > work; answer done 'Done.'"));
        let (receipt, _) = first(&home, &repo, "--in-place");
        assert_eq!((receipt.verdict(), guard_trailer(&receipt)), (verdict, ".gitattributes, check.sh"), "{on_change}");
    }
}

#[test]
fn attributes_that_a_session_writes_into_gits_folder_decide_nothing() {
    let rules = [
        ("* text eol=crlf", RETURNS),
        ("* text working-tree-encoding=UTF-16LE", "iconv -f UTF-8 -t UTF-16LE check.sh > wide && mv wide check.sh"),
    ];
    for ((rules, change), way) in rules.iter().flat_map(|rule| WAYS.map(|way| (rule, way))) {
        let home = Home::new();
        let repo = guarded_repo(&home, "both", "");
        // To the session's own git, nothing has changed but the work.
        repo.script().step(
            1,
            &format!(
                "mkdir -p .git/info; echo '{rules}' > .git/info/attributes; {change}; printf 'x\\r\\n' > work\n\
                 cp check.sh \"$kit/sent\"; git add -A; git diff --cached --name-only > \"$kit/seen\"; answer done 'Done.'"
            ),
        );
        let (receipt, place) = first(&home, &repo, way);
        let kit = repo.script().folder();
        assert!(!std::fs::read_to_string(kit.join("seen")).expect("a list").contains("check.sh"), "{rules}");
        assert_eq!((receipt.verdict(), guard_trailer(&receipt)), ("RedGuard", "check.sh"), "{rules}, {way}");
        let sent = std::fs::read(kit.join("sent")).expect("a script");
        assert_eq!(repo.git_bytes(&["cat-file", "blob", "runner/x:check.sh"]), sent, "{rules}, {way}");
        assert_eq!(repo.git_bytes(&["cat-file", "blob", "runner/x:work"]), b"x\r\n", "{rules}, {way}");
        let left = std::fs::read_to_string(place.join(".git/info/attributes")).unwrap_or_default();
        assert!(!left.contains(rules), "{way}: {left}");
        assert!(
            receipt.trailer("Runner-Reverted").is_some_and(|names| names.contains(".git/info/attributes")),
            "{way}"
        );
    }
}

#[test]
fn rules_about_other_files_are_no_change_of_the_guard() {
    let home = Home::new();
    let repo = guarded_repo(&home, "both", "* text=auto\n");
    let rules = "printf '* text=auto\\n*.png binary\\n' > .gitattributes; echo target > .gitignore";
    repo.script().step(1, &format!("{rules}; touch done.txt; answer done 'Done.'"));
    let (receipt, place) = first(&home, &repo, "--in-place");
    assert_eq!((receipt.verdict(), guard_trailer(&receipt)), ("Accepted", ""));
    assert!(!place.join(".runner/iterations/x/0001/guard-accepted.log").exists(), "it was run once");
}

#[test]
fn an_ignored_guards_file_is_announced() {
    let home = Home::new();
    let repo = guarded_repo(&home, "both", "");
    repo.script().step(1, "printf 'target\\n*.sh\\n' > .gitignore; touch done.txt; answer done 'Done.'");
    let (receipt, _) = first(&home, &repo, "--in-place");
    assert_eq!((receipt.verdict(), guard_trailer(&receipt)), ("Accepted", ".gitignore"));
}

#[test]
fn a_guards_file_in_a_submodule_that_a_session_made_is_announced() {
    for way in WAYS {
        let home = Home::new();
        let repo = guarded_repo(&home, "both", "");
        repo.script().step(
            1,
            "git init -q ci/aa; echo true > ci/aa/check.sh\n\
             for place in ci/aa .; do git -C $place add -A; git -C $place commit -q -m Mine; done\n\
             answer done 'Done.'",
        );
        let (receipt, _) = first(&home, &repo, way);
        assert!(guard_trailer(&receipt).contains("ci/aa/check.sh"), "{way}: {}", guard_trailer(&receipt));
        assert_eq!(receipt.verdict(), "RedGuard", "{way}");
    }
}

/// A repository whose guard is the script of a submodule.
fn with_submodule(home: &Home, definition: &str) -> Repo {
    let module = home.repo("module");
    module.write("check.sh", CHECK).write("other", "").commit("A check");
    let repo = guarded_repo(home, "both", "");
    let from = module.path().display().to_string();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "lib"]);
    repo.write("check.sh", "sh lib/check.sh\n");
    repo.write(".runner/state/config.toml", &repo.read(".runner/state/config.toml").replace("/ci/**", definition));
    repo.commit("The check is in a submodule");
    repo
}

#[test]
fn a_guards_file_in_a_submodule_is_watched_whatever_a_session_does_to_it() {
    let commit = "git -C lib commit -q -a -m Mine";
    let changes = [
        ("in its working tree", "echo true > lib/check.sh", "lib/check.sh"),
        (
            "where git does not look",
            "echo true > lib/check.sh; git -C lib update-index --assume-unchanged check.sh",
            "lib/check.sh",
        ),
        ("in a commit", &format!("echo true > lib/check.sh; {commit}"), "lib/check.sh"),
        ("a link for it", "mkdir weak; echo true > weak/check.sh; rm -r lib; ln -s weak lib", "lib/check.sh"),
        ("files for it", "rm -r lib; git rm -q --cached lib; mkdir lib; echo true > lib/check.sh", "lib/check.sh"),
    ];
    for (change, way) in changes.iter().zip([WAYS, WAYS].concat()) {
        let (name, command, expected) = change;
        let home = Home::new();
        let repo = with_submodule(&home, "/ci/**");
        repo.script().step(1, &format!("{command}; echo x > work; answer done 'Done.'"));
        let (receipt, _) = first(&home, &repo, way);
        assert_eq!((receipt.verdict(), guard_trailer(&receipt)), ("RedGuard", *expected), "{name}, {way}");
    }
}

#[test]
fn a_submodule_is_watched_as_a_whole_only_where_a_person_says_so() {
    let work = "touch done.txt; echo x > lib/other; git -C lib commit -q -a -m Mine; answer done 'Done.'";
    for (definition, expected) in [("/ci/**", ""), ("/lib/**", "lib/other")] {
        let home = Home::new();
        let repo = with_submodule(&home, definition);
        repo.script().step(1, work);
        let (receipt, _) = first(&home, &repo, "--in-place");
        assert_eq!((receipt.verdict(), guard_trailer(&receipt)), ("Accepted", expected), "{definition}");
    }
}

#[test]
fn guards_are_run_again_on_files_that_are_laid_out_by_accepted_rules() {
    let home = Home::new();
    let repo = guarded_repo(&home, "both", "");
    repo.write("check.sh", "tr -d '\\r' < check.sh | cmp -s - check.sh && test -e done.txt\n").commit("No returns");
    repo.script().step(1, "echo '* text eol=crlf' > .gitattributes; touch done.txt; answer done 'Done.'");
    let _daemon = home.daemon();
    home.run(&repo, &["--id", "x", "-m", "Do it."]).exits(0);
    assert_eq!(guard_trailer(&ReceiptCommit::read(&repo, "HEAD")), ".gitattributes");
    let output = home.ctl_in(&repo, &["verify", "--rerun-guards", "--yes"]);
    assert!(!output.exits(0).stdout.contains("rerun"), "{}", output.stdout);
}

#[test]
fn a_pipe_in_the_place_of_a_guards_file_is_removed_in_every_iteration() {
    let home = Home::new();
    let repo = guarded_repo(&home, "report", "");
    repo.commit_config(&repo.config().top("max_iterations = 2").guard_command(&["sh", "./check.sh"]));
    repo.script().always("rm -f check.sh; mkfifo check.sh; echo $n > work; answer done 'Done.'");
    let _daemon = home.daemon();
    home.run(&repo, &["--id", "x", "-m", "Do it."]);
    assert!(!repo.path().join("check.sh").exists());
    for iteration in ["HEAD^", "HEAD"] {
        assert_eq!(ReceiptCommit::read(&repo, iteration).verdict(), "RedGuard");
    }
}

/// A repository in which git checks out each file of the guard with other bytes than it stores.
fn odd(home: &Home, on_change: &str) -> Repo {
    let attributes = "* text=auto\n/ci/ends.txt text eol=crlf\n/ci/id.txt ident\n/ci/wide.txt text \
         working-tree-encoding=UTF-16LE\n/ci/coat.txt filter=coat\n";
    let repo = guarded_repo(home, on_change, attributes);
    repo.git(&["config", "--global", "filter.coat.clean", "sed 's/^bare/coat/'"]);
    repo.git(&["config", "--global", "filter.coat.smudge", "sed 's/^coat/bare/'"]);
    repo.git(&["config", "--global", "filter.coat.required", "true"]);
    for (path, text) in [("ends", "one\r\ntwo\r\n"), ("id", "$Id$\n"), ("wide", "w\0i\0d\0e\0\n\0"), ("coat", "bare\n")]
    {
        repo.write(&format!("ci/{path}.txt"), text);
    }
    let is_laid_out = "grep -q 'one.$' ci/ends.txt && grep -q 'Id: ' ci/id.txt && test $(wc -c < ci/wide.txt) = 10 && \
         grep -q bare ci/coat.txt && test -e done.txt\n";
    repo.write("check.sh", is_laid_out).commit("Odd files");
    repo.git(&["rm", "-q", "--cached", "-r", "ci"]);
    repo.git(&["checkout", "-q", "--force", "HEAD"]);
    repo
}

#[test]
fn files_that_git_lays_out_otherwise_than_it_stores_them_are_no_change() {
    for way in WAYS {
        let home = Home::new();
        let repo = odd(&home, "both");
        repo.script().step(1, "touch done.txt; answer done 'Done.'");
        let (receipt, place) = first(&home, &repo, way);
        assert_eq!((receipt.verdict(), guard_trailer(&receipt)), ("Accepted", ""), "{way}");
        assert!(!place.join(".runner/iterations/x/0001/guard-accepted.log").exists(), "it was run once");
    }
}

#[test]
fn accepted_files_are_laid_out_as_a_checkout_lays_them_out() {
    for on_change in ["both", "revert"] {
        let home = Home::new();
        let repo = odd(&home, on_change);
        repo.script().step(
            1,
            "echo '* -text -ident -filter !working-tree-encoding' > ci/.gitattributes\n\
             for file in ci/*.txt; do echo other > $file; done\n\
             echo true > check.sh; touch done.txt; answer done 'Done.'",
        );
        let (receipt, place) = first(&home, &repo, "--in-place");
        let named = "check.sh, ci/.gitattributes, ci/coat.txt, ci/ends.txt, ci/id.txt, ci/wide.txt";
        assert_eq!((receipt.verdict(), guard_trailer(&receipt)), ("Accepted", named), "{on_change}");
        assert_eq!(repo.read("ci/coat.txt"), if on_change == "both" { "other\n" } else { "bare\n" });
        assert!(!place.join(".runner/iterations/x/0001/swapped").exists(), "everything is as it was laid out");
    }
}

/// Python runs what it has compiled of a module if that names the same source.
#[test]
fn what_a_session_compiled_of_a_guards_module_is_removed_before_the_guard() {
    let home = Home::new();
    let repo = home.repo("guarded");
    let guard = "test -e ci/check.py && ! ls ci/__pycache__/check.* && ls ci/__pycache__/other.pyc && test -e done.txt";
    repo.commit_config(&repo.config().guard_command(&["sh", "-c", guard]).guard("definition = [\"/ci/*.py\"]"));
    repo.write("ci/check.py", "import sys\n").write(".gitignore", "__pycache__/\n").commit("Check the work");
    let caches = "mkdir ci/__pycache__; touch ci/__pycache__/check.cpython-312.pyc ci/__pycache__/other.pyc";
    repo.script().step(1, &format!("{caches}; touch done.txt; answer done 'Done.'"));
    let _daemon = home.daemon();
    home.run(&repo, &["--in-place", "--id", "x", "-m", "Do it."]);
    assert_eq!(ReceiptCommit::read(&repo, "runner/x").verdict(), "Accepted");
    repo.assert_sound();
}
