//! Parses and applies result filters: a label, or `key=value` pairs joined by commas. Pure.

use super::{ResultEntry, ResultMeta};
use crate::case::find::suggest_word;
use crate::error::EvalError;

/// Reads a key's value from a result.
type MetaField = fn(&ResultMeta) -> Option<&str>;

/// The keys that can be filtered by.
const KEYS: [(&str, MetaField); 9] = [
    ("label", |meta| meta.label.as_deref()),
    ("case", |meta| Some(&meta.case)),
    ("executor", |meta| Some(&meta.executor)),
    ("model", |meta| meta.model.as_deref()),
    ("agent", |meta| meta.agent.as_deref()),
    ("version", |meta| meta.versions.runnerd.as_deref()),
    ("prompts", |meta| meta.versions.prompts.as_deref()),
    ("templates", |meta| meta.digests.templates.as_deref()),
    ("runnerd", |meta| meta.digests.runnerd.as_deref()),
];
/// Keys whose values may be abbreviated.
const DIGESTS: [&str; 2] = ["templates", "runnerd"];

/// A filter over results.
#[derive(Debug, Clone)]
pub(crate) struct ResultSelector {
    text: String,
    conditions: Vec<(&'static str, MetaField, String)>,
}

impl ResultSelector {
    /// Parses a filter as typed by the user.
    pub(crate) fn parse(text: &str) -> Result<Self, EvalError> {
        let mut conditions = Vec::new();
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or(("label", part));
            let known: Vec<String> = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
            let Some((key, field)) = KEYS.iter().find(|(known, _)| *known == key.trim()) else {
                let message = format!(
                    "unknown key `{key}` in `{text}`, known are {}{}",
                    known.join(", "),
                    suggest_word(key, &known)
                );
                return Err(EvalError::usage(message));
            };
            conditions.push((*key, *field, value.trim().to_owned()));
        }
        Ok(Self { text: text.to_owned(), conditions })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the results that match the filter.
    pub(crate) fn select(&self, all: &[ResultEntry]) -> Result<Vec<ResultEntry>, EvalError> {
        let found: Vec<ResultEntry> = all.iter().filter(|entry| self.matches(&entry.meta)).cloned().collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let (key, field, _) = self.conditions[0];
        let mut values: Vec<&str> = all.iter().filter_map(|entry| field(&entry.meta)).collect();
        values.sort_unstable();
        values.dedup();
        let values = if values.is_empty() { "none".to_owned() } else { values.join(", ") };
        Err(EvalError::usage(format!("no result is in the set `{}`; of `{key}` there are: {values}", self.text)))
    }

    fn matches(&self, meta: &ResultMeta) -> bool {
        self.conditions.iter().all(|(key, field, value)| {
            let is_equal = |found: &str| {
                found == value || (DIGESTS.contains(key) && value.len() >= 4 && found.starts_with(value.as_str()))
            };
            // A missing value means the built-in templates, or the agent's default model.
            field(meta).map_or(value.is_empty() || value == "none", is_equal)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::sample_entry;

    #[test]
    fn a_word_is_a_label_and_keys_are_joined() {
        let mut one = sample_entry("a", crate::outcome::Outcome::Success);
        one.meta.label = Some("new".into());
        one.meta.model = Some("opus".into());
        let all = [one, sample_entry("b", crate::outcome::Outcome::Fail)];
        let count = |text: &str| ResultSelector::parse(text).expect("parses").select(&all).map(|found| found.len());
        assert_eq!(count("new").expect("one"), 1);
        assert_eq!(count("label=new,model=opus").expect("one"), 1);
        assert_eq!(count("model=none").expect("one"), 1);
        assert_eq!(count("executor=script").expect("both"), 2);
        assert!(count("old").expect_err("none").to_string().contains("there are: new"));
        assert!(ResultSelector::parse("modle=x").expect_err("refused").to_string().contains("did you mean `model`?"));
    }
}
