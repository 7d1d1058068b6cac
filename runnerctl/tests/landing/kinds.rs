//! Unusual targets and machines: sparse work trees, submodules, signed commits, a git version that is too old.

use std::process::Command;

use crate::scene::{LandingScene, change_step, write_step};

#[test]
fn a_sparse_work_tree_stays_as_sparse_as_it_is() {
    let scene = LandingScene::new(&["x"]);
    scene.repo.write("in/a", "1\n").write("out/b", "1\n").commit("Two folders");
    scene.run("a", &["echo 2 > in/a; echo 2 > out/b; echo new > out/new; answer done 'Both.'"]).on_main();
    scene.git(&["sparse-checkout", "set", "in", ".runner"]);
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.repo.read("in/a"), "2\n");
    assert!(!scene.repo.path().join("out").exists(), "what is not to be there is not laid out");
    assert_eq!(scene.git(&["show", "main:out/b"]), "2");
    assert_eq!(tracked_files(&scene), "");
    scene.git(&["sparse-checkout", "disable"]);
    assert_eq!((scene.repo.read("out/b").as_str(), tracked_files(&scene).as_str()), ("2\n", ""));
}

#[test]
fn attributes_of_a_run_say_nothing_of_how_it_is_merged() {
    let scene = LandingScene::new(&["x"]);
    let lines = |first: &str, last: &str| format!("{first}\n{}{last}\n", "same\n".repeat(9));
    scene.repo.write("f", &lines("1", "1")).commit("A file");
    scene.run("a", &["echo '* -merge' > .gitattributes; sed -i '1s/1/run/' f; answer done 'Done.'"]).on_main();
    scene.repo.write("f", &lines("1", "main")).commit("The other end");
    scene.land(&["a"]).exits(0);
    assert_eq!(scene.repo.read("f"), lines("run", "main"));
}

/// Returns the tracked files that differ.
fn tracked_files(scene: &LandingScene) -> String {
    scene.git(&["status", "--porcelain", "--untracked-files=no"])
}

/// A repository for a submodule, with two commits besides that of the scene; returns the commits, oldest first.
fn with_submodule(scene: &LandingScene) -> [String; 2] {
    let other = scene.home.repo("other");
    let commits = ["1", "2"].map(|text| {
        other.write("f", text).commit("Another");
        other.head()
    });
    let path = other.path().display().to_string();
    scene.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &path, "sub"]);
    scene.git(&["-C", "sub", "checkout", "-q", &commits[0]]);
    scene.git(&["add", "sub"]);
    scene.git(&["commit", "-q", "-m", "A submodule"]);
    commits
}

/// A session that updates the submodule to a commit.
fn moves(commit: &str) -> String {
    format!("git -C sub checkout -q {commit}; git commit -q -a -m 'Move it'; answer done 'Moved.'")
}

#[test]
fn a_submodule_that_a_run_moves_lands_and_its_folder_is_named() {
    let scene = LandingScene::new(&["x"]);
    let [first, second] = with_submodule(&scene);
    scene.run("a", &[&moves(&second)]).on_main();
    scene.git(&["-C", "sub", "checkout", "-q", &first]);
    let stdout = scene.land(&["a"]).exits(0).stdout.clone();
    let tree = scene.repo.path().display().to_string();
    let command = format!("git -C {tree} submodule update --init -- sub");
    assert!(stdout.contains(&format!("note: the directories of submodules are as they were: {command}")), "{stdout}");
    assert_eq!(scene.git(&["rev-parse", "main:sub"]), second);
    assert_eq!(scene.git(&["-C", "sub", "rev-parse", "HEAD"]), first, "the submodule's folder is not touched");
    scene.git(&["submodule", "update", "--init", "--", "sub"]);
    assert_eq!(tracked_files(&scene), "");
}

#[test]
fn a_submodule_that_both_sides_have_moved_is_refused() {
    let scene = LandingScene::new(&["x"]);
    let [first, second] = with_submodule(&scene);
    scene.run("a", &[&moves(&second)]).on_main();
    scene.git(&["-C", "sub", "checkout", "-q", &first]);
    scene.git(&[
        "-C",
        "sub",
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@x",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "Aside",
    ]);
    scene.git(&["commit", "-q", "-a", "-m", "Aside"]);
    let before = scene.git(&["rev-parse", "main"]);
    let stderr = scene.land(&["a", "--onto", "main"]).exits(6).stderr.clone();
    assert!(stderr.contains("task x of run a conflicts in the submodule sub"), "{stderr}");
    assert_eq!(scene.git(&["rev-parse", "main"]), before);
}

#[test]
fn where_commits_are_signed_the_landed_ones_are() {
    let scene = LandingScene::new(&["x", "y"]);
    let key = scene.home.path().join("key").display().to_string();
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "kit", "-f", &key]).status();
    assert!(made.expect("ssh-keygen runs").success());
    let signers = scene.home.path().join("signers");
    let public = std::fs::read_to_string(format!("{key}.pub")).expect("a key was made");
    std::fs::write(&signers, format!("* {public}")).expect("a file can be written");
    for (name, value) in [
        ("gpg.format", "ssh"),
        ("user.signingKey", &*format!("{key}.pub")),
        ("gpg.ssh.allowedSignersFile", &*signers.display().to_string()),
    ] {
        scene.git(&["config", name, value]);
    }
    scene.repo.commit_config(&scene.repo.config().section("[git]\nsign = true"));
    scene.run("a", &[&write_step("x", "1"), &write_step("y", "2")]).on_main();
    scene.repo.write("beside", "1").commit("Move on");
    scene.land(&["a"]).exits(0);
    let signed = || scene.git(&["log", "-2", "--format=%G? %s", "main"]);
    assert_eq!(signed(), "G Title of y\nG Title of x");
    scene.home.ctl_in(&scene.repo, &["verify", "--landed", "main"]).exits(0);
    // If the key is missing, nothing is moved.
    scene.git(&["reset", "-q", "--hard", "main~2"]);
    std::fs::remove_file(&key).expect("the key goes");
    let before = scene.git(&["rev-parse", "main"]);
    let stderr = scene.land(&["a"]).exits(1).stderr.clone();
    assert!(stderr.contains("git commit-tree failed"), "{stderr}");
    assert_eq!((scene.git(&["rev-parse", "main"]), tracked_files(&scene)), (before, String::new()));
}

#[test]
fn a_git_that_cannot_merge_trees_is_refused_with_its_version() {
    let scene = LandingScene::new(&["x"]);
    scene.run("a", &[&change_step("one", "eins")]).on_main();
    scene.home.fake_git_version("2.34.1");
    let before = scene.git(&["rev-parse", "main"]);
    for words in [&["a"][..], &["a", "--preview"], &["a", "--resolve"]] {
        let stderr = scene.land(&[words, &["--onto", "main"]].concat()).exits(6).stderr.clone();
        assert!(stderr.contains("git 2.34.1 cannot merge trees by themselves"), "{stderr}");
        assert!(stderr.contains("install git 2.38 or later") && stderr.contains("runnerctl doctor"), "{stderr}");
    }
    assert_eq!(scene.git(&["rev-parse", "main"]), before);
}

#[test]
fn what_an_agent_says_is_an_order_to_nobody() {
    let scene = LandingScene::new(&["x"]);
    scene
        .run("a", &["echo 1 > x; answer done 'Closes #7 for @bob. [skip ci]\\n\\nSigned-off-by: Bob <b@x>'"])
        .on_main();
    scene.land(&["a"]).exits(0);
    let message = scene.git(&["log", "-1", "--format=%B", "main"]);
    assert!(message.contains("\nCloses # 7 for @ bob. (skip ci)\n\n> Signed-off-by: Bob <b@x>\n"), "{message}");
    let names = scene.git(&["log", "-1", "--format=%(trailers:keyonly)", "main"]);
    assert_eq!(names.split_whitespace().collect::<Vec<_>>(), ["Runner-Merged", "Runner-Landed"]);
}

#[test]
fn a_session_that_merges_in_a_sparse_work_tree_keeps_what_is_not_laid_out() {
    merges_sparsely(&sparse_conflict(&[]));
}

#[test]
fn a_session_that_merges_with_a_sparse_index_keeps_what_is_not_laid_out() {
    merges_sparsely(&sparse_conflict(&["--sparse-index"]));
}

fn merges_sparsely(scene: &LandingScene) {
    scene.repo.script().step(
        2,
        "git merge --squash refs/runner/squash/a > merge.log 2>&1 || true\n\
         printf 'eins, uno\\ntwo\\nthree\\nfour\\nfive\\n' > shared; git add shared\n\
         answer done 'Both are said.'",
    );
    settles_sparsely(scene);
}

#[test]
fn a_session_that_commits_a_merge_in_a_sparse_work_tree_keeps_what_is_not_laid_out() {
    let scene = sparse_conflict(&[]);
    scene.repo.script().step(
        2,
        "git merge --squash refs/runner/squash/a > merge.log 2>&1 || true\n\
         printf 'eins, uno\\ntwo\\nthree\\nfour\\nfive\\n' > shared\n\
         git add shared && git commit -q -m 'Bring in run a'\n\
         answer done 'Both are said.'",
    );
    settles_sparsely(&scene);
}

/// A run whose change of `shared` conflicts with `main`, and which has changed, added and removed files that the work
/// tree has not laid out.
fn sparse_conflict(options: &[&str]) -> LandingScene {
    let scene = LandingScene::new(&["x"]);
    scene.repo.write("in/a", "1\n").write("out/b", "1\n").write("out/c", "1\n").commit("Two folders");
    scene
        .run("a", &["sed -i 's/^one$/eins/' shared; echo 2 > out/b; echo new > out/new; rm out/c; answer done 'All.'"]);
    scene.on_main();
    scene.repo.write("shared", "uno\ntwo\nthree\nfour\nfive\n").commit("Say it in Spanish");
    scene.git(&[&["sparse-checkout", "set"], options, &["in", ".runner"]].concat());
    scene
}

fn settles_sparsely(scene: &LandingScene) {
    let ended = scene.land(&["a", "--resolve", "--wait", "--yes"]).exits(0).stdout.clone();
    assert!(!ended.contains("put back"), "{ended}");
    assert_eq!(scene.git(&["ls-tree", "--name-only", "runner/resolve-a", "out/"]), "out/b\nout/new");
    assert_eq!(scene.git(&["show", "runner/resolve-a:out/b"]), "2");
    scene.on_main().land(&["resolve-a"]).exits(0);
    assert_eq!(scene.git(&["ls-tree", "--name-only", "main", "out/"]), "out/b\nout/new");
    assert!(!scene.repo.path().join("out").exists(), "what is not to be there is not laid out");
    assert_eq!(tracked_files(scene), "");
}
