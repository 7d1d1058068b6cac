//! JSON that tells whether it is as it was written: its first member is a checksum of the rest.
//!
//! A disk that loses a bit inside a string or a number leaves JSON that parses. The checksum is no protection against
//! somebody who wants to change the text, who may leave it out.

use std::fmt;

use runner_core::digest::sha256_hex;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Hexadecimal digits of a checksum.
const DIGITS: usize = 16;
/// What stands before them.
const BEFORE: &str = r#"{"sum":""#;
/// What stands behind them.
const BEHIND: &str = "\",";

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} (byte {at})")]
pub struct Damage {
    /// Where it was noticed, in bytes from the beginning of the text.
    pub at: usize,
    /// What it is.
    pub what: String,
}

impl Damage {
    fn new(at: usize, what: impl fmt::Display) -> Self {
        Self { at, what: what.to_string() }
    }

    /// Returns the same damage in a text that is part of a larger one.
    #[must_use]
    pub fn behind(self, bytes: usize) -> Self {
        Self { at: self.at + bytes, ..self }
    }
}

/// A text with its checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The text.
    pub text: String,
    /// The checksum, for what follows it to build upon.
    pub sum: String,
}

/// Seals the JSON text of an object; `upon` is the checksum of what it follows, empty for what follows nothing.
pub fn seal(text: &str, upon: &str) -> Sealed {
    let sum = sum(text.as_bytes(), upon);
    let rest = text.strip_prefix('{').expect("BUG: what is sealed is no object");
    Sealed { text: format!("{BEFORE}{sum}{BEHIND}{rest}"), sum }
}

/// Reads a sealed text: its value, and its checksum where it has one.
///
/// A version that is not `version` is said before anything else, for a text of another version may have another form.
pub fn open<T: DeserializeOwned>(
    bytes: &[u8],
    upon: &str,
    version: Option<u32>,
) -> Result<(T, Option<String>), Damage> {
    if let (Some(known), Ok(Versioned { version })) = (version, serde_json::from_slice(bytes))
        && version != known
    {
        return Err(Damage::new(0, format_args!("it has version {version}, and this daemon knows {known}")));
    }
    if bytes.is_empty() {
        return Err(Damage::new(0, "it is empty"));
    }
    let Some((stated, body)) = split(bytes) else { return Ok((parse(bytes, 0)?, None)) };
    let value = parse(&body, bytes.len() - body.len())?;
    if sum(&body, upon) != stated {
        return Err(Damage::new(0, "it is not what was written: its checksum is another"));
    }
    Ok((value, Some(stated)))
}

#[derive(serde::Deserialize)]
struct Versioned {
    version: u32,
}

/// Returns the checksum that a text states, and the text without it; none if it states none.
fn split(bytes: &[u8]) -> Option<(String, Vec<u8>)> {
    let (digits, rest) = bytes.strip_prefix(BEFORE.as_bytes())?.split_at_checked(DIGITS)?;
    let rest = rest.strip_prefix(BEHIND.as_bytes())?;
    Some((String::from_utf8_lossy(digits).into_owned(), [b"{", rest].concat()))
}

fn sum(body: &[u8], upon: &str) -> String {
    let mut sum = sha256_hex(&[upon.as_bytes(), body].concat());
    sum.truncate(DIGITS);
    sum
}

fn parse<T: DeserializeOwned>(text: &[u8], removed: usize) -> Result<T, Damage> {
    serde_json::from_slice(text).map_err(|error| {
        let lines = text.split_inclusive(|&byte| byte == b'\n').take(error.line().saturating_sub(1));
        let at = lines.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
        let said = error.to_string();
        // A position without the checksum would be misleading, and there is a better one.
        let what = said.split(" at line ").next().unwrap_or_default();
        Damage::new(if at == 0 { 0 } else { at + removed }, what)
    })
}

/// Returns a value as sealed JSON of one line.
pub fn line<T: Serialize>(value: &T, upon: &str) -> Sealed {
    let text = serde_json::to_string(value).expect("BUG: a line does not serialize");
    seal(&(text + "\n"), upon)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn opened(bytes: &[u8]) -> Result<Value, Damage> {
        open(bytes, "", Some(1)).map(|(value, _)| value)
    }

    #[test]
    fn what_is_sealed_is_json_and_comes_back() {
        let sealed = seal("{\n  \"version\": 1\n}\n", "");
        assert!(serde_json::from_str::<Value>(&sealed.text).unwrap()["sum"].is_string());
        assert_eq!(open(sealed.text.as_bytes(), "", Some(1)).unwrap(), (json!({"version": 1}), Some(sealed.sum)));
    }

    #[test]
    fn no_bit_changes_unseen() {
        let text = seal(r#"{"version":1,"name":"a"}"#, "").text;
        for at in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[at / 8] ^= 1 << (at % 8);
            assert!(open::<Known>(&bytes, "", Some(1)).is_err(), "{}", String::from_utf8_lossy(&bytes));
        }
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only whether it can be read is asked")]
    struct Known {
        version: u32,
        name: String,
    }

    #[test]
    fn somebody_may_change_it_who_leaves_the_checksum_out() {
        assert_eq!(opened(br#"{"version":1}"#).unwrap(), json!({"version": 1}));
    }

    #[test]
    fn line_is_bound_to_the_one_before() {
        let first = line(&json!({"a": 1}), "");
        let second = line(&json!({"b": 2}), &first.sum);
        assert!(open::<Value>(second.text.as_bytes(), &first.sum, None).is_ok());
        assert!(open::<Value>(second.text.as_bytes(), "", None).is_err());
    }

    #[test]
    fn damage_is_named_with_its_place_in_the_file() {
        let text = seal("{\n  \"version\": 1,\n  \"a\": x\n}", "").text;
        let damage = opened(text.as_bytes()).unwrap_err();
        assert_eq!((damage.at, damage.what.as_str()), (text.find('x').unwrap(), "expected value"));
        assert_eq!(opened(b"").unwrap_err().to_string(), "it is empty (byte 0)");
        let newer = seal(r#"{"version":2,"new":1}"#, "").text;
        assert_eq!(
            opened(newer.as_bytes()).unwrap_err().to_string(),
            "it has version 2, and this daemon knows 1 (byte 0)"
        );
        let twice = format!("{text}{text}").replace('x', "1");
        assert!(opened(twice.as_bytes()).unwrap_err().what.contains("trailing"));
    }

    #[test]
    fn depth_is_bounded() {
        assert!(opened("[".repeat(1_000_000).as_bytes()).unwrap_err().what.contains("recursion"));
    }
}
