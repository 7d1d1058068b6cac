//! The name of a git object. Neither the object itself nor an abbreviated name.

use std::fmt;
use std::str::FromStr;

use gix::ObjectId;
use serde::{Deserialize, Serialize};

/// The full id of a git object, SHA-1 or SHA-256, written as lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Id(ObjectId);

/// The text is not the full hexadecimal id of a git object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a full git object id: {text:?}")]
pub struct InvalidId {
    text: String,
}

impl Id {
    /// Returns the first `digits` hexadecimal digits, or all of them if there are fewer.
    pub fn short(&self, digits: usize) -> String {
        self.0.to_hex_with_len(digits).to_string()
    }

    pub(super) fn object_id(&self) -> ObjectId {
        self.0
    }
}

impl From<ObjectId> for Id {
    fn from(id: ObjectId) -> Self {
        Self(id)
    }
}

impl From<gix::Id<'_>> for Id {
    fn from(id: gix::Id<'_>) -> Self {
        Self(id.detach())
    }
}

impl FromStr for Id {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        ObjectId::from_hex(text.as_bytes()).map(Self).map_err(|_| InvalidId { text: text.to_owned() })
    }
}

impl TryFrom<String> for Id {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.to_string()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

    #[test]
    fn id_survives_text_and_json() {
        let id: Id = HEX.parse().unwrap();
        assert_eq!(id.to_string(), HEX);
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, format!("\"{HEX}\""));
        assert_eq!(serde_json::from_str::<Id>(&json).unwrap(), id);
    }

    #[test]
    fn short_form_is_a_prefix() {
        let id: Id = HEX.parse().unwrap();
        assert_eq!(id.short(8), &HEX[..8]);
        assert_eq!(id.short(400), HEX);
    }

    #[test]
    fn abbreviation_is_no_id() {
        assert!("4b825dc6".parse::<Id>().is_err());
        assert!("".parse::<Id>().is_err());
    }
}
