//! A commit of everything has the tree of `git add -A`, case by case, with either engine. A case that should give
//! another tree states why, and what is reported.

use std::fs;

use super::fixture::{ENGINES, Fixture, commit, request};
use crate::{CommitOutcome, CommitRequest, GitError, HoldBackRule, Repository};

/// File contents before they are stored.
const CONTENTS: [&[u8]; 9] = [
    b"",
    b"one\ntwo\n",
    b"one\r\ntwo\r\n",
    b"one\r\ntwo\nthree\r\n",
    b"one\rtwo\r\n",
    b"one\r\n\0\r\ntwo\n",
    b"no end\r\nof a line",
    b"$Id: before $\r\n$Id$\n",
    b"\xff\xfe\x80 high bytes\r\n",
];

/// Attributes of a file.
const ATTRIBUTES: [&str; 12] = [
    "",
    "text",
    "-text",
    "text=auto",
    "text eol=crlf",
    "text eol=lf",
    "text=auto eol=crlf",
    "crlf=input",
    "ident",
    "filter=upper",
    "filter=soft",
    "filter=upper text ident",
];

/// Line-ending settings.
const LINE_ENDS: [&[&str]; 3] = [&["core.eol", "crlf"], &["core.autocrlf", "true"], &["core.autocrlf", "input"]];

/// A repository with filters, in memory.
fn filter_fixture(settings: &[&str]) -> Fixture {
    let fixture = Fixture::in_memory();
    let mut config = fixture.read(".git/config");
    config += "[filter \"upper\"]\n\tclean = tr a-z A-Z\n\trequired = true\n[filter \"soft\"]\n\tclean = false\n";
    for pair in settings.chunks(2) {
        let (section, key) = pair[0].split_once('.').unwrap();
        config.extend(["[", section, "]\n\t", key, " = ", pair[1], "\n"]);
    }
    fixture.write(".git/config", config);
    fixture
}

/// Writes each content under each attribute, in files that begin with `name`.
fn fill(fixture: &Fixture, name: &str) {
    for (attribute, number) in combinations() {
        fixture.write(format!("{attribute}/{name}{number}"), CONTENTS[number]);
    }
}

/// All combinations of attributes and contents, but only some for filters, which run a program per file.
fn combinations() -> impl Iterator<Item = (usize, usize)> {
    let all = (0..ATTRIBUTES.len()).flat_map(|attribute| (0..CONTENTS.len()).map(move |content| (attribute, content)));
    all.filter(|(attribute, content)| !ATTRIBUTES[*attribute].contains("filter") || content % 3 == 2)
}

fn attribute(fixture: &Fixture) {
    for (number, attributes) in ATTRIBUTES.iter().enumerate() {
        fixture.write(format!("{number}/.gitattributes"), format!("* {attributes}\n.gitattributes !filter -text\n"));
    }
}

/// Asserts that a commit of `ours` has the tree that `theirs` has in its index, file by file.
#[track_caller]
fn assert_same(theirs: &Fixture, ours: &Fixture, committed: &CommitOutcome, what: &str) {
    let expected = theirs.git(&["write-tree"]);
    if committed.tree.to_string() != expected {
        let files = |fixture: &Fixture, tree: &str| fixture.git(&["ls-tree", "-r", "-t", tree]);
        assert_eq!(files(ours, &committed.tree.to_string()), files(theirs, &expected), "{what}");
    }
}

#[test]
fn every_content_under_every_attribute_is_stored_as_git_stores_it() {
    for settings in LINE_ENDS {
        let base = || {
            let fixture = filter_fixture(settings);
            attribute(&fixture);
            fill(&fixture, "tracked");
            fixture.commit_by_git("base");
            fixture
        };
        let change = |fixture: &Fixture| {
            fill(fixture, "new");
            // Each file gets the content of another.
            for (attribute, number) in combinations() {
                let content = CONTENTS[(number + 1) % CONTENTS.len()];
                fixture.write(format!("{attribute}/tracked{number}"), content);
            }
        };
        let theirs = base();
        change(&theirs);
        theirs.git(&["add", "-A"]);
        for engine in ENGINES {
            let ours = base();
            change(&ours);
            let committed = commit(&ours.with_engine(engine)).unwrap();
            assert_same(&theirs, &ours, &committed, &format!("{settings:?}, {engine:?}"));
            assert_eq!(ours.list_changes(engine), [], "{settings:?}, {engine:?}");
        }
    }
}

#[test]
fn files_are_stored_again_when_attributes_change_as_git_renormalises_them() {
    let contents = |fixture: &Fixture| {
        for (number, content) in CONTENTS.iter().enumerate() {
            fixture.write(format!("dir/{number}"), content);
            fixture.write(format!("other/{number}"), content);
        }
    };
    for (before, old) in ATTRIBUTES.iter().enumerate() {
        let base = || {
            let fixture = filter_fixture(&[]);
            contents(&fixture);
            fixture.write("other/.gitattributes", "* -text\n.gitattributes !filter\n");
            if !old.is_empty() {
                fixture.write("dir/.gitattributes", format!("* {old}\n.gitattributes !filter -text\n"));
            }
            fixture.commit_by_git("base");
            fixture
        };
        // A different attribute for each file, and none at all.
        for new in [ATTRIBUTES[(before + 5) % ATTRIBUTES.len()], ""] {
            let change = |fixture: &Fixture| {
                if fixture.has("dir/.gitattributes") {
                    fixture.remove("dir/.gitattributes");
                }
                if !new.is_empty() {
                    fixture.write("dir/.gitattributes", format!("* {new}\n.gitattributes !filter -text\n"));
                }
                fixture.write("dir/added", "one\r\n");
            };
            let theirs = base();
            change(&theirs);
            theirs.git(&["add", "-A"]);
            theirs.git(&["add", "--renormalize", "dir"]);
            for engine in ENGINES {
                let ours = base();
                change(&ours);
                let what = format!("from {old:?} to {new:?}, {engine:?}");
                let repository = ours.with_engine(engine);
                let seen: Vec<Vec<u8>> = repository.list_changes().unwrap().into_iter().map(|seen| seen.path).collect();
                let nothing = HoldBackRule::nested_only();
                let within = CommitRequest { paths: Some(&seen), ..request(&ours, &nothing) };
                let committed = repository.commit_all(&within).unwrap();
                assert_same(&theirs, &ours, &committed, &what);
                assert_eq!(ours.list_changes(engine), [], "{what}: nothing is left to a later look");
            }
        }
    }
}

#[test]
fn files_that_were_stored_by_attributes_that_a_session_has_committed_away_are_no_persons_change() {
    for engine in ENGINES {
        let fixture = Fixture::in_memory();
        fixture.write(".gitattributes", "*.txt text eol=crlf\n");
        fixture.write("a.txt", "one\r\n");
        fixture.commit_by_git("base");
        let repository = fixture.with_engine(engine);
        assert_eq!(repository.list_changes().unwrap(), []);
        fixture.git(&["rm", "--quiet", ".gitattributes"]);
        fixture.git(&["commit", "--quiet", "-m", "By the session"]);
        commit(&repository).unwrap();
        assert_eq!(fixture.git(&["cat-file", "-s", "HEAD:a.txt"]), "5");
        assert_eq!(fixture.list_changes(engine), []);
    }
}

/// A change to a repository.
type TestAction = fn(&Fixture);

/// Name, initial state, and change.
type DifferentialCase = (&'static str, fn() -> Fixture, TestAction);

fn plain() -> Fixture {
    let fixture = Fixture::in_memory();
    for name in ["a.txt", "b.txt", "dir/c.txt", "dir/sub/d.txt", "dir/sub/e.txt", "other/f.txt", "run.sh"] {
        fixture.write(name, format!("content of {name}\n"));
    }
    fixture.chmod("run.sh", 0o755);
    fixture.link("a.txt", "link");
    fixture.commit_by_git("base");
    fixture
}

fn with_setting(setting: &str, value: &str) -> Fixture {
    let fixture = plain();
    fixture.git(&["config", setting, value]);
    fixture
}

fn typical_fixture() -> Fixture {
    let fixture = plain();
    for name in ["build/out.o", "build/deep/er/x.o", "build/keep"] {
        fixture.write(name, name);
    }
    fixture.commit_by_git("built");
    fixture
}

fn with_module() -> Fixture {
    let fixture = plain();
    fixture.nested("../origin");
    fixture.git(&["submodule", "--quiet", "add", "../origin", "parts/module"]);
    fixture.commit_by_git("module");
    fixture
}

fn ignoring() -> Fixture {
    let fixture = plain();
    fixture.write(".gitignore", "*.log\n/out/\n!keep.log\ndir/*.tmp\n");
    fixture.write("dir/.gitignore", "!seen.tmp\nsub/x*\n");
    fixture.commit_by_git("rules");
    fixture
}

fn untrack(fixture: &Fixture) {
    fixture.git(&["rm", "-rq", "--cached", "build"]);
}

const CASES: &[DifferentialCase] = &[
    ("nothing", plain, |f| f.write("a.txt", "content of a.txt\n")),
    ("same length", plain, |f| f.write("a.txt", "CONTENT OF A.TXT\n")),
    ("empty file", plain, |f| f.write("void", "")),
    ("file emptied", plain, |f| f.write("a.txt", "")),
    ("deep new file", plain, |f| f.write("x/y/z/0", "x")),
    ("file gone", plain, |f| f.remove("a.txt")),
    ("folder gone", plain, |f| f.remove("dir")),
    ("everything gone", plain, |f| {
        for name in ["a.txt", "b.txt", "dir", "other", "run.sh", "link"] {
            f.remove(name);
        }
    }),
    ("file renamed", plain, |f| fs::rename(f.path("a.txt"), f.path("z.txt")).unwrap()),
    ("folder renamed", plain, |f| fs::rename(f.path("dir"), f.path("moved")).unwrap()),
    ("files exchanged", plain, |f| {
        fs::rename(f.path("a.txt"), f.path("t")).unwrap();
        fs::rename(f.path("b.txt"), f.path("a.txt")).unwrap();
        fs::rename(f.path("t"), f.path("b.txt")).unwrap();
    }),
    ("name in another case", plain, |f| fs::rename(f.path("a.txt"), f.path("A.TXT")).unwrap()),
    ("folder in another case", plain, |f| fs::rename(f.path("dir"), f.path("DIR")).unwrap()),
    ("two cases of a name", plain, |f| f.write("A.txt", "upper\n")),
    ("composed and decomposed", plain, |f| {
        f.write("\u{e9}", "one");
        f.write("e\u{301}", "two");
    }),
    ("names that sort around a slash", plain, |f| {
        for name in ["x", "x.y/z", "x-y", "x0"] {
            f.write(name, name);
        }
    }),
    ("names that are no UTF-8", plain, |f| f.write(b"\xff\xfe", "x")),
    ("name with a line break", plain, |f| f.write("new\nline", "x")),
    ("name like a pathspec", plain, |f| {
        for name in [":(top)x", "*", "[a]", "-dash", "--"] {
            f.write(name, name);
        }
    }),
    ("name like an option", plain, |f| f.write("-A", "x")),
    ("long name", plain, |f| f.write("n".repeat(255), "x")),
    ("hidden files", plain, |f| {
        for name in [".hidden", "dir/.x", ".gitx", ".gitkeep"] {
            f.write(name, name);
        }
    }),
    ("file became executable", plain, |f| f.chmod("a.txt", 0o755)),
    ("file is executable no longer", plain, |f| f.chmod("run.sh", 0o644)),
    ("executable by others alone", plain, |f| f.chmod("a.txt", 0o655)),
    ("new executable", plain, |f| {
        f.write("x.sh", "x");
        f.chmod("x.sh", 0o700);
    }),
    (
        "executable without fileMode",
        || with_setting("core.fileMode", "false"),
        |f| {
            f.chmod("a.txt", 0o755);
            f.chmod("run.sh", 0o644);
        },
    ),
    (
        "new executable without fileMode",
        || with_setting("core.fileMode", "false"),
        |f| {
            f.write("x", "x");
            f.chmod("x", 0o755);
        },
    ),
    ("read only file", plain, |f| {
        f.write("a.txt", "x");
        f.chmod("a.txt", 0o444);
    }),
    ("link to a file", plain, |f| f.link("a.txt", "new-link")),
    ("link to a folder", plain, |f| f.link("dir", "new-link")),
    ("link to nothing", plain, |f| f.link("nowhere", "new-link")),
    ("link out of the working tree", plain, |f| f.link("/etc", "new-link")),
    ("link elsewhere", plain, |f| {
        f.remove("link");
        f.link("b.txt", "link");
    }),
    ("link to itself", plain, |f| f.link("loop", "loop")),
    ("link became a file", plain, |f| {
        f.remove("link");
        f.write("link", "x");
    }),
    ("link became a folder", plain, |f| {
        f.remove("link");
        f.write("link/x", "x");
    }),
    ("file became a link", plain, |f| {
        f.remove("a.txt");
        f.link("b.txt", "a.txt");
    }),
    ("file became a folder", plain, |f| {
        f.remove("a.txt");
        f.write("a.txt/x", "x");
    }),
    ("folder became a file", plain, |f| {
        f.remove("dir");
        f.write("dir", "x");
    }),
    ("folder became a link", plain, |f| {
        f.remove("dir");
        f.link("other", "dir");
    }),
    ("folder became a link to the same names", plain, |f| {
        f.remove("dir");
        f.write("other/c.txt", "another");
        f.link("other", "dir");
    }),
    ("empty folder in the place of a file", plain, |f| {
        f.remove("a.txt");
        fs::create_dir(f.path("a.txt")).unwrap();
    }),
    (
        "link without symlinks",
        || with_setting("core.symlinks", "false"),
        |f| {
            f.remove("link");
            f.write("link", "b.txt");
        },
    ),
    ("hard link", plain, |f| fs::hard_link(f.path("a.txt"), f.path("hard")).unwrap()),
    ("ignored", ignoring, |f| {
        for name in ["x.log", "keep.log", "out/x", "dir/y.tmp", "dir/seen.tmp", "dir/sub/xx"] {
            f.write(name, "x");
        }
    }),
    ("ignored and tracked", typical_fixture, |f| {
        f.write(".gitignore", "build/\n");
        f.write("build/out.o", "changed");
        f.write("build/new", "x");
    }),
    ("ignored and staged by force", ignoring, |f| {
        f.write("x.log", "x");
        f.git(&["add", "-f", "x.log"]);
    }),
    ("ignored, staged by force, changed", ignoring, |f| {
        f.write("x.log", "x");
        f.git(&["add", "-f", "x.log"]);
        f.write("x.log", "y");
    }),
    ("ignored, announced by force", ignoring, |f| {
        f.write("x.log", "x");
        f.git(&["add", "-f", "-N", "x.log"]);
    }),
    ("ignore file gone", ignoring, |f| {
        f.write("x.log", "x");
        f.remove(".gitignore");
    }),
    ("ignore file changed", ignoring, |f| {
        f.write("x.log", "x");
        f.write("y", "y");
        f.write(".gitignore", "y\n");
    }),
    ("ignore file ignores itself", plain, |f| {
        f.write(".gitignore", ".gitignore\nx\n");
        f.write("x", "x");
    }),
    ("ignore file with carriage returns", plain, |f| {
        f.write(".gitignore", "x\r\ny\r\n");
        f.write("x", "x");
        f.write("z", "x");
    }),
    ("ignore file that is a link", plain, |f| {
        f.write("rules", "x\n");
        f.link("rules", ".gitignore");
        f.write("x", "x");
    }),
    ("everything ignored", plain, |f| {
        f.write(".gitignore", "*\n");
        f.write("x", "x");
        f.write("a.txt", "changed");
    }),
    ("ignored by info/exclude", plain, |f| {
        f.write(".git/info/exclude", "x\n");
        f.write("x", "x");
        f.write("y", "x");
    }),
    ("readmitted in an ignored folder", plain, |f| {
        f.write(".gitignore", "/out/*\n!/out/x\n");
        f.write("out/x", "x");
        f.write("out/y", "y");
    }),
    ("staged", plain, |f| {
        f.write("a.txt", "x");
        f.write("n", "x");
        f.git(&["add", "-A"]);
    }),
    ("staged, then changed", plain, |f| {
        f.write("a.txt", "x");
        f.git(&["add", "a.txt"]);
        f.write("a.txt", "y");
    }),
    ("staged, then put back", plain, |f| {
        f.write("a.txt", "x");
        f.git(&["add", "a.txt"]);
        f.write("a.txt", "content of a.txt\n");
    }),
    ("staged, then gone", plain, |f| {
        f.write("n", "x");
        f.git(&["add", "n"]);
        f.remove("n");
    }),
    ("staged with a mode", plain, |f| {
        f.git(&["update-index", "--chmod=+x", "a.txt"]);
    }),
    (
        "staged with a mode without fileMode",
        || with_setting("core.fileMode", "false"),
        |f| {
            f.write("b.txt", "x");
        },
    ),
    ("removed from the index", plain, |f| {
        f.git(&["rm", "-q", "--cached", "a.txt"]);
    }),
    ("removed from the index, then gone", plain, |f| {
        f.git(&["rm", "-q", "--cached", "a.txt"]);
        f.remove("a.txt");
    }),
    ("removed from the index, then changed", plain, |f| {
        f.git(&["rm", "-q", "--cached", "a.txt"]);
        f.write("a.txt", "x");
    }),
    ("removed", plain, |f| {
        f.git(&["rm", "-rq", "dir"]);
    }),
    ("moved by git", plain, |f| {
        f.git(&["mv", "dir", "moved"]);
    }),
    ("untracked and ignored", typical_fixture, |f| {
        untrack(f);
        f.write(".gitignore", "build/\n");
    }),
    ("untracked and ignored, changed", typical_fixture, |f| {
        untrack(f);
        f.write(".gitignore", "build/\n");
        f.write("build/out.o", "x");
        f.write("build/n", "x");
    }),
    ("untracked and ignored in part", typical_fixture, |f| {
        f.git(&["rm", "-q", "--cached", "build/out.o"]);
        f.write(".gitignore", "build/\n");
    }),
    ("untracked and ignored by a pattern", typical_fixture, |f| {
        untrack(f);
        f.write(".gitignore", "*.o\n");
    }),
    ("untracked and ignored in its folder", typical_fixture, |f| {
        untrack(f);
        f.write("build/.gitignore", "*\n");
    }),
    ("untracked and ignored by info/exclude", typical_fixture, |f| {
        untrack(f);
        f.write(".git/info/exclude", "build\n");
    }),
    ("untracked and not ignored", typical_fixture, |f| {
        untrack(f);
        f.write("a.txt", "x");
    }),
    ("untracked, ignored, added again", typical_fixture, |f| {
        untrack(f);
        f.write(".gitignore", "build/\n");
        f.git(&["add", "-f", "build/keep"]);
    }),
    ("untracked by git reset", typical_fixture, |f| {
        f.git(&["reset", "-q", "HEAD~1"]);
        f.git(&["reset", "-q", "--soft", "HEAD@{1}"]);
        f.write(".gitignore", "build/\n");
    }),
    ("index gone", typical_fixture, |f| {
        f.remove(".git/index");
        f.write(".gitignore", "build/\n");
    }),
    ("index emptied", typical_fixture, |f| {
        f.git(&["read-tree", "--empty"]);
        f.write(".gitignore", "build/\n*.txt\n");
    }),
    ("announced", plain, |f| {
        f.write("n", "x");
        f.git(&["add", "-N", "n"]);
    }),
    ("announced, then gone", plain, |f| {
        f.write("n", "x");
        f.git(&["add", "-N", "n"]);
        f.remove("n");
    }),
    ("announced folder", plain, |f| {
        f.write("new/x", "x");
        f.git(&["add", "-N", "new"]);
    }),
    ("index of another version", plain, |f| {
        f.git(&["update-index", "--index-version", "4"]);
        f.write("a.txt", "x");
    }),
    ("split index", plain, |f| {
        f.git(&["update-index", "--split-index"]);
        f.write("a.txt", "x");
        f.write("n", "x");
    }),
    ("untracked cache", plain, |f| {
        f.git(&["update-index", "--untracked-cache"]);
        f.write("n", "x");
    }),
    (
        "index without a checksum",
        || with_setting("index.skipHash", "true"),
        |f| {
            f.write("n", "x");
            f.git(&["add", "n"]);
        },
    ),
    (
        "sparse, inside",
        || sparse(&[]),
        |f| {
            f.write("other/f.txt", "x");
            f.write("other/n", "x");
        },
    ),
    ("sparse, inside gone", || sparse(&[]), |f| f.remove("other/f.txt")),
    (
        "sparse without cones",
        || sparse(&["--no-cone"]),
        |f| {
            f.write("other/f.txt", "x");
        },
    ),
    (
        "sparse index",
        || sparse(&["--sparse-index"]),
        |f| {
            f.write("other/n", "x");
            f.git(&["add", "other/n"]);
        },
    ),
    (
        "names folded",
        || with_setting("core.ignoreCase", "true"),
        |f| {
            f.write("a.txt", "x");
            f.write("n", "x");
        },
    ),
    (
        "shared",
        || with_setting("core.sharedRepository", "group"),
        |f| {
            f.write("a.txt", "x");
            f.write("n", "x");
        },
    ),
    ("unicode composed", || with_setting("core.precomposeUnicode", "true"), |f| f.write("e\u{301}", "x")),
    ("quoted paths", || with_setting("core.quotePath", "true"), |f| f.write("\u{e9}", "x")),
    ("every untracked file shown", || with_setting("status.showUntrackedFiles", "no"), |f| f.write("n", "x")),
    ("submodule with work inside", with_module, |f| {
        f.write("parts/module/inner.txt", "x");
        f.write("a.txt", "x");
    }),
    ("submodule at a new commit", with_module, |f| {
        f.write("parts/module/n", "x");
        f.commit_in("parts/module");
    }),
    ("submodule at a new commit, ignored", with_module, |f| {
        f.git(&["config", "submodule.parts/module.ignore", "dirty"]);
        f.write("parts/module/n", "x");
        f.commit_in("parts/module");
    }),
    ("submodule gone", with_module, |f| f.remove("parts/module")),
    ("submodule emptied", with_module, |f| {
        f.remove("parts/module");
        fs::create_dir(f.path("parts/module")).unwrap();
    }),
    ("submodule became a file", with_module, |f| {
        f.remove("parts/module");
        f.write("parts/module", "x");
    }),
    ("submodule became a link", with_module, |f| {
        f.remove("parts/module");
        f.link("../dir", "parts/module");
    }),
    ("submodule removed by git", with_module, |f| {
        f.git(&["rm", "-q", "parts/module"]);
    }),
    ("submodule untracked", with_module, |f| {
        f.git(&["rm", "-q", "--cached", "parts/module"]);
        f.write(".gitignore", "parts/\n");
    }),
    ("submodule added", plain, |f| {
        f.nested("../origin");
        f.git(&["submodule", "--quiet", "add", "../origin", "m"]);
    }),
    ("folder of another working tree", plain, |f| {
        f.git(&["worktree", "add", "-q", "../elsewhere"]);
        f.write("a.txt", "x");
    }),
    (
        "detached",
        || {
            let f = plain();
            f.git(&["checkout", "-q", "--detach"]);
            f
        },
        |f| f.write("a.txt", "x"),
    ),
    (
        "packed",
        || {
            let f = plain();
            f.git(&["gc", "-q"]);
            f
        },
        |f| {
            f.write("a.txt", "x");
            f.remove("b.txt");
        },
    ),
    ("before the first commit", Fixture::in_memory, |f| {
        f.write("a", "x");
        f.write("d/b", "x");
        f.git(&["add", "a"]);
    }),
    ("attributes in a folder", plain, |f| {
        f.write("dir/.gitattributes", "* text\n");
        f.write("dir/n", "x\r\n");
        f.write("n", "x\r\n");
    }),
    ("attributes in info", plain, |f| {
        f.write(".git/info/attributes", "*.x text\n");
        f.write("n.x", "x\r\n");
    }),
    ("macro of attributes", plain, |f| {
        f.write(".gitattributes", "[attr]mine text eol=crlf\n*.x mine\n");
        f.write("n.x", "x\r\n");
    }),
    ("attributes of a quoted name", plain, |f| {
        f.write(".gitattributes", "\"a b\" text\n");
        f.write("a b", "x\r\n");
    }),
    ("text in another encoding", plain, |f| {
        f.write(".gitattributes", "*.u working-tree-encoding=UTF-16LE\n");
        f.write("n.u", b"a\0\n\0");
    }),
    ("text in another encoding, in a folder", plain, |f| {
        f.write("dir/.gitattributes", "*.u working-tree-encoding=UTF-16\n");
        f.write("dir/n.u", b"\xff\xfea\0\n\0");
        f.write("a.txt", "x");
    }),
    ("text in an encoding that git alone knows", plain, |f| {
        f.write(".gitattributes", "*.u text working-tree-encoding=UTF-16LE-BOM\n");
        f.write("n.u", b"\xff\xfea\0\n\0");
    }),
    ("renamed and changed", plain, |f| {
        f.git(&["mv", "dir", "moved"]);
        f.write("moved/c.txt", "x");
        f.write("dir/c.txt", "again");
    }),
    ("copied", plain, |f| {
        fs::copy(f.path("a.txt"), f.path("copy")).unwrap();
        f.git(&["add", "copy"]);
    }),
    ("stash applied", plain, |f| {
        f.write("a.txt", "x");
        f.write("n", "y");
        f.git(&["stash", "-qu"]);
        f.git(&["stash", "pop", "-q"]);
    }),
    ("resolved conflict", conflict, |f| {
        f.write("a.txt", "both\n");
        f.git(&["add", "a.txt"]);
    }),
    ("conflict left to the working tree", conflict, |f| f.write("a.txt", "both\n")),
    ("text in latin", plain, |f| {
        f.write("dir/.gitattributes", "*.l working-tree-encoding=ISO-8859-1\n");
        f.write("dir/n.l", b"\xe9\n");
    }),
];

fn conflict() -> Fixture {
    let fixture = plain();
    fixture.git(&["checkout", "-q", "-b", "side"]);
    fixture.write("a.txt", "theirs\n");
    fixture.commit_by_git("theirs");
    fixture.git(&["checkout", "-q", "main"]);
    fixture.write("a.txt", "ours\n");
    fixture.commit_by_git("ours");
    fixture.try_git(&fixture.path(""), &["merge", "side"]);
    fixture.remove(".git/MERGE_HEAD");
    fixture
}

fn sparse(options: &[&str]) -> Fixture {
    let fixture = plain();
    fixture.git(&[&["sparse-checkout", "set"], options, &["other"]].concat());
    fixture
}

/// Runs every fourth case, starting with `first`.
fn same_as_git(first: usize) {
    for (name, base, deed) in CASES.iter().skip(first).step_by(4) {
        let theirs = base();
        deed(&theirs);
        theirs.git(&["add", "-A"]);
        for engine in ENGINES {
            let ours = base();
            deed(&ours);
            let nothing = HoldBackRule::nested_only();
            let request = CommitRequest { allow_empty: true, ..request(&ours, &nothing) };
            let committed = ours.with_engine(engine).commit_all(&request);
            let committed = committed.unwrap_or_else(|error| panic!("{name}, {engine:?}: {error}"));
            assert_same(&theirs, &ours, &committed, &format!("{name}, {engine:?}"));
            assert_eq!((&committed.held_back, &committed.unstorable), (&vec![], &vec![]), "{name}, {engine:?}");
        }
    }
}

#[test]
fn there_are_a_hundred_and_twenty_cases() {
    assert!(CASES.len() >= 120, "{}", CASES.len());
}

#[test]
fn the_first_quarter_of_the_cases_is_as_git_has_it() {
    same_as_git(0);
}

#[test]
fn the_second_quarter_of_the_cases_is_as_git_has_it() {
    same_as_git(1);
}

#[test]
fn the_third_quarter_of_the_cases_is_as_git_has_it() {
    same_as_git(2);
}

#[test]
fn the_last_quarter_of_the_cases_is_as_git_has_it() {
    same_as_git(3);
}

/// Why the tree differs, the change, and the assertions.
type ExpectedDeviation = (&'static str, TestAction, fn(&Fixture, Result<CommitOutcome, GitError>));

const DEVIATIONS: &[ExpectedDeviation] = &[
    (
        "a repository inside is no silent link",
        |f| {
            f.nested("inner");
            f.write("b.txt", "x");
        },
        |f, made| {
            assert_eq!(made.unwrap().held_back, ["inner/"]);
            assert_eq!(f.git(&["ls-files", "inner"]), "");
        },
    ),
    (
        "marks do not hide work that a session did",
        |f| {
            f.git(&["update-index", "--assume-unchanged", "a.txt"]);
            f.git(&["update-index", "--skip-worktree", "b.txt"]);
            f.write("a.txt", "x");
            f.write("b.txt", "x");
        },
        |f, made| {
            drop(made.unwrap());
            assert_eq!(f.git(&["show", "HEAD:a.txt", "HEAD:b.txt"]), "xx");
        },
    ),
    (
        "one file that git refuses does not keep the others out",
        |f| {
            f.write(".GIT/config", "x");
            f.write("fine", "x");
        },
        |f, made| {
            assert_eq!(made.unwrap().unstorable, [".GIT/config"]);
            assert_eq!(f.git(&["ls-files", "fine"]), "fine");
        },
    ),
    (
        "a pipe that git passes by in silence is named",
        |f| {
            f.fifo("pipe");
            f.write("a.txt", "x");
        },
        |_, made| {
            assert_eq!(made.unwrap().unstorable, ["pipe"]);
        },
    ),
    (
        "line ends that do not come back are stored",
        |f| {
            f.git(&["config", "core.safecrlf", "true"]);
            f.git(&["config", "core.autocrlf", "input"]);
            f.write("mixed", "one\r\ntwo\n");
        },
        |f, made| {
            drop(made.unwrap());
            assert_eq!(f.git(&["show", "HEAD:mixed"]), "one\ntwo");
        },
    ),
    (
        "a new file that a required filter refuses is named",
        |f| {
            f.write(".gitattributes", "*.f filter=gone\n");
            f.git(&["config", "filter.gone.clean", "no-such-program"]);
            f.git(&["config", "filter.gone.required", "true"]);
            f.write("new.f", "x");
        },
        |f, made| {
            assert_eq!(made.unwrap().unstorable, ["new.f"]);
            assert_eq!(f.git(&["ls-files", "new.f"]), "");
        },
    ),
    (
        "a tracked file that became a pipe is in the way",
        |f| {
            f.remove("a.txt");
            f.fifo("a.txt");
        },
        |_, made| {
            assert!(matches!(made, Err(GitError::UnstorableChange { file, .. }) if file == "a.txt"));
        },
    ),
];

#[test]
fn where_the_tree_is_another_one_it_is_told() {
    for (why, deed, check) in DEVIATIONS {
        for engine in ENGINES {
            let fixture = plain();
            let repository = fixture.with_engine(engine);
            assert_eq!(repository.list_changes().unwrap(), [], "{why}");
            deed(&fixture);
            // The filters are those in force when the run was requested.
            let repository = if fixture.has(".gitattributes") || fixture.has("mixed") {
                fixture.with_engine(engine)
            } else {
                repository
            };
            check(&fixture, commit(&repository));
        }
    }
}

#[test]
fn guarded_files_stay_tracked_whatever_the_index_names_and_others_do_not() {
    for engine in ENGINES {
        let fixture = typical_fixture();
        let repository = fixture.with_engine(engine);
        repository.set_guarded(["build/keep", "dir/", "other/f.txt"].map(str::to_owned));
        fixture.git(&["rm", "-rq", "--cached", "build", "dir", "other"]);
        fixture.write(".gitignore", "*\n!.gitignore\n");
        fixture.write("build/keep", "changed");
        fixture.remove("other/f.txt");
        let committed = commit(&repository).unwrap();
        assert_eq!(committed.unstorable, Vec::<String>::new());
        let kept = ["build/keep", "dir/c.txt", "dir/sub/d.txt", "dir/sub/e.txt"];
        assert_eq!(list_guarded(&repository, &fixture), Vec::<String>::new(), "{engine:?}: it is tracked now");
        assert_eq!(fixture.git(&["ls-files", "build", "dir", "other"]), kept.join("\n"), "{engine:?}");
        assert_eq!(fixture.git(&["show", "HEAD:build/keep"]), "changed");
        fixture.git(&["rm", "-rq", "--cached", "build/keep"]);
        assert_eq!(list_guarded(&repository, &fixture), ["build/keep"], "{engine:?}");
    }
}

fn list_guarded(repository: &Repository, fixture: &Fixture) -> Vec<String> {
    fixture.write("look", "again");
    repository.list_changes().unwrap();
    fixture.remove("look");
    repository.list_untracked_guarded()
}

/// A generator whose choices depend on the seed alone.
struct EditChoices(u64);

impl EditChoices {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// Changes that can be made in any order, to any repository.
const ACTIONS: [TestAction; 14] = [
    |f| f.write("a.txt", "changed\r\n"),
    |f| f.write("new/file", "new\r\n"),
    |f| f.write(".gitattributes", "*.txt text\n"),
    |f| f.write("dir/.gitattributes", "* text=auto eol=crlf\n"),
    |f| f.write(".gitignore", "*.o\nbuild/\n"),
    |f| {
        let _ = f.has(".gitattributes").then(|| f.remove(".gitattributes"));
    },
    |f| drop(f.try_git(&f.path(""), &["rm", "-rq", "--cached", "build"])),
    |f| drop(f.try_git(&f.path(""), &["rm", "-rq", "dir/sub"])),
    |f| drop(f.try_git(&f.path(""), &["add", "-A"])),
    |f| drop(f.try_git(&f.path(""), &["add", "-N", "new"])),
    |f| drop(f.try_git(&f.path(""), &["mv", "other", "moved"])),
    |f| {
        let _ = f.has("run.sh").then(|| f.chmod("run.sh", 0o644));
    },
    |f| {
        let _ = f.has("b.txt").then(|| fs::rename(f.path("b.txt"), f.path("B.txt")).unwrap());
    },
    |f| f.write("build/out.o", "changed"),
];

#[test]
fn random_deeds_are_committed_as_git_would() {
    for seed in 0..12 {
        let chosen = |seed| {
            let mut choices = EditChoices(seed);
            (0..7).map(|_| ACTIONS[choices.below(ACTIONS.len())]).collect::<Vec<_>>()
        };
        let theirs = typical_fixture();
        for deed in chosen(seed) {
            deed(&theirs);
        }
        theirs.git(&["add", "-A"]);
        theirs.git(&["add", "--renormalize", "."]);
        for engine in ENGINES {
            let ours = typical_fixture();
            for deed in chosen(seed) {
                deed(&ours);
            }
            let nothing = HoldBackRule::nested_only();
            let request = CommitRequest { allow_empty: true, ..request(&ours, &nothing) };
            let committed = ours.with_engine(engine).commit_all(&request).unwrap();
            assert_same(&theirs, &ours, &committed, &format!("seed {seed}, {engine:?}"));
        }
    }
}
