//! Lists of paths and ids in trailers: `a.rs, b.rs and 3 more`, percent-encoded, bounded.
//!
//! Omitted names are counted, not kept: the list gives examples, the commit itself has all of them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::fence::is_hidden;

/// Most items that are written out.
const ITEMS_LIMIT: usize = 20;
/// Most bytes that are written out, encoded.
const BYTES_LIMIT: usize = 4_000;
/// Most bytes of a list that should be complete, encoded.
const COMPLETE_LIMIT: usize = 1024 * 1024;

/// A bounded list of paths or ids, each of any bytes, but not empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NameList {
    items: Vec<Vec<u8>>,
    more: usize,
}

impl NameList {
    /// Returns a list of these names: the first 20 that fit, and how many more there are.
    pub fn new<T: AsRef<[u8]>>(names: impl IntoIterator<Item = T>) -> Self {
        Self::with_limits(names, ITEMS_LIMIT, BYTES_LIMIT)
    }

    /// Returns a complete list of these names; the rest is only counted if they would take more than a mebibyte.
    pub fn complete<T: AsRef<[u8]>>(names: impl IntoIterator<Item = T>) -> Self {
        Self::with_limits(names, usize::MAX, COMPLETE_LIMIT)
    }

    fn with_limits<T: AsRef<[u8]>>(names: impl IntoIterator<Item = T>, most: usize, room: usize) -> Self {
        let mut list = Self::default();
        let mut bytes = 0;
        for name in names.into_iter().filter(|name| !name.as_ref().is_empty()) {
            bytes += encoded_len(name.as_ref());
            if list.more > 0 || list.items.len() == most || bytes > room {
                list.more += 1;
            } else {
                list.items.push(name.as_ref().to_vec());
            }
        }
        list
    }

    /// Returns those of these names, in order, that should be in the list and are not. Names that are only counted come
    /// after all that are written out, and there are no more of them than the list says.
    pub fn missing_names<'n, T: AsRef<[u8]>>(&self, names: &'n [T]) -> Vec<&'n T> {
        let items: BTreeSet<&[u8]> = self.items.iter().map(Vec::as_slice).collect();
        let last = self.items.last().map(Vec::as_slice);
        let unnamed = names.iter().filter(|name| !items.contains(name.as_ref()));
        let (counted, mut missing): (Vec<_>, Vec<_>) = unnamed.partition(|name| last < Some(name.as_ref()));
        missing.extend(counted.into_iter().skip(self.more));
        missing
    }

    /// Whether the names written out nearly fill a complete list: no name is longer than the remaining space.
    /// is left.
    pub fn is_full(&self) -> bool {
        const LONGEST: usize = 3 * 4096 + 2;
        self.bytes() + LONGEST > COMPLETE_LIMIT
    }

    /// Whether the names written out are in order and without duplicates.
    pub fn is_sorted(&self) -> bool {
        self.items.is_sorted_by(|a, b| a < b)
    }

    fn bytes(&self) -> usize {
        self.items.iter().map(|item| encoded_len(item)).sum()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.more == 0
    }

    /// Returns the names written out.
    pub fn items(&self) -> &[Vec<u8>] {
        &self.items
    }

    /// Returns the names written out as text.
    pub fn to_texts(&self) -> Vec<String> {
        self.items.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// Returns how many names are only counted.
    pub fn more(&self) -> usize {
        self.more
    }
}

impl fmt::Display for NameList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.items.iter().map(|item| encode(item)).collect();
        f.write_str(&items.join(", "))?;
        match (self.items.is_empty(), self.more) {
            (_, 0) => Ok(()),
            (true, more) => write!(f, "and {more} more"),
            (false, more) => write!(f, ", and {more} more"),
        }
    }
}

/// A value that is not a list of names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a list of percent-encoded names")]
pub struct InvalidNameList;

impl FromStr for NameList {
    type Err = InvalidNameList;

    fn from_str(text: &str) -> Result<Self, InvalidNameList> {
        let mut parts: Vec<&str> = text.split(", ").collect();
        let count = parts.last().and_then(|last| last.strip_prefix("and ")?.strip_suffix(" more"));
        let more = match count {
            Some(count) => count.parse().map_err(|_| InvalidNameList)?,
            None => 0,
        };
        if count.is_some() {
            parts.pop();
        }
        let items = parts.into_iter().map(|part| decode(part).ok_or(InvalidNameList)).collect::<Result<_, _>>()?;
        Ok(Self { items, more })
    }
}

impl TryFrom<String> for NameList {
    type Error = InvalidNameList;

    fn try_from(text: String) -> Result<Self, InvalidNameList> {
        if text.is_empty() { Ok(Self::default()) } else { text.parse() }
    }
}

impl From<NameList> for String {
    fn from(list: NameList) -> Self {
        list.to_string()
    }
}

/// Returns the encoded length of a name, in bytes.
fn encoded_len(name: &[u8]) -> usize {
    encode(name).len() + 2
}

/// Percent-encodes what would end an item or be invisible in it, and blanks at either end, which a trailer would lose.
fn encode(name: &[u8]) -> String {
    let mut encoded = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if matches!(c, ',' | '%') || is_hidden(c) {
                push_encoded(&mut encoded, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                encoded.push(c);
            }
        }
        push_encoded(&mut encoded, chunk.invalid());
    }
    encode_ends(encoded)
}

fn push_encoded(out: &mut String, bytes: &[u8]) {
    out.extend(bytes.iter().map(|byte| format!("%{byte:02X}")));
}

/// Encodes blanks at either end, and the first letter of a name that could be read as the count of the rest.
fn encode_ends(mut encoded: String) -> String {
    let first = encoded.chars().next().filter(|c| c.is_whitespace() || encoded.starts_with("and "));
    let last = encoded.chars().next_back().filter(|c| c.is_whitespace() && encoded.len() > c.len_utf8());
    if let Some(c) = last {
        encoded.truncate(encoded.len() - c.len_utf8());
        push_encoded(&mut encoded, c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    if let Some(c) = first {
        let mut start = String::new();
        push_encoded(&mut start, c.encode_utf8(&mut [0; 4]).as_bytes());
        encoded.replace_range(..c.len_utf8(), &start);
    }
    encoded
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    (!bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_encoded_where_they_must_be() {
        let list = NameList::new([&b"src/a.rs"[..], b"a, b", b"100%", b"\xff", b" x ", b"and 3 more", "é".as_bytes()]);
        assert_eq!(list.to_string(), "src/a.rs, a%2C b, 100%25, %FF, %20x%20, %61nd 3 more, é");
        assert_eq!(list.to_string().parse(), Ok(list));
    }

    #[test]
    fn the_rest_of_a_long_list_is_counted() {
        let list = NameList::new((0..23).map(|n| format!("f{n}")));
        assert!(list.to_string().ends_with("f18, f19, and 3 more"), "{list}");
        assert_eq!(list.to_string().parse(), Ok(list));
    }

    #[test]
    fn a_name_that_is_too_long_is_counted() {
        let list = NameList::new(["x".repeat(5000)]);
        assert_eq!(list.to_string(), "and 1 more");
        assert_eq!(list.to_string().parse(), Ok(list));
    }

    #[test]
    fn a_whole_list_names_all_of_them() {
        let list = NameList::complete((0..300).map(|n| format!("f{n:03}")));
        assert_eq!((list.items().len(), list.more()), (300, 0));
        assert_eq!(list.to_string().parse(), Ok(list));
    }

    #[test]
    fn what_a_list_should_name_cannot_hide_behind_its_count() {
        let names: Vec<String> = (0..25).map(|n| format!("f{n:02}")).collect();
        let honest = NameList::new(&names);
        assert_eq!(honest.missing_names(&names), [""; 0]);
        assert_eq!(honest.missing_names(&["e".to_owned()]), ["e"], "it comes before those that are written out");
        let invented = NameList::new((0..21).map(|n| format!("a{n:02}")));
        assert_eq!(
            invented.missing_names(&["ci.sh".to_owned(), "justfile".to_owned()]),
            ["justfile"],
            "one is counted"
        );
        assert_eq!(NameList::default().missing_names(&["justfile".to_owned()]), ["justfile"]);
        assert!(NameList::new([b"caf\xe9"]).missing_names(&[b"caf\xe9"]).is_empty(), "a name is bytes");
    }

    proptest! {
        #[test]
        fn every_list_is_read_back(names in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 1..30)) {
            let list = NameList::new(&names);
            let written = list.to_string();
            prop_assert!(!written.contains(['\n', '\r']));
            prop_assert_eq!(written.trim(), &written);
            prop_assert_eq!(written.parse(), Ok(list));
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            if let Ok(list) = text.parse::<NameList>() {
                prop_assert!(list.items().iter().all(|item| !item.is_empty()));
            }
        }
    }
}
