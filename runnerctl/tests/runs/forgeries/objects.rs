//! Objects that git never writes: trees with several entries at a path, headers and encodings that hide the message's
//! content; and unusual but genuine ones.

use protocol::verify::AuditRule as Rule;

use super::{BranchForge, violation};
use crate::play::RUN;

/// A change of a commit's headers.
type TextChange = fn(&str) -> String;

/// A receipt whose first letter is encoded.
const UTF_7: &str = "x\n\n+AFI-unner-Commit: iteration\n";

impl BranchForge {
    /// Writes a tree with one more entry after all others.
    fn tree_and(&self, tree: &str, (mode, name, id): (&str, &str, &str)) -> String {
        let listed = self.git(&["ls-tree", tree], "");
        let mut bytes: Vec<u8> = listed.lines().flat_map(entry_of).collect();
        bytes.extend(entry(mode, name, id));
        self.git(&["hash-object", "-t", "tree", "-w", "--literally", "--stdin"], bytes)
    }

    /// Rewrites the commit at the tip with other headers.
    fn tip_with(&self, change: impl FnOnce(&str) -> String) -> String {
        let commit = self.git(&["cat-file", "commit", &self.tip().id], "") + "\n";
        let (headers, message) = commit.split_once("\n\n").expect("a commit has a message");
        self.store_commit(&change(&format!("{headers}\n")), message)
    }

    /// Writes a person's empty commit on top of the tip, with more headers.
    fn person_commit(&self, headers: &str, message: &str) -> String {
        let tip = self.tip();
        let who = "A U Thor <author@example.com> 1700000000 -0100";
        let known = format!("tree {}\nparent {}\nauthor {who}\ncommitter {who}\n", tip.tree, tip.id);
        self.store_commit(&(known + headers), message)
    }

    fn store_commit(&self, headers: &str, message: &str) -> String {
        let commit = format!("{headers}\n{message}");
        self.git(&["hash-object", "-t", "commit", "-w", "--literally", "--stdin"], commit)
    }
}

fn put_into_odd_zone(header: &str) -> String {
    let date = header.rsplit_once(' ').filter(|_| header.contains("> "));
    date.map_or_else(|| format!("{header}\n"), |(time, _)| format!("{time} +9999\n"))
}

fn entry_of(line: &str) -> Vec<u8> {
    let (what, name) = line.split_once('\t').expect("git lists a name");
    let words: Vec<&str> = what.split(' ').collect();
    entry(words[0].trim_start_matches('0'), name, words[2])
}

fn entry(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let id = (0..id.len()).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).expect("it is an id"));
    [mode.as_bytes(), b" ", name.as_bytes(), b"\0"].concat().into_iter().chain(id).collect()
}

#[test]
fn a_tree_that_gits_check_refuses_is_named_with_its_path() {
    let forge = BranchForge::new();
    let tip = forge.tip().clone();
    let parent = forge.pieces[forge.pieces.len() - 2].id.clone();
    let blob = forge.git(&["hash-object", "-w", "--stdin"], "ci:\n\ttrue\n");
    let folder = forge.git(&["mktree"], format!("100644 blob {blob}\tx\n"));
    // After all others: a wrong order is reported, too.
    let anyones = [
        (("100644", "justfile", blob.as_str()), "/justfile"),
        (("40000", "justfile", &folder), "/justfile"),
        (("100644", "zz/state", &blob), "/zz/state"),
        (("40000", "..", &folder), "/.."),
        (("100644", "!", &blob), "/!"),
        (("120000", "zz\\.gitmodules", &blob), "/zz\\.gitmodules"),
    ];
    for (added, at) in anyones {
        let tree = forge.tree_and(&tip.tree, added);
        let of_runner = forge.commit(Some(&parent), &tree, &tip.message);
        forge.assert_finds_at((RUN, &of_runner), violation(Rule::Valid, at));
        let of_person = forge.commit(Some(&tip.id), &tree, "Mine");
        forge.assert_finds_at((RUN, &of_person), violation(Rule::Valid, at));
    }
    let null = "0".repeat(40);
    for (name, added) in [
        ("a short name of .git", ("100644", "zz\\git~1", blob.as_str())),
        ("a mode with a zero in front", ("0100644", "zz", &blob)),
        ("a mode of old", ("100664", "zz", &blob)),
        ("an id of nothing", ("160000", "zz", &null)),
    ] {
        let tree = forge.tree_and(&tip.tree, added);
        let of_runner = forge.commit(Some(&parent), &tree, &tip.message);
        forge.assert_finds_at((RUN, &of_runner), violation(Rule::Valid, &format!("/{}", added.1)));
        // Git only warns about these, and old programs have written them.
        forge.assert_honest(name, &forge.commit(Some(&tip.id), &tree, "Mine"));
    }
    let nested = forge.tree_and(&folder, ("100644", "x", &blob));
    let tree = forge.tree_and(&tip.tree, ("40000", "zz", &nested));
    forge.assert_finds_at((RUN, &forge.commit(Some(&parent), &tree, &tip.message)), violation(Rule::Valid, "/zz/x"));
}

#[test]
fn headers_that_the_runner_does_not_write_are_named_and_a_signature_is_not() {
    let forge = BranchForge::new();
    let signed = |headers: &str| format!("{headers}gpgsig -----BEGIN SSH SIGNATURE-----\n x\n -----END\n");
    forge.assert_honest("a signature", &forge.tip_with(signed));
    let changes: [TextChange; 12] = [
        |text| text.replace(" <", "  <"),
        |text| text.replace(" <", "\r <"),
        |text| text.lines().map(put_into_odd_zone).collect(),
        |text| text.replacen("> 1", "> 2", 1),
        |text| text.replacen('>', ">\u{20}", 1),
        |text| text.replace("author ", "author A <a@b> 1 +0000\nauthor "),
        |text| text.lines().filter(|line| !line.starts_with("author")).flat_map(|line| [line, "\n"]).collect(),
        |text| text.replace("\ncommitter ", "\ncommitter A <a@b>\ncommitter "),
        |text| format!("{text}x-hidden: y\n"),
        |text| format!("{text}encoding UTF-8\n"),
        |text| format!("{text}encoding ISO-8859-1\n"),
        |text| format!("{text}gpgsig \0\n"),
    ];
    for change in changes {
        forge.assert_finds_at((RUN, &forge.tip_with(change)), violation(Rule::Form, "header"));
    }
    let claims = forge.person_commit("encoding UTF-7\n", UTF_7);
    forge.assert_finds_at((RUN, &claims), violation(Rule::Form, "message"));
    let odd = [
        ("another encoding", "encoding ISO-8859-1\n", "Mine\n"),
        ("an encoding that is none", "encoding none\n", UTF_7),
        ("a header of another program", "change-id zzz\nauthor A <a@b>\n", "Mine\n"),
    ];
    for (name, headers, message) in odd {
        let report = forge.assert_honest(name, &forge.person_commit(headers, message));
        assert_eq!(report.people.len(), 3, "it is a person's: {:#?}", report.people);
    }
}

#[test]
fn an_object_that_another_was_put_in_the_place_of_is_not_read() {
    let forge = BranchForge::new();
    let tip = forge.tip().clone();
    let parent = forge.pieces[forge.pieces.len() - 2].id.clone();
    let [real, other] = ["2\n", "3\n"].map(|text| forge.tree_with(&tip.tree, "one", text));
    let commit = forge.commit(Some(&parent), &real, &tip.message);
    forge.assert_honest("the object itself", &commit);
    let [real, other] = [&real, &other].map(|id| format!("{}/objects/{}/{}", forge.clone, &id[..2], &id[2..]));
    std::fs::remove_file(&real).expect("it is a loose object");
    std::fs::copy(&other, &real).expect("it is a loose object, too");
    forge.assert_finds_at((RUN, &commit), violation(Rule::Valid, "tree"));
}
