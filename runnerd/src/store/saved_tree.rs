//! The task tree as a session has left it: arbitrary bytes, encoded so that they take little extra space whatever they
//! are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use runner_core::tree::MAX_TREE_BYTES;
use serde::{Deserialize, Serialize};

use crate::repo::sealed::Sealable;

/// The task tree as a session has left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SavedTree {
    /// There was no file.
    None,
    /// Valid text, which may be a tree.
    Text(String),
    /// Anything else, in base64: as text, a control character would take up six bytes.
    Bytes(String),
}

impl Sealable for SavedTree {
    const KIND: &'static str = "left-tree";
    const VERSION: u32 = 1;
}

impl SavedTree {
    /// Stores the content of the file.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let is_text = bytes.len() <= MAX_TREE_BYTES;
        match String::from_utf8(bytes) {
            Ok(text) if is_text => Self::Text(text),
            Ok(text) => Self::Bytes(BASE64.encode(text)),
            Err(error) => Self::Bytes(BASE64.encode(error.into_bytes())),
        }
    }

    /// Returns the content of the file; `None` if there was no file, or an empty one.
    pub fn into_bytes(self) -> Result<Option<Vec<u8>>, base64::DecodeError> {
        let bytes = match self {
            Self::None => return Ok(None),
            Self::Text(text) => text.into_bytes(),
            Self::Bytes(text) => BASE64.decode(text)?,
        };
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::durable::MAX_BYTES;

    #[test]
    fn whatever_was_left_comes_back_and_can_be_read_again() {
        let most = 4 * MAX_TREE_BYTES + 1;
        for bytes in [b"{}".to_vec(), vec![0; 9], vec![0xff; 9], vec![0; MAX_TREE_BYTES], vec![0xff; most]] {
            let left = SavedTree::from_bytes(bytes.clone());
            let text = serde_json::to_string(&left).unwrap();
            assert!((text.len() as u64) < MAX_BYTES, "{} of {}", text.len(), bytes.len());
            assert_eq!(serde_json::from_str::<SavedTree>(&text).unwrap().into_bytes().unwrap(), Some(bytes));
        }
        assert_eq!(SavedTree::from_bytes(Vec::new()).into_bytes().unwrap(), None);
        assert_eq!(SavedTree::None.into_bytes().unwrap(), None);
    }
}
