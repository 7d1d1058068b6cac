//! SHA-256 in the one spelling used by receipts, prompts and state: lower-case hexadecimal.
//!
//! Not a general hashing layer: nothing here reads files or streams.

use std::fmt;
use std::str::FromStr;

use protocol::hex::to_hex;
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
    to_hex(&hasher.finalize())
}

/// A SHA-256 as receipts spell it: `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(String);

impl Digest {
    /// Returns the digest of the bytes.
    pub fn compute(bytes: &[u8]) -> Self {
        Self(sha256_hex(bytes))
    }

    /// Returns the 64 hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// A text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not `sha256:` and 64 lower-case hexadecimal digits")]
pub struct InvalidDigest;

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        match text.strip_prefix("sha256:") {
            Some(hex) if hex.len() == 64 && is_lower_hex(hex) => Ok(Self(hex.to_owned())),
            _ => Err(InvalidDigest),
        }
    }
}

/// Returns whether the text consists only of lower-case hexadecimal digits.
pub(crate) fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
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
