//! Parses a commit from its bytes, and reports what git's check says about its headers.

use super::ident::{is_ident, split_ident};

/// The headers of a signature, which git adds to what a person or the runner signs.
const SIGNATURE_HEADERS: [&[u8]; 2] = [b"gpgsig", b"gpgsig-sha256"];

/// A commit, parsed as leniently as git does when it only walks history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawCommit<'a> {
    /// The tree, in hexadecimal.
    pub tree: &'a str,
    /// The parents in order, in hexadecimal.
    pub parents: Vec<&'a str>,
    /// Everything before the blank line, including the last line's newline.
    pub header: &'a [u8],
    /// Everything after the blank line.
    pub message: &'a [u8],
}

/// A fault in the headers of a commit that claims to be the runner's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// A NUL byte.
    #[error("a NUL")]
    Nul,
    /// The last line has no newline.
    #[error("a header that does not end")]
    Unterminated,
    /// The expected header is missing, or is not as the runner writes it.
    #[error("no well-formed `{0}`")]
    Missing(&'static str),
    /// A header that the runner does not write, or does not repeat.
    #[error("an unexpected header `{0}`")]
    Unexpected(String),
    /// The author is not the committer, as in no commit that the runner makes.
    #[error("an author who is not the committer")]
    OtherAuthor,
    /// The date of the author is not the committer's, as in no commit that the runner makes.
    #[error("an author's date that is not the committer's")]
    OtherDate,
}

impl<'a> RawCommit<'a> {
    /// Parses a commit; `None` if its tree or a parent cannot be determined.
    pub fn parse(commit: &'a [u8]) -> Option<Self> {
        let end = commit.windows(2).position(|two| two == b"\n\n").map(|at| at + 1);
        let (header, rest) = commit.split_at(end.unwrap_or(commit.len()));
        let mut lines = header.split(|byte| *byte == b'\n');
        let tree = parse_object_id(lines.next()?.strip_prefix(b"tree ")?)?;
        let parents =
            lines.map_while(|line| line.strip_prefix(b"parent ")).map(parse_object_id).collect::<Option<_>>()?;
        Some(Self { tree, parents, header, message: rest.get(1..).unwrap_or_default() })
    }
}

/// Returns the encoding of the message according to these headers, if they name one.
pub fn message_encoding(header: &[u8]) -> Option<&[u8]> {
    header.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"encoding "))
}

/// Whether git takes the name of an encoding to be UTF-8.
pub fn is_utf8_encoding(encoding: &[u8]) -> bool {
    [&b"utf-8"[..], b"utf8"].iter().any(|name| encoding.eq_ignore_ascii_case(name))
}

/// Returns the fault in the headers of one of the runner's commits: anything that git's check calls an error, and
/// anything other than tree, parents, one person as author and committer at one time, and a signature.
pub fn find_header_fault(header: &[u8]) -> Option<HeaderFault> {
    check_headers(header).err()
}

fn check_headers(header: &[u8]) -> Result<(), HeaderFault> {
    if header.contains(&0) {
        return Err(HeaderFault::Nul);
    }
    let lines = header.strip_suffix(b"\n").ok_or(HeaderFault::Unterminated)?;
    let mut lines = lines.split(|byte| *byte == b'\n').peekable();
    lines.next_if(|line| has_valid_value(line, b"tree ", is_id)).ok_or(HeaderFault::Missing("tree"))?;
    while lines.next_if(|line| has_valid_value(line, b"parent ", is_id)).is_some() {}
    let mut next_ident = |name: &'static str, prefix: &[u8]| {
        let line = lines.next_if(|line| has_valid_value(line, prefix, is_ident)).ok_or(HeaderFault::Missing(name))?;
        Ok(line.strip_prefix(prefix).and_then(split_ident))
    };
    let author = next_ident("author", b"author ")?;
    let committer = next_ident("committer", b"committer ")?;
    if author != committer {
        let is_same_person = author.map(|(who, _)| who) == committer.map(|(who, _)| who);
        return Err(if is_same_person { HeaderFault::OtherDate } else { HeaderFault::OtherAuthor });
    }
    let mut signatures: Vec<&[u8]> = SIGNATURE_HEADERS.to_vec();
    while let Some(line) = lines.next() {
        let name = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        let Some(at) = signatures.iter().position(|known| *known == name) else {
            return Err(HeaderFault::Unexpected(String::from_utf8_lossy(name).into_owned()));
        };
        signatures.remove(at);
        while lines.next_if(|line| line.starts_with(b" ")).is_some() {}
    }
    Ok(())
}

fn has_valid_value(line: &[u8], prefix: &[u8], is_right: fn(&[u8]) -> bool) -> bool {
    line.strip_prefix(prefix).is_some_and(is_right)
}

fn parse_object_id(text: &[u8]) -> Option<&str> {
    let is_id = matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit);
    str::from_utf8(text).ok().filter(|_| is_id)
}

/// Whether this is an id as git writes it; git reads others too.
fn is_id(text: &[u8]) -> bool {
    parse_object_id(text).is_some_and(|id| !id.bytes().any(|byte| byte.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_the_headers_of_the_runners_commits_are_as_git_writes_them() {
        let person = "P <p@x> 1 +0000";
        let header = |id: &str| format!("tree {id}\nparent {id}\nauthor {person}\ncommitter {person}\n");
        let id = "0a".repeat(20);
        assert_eq!(find_header_fault(header(&id).as_bytes()), None);
        assert!(find_header_fault(header(&id.to_uppercase()).as_bytes()).is_some());
    }
}
