//! The marked blocks of the runner's own lines in a file of ignore rules.

use gix::bstr::ByteSlice as _;

/// Start of a block's first and last line, followed by the name of the work tree.
pub(crate) const BEGIN: &str = "# begin: held back by runnerd, ";
pub(crate) const END: &str = "# end: held back by runnerd, ";

/// Returns a text without the blocks of any work tree, so without the runner's own lines.
pub(crate) fn strip_blocks(text: &[u8]) -> Vec<u8> {
    let mut rest = text;
    let mut remaining = Vec::new();
    while let Some(from) = rest.find(BEGIN) {
        let tree = &rest[from + BEGIN.len()..];
        let tree = &tree[..tree.find_byte(b'\n').map_or(tree.len(), |end| end + 1)];
        let inside = from + BEGIN.len() + tree.len();
        let end = [END.as_bytes(), tree].concat();
        remaining.extend_from_slice(&rest[..from]);
        // A block without an end hides nothing that follows it: those lines are not the runner's.
        let length = rest[inside..].find(&end).map_or(0, |length| length + end.len());
        rest = &rest[inside + length..];
    }
    remaining.extend_from_slice(rest);
    remaining
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_without_the_blocks_are_those_of_everybody_else() {
        let blocks = |tree: &str| format!("{BEGIN}{tree}\n/large\n{END}{tree}\n");
        let text = format!("one\n{}two\n{}three\n", blocks("this repository"), blocks("worktrees/b"));
        assert_eq!(strip_blocks(text.as_bytes()), b"one\ntwo\nthree\n");
        // Beginning a block without ending it hides none of the user's own rules.
        for cut in [format!("{BEGIN}x\n/mine\n"), format!("{BEGIN}x\n/mine\n{END}y\n"), format!("{BEGIN}x")] {
            let text = strip_blocks(cut.as_bytes());
            assert_eq!(text.contains_str("/mine"), cut.contains("/mine"), "{cut}");
        }
    }
}
