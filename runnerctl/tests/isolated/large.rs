//! Large files for which git has only pointers: those that a run stored are copied to its source, but not a file to
//! which a session merely gave such a name.

use std::fs;

use runner_testkit::Home;

use crate::kit::run;

/// The `sha256sum` of the bytes `large`.
const NAME: &str = "d35c416a85b807e9b5384915d6ebb4a9f7352713efd89857b45a242f473728a9";

#[test]
fn large_files_that_are_what_they_are_called_come_and_others_stay() {
    let home = Home::new();
    let repo = home.scripted_repo("plain");
    let steps = [
        "put() { mkdir -p \".git/lfs/objects/$1\"; cat > \".git/lfs/objects/$1/$2\"; }",
        &format!("printf large | put d3/5c {NAME}"),
        &format!("printf another | put 00/00 {}", "0".repeat(64)),
        &format!("printf large | put 22/22 {NAME}"),
        &format!("mkdir -p .git/lfs/objects/11/11; ln -s \"$PWD/README.md\" .git/lfs/objects/11/11/{}", "1".repeat(64)),
        "mkdir -p .git/lfs/objects/33; ln -s ../d3/5c .git/lfs/objects/33/33",
        "echo pointer > file.big; answer done 'Done.'",
    ];
    repo.script().always(&steps.join("\n"));
    let _daemon = home.daemon();
    run(&home, &repo, "large").exits(0);
    let store = repo.path().join(".git/lfs/objects");
    assert_eq!(fs::read_to_string(store.join("d3/5c").join(NAME)).expect("it has come"), "large");
    let mut folders: Vec<_> = fs::read_dir(&store).expect("a store").flatten().map(|folder| folder.path()).collect();
    folders.retain(|folder| fs::read_dir(folder).is_ok_and(|mut below| below.any(|below| has_files(&below))));
    assert_eq!(folders, [store.join("d3")], "nothing else has");
}

fn has_files(folder: &std::io::Result<fs::DirEntry>) -> bool {
    let listed = folder.as_ref().ok().and_then(|folder| fs::read_dir(folder.path()).ok());
    listed.is_some_and(|mut files| files.next().is_some())
}
