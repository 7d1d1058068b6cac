//! Same commit, same inputs: same choices (P1).
//!
//! Every process has its own hash seeds, so these runs differ in them, too.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use runner_testkit::{Home, ReceiptCommit};
use serde_json::Value;

use crate::play::{LEAVE, RunPlay, leaf, sample};

/// Surroundings that a run must not depend on.
#[derive(Clone, Copy)]
struct PlayWorld {
    zone: &'static str,
    locale: &'static str,
    user: &'static str,
    /// Whether files are created in reverse order, so that folders list them in another order.
    is_reversed: bool,
    /// Settings of git for the repository.
    git: &'static [[&'static str; 2]],
}

const PLAIN: PlayWorld = PlayWorld { zone: "UTC", locale: "C.UTF-8", user: "Kit", is_reversed: false, git: &[] };

/// A run with every kind of step that its agent and guard can cause.
fn play(world: PlayWorld) -> RunPlay {
    let home = Home::new().export("TZ", world.zone).export("LC_ALL", world.locale).export("LANG", world.locale);
    let user = format!("[user]\n\tname = {0}\n\temail = {0}@localhost\n[init]\n\tdefaultBranch = main\n", world.user);
    fs::write(home.path().join(".gitconfig"), user).expect("git's configuration can be written");
    let play = RunPlay::in_home(home, &sample(), |config| config.top("max_iterations = 9"));
    let mut files: Vec<u32> = (0..40).collect();
    if world.is_reversed {
        files.reverse();
    }
    for file in &files {
        play.repo.write(&format!("src/Ünit-{}/file-{file}.txt", file % 7), "Text.\n");
    }
    play.repo.commit("Files");
    for [key, value] in world.git {
        play.repo.git(&["config", key, value]);
    }
    act_as_person(&play);
    play.run().exits(4);
    play
}

fn act_as_person(play: &RunPlay) {
    play.script_tree_change(|tree| tree.root.children.push(leaf("new", 9)));
    let script = play.script();
    script.step(1, "echo half > work\nanswer done 'It should work.'").guard_step(1, "echo 'FAIL: half'\nexit 1");
    script.step(2, "exit 3");
    script.step(3, &format!("{LEAVE}answer retry 'Planned more.'"));
    script.step(4, "decompose 'Two parts.' one two");
    script.step(5, "git reset -q --soft HEAD~1\nanswer done 'Rewritten.'");
    script.step(6, "echo '{' > \"$tree\"\nanswer done 'Broken.'");
    script.step(7, "echo 7 > work\nanswer done 'Repaired and done.'");
    script.step(
        8,
        "echo x > .runner/state/config.toml\necho '- fast' >> .runner/state/assumptions.md\nanswer done 'Two.'",
    );
}

/// A receipt without anything that names a commit, since commit ids depend on the time.
fn without_ids(receipt: ReceiptCommit) -> (String, String, Vec<(String, String)>) {
    let names_commit = |name: &str| name == "Runner-From";
    let trailers = receipt.trailers.into_iter().filter(|(name, _)| !names_commit(name)).collect();
    (receipt.subject, receipt.body, trailers)
}

/// The contents of every commit: its files, and its run state without time and ids.
fn commits(play: &RunPlay) -> Vec<(Vec<String>, Value)> {
    const RUN_STATE: &str = ".runner/state/run_state.json";
    let of_commit = |receipt: ReceiptCommit| {
        let files = play.repo.git(&["ls-tree", "-r", "-z", &receipt.commit]);
        let files = files.split('\0').filter(|line| !line.ends_with(RUN_STATE)).map(str::to_owned).collect();
        let mut state: Value =
            serde_json::from_str(&play.repo.show(&receipt.commit, RUN_STATE)).expect("the run state is JSON");
        for named in ["elapsed_ms", "base"] {
            state.as_object_mut().and_then(|state| state.remove(named)).expect("the run state has it");
        }
        (files, state)
    };
    play.repo.receipts().into_iter().map(of_commit).collect()
}

/// Asserts that two runs have made the same choices, prompts and commits.
fn assert_same(one: &RunPlay, other: &RunPlay) {
    let receipts = |play: &RunPlay| play.repo.receipts().into_iter().map(without_ids).collect::<Vec<_>>();
    assert_eq!(receipts(one), receipts(other));
    assert_eq!(receipts(one).len(), 9);
    for session in 1..=9 {
        assert_eq!(one.script().prompt(session), other.script().prompt(session), "prompt of session {session}");
    }
    assert_eq!(commits(one), commits(other));
}

#[test]
fn same_repository_and_script_make_the_same_run() {
    let one = play(PLAIN);
    let other = play(PLAIN);
    assert_eq!(one.repo.git(&["rev-parse", "main"]), other.repo.git(&["rev-parse", "main"]));
    assert_same(&one, &other);
}

mod slow {
    use super::*;

    #[test]
    fn zone_locale_user_order_of_folders_and_engine_of_git_change_nothing() {
        let far = PlayWorld {
            zone: "Pacific/Kiritimati",
            locale: "tr_TR.UTF-8",
            user: "Zoë",
            is_reversed: true,
            git: &[["core.quotePath", "true"], ["i18n.commitEncoding", "UTF-8"], ["status.showUntrackedFiles", "no"]],
        };
        // The library does not support shared permissions, so git is used for everything about the work tree.
        let by_git = PlayWorld { git: &[["core.sharedRepository", "group"]], ..PLAIN };
        let by_library = play(PLAIN);
        let far = play(far);
        let by_git = play(by_git);
        assert_same(&by_library, &far);
        // The folders of objects show who wrote them.
        let is_shared = |play: &RunPlay| {
            let folders = fs::read_dir(play.repo.path().join(".git/objects")).expect("there are objects");
            let mut modes = folders.flatten().map(|folder| folder.metadata().expect("a folder").permissions().mode());
            modes.any(|mode| mode & 0o020 != 0)
        };
        assert_eq!((is_shared(&by_library), is_shared(&by_git)), (false, true));
        assert_same(&by_library, &by_git);
    }
}
