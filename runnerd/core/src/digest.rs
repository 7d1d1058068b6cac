//! SHA-256 in the one spelling that receipts, prompts and state use: lower-case hexadecimal.
//!
//! Not a general hashing layer: nothing here reads files or streams.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of the bytes as 64 lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    sha256_hex_of(&[bytes])
}

/// Returns the SHA-256 of the parts, one after the other, as 64 lower-case hexadecimal digits.
pub(crate) fn sha256_hex_of(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("BUG: writing to a string failed");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_the_empty_text_is_the_published_one() {
        assert_eq!(sha256_hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn parts_are_hashed_as_one_text() {
        assert_eq!(sha256_hex_of(&[b"ab", b"c"]), sha256_hex(b"abc"));
    }
}
