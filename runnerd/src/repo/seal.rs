//! The daemon's key and the seals made with it: HMAC-SHA-256 over a text and what the text belongs to.
//!
//! A seal proves that a holder of the key wrote this text for this place. It does not prove that the text is the latest
//! one: an old text with its seal is just as valid.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use protocol::hex::{from_hex, to_hex};
use sha2::Sha256;

/// Length of a key in bytes.
const KEY_BYTES: usize = 32;
/// Length of a nonce in bytes.
const NONCE_BYTES: usize = 16;
/// Length of a seal in hexadecimal digits.
const DIGITS: usize = 64;
/// Length of a tag in digits.
const TAG_DIGITS: usize = 12;
/// What precedes the digits in a sealed text: a label with its version, which the seal covers too.
const SEAL_PREFIX: &str = r#"{"seal1":""#;
/// The same in development builds.
const DEVELOPMENT_PREFIX: &[u8] = br#"{"seal":""#;
/// What follows the digits.
const SEAL_SUFFIX: &str = "\",";

/// The key a daemon seals with. Its bytes are never displayed.
#[derive(Clone)]
pub struct SealKey(Arc<[u8; KEY_BYTES]>);

/// The system provides no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct RandomnessError(#[from] getrandom::Error);

/// A seal, as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal(String);

/// What a text belongs to: the same text has a different seal anywhere else.
#[derive(Debug, Clone, Copy)]
pub struct SealContext<'a> {
    /// Path of the file below the private folder.
    pub place: &'a str,
    /// For entries in a sequence: the number of previous ones in the file, and the seal of the last.
    pub predecessor: Option<(u64, &'a Seal)>,
}

/// Why a text does not count as sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It has no seal.
    #[error("it has no seal of a daemon")]
    Missing,
    /// It has the seal of a development build.
    #[error("it was sealed by a development build")]
    Development,
    /// It has the seal of another text, place or key.
    #[error("its seal is wrong: it was changed, belongs elsewhere, or is another daemon's")]
    Mismatch,
}

/// Returns a unique text.
pub fn random_nonce() -> Result<String, RandomnessError> {
    let mut bytes = [0; NONCE_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(to_hex(&bytes))
}

impl SealKey {
    /// Creates a key from the system's random bytes.
    pub fn random() -> Result<Self, RandomnessError> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(Arc::new(bytes)))
    }

    /// Parses a key as written by [`Self::to_text`]; `None` if the text is not one.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits = std::str::from_utf8(text.strip_suffix(b"\n")?).ok()?;
        let bytes: [u8; KEY_BYTES] = from_hex(digits)?.try_into().ok()?;
        Some(Self(Arc::new(bytes)))
    }

    /// Returns the content of its file: hexadecimal digits on a line.
    pub fn to_text(&self) -> String {
        to_hex(self.0.as_slice()) + "\n"
    }

    /// Seals a JSON object: the seal becomes its first member.
    pub fn seal(&self, context: SealContext<'_>, text: &str) -> (String, Seal) {
        let rest = text.strip_prefix('{').expect("BUG: what is sealed is no object");
        let seal = Seal(to_hex(self.compute_mac(context, rest.as_bytes()).finalize().into_bytes().as_slice()));
        (format!("{SEAL_PREFIX}{}{SEAL_SUFFIX}{rest}", seal.0), seal)
    }

    /// Verifies a sealed text; returns what was sealed, and its seal.
    pub fn open(&self, context: SealContext<'_>, bytes: &[u8]) -> Result<(Vec<u8>, Seal), SealError> {
        let missing = if is_development_sealed(bytes) { SealError::Development } else { SealError::Missing };
        let (stated, rest) = split_seal(bytes).ok_or(missing)?;
        let mac = from_hex(stated).ok_or(missing)?;
        self.compute_mac(context, rest).verify_slice(&mac).map_err(|_| SealError::Mismatch)?;
        Ok((restore_object(rest), Seal(stated.to_owned())))
    }

    /// Returns digits that distinguish this key from others, and reveal nothing else about it.
    pub fn tag(&self) -> String {
        let (_, Seal(digits)) = self.seal(SealContext { place: "tag", predecessor: None }, "{}");
        digits[..TAG_DIGITS].to_owned()
    }

    /// Each part is preceded by its length, so that no two belongings have the same encoding.
    fn compute_mac(&self, context: SealContext<'_>, rest: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_slice()).expect("BUG: any length of key will do");
        let (before, last) = context.predecessor.map_or((0, ""), |(before, seal)| (before, seal.0.as_str()));
        let label = ["runnerd", SEAL_PREFIX, context.place].map(str::as_bytes);
        for part in label.into_iter().chain([&before.to_be_bytes(), last.as_bytes(), rest]) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Whether a text was sealed by a development build, or looks as if it was.
pub fn is_development_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(DEVELOPMENT_PREFIX)
}

/// Returns a text without its seal, valid or not; `None` if it has none.
pub fn strip_seal(bytes: &[u8]) -> Option<Vec<u8>> {
    split_seal(bytes).map(|(_, rest)| restore_object(rest))
}

fn split_seal(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (digits, rest) = bytes.strip_prefix(SEAL_PREFIX.as_bytes())?.split_at_checked(DIGITS)?;
    Some((std::str::from_utf8(digits).ok()?, rest.strip_prefix(SEAL_SUFFIX.as_bytes())?))
}

fn restore_object(rest: &[u8]) -> Vec<u8> {
    [b"{", rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\"a\":1}\n";

    fn context_at(place: &str) -> SealContext<'_> {
        SealContext { place, predecessor: None }
    }

    #[test]
    fn what_is_sealed_comes_back_and_is_json() {
        let key = SealKey::random().unwrap();
        let (text, seal) = key.seal(context_at("a"), TEXT);
        assert!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["seal1"].is_string());
        assert_eq!(key.open(context_at("a"), text.as_bytes()), Ok((TEXT.as_bytes().to_vec(), seal)));
        assert_eq!(strip_seal(text.as_bytes()).as_deref(), Some(TEXT.as_bytes()));
    }

    #[test]
    fn no_bit_changes_unseen() {
        let key = SealKey::random().unwrap();
        let (text, _) = key.seal(context_at("a"), TEXT);
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(key.open(context_at("a"), &bytes).is_err(), "{}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn seal_is_for_one_place_one_position_and_one_key() {
        let key = SealKey::random().unwrap();
        let (_, first) = key.seal(context_at("a"), TEXT);
        let behind = |before, seal| SealContext { place: "a", predecessor: Some((before, seal)) };
        let (text, other) = key.seal(behind(1, &first), TEXT);
        let opened = |belonging| key.open(belonging, text.as_bytes()).map(drop);
        assert_eq!(opened(behind(1, &first)), Ok(()));
        for elsewhere in [context_at("a"), context_at("b"), behind(2, &first), behind(1, &other)] {
            assert_eq!(opened(elsewhere), Err(SealError::Mismatch), "{elsewhere:?}");
        }
        let another = SealKey::random().unwrap().open(behind(1, &first), text.as_bytes());
        assert_eq!(another, Err(SealError::Mismatch));
    }

    #[test]
    fn text_without_a_seal_is_told_from_one_with_a_wrong_one() {
        let key = SealKey::random().unwrap();
        for text in ["", TEXT, r#"{"sum":"0123456789abcdef","a":1}"#, r#"{"seal1":"","a":1}"#] {
            assert_eq!(key.open(context_at("a"), text.as_bytes()), Err(SealError::Missing), "{text}");
        }
    }

    #[test]
    fn seal_of_a_development_build_is_named_and_counts_for_nothing() {
        let key = SealKey::random().unwrap();
        // As created by such a build, with the same key.
        let mut mac = Hmac::<Sha256>::new_from_slice(key.0.as_slice()).unwrap();
        for part in [b"runnerd", b"a".as_slice(), &0_u64.to_be_bytes(), b"", &TEXT.as_bytes()[1..]] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        let seal = to_hex(mac.finalize().into_bytes().as_slice());
        let old = format!("{{\"seal\":\"{seal}\",{}", &TEXT[1..]);
        assert_eq!(key.open(context_at("a"), old.as_bytes()), Err(SealError::Development));
        assert_eq!(strip_seal(old.as_bytes()), None);
        let renamed = old.replacen("seal", "seal1", 1);
        assert_eq!(key.open(context_at("a"), renamed.as_bytes()), Err(SealError::Mismatch));
    }

    #[test]
    fn key_is_written_and_read_and_never_shown() {
        let key = SealKey::random().unwrap();
        assert_eq!(SealKey::parse(key.to_text().as_bytes()).map(|read| read.to_text()), Some(key.to_text()));
        assert_eq!(format!("{key:?}"), "Key");
        for text in ["", "\n", "00\n", &key.to_text().to_uppercase(), key.to_text().trim_end()] {
            assert!(SealKey::parse(text.as_bytes()).is_none() || text == key.to_text(), "{text}");
        }
    }
}
