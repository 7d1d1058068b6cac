//! Fills the placeholders of a template, written in double braces. Quoting values is up to the engine.

/// A placeholder without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnknownPlaceholder {
    /// Line number, counted from 1.
    pub(super) line: usize,
    /// The text between the braces.
    pub(super) word: String,
}

/// Returns the text with each `{{word}}` replaced by its value.
pub(super) fn fill_template(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, UnknownPlaceholder> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, (word, after))) =
        rest.split_once("{{").and_then(|(before, inner)| Some((before, inner.split_once("}}")?)))
    {
        let line = text[..text.len() - rest.len() + before.len()].matches('\n').count() + 1;
        let word = word.trim();
        filled.push_str(before);
        filled.push_str(&value(word).ok_or_else(|| UnknownPlaceholder { line, word: word.to_owned() })?);
        rest = after;
    }
    Ok(filled + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stands_where_its_word_stood_and_is_not_looked_into() {
        let value = |word: &str| (word == "a").then(|| "{{a}}".to_owned());
        assert_eq!(fill_template("x {{a}} ${b} {{ a }}{{", value).as_deref(), Ok("x {{a}} ${b} {{a}}{{"));
        assert_eq!(
            fill_template("one\n{{a}}\n {{c}}", value),
            Err(UnknownPlaceholder { line: 3, word: "c".to_owned() })
        );
    }
}
