//! Messages in other encodings, compared with `git log`, which re-encodes them before it looks for trailers.

use runner_core::message::claims_receipt;
use runner_git::{ChainCommit, Id, Repository};

use crate::store::Store;

/// A receipt in UTF-7 whose first letter is encoded.
const UTF_7: &[u8] = b"x\n\n+AFI-unner-Commit: iteration\n";
/// A receipt between two changes of the character set.
const ISO_2022: &[u8] = b"x\n\nRunner\x1b(B-Commit: iteration\n";
/// A name and a word in Japanese, without a receipt.
const SHIFT_JIS: &[u8] = b"\x93\xfa\x96{\n\n\x83R\x83~\x83b\x83g: iteration\n";

/// `Runner-Commit: iteration` after blank lines and a title, in an EBCDIC character set.
const EBCDIC: &[u8] =
    b"\x25\x25\xa7\x25\x25\xd9\xa4\x95\x95\x85\x99\x60\xc3\x96\x94\x94\x89\xa3\x7a\x40\x89\xa3\x85\x99\x25";

/// The name of the commit's encoding, its message, and whether git finds a receipt in it.
const CASES: [(&str, &[u8], bool); 9] = [
    ("UTF-7", UTF_7, true),
    ("ISO-2022-JP", ISO_2022, true),
    ("IBM037", EBCDIC, true),
    ("ISO-8859-1", b"caf\xe9\n\nRunner-Commit: caf\xe9\n", true),
    ("ISO-8859-1", b"caf\xe9\n\nSigned-off-by: Andr\xe9 <a@b>\n", false),
    ("SHIFT_JIS", SHIFT_JIS, false),
    ("no-such-encoding", UTF_7, false),
    ("utf8", UTF_7, false),
    ("UTF-8", "café\n\nRunner-Commit: x\n".as_bytes(), true),
];

fn commit(encoding: &str, message: &[u8]) -> Vec<u8> {
    let who = "A <a@b> 1700000000 -0100";
    let tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    let header = format!("tree {tree}\nauthor {who}\ncommitter {who}\nencoding {encoding}\n\n");
    [header.as_bytes(), message].concat()
}

#[test]
fn a_message_in_another_encoding_is_read_as_git_shows_it() {
    let store = Store::new();
    let commits: Vec<Vec<u8>> = CASES.iter().map(|(encoding, message, _)| commit(encoding, message)).collect();
    let ids = store.store("commit", commits.iter().map(Vec::as_slice));
    let repository = Repository::discover_read_only(store.path()).expect("it is a repository");
    let chain = repository.open_chain().expect("it can be read");
    let read = |id: &String| {
        let id: Id = id.parse().expect("it is an id");
        chain.read_commit(&id).expect("it can be read").expect("it is there")
    };
    let mut read: Vec<ChainCommit> = ids.iter().map(read).collect();
    repository.recode_messages(&mut read).expect("git shows them");
    for (((encoding, _, is_receipt), id), read) in CASES.iter().zip(&ids).zip(&read) {
        let output = store.git(&["log", "-1", "--format=%(trailers:key=Runner-Commit)", id], b"");
        assert_eq!(!output.trim_ascii().is_empty(), *is_receipt, "{encoding}: git finds a receipt");
        let is_claim = claims_receipt(&read.message) || read.recoded_message.as_deref().is_some_and(claims_receipt);
        assert_eq!(is_claim, *is_receipt, "{encoding}: {:?}", read.recoded_message);
    }
}
