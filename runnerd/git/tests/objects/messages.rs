//! Messages of any author, compared with `git log` and `git interpret-trailers`.

use runner_core::message::claims_receipt;
use runner_testkit::RandomSource;

use crate::store::Store;
use crate::{OBJECTS, all_same, make_objects, number, pick};

const LINES: [&[u8]; 44] = [
    b"chore(loop): run r iter 0001 node b status=done guard=pass",
    b"prose",
    b"more prose: with a colon",
    b"",
    b"",
    b"",
    b" ",
    b"\t",
    b"\r",
    b"\x0c",
    b"\x0b",
    b"\xc2\xa0",
    b"Runner-Commit: iteration",
    b"Runner-Commit: iteration",
    b"Runner-Commit: iteration",
    b"runner-commit:start",
    b"RUNNER-COMMIT :",
    b"Runner-Commit\t: x",
    b"Runner-Commit\x0c: x",
    b"Runner-Commit",
    b"Runner-Commit= x",
    b" Runner-Commit: x",
    b"#Runner-Commit: x",
    b"Runner-Commit: \xff",
    b"Runner\xff-Commit: x",
    b"Runner-Commits: x",
    b"Runner-Version: 0.1.0 prompt=1 templates=0123456789ab rules=1",
    b"Runner-Verdict: Accepted",
    b" continued",
    b"\tcontinued",
    b"Signed-off-by: A <a@b>",
    b"Signed-Off-By: A <a@b>",
    b"(cherry picked from commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904)",
    b"# a comment",
    b"#",
    b"---",
    b"--- a/file",
    b"---\x0c",
    b"----",
    b"# ------------------------ >8 ------------------------",
    b"# ------------------------ >8 ------------------------ ",
    b"Conflicts:",
    b"\tsrc/a.rs",
    b"\0",
];
/// The separator between two messages in the output of `git interpret-trailers`.
const MARK: &[u8] = b"x\n\nMark-Of-This-Test: x\n";

fn message(random: &mut RandomSource) -> Vec<u8> {
    // Most have a title and a blank line, followed by a possible trailer block.
    let mut message = if random.below(4) == 0 { Vec::new() } else { b"x\n\n".to_vec() };
    for _ in 0..=random.below(8) {
        message.extend_from_slice(if random.below(3) == 0 {
            pick(random, &LINES)
        } else {
            pick(random, &LINES[12..36])
        });
        message.extend_from_slice(if random.below(12) == 0 { b"\r\n" } else { b"\n" });
    }
    if random.below(8) == 0 {
        message.pop();
    }
    message
}

/// Whether trailers printed by git, one per line, include that of a receipt.
fn has_receipt(printed: &str) -> bool {
    let name = |line: &str| line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    printed.lines().any(|line| name(line) == "runner-commit")
}

fn receipts_in_log(store: &Store, messages: &[(u64, Vec<u8>)]) -> Vec<bool> {
    let commits: Vec<Vec<u8>> = messages.iter().map(|(_, message)| crate::commits::with(b"", message)).collect();
    let ids = store.store("commit", commits.iter().map(Vec::as_slice));
    let args = ["log", "--no-walk=unsorted", "--stdin", "-z", "--format=tformat:%H%n%(trailers:only,unfold)"];
    let output = store.git(&args, (ids.join("\n") + "\n").as_bytes());
    let output = String::from_utf8_lossy(&output);
    let records: std::collections::BTreeMap<&str, &str> =
        output.split('\0').filter_map(|record| record.split_once('\n')).collect();
    ids.iter().map(|id| has_receipt(records[id.as_str()])).collect()
}

fn receipts_in_trailers(store: &Store, (name, options): (&str, &[&str]), messages: &[(u64, Vec<u8>)]) -> Vec<bool> {
    let path = |path: &std::path::PathBuf| path.display().to_string();
    let mark = path(&store.files(&format!("{name}-mark"), [MARK])[0]);
    let paths = store.files(name, messages.iter().map(|(_, message)| message.as_slice()));
    let paths: Vec<String> = paths.iter().flat_map(|text| [path(text), mark.clone()]).collect();
    let args = ["interpret-trailers", "--parse"].into_iter().chain(options.iter().copied());
    let output = store.git(&args.chain(paths.iter().map(String::as_str)).collect::<Vec<_>>(), b"");
    let output = String::from_utf8_lossy(&output).into_owned();
    let records: Vec<&str> = output.split("Mark-Of-This-Test: x\n").collect();
    assert_eq!(records.len(), messages.len() + 1, "there is a mark behind each");
    records.into_iter().take(messages.len()).map(has_receipt).collect()
}

#[test]
fn what_git_takes_for_a_receipt_is_a_claim_and_nothing_else_is() {
    let store = Store::new();
    let messages = make_objects(message);
    let logged = receipts_in_log(&store, &messages);
    let parsed = receipts_in_trailers(&store, ("parsed", &[]), &messages);
    let whole = receipts_in_trailers(&store, ("whole", &["--no-divider"]), &messages);
    let mut differing = Vec::new();
    let mut claimed = 0;
    for (at, (seed, message)) in messages.iter().enumerate() {
        let gits = [logged[at], parsed[at], whole[at]];
        let is_claim = claims_receipt(message);
        claimed += usize::from(is_claim);
        if is_claim != gits.contains(&true) {
            let text = String::from_utf8_lossy(message);
            differing.push(format!("seed {seed}: {text:?}: claims {is_claim}, git log, interpret-trailers: {gits:?}"));
        }
    }
    all_same(&differing, messages.len());
    assert!(number("OBJECTS", OBJECTS) < OBJECTS || claimed > 50 && claimed < messages.len() - 50, "{claimed} claim");
}
