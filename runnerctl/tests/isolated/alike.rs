//! Runs the same script in place and isolated, in repositories of many kinds: the result must have the same trees
//! outside `.runner/`, the same prompts and authors, and the same files when its branch is checked out.
//!
//! For each kind, the test also asserts that its settings had an effect.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use protocol::tree::{Node, TREE_VERSION, TaskTree};
use runner_testkit::{Home, Repo};

const RUN: &str = "alike";
const LIMITED: i32 = 4;
/// The actions of each session: files of all kinds, which the rules of a kind transform.
const WORK: &str = "printf 'a\\r\\nb\\r\\n' > \"new$n.txt\"; echo large > \"new$n.big\"; echo x > \"x$n.log\"; echo x > \"x$n.tmp\"
    echo x > \"x$n.bak\"; printf '#!/bin/sh\\n' > \"run$n.sh\"; chmod +x \"run$n.sh\" README.md; ln -s README.md \"link$n\"
    for file in README.md *.big inner/file; do test -e \"$file\" && cat \"$file\"; done > seen.txt
    answer retry \"Try $n.\"";
/// Stores large files next to git's objects, as `git lfs` does, and makes git store pointers to them.
const LARGE: &str = r#"#!/bin/sh
folder=$(git rev-parse --absolute-git-dir)
test -f "$folder/commondir" && folder=$folder/$(cat "$folder/commondir")
store=$folder/lfs/objects
mkdir -p "$store"
new=$store/new.$$
cat > "$new"
case $1 in
clean)
    id=$(sha256sum < "$new" | cut -d ' ' -f 1)
    place=$store/$(echo "$id" | cut -c 1-2)/$(echo "$id" | cut -c 3-4)
    mkdir -p "$place" && mv "$new" "$place/$id" && echo "oid $id" ;;
smudge)
    read -r _ id < "$new"
    large=$store/$(echo "$id" | cut -c 1-2)/$(echo "$id" | cut -c 3-4)/$id
    if test -f "$large"; then cat "$large"; else cat "$new"; fi
    rm "$new" ;;
esac
"#;

/// Observations of a run.
#[derive(Debug, PartialEq, Eq)]
struct RunOutcome {
    /// For each commit, the files outside `.runner/`, its author, and the digests of its prompt.
    commits: Vec<CommitContent>,
    /// Files of the last commit, as stored.
    stored: BTreeMap<String, String>,
    /// The same files, as checked out.
    laid_out: BTreeMap<String, String>,
}

/// Observations of a commit.
#[derive(Debug, PartialEq, Eq)]
struct CommitContent {
    files: Vec<String>,
    people: String,
    digests: Vec<String>,
}

impl RunOutcome {
    fn of_repo(repo: &Repo) -> Self {
        let branch = format!("runner/{RUN}");
        let commits = repo.git(&["rev-list", "--reverse", "--first-parent", &format!("main..{branch}")]);
        let commits: Vec<CommitContent> =
            commits.lines().map(|commit| CommitContent::of_commit(repo, commit)).collect();
        let files = commits.last().map(|last| last.files.as_slice()).unwrap_or_default();
        let files = files.iter().filter(|file| !file.starts_with("160000")).filter_map(|file| file.split_once('\t'));
        let files: Vec<&str> = files.map(|(_, path)| path).collect();
        let read = |how: &str| {
            let text = |path: &&str| repo.git(&["cat-file", how, &format!("{branch}:{path}")]);
            files.iter().map(|path| ((*path).to_owned(), text(path))).collect()
        };
        Self { stored: read("blob"), laid_out: read("--filters"), commits }
    }

    /// Asserts the stored content of a file.
    #[track_caller]
    fn assert_stores(&self, path: &str, text: &str) -> &Self {
        assert_eq!(self.stored.get(path).map(String::as_str), Some(text), "{path}: {self:#?}");
        self
    }

    /// Asserts the checked-out content of a file.
    #[track_caller]
    fn assert_checks_out(&self, path: &str, text: &str) -> &Self {
        assert_eq!(self.laid_out.get(path).map(String::as_str), Some(text), "{path}: {self:#?}");
        self
    }

    /// Asserts that a file is not committed.
    #[track_caller]
    fn assert_lacks(&self, path: &str) -> &Self {
        assert!(!self.stored.contains_key(path), "{path}: {self:#?}");
        self
    }

    /// Asserts what a session has seen.
    #[track_caller]
    fn assert_has_seen(&self, line: &str) -> &Self {
        assert!(self.stored["seen.txt"].lines().any(|seen| seen == line), "{line}: {self:#?}");
        self
    }

    fn mode(&self, path: &str) -> &str {
        let files = &self.commits.last().expect("a run has commits").files;
        let file = files.iter().find(|file| file.ends_with(&format!("\t{path}"))).expect("the file is committed");
        &file[..6]
    }
}

impl CommitContent {
    fn of_commit(repo: &Repo, commit: &str) -> Self {
        let files = repo.git(&["-c", "core.quotePath=false", "ls-tree", "-r", commit]);
        let trailers = repo.git(&["log", "-1", "--format=%(trailers:only,unfold)", commit]);
        Self {
            files: files.lines().filter(|line| !line.contains("\t.runner/")).map(str::to_owned).collect(),
            people: repo.git(&["log", "-1", "--format=%an <%ae>, %cn <%ce>", commit]),
            digests: trailers.lines().filter(|line| line.starts_with("Runner-Prompt")).map(str::to_owned).collect(),
        }
    }
}

/// Runs the same script in place and in a workspace, asserts that the results are equal, and returns one.
#[track_caller]
fn assert_alike(prepare: impl Fn(&Home, &Repo) + Sync) -> RunOutcome {
    let run = |how: &str| {
        let home = Home::new();
        let repo = home.repo("one");
        prepare(&home, &repo);
        repo.commit_config(&repo.config().top("max_iterations = 2"));
        repo.commit_tree(&TaskTree { version: TREE_VERSION, root: leaf() });
        repo.script().always(WORK);
        let base = repo.head();
        let _daemon = home.daemon();
        home.run(&repo, &[how, "--id", RUN]).exits(LIMITED);
        assert_eq!(repo.git(&["rev-parse", "main"]), base);
        RunOutcome::of_repo(&repo)
    };
    let [isolated, in_place] = thread::scope(|scope| {
        let both = ["--isolated", "--in-place"].map(|how| scope.spawn(move || run(how)));
        both.map(|run| run.join().expect("a run ends"))
    });
    assert!(in_place.commits.len() >= 3, "{in_place:#?}");
    assert!(in_place.commits.iter().any(|commit| !commit.digests.is_empty()), "no prompt is recorded: {in_place:#?}");
    assert_eq!(isolated, in_place);
    isolated
}

fn leaf() -> Node {
    Node {
        id: "root".to_owned(),
        order: 0,
        title: "Do it".to_owned(),
        goal: "Do all of it.".to_owned(),
        acceptance: vec!["It is done".to_owned()],
        passes: false,
        attempts: 0,
        max_attempts: 3,
        children: Vec::new(),
    }
}

/// Runs git in a folder.
fn git(home: &Home, folder: &Path, args: &[&str]) {
    let output =
        Command::new("git").env_clear().envs(home.env().iter().cloned()).current_dir(folder).args(args).output();
    let output = output.expect("git can be started");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Moves the repository elsewhere, and returns the new path. Nothing is left in its place.
fn move_away(home: &Home, repo: &Repo) -> std::path::PathBuf {
    let aside = home.path().join("aside");
    fs::rename(repo.path(), &aside).expect("a repository can be moved");
    aside
}

/// Creates the repository again with these options of git.
fn assert_recreated(repo: &Repo, how: &str) {
    fs::remove_dir_all(repo.path().join(".git")).expect("a repository can be removed");
    repo.git(&["init", "-q", "-b", "main", how]);
    repo.commit("First commit");
}

fn write_attributes(repo: &Repo, file: &str, text: &str) {
    fs::create_dir_all(repo.path().join(".git/info")).expect("a folder for rules can be made");
    fs::write(repo.path().join(".git/info").join(file), text).expect("rules can be written");
}

#[test]
fn runs_are_alike_by_the_identity_of_that_place() {
    let outcome = assert_alike(|home, repo| {
        let own = home.path().join("own.config");
        fs::write(&own, "[user]\n\tname = Some Body\n\temail = some@body\n").expect("a configuration can be written");
        let condition = format!("includeIf.gitdir:{}.path", repo.path().join(".git").display());
        repo.git(&["config", "--global", &condition, &own.display().to_string()]);
    });
    assert!(outcome.commits.iter().any(|commit| commit.people.contains("Some Body <some@body>")), "{outcome:#?}");
}

#[test]
fn runs_are_alike_with_large_files_kept_beside_git() {
    let outcome = assert_alike(|home, repo| {
        home.install("large", LARGE);
        repo.git(&["config", "filter.large.clean", "large clean"]);
        repo.git(&["config", "filter.large.smudge", "large smudge"]);
        repo.git(&["config", "filter.large.required", "true"]);
        repo.write(".gitattributes", "*.big filter=large\n");
        repo.write("old.big", "an old one\n");
        repo.commit("Large files");
    });
    outcome
        .assert_has_seen("an old one")
        .assert_checks_out("new1.big", "large")
        .assert_checks_out("old.big", "an old one");
    assert!(outcome.stored["new1.big"].starts_with("oid "), "{outcome:#?}");
}

#[test]
fn runs_are_alike_with_attributes_of_all_three_kinds() {
    let outcome = assert_alike(|home, repo| {
        for name in ["one", "two", "three"] {
            repo.git(&["config", &format!("filter.{name}.clean"), &format!("sed s/^/{name}:/")]);
            repo.git(&["config", &format!("filter.{name}.smudge"), &format!("sed s/^{name}://")]);
        }
        repo.write(".gitattributes", "*.big filter=one\n").commit("Attributes");
        write_attributes(repo, "attributes", "*.log filter=two\n");
        let users = home.path().join("users-attributes");
        fs::write(&users, "*.tmp filter=three\n*.txt text eol=crlf\n").expect("attributes can be written");
        repo.git(&["config", "--global", "core.attributesFile", &users.display().to_string()]);
    });
    outcome.assert_stores("new1.big", "one:large").assert_stores("x1.log", "two:x").assert_stores("x1.tmp", "three:x");
    outcome.assert_checks_out("x1.tmp", "x").assert_stores("new1.txt", "a\nb").assert_checks_out("new1.txt", "a\r\nb");
}

#[test]
fn runs_are_alike_with_ends_of_lines_converted() {
    let outcome = assert_alike(|_, repo| {
        repo.git(&["config", "core.autocrlf", "true"]);
        repo.git(&["rm", "-q", "--cached", "README.md"]);
        repo.git(&["reset", "-q", "--hard"]);
    });
    outcome.assert_stores("new1.txt", "a\nb").assert_checks_out("new1.txt", "a\r\nb");
}

#[test]
fn runs_are_alike_with_ignore_rules_of_all_three_kinds() {
    let outcome = assert_alike(|home, repo| {
        repo.write(".gitignore", "*.log\n").commit("Rules");
        write_attributes(repo, "exclude", "*.tmp\n");
        let users = home.path().join("users-rules");
        fs::write(&users, "*.bak\n").expect("rules can be written");
        repo.git(&["config", "--global", "core.excludesFile", &users.display().to_string()]);
    });
    outcome.assert_lacks("x1.log").assert_lacks("x1.tmp").assert_lacks("x1.bak").assert_stores("new1.big", "large");
}

#[test]
fn runs_are_alike_where_modes_of_files_do_not_count() {
    let outcome = assert_alike(|_, repo| {
        repo.git(&["config", "core.fileMode", "false"]);
    });
    assert_eq!((outcome.mode("run1.sh"), outcome.mode("README.md")), ("100644", "100644"));
}

#[test]
fn runs_are_alike_where_modes_of_files_count() {
    let outcome = assert_alike(|_, _| {});
    assert_eq!(
        (outcome.mode("run1.sh"), outcome.mode("README.md"), outcome.mode("link1")),
        ("100755", "100755", "120000")
    );
}

#[test]
fn runs_are_alike_where_a_part_is_checked_out() {
    let outcome = assert_alike(|_, repo| {
        repo.write("wide/file.txt", "wide\n").write("narrow/file.txt", "narrow\n").commit("Folders");
        repo.git(&["sparse-checkout", "set", "--cone", "narrow", ".runner"]);
    });
    outcome.assert_stores("wide/file.txt", "wide").assert_stores("new1.big", "large");
}

#[test]
fn runs_are_alike_by_settings_of_the_work_tree() {
    let outcome = assert_alike(|_, repo| {
        repo.git(&["config", "extensions.worktreeConfig", "true"]);
        repo.git(&["config", "--worktree", "core.autocrlf", "input"]);
        repo.git(&["config", "--worktree", "user.name", "Some Body"]);
    });
    outcome.assert_stores("new1.txt", "a\nb");
    assert!(outcome.commits.iter().any(|commit| commit.people.contains("Some Body")), "{outcome:#?}");
}

#[test]
fn runs_are_alike_with_objects_that_are_borrowed() {
    assert_alike(|home, repo| {
        repo.write("inner/file", "borrowed\n").commit("A file");
        let aside = move_away(home, repo);
        git(
            home,
            home.path(),
            &["clone", "-q", "--shared", &aside.display().to_string(), &repo.path().display().to_string()],
        );
        assert!(repo.path().join(".git/objects/info/alternates").exists());
    })
    .assert_has_seen("borrowed");
}

#[test]
fn runs_are_alike_in_a_shallow_clone() {
    let outcome = assert_alike(|home, repo| {
        repo.write("inner/file", "old\n").commit("An old one");
        repo.write("inner/file", "last\n").commit("The last one");
        let from = format!("file://{}", move_away(home, repo).display());
        git(home, home.path(), &["clone", "-q", "--depth=1", &from, &repo.path().display().to_string()]);
        assert!(repo.path().join(".git/shallow").exists());
    });
    outcome.assert_has_seen("last");
}

#[test]
fn runs_are_alike_in_a_linked_work_tree() {
    let outcome = assert_alike(|home, repo| {
        repo.write("inner/file", "linked\n").commit("A file");
        let aside = move_away(home, repo);
        git(home, &aside, &["switch", "-q", "--detach"]);
        git(home, &aside, &["worktree", "add", "-q", &repo.path().display().to_string(), "main"]);
        assert!(repo.path().join(".git").is_file());
    });
    outcome.assert_has_seen("linked");
}

#[test]
fn runs_are_alike_with_a_submodule() {
    let outcome = assert_alike(|home, repo| {
        let other = home.path().join("other");
        git(home, home.path(), &["init", "-q", "-b", "main", "other"]);
        fs::write(other.join("file"), "of the submodule\n").expect("a file can be written");
        git(home, &other, &["add", "-A"]);
        git(home, &other, &["commit", "-q", "-m", "A file"]);
        let from = other.display().to_string();
        repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "inner"]);
        repo.write(".gitmodules", "[submodule \"inner\"]\n\tpath = inner\n\turl = https://example.com/inner\n");
        repo.commit("A submodule");
    });
    outcome.assert_has_seen("of the submodule");
    assert_eq!(outcome.mode("inner"), "160000");
}

#[test]
fn runs_are_alike_with_ids_of_another_length() {
    let outcome = assert_alike(|_, repo| assert_recreated(repo, "--object-format=sha256"));
    assert!(outcome.commits[0].files[0].len() > 64, "{outcome:#?}");
}

#[test]
fn runs_are_alike_with_references_in_tables() {
    let knows = Command::new("git").args(["init", "-h"]).output().expect("git can be started");
    if !String::from_utf8_lossy(&[knows.stdout, knows.stderr].concat()).contains("ref-format") {
        return;
    }
    assert_alike(|_, repo| {
        assert_recreated(repo, "--ref-format=reftable");
        assert!(repo.path().join(".git/reftable").exists());
    });
}
