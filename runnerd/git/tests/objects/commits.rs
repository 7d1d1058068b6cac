//! Commit headers, well-formed and not, compared with `git fsck`.

use runner_core::fsck::{HeaderFault, RawCommit, find_header_fault};
use runner_testkit::RandomSource;

use crate::store::Store;
use crate::{OBJECTS, all_same, make_objects, number, pick};

const TREE: &[u8] = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n";
const PARENT: &[u8] = b"parent 1111111111111111111111111111111111111111\n";
const WHO: &[u8] = b"A U Thor <author@example.com> 1700000000 +0100\n";

/// Values in place of a name with its date.
const ODD: [&[u8]; 24] = [
    b"<author@example.com> 1700000000 +0000\n",
    b" <author@example.com> 1700000000 +0000\n",
    b"> <author@example.com> 1700000000 +0000\n",
    b"A<author@example.com> 1700000000 +0000\n",
    b"A author@example.com 1700000000 +0000\n",
    b"A <author@example.com 1700000000 +0000\n",
    b"A <author@example.com>1700000000 +0000\n",
    b"A <a<b@example.com> 1700000000 +0000\n",
    b"A <> 0 +0000\n",
    b"A <author@example.com>\n",
    b"A <author@example.com> \n",
    b"A <author@example.com>  1700000000 +0000\n",
    b"A <author@example.com> \t1700000000 +0000\n",
    b"A <author@example.com> \r1700000000 +0000\n",
    b"A <author@example.com> 01700000000 +0000\n",
    b"A <author@example.com> -1700000000 +0000\n",
    b"A <author@example.com> 18446744073709551616 +0000\n",
    b"A <author@example.com> 17e8 +0000\n",
    b"A <author@example.com> 1700000000\n",
    b"A <author@example.com> 1700000000 0000\n",
    b"A <author@example.com> 1700000000 +00000\n",
    b"A <author@example.com> 1700000000 -000\n",
    b"A <author@example.com> 1700000000 +00a0\n",
    b"\xff <\xff> 1 +0000\n",
];
const OTHERS: [&[u8]; 8] = [
    b"encoding ISO-8859-1\n",
    b"encoding UTF-8\n",
    b"mergetag object 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n type commit\n",
    b"gpgsig -----BEGIN\n x\n \n y\n",
    b"gpgsig-sha256 x\n",
    b"x\0y\n",
    b"x\n",
    b" \n",
];

/// Creates a commit with additional headers, or none, before its message.
pub(crate) fn with(headers: &[u8], message: &[u8]) -> Vec<u8> {
    [TREE, b"author ", WHO, b"committer ", WHO, headers, b"\n", message].concat()
}

fn commit(random: &mut RandomSource) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = vec![TREE.to_vec()];
    lines.extend((0..random.below(2)).map(|_| PARENT.to_vec()));
    for name in [&b"author "[..], b"committer "] {
        let who = if random.below(3) == 0 { pick(random, &ODD) } else { WHO };
        lines.push([name, who].concat());
    }
    if random.below(3) == 0 {
        lines.push(pick(random, &OTHERS).to_vec());
    }
    match random.below(10) {
        0 => {
            lines.push([pick(random, &[&b"author "[..], b"committer ", b"parent "]), WHO].concat());
        }
        1 => drop(lines.remove(usize::try_from(random.below(lines.len() as u64)).expect("there are few"))),
        2 => {
            let [a, b] = [0, 1].map(|_| usize::try_from(random.below(lines.len() as u64)).expect("there are few"));
            lines.swap(a, b);
        }
        3 => {
            let at = usize::try_from(random.below(lines.len() as u64)).expect("there are few");
            lines.insert(at, lines[at].clone());
        }
        _ => {}
    }
    let mut commit = lines.concat();
    match random.below(12) {
        0 => drop(commit.pop()),
        1 => {}
        2 => commit.extend_from_slice(b"\nx\n\0\n"),
        _ => commit.extend_from_slice(b"\nx\n"),
    }
    commit
}

/// Whether git's check rejects the headers; a NUL in the message and missing objects do not count.
fn is_wrong(findings: Option<&std::collections::BTreeSet<String>>) -> bool {
    findings
        .is_some_and(|findings| findings.iter().any(|name| !matches!(name.as_str(), "nulInCommit" | "broken links")))
}

#[test]
fn headers_that_gits_check_refuses_are_none_of_a_receipt() {
    let store = Store::new();
    let commits = make_objects(commit);
    let ids = store.store("commit", commits.iter().map(|(_, commit)| commit.as_slice()));
    let checked = store.fsck();
    let mut differing = Vec::new();
    let mut refused = 0;
    for ((seed, commit), id) in commits.iter().zip(&ids) {
        let end = commit.windows(2).position(|two| two == b"\n\n").map_or(commit.len(), |at| at + 1);
        let fault = find_header_fault(&commit[..end]);
        assert!(
            fault.is_some() || RawCommit::parse(commit).is_some_and(|parts| parts.header == &commit[..end]),
            "seed {seed}"
        );
        let is_ours_alone = !matches!(fault, None | Some(HeaderFault::Nul | HeaderFault::Unterminated));
        let is_wrong = is_wrong(checked.get(id));
        refused += usize::from(is_wrong);
        // This may refuse what git's check accepts if the runner does not write it, but never the reverse.
        if is_wrong != fault.is_some() && (is_wrong || !is_ours_alone) {
            let text = String::from_utf8_lossy(commit);
            let findings = checked.get(id);
            differing.push(format!("seed {seed}: {text:?}: {fault:?}, git: {findings:?}"));
        }
    }
    all_same(&differing, commits.len());
    assert!(
        number("OBJECTS", OBJECTS) < OBJECTS || refused > 50 && refused < commits.len() - 50,
        "{refused} are refused"
    );
}

#[test]
fn a_signature_is_no_fault_and_whatever_else_the_runner_does_not_write_is() {
    let fault = |headers: &[u8]| {
        let commit = with(headers, b"x\n");
        find_header_fault(RawCommit::parse(&commit).expect("it is a commit").header)
    };
    for honest in [&b""[..], b"gpgsig a\n b\n \n c\n", b"gpgsig-sha256 a\n", b"gpgsig a\n b\ngpgsig-sha256 a\n b\n"] {
        assert_eq!(fault(honest), None, "{:?}", String::from_utf8_lossy(honest));
    }
    for odd in ["encoding UTF-8", "encoding ISO-8859-1", "mergetag x", "parent x", "tree x", "gpgsig a\ngpgsig b", " x"]
    {
        assert!(matches!(fault(format!("{odd}\n").as_bytes()), Some(HeaderFault::Unexpected(_))), "{odd}");
    }
    let commit = String::from_utf8(with(b"", b"x\n")).expect("it is text").replacen("author ", "author Another ", 1);
    let parts = RawCommit::parse(commit.as_bytes()).expect("it is a commit");
    assert_eq!(find_header_fault(parts.header), Some(HeaderFault::OtherAuthor));
    let commit = String::from_utf8(with(b"", b"x\n")).expect("it is text").replacen("1700000000", "1700000001", 1);
    let parts = RawCommit::parse(commit.as_bytes()).expect("it is a commit");
    assert_eq!(find_header_fault(parts.header), Some(HeaderFault::OtherDate));
}
