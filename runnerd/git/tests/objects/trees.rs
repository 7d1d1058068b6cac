//! Trees, legal and not, compared with `git fsck`.

use std::collections::{BTreeMap, BTreeSet};

use runner_core::fsck::{FaultTarget, GitTreeFault, PathFault, check_added_trees};
use runner_testkit::RandomSource;

use crate::store::Store;
use crate::{OBJECTS, all_same, make_objects, number, pick};

const NAMES: [&[u8]; 40] = [
    b"a",
    b"a",
    b"b",
    b"a.b",
    b"a-b",
    b"a0",
    b"a/b",
    b"A",
    b"",
    b".",
    b"..",
    b"...",
    b".git",
    b".GiT",
    b"git~1",
    b"GIT~1",
    b"git~2",
    b".git ",
    b".git...",
    b".git. .x",
    b".git:x",
    b".git\\x",
    b"x\\.git",
    b"x\\git~1",
    b".g\xe2\x80\x8cit",
    b".git\xff",
    b".git\xc3\xa9",
    b".gi\xffx",
    b".gitmodules",
    b".GITMODULES ",
    b"gitmod~1",
    b"gitmod~5",
    b"gi7eba~1",
    b"gi7eb~19",
    b"~1000000",
    b"x\\.gitmodules",
    b".gitmodules\xef\xbb\xbf",
    b".gitignore",
    b"caf\xe9",
    b"a\nb",
];
const MODES: [&str; 13] = [
    "100644", "100644", "100644", "100755", "120000", "120000", "40000", "40000", "160000", "040000", "0100644",
    "100600", "777",
];

/// A tree of a few entries, mostly in git's order; sometimes truncated.
fn tree(random: &mut RandomSource, [blob, folder]: [&[u8]; 2]) -> Vec<u8> {
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = (0..=random.below(4)).map(|_| entry(random, [blob, folder])).collect();
    if random.below(6) > 0 {
        entries.sort();
    }
    let mut bytes: Vec<u8> = entries.into_iter().flat_map(|(_, entry)| entry).collect();
    if random.below(12) == 0 {
        bytes.truncate(usize::try_from(random.below(bytes.len() as u64)).expect("it is short"));
    }
    bytes
}

/// An entry, and its sort key.
fn entry(random: &mut RandomSource, [blob, folder]: [&[u8]; 2]) -> (Vec<u8>, Vec<u8>) {
    // Most trees are legal except in one respect.
    let names = if random.below(3) == 0 { &NAMES[..] } else { &NAMES[..6] };
    let modes = if random.below(8) == 0 { &MODES[..] } else { &MODES[..9] };
    let name = pick(random, names);
    let mode = pick(random, modes);
    let is_folder = mode.ends_with("40000");
    let id = match random.below(30) {
        0 => &[0; 20][..],
        _ if is_folder => folder,
        _ => blob,
    };
    let key = if is_folder { [name, b"/"].concat() } else { name.to_vec() };
    (key, [mode.as_bytes(), b" ", name, b"\0", id].concat())
}

/// Returns this crate's findings about a tree, in git's words.
fn our_faults(tree: &[u8]) -> BTreeSet<&'static str> {
    let root = vec![1; 20];
    let is_root = |id: &Vec<u8>| *id == root;
    let found = check_added_trees(None, root.clone(), |id| Ok::<_, ()>(is_root(id).then(|| tree.to_vec())));
    let words = |PathFault { path, fault }: PathFault| match fault {
        GitTreeFault::Truncated | GitTreeFault::DuplicateName | GitTreeFault::Unsorted | GitTreeFault::TooDeep => {
            "malformed"
        }
        GitTreeFault::InvalidName if matches!(&path[..], b".") => "hasDot",
        GitTreeFault::InvalidName if matches!(&path[..], b"..") => "hasDotdot",
        GitTreeFault::InvalidName => "fullPathname",
        GitTreeFault::GitmodulesLink => "gitmodulesSymlink",
        GitTreeFault::DotGit => "hasDotgit",
        GitTreeFault::InvalidMode => "mode",
        GitTreeFault::NullId => "nullSha1",
    };
    alone(found.expect("nothing fails").into_iter().map(words).collect())
}

/// If a tree is malformed, git's other findings are incomplete, so only that one counts.
fn alone(faults: BTreeSet<&'static str>) -> BTreeSet<&'static str> {
    if faults.contains("malformed") { BTreeSet::from(["malformed"]) } else { faults }
}

/// Git's messages, without those about the object that an entry names.
fn gits(messages: Option<&BTreeSet<String>>) -> BTreeSet<&'static str> {
    let words = [
        ("badTree", "malformed"),
        ("duplicateEntries", "malformed"),
        ("treeNotSorted", "malformed"),
        ("hasDot", "hasDot"),
        ("hasDotdot", "hasDotdot"),
        ("fullPathname", "fullPathname"),
        ("hasDotgit", "hasDotgit"),
        ("gitmodulesSymlink", "gitmodulesSymlink"),
        ("badFilemode", "mode"),
        ("zeroPaddedFilemode", "mode"),
        ("nullSha1", "nullSha1"),
    ];
    alone(
        words
            .into_iter()
            .filter(|(name, _)| messages.is_some_and(|messages| messages.contains(*name)))
            .map(|(_, it)| it)
            .collect(),
    )
}

#[test]
fn what_gits_check_says_of_a_tree_is_what_the_audit_says() {
    let store = Store::new();
    let id = |kind: &str| {
        let id = store.store(kind, [&b""[..]]).remove(0);
        (0..id.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&id[at..at + 2], 16).expect("it is one"))
            .collect::<Vec<u8>>()
    };
    let blob = id("blob");
    let folder = id("tree");
    std::fs::remove_dir_all(store.path().join("tree")).expect("it was made");
    let trees = make_objects(|random| tree(random, [&blob, &folder]));
    let ids = store.store("tree", trees.iter().map(|(_, tree)| tree.as_slice()));
    let checked = store.fsck();
    let mut differing = Vec::new();
    let mut counts = BTreeMap::<&str, usize>::new();
    for ((seed, tree), id) in trees.iter().zip(&ids) {
        let ours = our_faults(tree);
        let gits = gits(checked.get(id));
        if ours != gits {
            differing.push(format!("seed {seed}: {:?}: {ours:?}, git: {gits:?}", String::from_utf8_lossy(tree)));
        }
        for word in ours.iter().copied().chain(ours.is_empty().then_some("nothing")) {
            *counts.entry(word).or_default() += 1;
        }
    }
    all_same(&differing, trees.len());
    assert!(number("OBJECTS", OBJECTS) < OBJECTS || counts.len() == 9, "every fault occurs: {counts:?}");
}

#[test]
fn whom_a_fault_tells_against_goes_by_whether_git_calls_it_an_error() {
    let faults = |mode: &str, name: &[u8], id: u8| {
        let tree = [mode.as_bytes(), b" ", name, b"\0", &[id; 20]].concat();
        let found = check_added_trees(None, vec![9; 20], |_| Ok::<_, ()>(Some(tree.clone()))).expect("nothing fails");
        found.into_iter().map(|found| found.fault).collect::<Vec<_>>()
    };
    assert_eq!(faults("120000", b".gitmodules", 1), [GitTreeFault::GitmodulesLink]);
    assert_eq!(GitTreeFault::GitmodulesLink.blames(), FaultTarget::Anyone);
    for (mode, name, id) in
        [("0100644", &b"a"[..], 1), ("100664", b"a", 1), ("100644", b".git", 1), ("160000", b"a", 0)]
    {
        let found = faults(mode, name, id);
        assert!(found.len() == 1 && found[0].blames() == FaultTarget::Runner, "{mode} {name:?}: {found:?}");
    }
}
