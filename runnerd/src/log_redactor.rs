//! Secrets that must not be shown, by repository: set by the workers, used by writers that serve all of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use runner_core::text::redact::Secrets;

/// The secrets of all repositories that are worked on. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct LogRedactor(Arc<RwLock<BTreeMap<String, Secrets>>>);

impl LogRedactor {
    /// Sets the secrets of a repository, replacing earlier ones.
    pub fn set(&self, repository: &str, secrets: Secrets) {
        let mut by_repository = self.0.write().unwrap_or_else(PoisonError::into_inner);
        by_repository.insert(repository.to_owned(), secrets);
    }

    /// Redacts the secrets of every repository.
    pub fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let by_repository = self.0.read().unwrap_or_else(PoisonError::into_inner);
        by_repository.values().fold(Cow::Borrowed(bytes), |bytes, secrets| match secrets.redact_bytes(&bytes) {
            Cow::Borrowed(_) => bytes,
            Cow::Owned(redacted) => Cow::Owned(redacted),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(name: &str, value: &str) -> Secrets {
        Secrets::from_variables([(name, value)]).unwrap()
    }

    #[test]
    fn secrets_of_every_repository_are_hidden_until_they_are_replaced() {
        let redactor = LogRedactor::default();
        redactor.clone().set("one", secrets("A_KEY", "first-secret"));
        redactor.set("two", secrets("B_KEY", "second-secret"));
        let redact = || String::from_utf8(redactor.redact(b"first-secret second-secret").into_owned()).unwrap();
        assert_eq!(redact(), "[redacted: A_KEY] [redacted: B_KEY]");
        redactor.set("one", secrets("A_KEY", "another-secret"));
        assert_eq!(redact(), "first-secret [redacted: B_KEY]");
    }
}
