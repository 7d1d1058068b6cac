//! The spellings under which a value is searched for: verbatim, in JSON, in a URL, in base64.
//!
//! Base64 is also found within a longer text: each of the three possible positions of a value in a group of three bytes
//! produces its own letters. Wrapped lines, other encodings, parts and reversals are not found.

use std::fmt::Write as _;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns every spelling of a value.
pub(super) fn all_spellings(value: &str) -> Vec<Vec<u8>> {
    let mut spellings = vec![value.as_bytes().to_vec(), spell_json(value)];
    spellings.extend([true, false].map(|upper| spell_percent(value, upper).into_bytes()));
    for alphabet in [STANDARD, URL_SAFE] {
        spellings.push(spell_base64(value.as_bytes(), alphabet));
        spellings.extend((0..3).map(|before| spell_base64_within(value.as_bytes(), before, alphabet)));
    }
    spellings
}

fn spell_json(value: &str) -> Vec<u8> {
    let text = serde_json::to_string(value).expect("BUG: a string does not serialize");
    text.as_bytes()[1..text.len() - 1].to_vec()
}

/// Spells all but the unreserved characters of RFC 3986 as `%XX`.
fn spell_percent(value: &str, upper: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        let written = match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
                Ok(())
            }
            _ if upper => write!(out, "%{byte:02X}"),
            _ => write!(out, "%{byte:02x}"),
        };
        written.expect("BUG: writing to a string failed");
    }
    out
}

/// Encodes a value on its own, including the letter for its last bits.
fn spell_base64(value: &[u8], alphabet: &[u8; 64]) -> Vec<u8> {
    let mut letters = sextets(value, alphabet);
    letters.extend(std::iter::repeat_n(b'=', (3 - value.len() % 3) % 3));
    letters
}

/// Encodes a value that has `before` other bytes in front of it in its group and more after it, limited to the letters
/// that depend on the value alone.
fn spell_base64_within(value: &[u8], before: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value);
    let letters = sextets(&bytes, alphabet);
    let own = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
    letters[own].to_vec()
}

fn sextets(bytes: &[u8], alphabet: &[u8; 64]) -> Vec<u8> {
    let mut letters = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - group.len()));
        let sextet = |at: usize| alphabet[bits >> (18 - 6 * at) & 63];
        letters.extend((0..=group.len()).map(sextet));
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spellings_as_text(value: &str) -> Vec<String> {
        all_spellings(value).into_iter().map(|spelling| String::from_utf8(spelling).unwrap()).collect()
    }

    #[test]
    fn value_is_spelled_as_json_address_and_base64_spell_it() {
        let spellings = spellings_as_text("p\"ss/w ?>rd");
        for expected in ["p\"ss/w ?>rd", r#"p\"ss/w ?>rd"#, "p%22ss%2Fw%20%3F%3Erd", "p%22ss%2fw%20%3f%3erd"] {
            assert!(spellings.contains(&expected.to_owned()), "{expected}: {spellings:#?}");
        }
        assert!(spellings.contains(&"cCJzcy93ID8+cmQ=".to_owned()), "{spellings:#?}");
        assert!(spellings.contains(&"cCJzcy93ID8-cmQ=".to_owned()), "{spellings:#?}");
    }

    #[test]
    fn base64_of_a_longer_text_holds_one_of_the_spellings() {
        for (before, after) in [("", ""), ("u:", ""), ("u", "x"), ("use", "yz"), ("user:", "abc")] {
            let text = format!("{before}hunter2-hunter2{after}");
            let encoded = String::from_utf8(spell_base64(text.as_bytes(), STANDARD)).unwrap();
            let is_found = spellings_as_text("hunter2-hunter2").iter().any(|spelling| encoded.contains(spelling));
            assert!(is_found, "{text}: {encoded}");
        }
    }
}
