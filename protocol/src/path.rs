//! Paths on the wire: a string if the path is UTF-8, otherwise its bytes in hexadecimal.
//!
//! A Unix path is bytes, but JSON has only text. Nothing here accesses the file system.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hex::{from_hex, to_hex};

/// A path that survives the wire byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WirePath(pub PathBuf);

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "WirePath")]
enum WirePathForm {
    /// The path, if it is UTF-8.
    Text(String),
    /// The bytes of the path in hexadecimal.
    Bytes { hex: String },
}

impl WirePath {
    /// Returns the path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl From<&Path> for WirePath {
    fn from(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl fmt::Display for WirePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())
    }
}

impl Serialize for WirePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => WirePathForm::Text(text.to_owned()),
            None => WirePathForm::Bytes { hex: to_hex(self.0.as_os_str().as_bytes()) },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for WirePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match WirePathForm::deserialize(deserializer)? {
            WirePathForm::Text(text) => Ok(Self(PathBuf::from(text))),
            WirePathForm::Bytes { hex } => from_hex(&hex)
                .map(|bytes| Self(PathBuf::from(OsString::from_vec(bytes))))
                .ok_or_else(|| serde::de::Error::custom("path is not hexadecimal")),
        }
    }
}

impl JsonSchema for WirePath {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WirePath".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        WirePathForm::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_utf8_survives_the_wire() {
        let path = WirePath(PathBuf::from(OsString::from_vec(b"/tmp/a\xff b".to_vec())));
        let json = serde_json::to_string(&path).expect("serializes");
        assert_eq!(json, r#"{"hex":"2f746d702f61ff2062"}"#);
        assert_eq!(serde_json::from_str::<WirePath>(&json).expect("parses"), path);
    }

    #[test]
    fn a_plain_path_is_a_string() {
        let json = serde_json::to_string(&WirePath(PathBuf::from("/tmp/a b"))).expect("serializes");
        assert_eq!(json, r#""/tmp/a b""#);
    }
}
