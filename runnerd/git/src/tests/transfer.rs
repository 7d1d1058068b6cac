//! Copies the objects of a few commits, and compares them with git's list.

use std::collections::BTreeSet;
use std::fs;

use runner_os::error_chain::display_chain;

use super::fixture::Fixture;
use crate::objects::transfer::{KnownObjects, ObjectRange};
use crate::{Id, Repository};

/// A named change that a commit makes to the files.
type TransferStep = (&'static str, fn(&Fixture));

const STEPS: &[TransferStep] = &[
    ("a file and a folder come", |f| {
        f.write("new/deep/file", "new");
        f.write("top", "top");
    }),
    ("a folder is moved", |f| {
        f.git(&["mv", "new/deep", "moved"]);
    }),
    ("a file takes the place of a folder", |f| {
        f.git(&["rm", "-rq", "moved"]);
        f.write("moved", "a file");
    }),
    ("a folder takes the place of a file", |f| {
        f.remove("moved");
        f.write("moved/inside", "a file");
    }),
    ("modes and links change", |f| {
        f.chmod("top", 0o755);
        f.link("top", "link");
    }),
    ("what was there comes back", |f| f.write("new/deep/file", "new")),
    ("all is removed", |f| {
        f.git(&["rm", "-rqf", "."]);
    }),
    ("a submodule comes", |f| f.nested("nested")),
    ("nothing changes", |_| ()),
    ("another line is merged", |f| {
        f.git(&["checkout", "-q", "-b", "side", "HEAD~2"]);
        f.write("side", "side");
        f.commit_by_git("side");
        f.git(&["checkout", "-q", "-"]);
        f.git(&["merge", "-q", "--no-ff", "--no-commit", "side"]);
    }),
];

/// A repository, and an empty one to copy its objects to.
fn pair() -> (Fixture, Repository) {
    let source = Fixture::new();
    let folder = source.folder().join("there");
    source.git(&["init", "-q", &folder.display().to_string()]);
    let target = Repository::discover_own_config(&folder).unwrap();
    (source, target)
}

/// Returns the ids of a repository's objects.
fn objects(fixture: &Fixture, of: &Repository) -> BTreeSet<String> {
    let listed = fixture.git_in(of.work_dir(), &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    listed.lines().map(str::to_owned).collect()
}

fn expected_objects(fixture: &Fixture, tip: &Id, known: Option<&Id>) -> BTreeSet<String> {
    let tip = tip.to_string();
    let not = known.map(|known| format!("^{known}"));
    let args: Vec<&str> =
        ["rev-list", "--objects", "--no-object-names", &tip].into_iter().chain(not.as_deref()).collect();
    fixture.git(&args).lines().map(str::to_owned).collect()
}

#[test]
fn each_commit_comes_with_all_that_git_lists_of_it() {
    let (source, target) = pair();
    let repository = source.repository();
    let mut known = None;
    for (what, step) in STEPS {
        step(&source);
        source.git(&["add", "-A"]);
        source.git(&["commit", "-q", "--allow-empty", "-m", what]);
        let tip = source.head();
        repository.send_objects(&target, ObjectRange { tips: &[tip], excluded: known.as_slice() }).unwrap();
        assert!(objects(&source, &target).is_superset(&expected_objects(&source, &tip, None)), "{what}");
        source.git_in(target.work_dir(), &["update-ref", "refs/heads/copied", &tip.to_string()]);
        let broken = source.try_git(target.work_dir(), &["fsck", "--connectivity-only", "--no-dangling"]);
        assert!(broken.status.success(), "{what}: {broken:?}");
        known = Some(tip);
    }
    assert_eq!(objects(&source, &target), expected_objects(&source, &source.head(), None), "and with nothing else");
}

#[test]
fn many_bytes_are_gits_to_send() {
    let (source, target) = pair();
    let repository = source.repository();
    let base = source.head();
    repository.send_objects(&target, ObjectRange { tips: &[base], excluded: &[] }).unwrap();
    for (bytes, is_few) in [(1 << 20, true), (9 << 20, false)] {
        source.write("large", vec![b'x'; bytes]);
        let tip = source.commit_by_git("large");
        let sent = ObjectRange { tips: &[tip], excluded: &[base] };
        assert_eq!(repository.send_objects(&target, sent).unwrap(), is_few, "{bytes} bytes");
        assert_eq!(target.find_missing_object(&[tip], KnownObjects::Commit(base)).unwrap(), None);
    }
}

#[test]
fn each_object_that_is_missing_is_found_to_be() {
    let (source, target) = pair();
    let repository = source.repository();
    let base = source.head();
    repository.send_objects(&target, ObjectRange { tips: &[base], excluded: &[] }).unwrap();
    STEPS[0].1(&source);
    let tip = source.commit_by_git("more");
    repository.send_objects(&target, ObjectRange { tips: &[tip], excluded: &[base] }).unwrap();
    assert_eq!(target.find_missing_object(&[tip], KnownObjects::Commit(base)).unwrap(), None);
    for id in expected_objects(&source, &tip, Some(&base)) {
        let file = target.git_dir().join("objects").join(&id[..2]).join(&id[2..]);
        let bytes = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(target.find_missing_object(&[tip], KnownObjects::Commit(base)).unwrap(), Some(id));
        fs::write(&file, bytes).unwrap();
    }
    assert_eq!(target.find_missing_object(&[tip], KnownObjects::Commit(base)).unwrap(), None);
}

#[test]
fn what_a_git_does_not_understand_is_no_answer_of_it() {
    let (source, target) = pair();
    let repository = source.repository();
    let base = source.head();
    repository.send_objects(&target, ObjectRange { tips: &[base], excluded: &[] }).unwrap();
    assert_eq!(target.find_missing_object(&[base], KnownObjects::References).unwrap(), None);
    assert_eq!(target.parse_revision("refs/heads/nothing").unwrap(), None);
    source.git_in(target.work_dir(), &["config", "core.repositoryFormatVersion", "1"]);
    source.git_in(target.work_dir(), &["config", "extensions.ofTheFuture", "1"]);
    for error in [
        target.find_missing_object(&[base], KnownObjects::References).unwrap_err(),
        target.parse_revision("refs/heads/nothing").unwrap_err(),
        target.merge_base(&base, &base).unwrap_err(),
        target.check_git_usable().unwrap_err(),
    ] {
        assert!(display_chain(&error).contains("unknown repository extension"), "{error}");
    }
}

#[test]
fn a_repository_of_the_usual_form_has_no_extension_that_an_older_git_refuses() {
    let (source, destination) = pair();
    let folder = source.folder().join("laid-out");
    let target = source.repository().pinned_target(destination.common_dir(), &folder).unwrap();
    assert_eq!(target.find_missing_object(&[], KnownObjects::References).unwrap(), None);
    let settings = fs::read_to_string(folder.join("config")).unwrap().to_lowercase();
    assert!(settings.contains("[core]") && !settings.contains("refstorage"), "{settings}");
}

#[test]
fn row_118_what_a_power_cut_has_left_of_an_object_is_sent_again() {
    let (source, target) = pair();
    let repository = source.repository();
    let base = source.head();
    repository.send_objects(&target, ObjectRange { tips: &[base], excluded: &[] }).unwrap();
    STEPS[0].1(&source);
    let tip = source.commit_by_git("more");
    let sent = ObjectRange { tips: &[tip], excluded: &[base] };
    repository.send_objects(&target, sent).unwrap();
    let names = expected_objects(&source, &tip, Some(&base));
    for id in &names {
        let file = target.git_dir().join("objects").join(&id[..2]).join(&id[2..]);
        let bytes = fs::read(&file).unwrap();
        for left in [0, bytes.len() / 2] {
            fs::remove_file(&file).unwrap();
            fs::write(&file, &bytes[..left]).unwrap();
            assert!(repository.send_objects(&target, sent).unwrap(), "{id}, {left} bytes");
            assert_eq!(fs::read(&file).unwrap().len(), bytes.len(), "{id}, {left} bytes");
        }
    }
    source.git_in(target.work_dir(), &["update-ref", "refs/heads/copied", &tip.to_string()]);
    let whole = source.try_git(target.work_dir(), &["fsck", "--no-dangling"]);
    assert!(whole.status.success() && names.len() > 1, "{whole:?}");
}
