//! The contents of a repository: many files, odd names, links, submodules, attributes, and files that are not
//! committed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use protocol::state::RunState;
use runner_testkit::Home;

use crate::place::RepoPlace;

/// Fills a work tree with the files that people have in theirs.
fn fill(place: &RepoPlace, module: &RepoPlace) {
    for folder in 0..100 {
        for file in 0..100 {
            place.write(format!("many/{folder}/{file}.txt"), format!("{file}\n").as_bytes());
        }
    }
    for name in [&b"tab\tquote\"back\\slash"[..], b"new\nline", b"\xff\xfe not utf-8", b"-dash", "naïve ☃".as_bytes()]
    {
        place.write(OsStr::from_bytes(name), b"odd\n");
    }
    place.write(".gitattributes", b"*.crlf text eol=crlf\n*.bin -text\n");
    place.write("lines.crlf", b"one\r\ntwo\r\n");
    place.write("raw.bin", b"\x00\r\n\xff");
    symlink("many/0", place.path.join("link")).expect("a link can be made");
    symlink("nowhere", place.path.join("broken link")).expect("a link can be made");
    let url = module.path.display().to_string();
    place.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "parts/module"]);
    place.commit();
}

#[test]
fn ten_thousand_files_odd_names_links_and_sub_modules_are_committed_as_git_would() {
    let home = Home::new();
    let _daemon = home.daemon();
    let script = home.repo("plain");
    let module = RepoPlace::repository(&home, b"module", &script.config());
    let place = RepoPlace::repository(&home, b"large", &script.config());
    fill(&place, &module);
    script.script().always(
        "printf 'x\\n' > \"$(printf 'more \\377')\"; printf 'a\\r\\nb\\r\\n' > new.crlf; rm many/1/*.txt; \
         mv many/2 moved; rm link; mkdir link; echo x > link/file; ln -s /etc/hostname out; chmod +x raw.bin; \
         answer done 'Changed a lot.'",
    );
    place.ctl(&["start", "--wait", "-m", "Change it."]).assert_exits(0);
    place.assert_sound();
    let committed = place.git(&["rev-parse", "HEAD^{tree}"]);
    place.git(&["read-tree", "--empty"]);
    place.git(&["add", "-A"]);
    assert_eq!(place.git(&["write-tree"]), committed, "it is the tree of `git add -A`");
    let names = place.git(&["-c", "core.quotePath=true", "ls-files", "more*", "out", "link", "parts"]);
    assert_eq!(names, "link/file\n\"more \\377\"\nout\nparts/module");
}

#[test]
fn what_stays_out_of_commits_is_shown_everywhere() {
    let home = Home::new();
    let _daemon = home.daemon();
    let repo = home.repo("plain");
    repo.commit_config(&repo.config().section("[git]\nmax_file_bytes = 1000"));
    repo.script().step(
        1,
        "echo x > work.txt; echo KEY=1 > .env; echo ok > .env.example; head -c 2000 /dev/zero > big.bin; \
         git init -q nested; echo x > nested/file; answer retry 'Half of it.'",
    );
    repo.script().step(2, "echo y >> work.txt; answer done 'The rest.'");
    home.run(&repo, &["-m", "Do it."]).exits(0);
    let place = RepoPlace::of_repo(&home, &repo);
    assert_eq!(place.git(&["ls-files", ".env", ".env.example", "big.bin", "nested"]), ".env.example");
    assert!(place.path.join(".env").is_file() && place.path.join("nested/file").is_file(), "nothing is removed");
    let state: RunState = repo.run_state("HEAD");
    assert_eq!(state.held_back.len(), 3, "{:?}", state.held_back);
    let prompt = repo.script().prompt(2);
    let status = place.ctl(&["status"]).assert_exits(0).facts();
    let message = place.git(&["log", "-1", "--skip=1", "--format=%B"]);
    for name in [".env", "big.bin", "nested"] {
        for (place, text) in [("prompt", &prompt), ("status", &status), ("receipt", &message)] {
            assert!(text.contains(name), "{name} is not in the {place}:\n{text}");
        }
    }
    repo.assert_sound();
}
