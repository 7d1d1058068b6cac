//! The built-in prompt templates, and how their slots and conditions are filled in.
//!
//! A line `{{#flag}}` starts lines that are kept only if the flag is set, up to `{{/flag}}`; `{{slot}}` is replaced by
//! a value. Unknown names are left unchanged, and values are not searched for slots. The prompt's builder decides the
//! values.

mod check;

use std::sync::LazyLock;

use protocol::words::Role;

pub(crate) use check::ROLE_LIMIT;
pub use check::{TemplateFault, check_override};

use crate::text::digest::sha256_hex_of;

pub(crate) const CONTRACT: &str = include_str!("../../templates/v1/contract.md");
pub(crate) const ANSWER: &str = include_str!("../../templates/v1/answer.md");
pub(crate) const VERDICT: &str = include_str!("../../templates/v1/verdict.md");
const WORKER: &str = include_str!("../../templates/v1/worker.md");
const PLANNER: &str = include_str!("../../templates/v1/planner.md");
const REPAIR: &str = include_str!("../../templates/v1/repair.md");
const REVIEWER: &str = include_str!("../../templates/v1/reviewer.md");

/// Every template by its file name, in the order in which they are hashed.
const TEMPLATES: [(&str, &str); 7] = [
    ("contract", CONTRACT),
    ("worker", WORKER),
    ("planner", PLANNER),
    ("repair", REPAIR),
    ("reviewer", REVIEWER),
    ("answer", ANSWER),
    ("verdict", VERDICT),
];

/// Returns the SHA-256 of the built-in templates as 64 hexadecimal digits.
pub fn templates_digest() -> &'static str {
    static DIGEST: LazyLock<String> = LazyLock::new(|| {
        let lengths = TEMPLATES.map(|(_, text)| text.len().to_be_bytes());
        let parts =
            TEMPLATES.iter().zip(&lengths).flat_map(|((name, text), len)| [name.as_bytes(), len, text.as_bytes()]);
        sha256_hex_of(&parts.collect::<Vec<_>>())
    });
    &DIGEST
}

/// Returns the built-in template of a role.
pub(crate) fn built_in_template(role: Role) -> &'static str {
    match role {
        Role::Worker | Role::Human => WORKER,
        Role::Planner => PLANNER,
        Role::Repair => REPAIR,
        Role::Reviewer => REVIEWER,
    }
}

/// Values for a template.
pub(crate) struct TemplateValues<'a> {
    /// Conditions by name.
    pub(crate) flags: &'a [(&'a str, bool)],
    /// Values by name.
    pub(crate) slots: &'a [(&'a str, &'a str)],
}

impl TemplateValues<'_> {
    /// Fills in the template; consecutive blank lines become one, and the text ends with one newline.
    pub(crate) fn fill(&self, template: &str) -> String {
        let mut text = String::with_capacity(template.len());
        let mut open: Vec<(&str, bool)> = Vec::new();
        for line in template.lines() {
            if let Some(flag) = self.condition(line, "{{#") {
                open.push(flag);
            } else if let Some(flag) = self.condition(line, "{{/") {
                open.pop_if(|opened| opened.0 == flag.0);
            } else if open.iter().all(|(_, is_set)| *is_set) && !(line.is_empty() && text.ends_with("\n\n")) {
                self.replace_slots(line, &mut text);
                text.push('\n');
            }
        }
        text.truncate(text.trim_end().len());
        text + "\n"
    }

    /// Returns the flag of a line that begins or ends a condition, and whether it is set.
    fn condition(&self, line: &str, mark: &str) -> Option<(&str, bool)> {
        let name = line.trim().strip_prefix(mark)?.strip_suffix("}}")?;
        self.flags.iter().copied().find(|(flag, _)| *flag == name)
    }

    fn replace_slots(&self, line: &str, text: &mut String) {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("{{") {
            let slot = after.split_once("}}").and_then(|(name, rest)| Some((self.slot(name)?, rest)));
            text.push_str(before);
            let (value, next) = slot.unwrap_or(("{{", after));
            text.push_str(value);
            rest = next;
        }
        text.push_str(rest);
    }

    fn slot(&self, name: &str) -> Option<&str> {
        self.slots.iter().find(|(slot, _)| *slot == name).map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILLING: TemplateValues<'_> = TemplateValues {
        flags: &[("yes", true), ("no", false)],
        slots: &[("node", "a.1"), ("guard", "sh -c '{{node}}'")],
    };

    #[test]
    fn slots_are_filled_once_and_unknown_names_stay() {
        assert_eq!(FILLING.fill("{{node}}: {{guard}} {{other}} {{"), "a.1: sh -c '{{node}}' {{other}} {{\n");
    }

    #[test]
    fn conditions_may_be_nested() {
        let template =
            "a\n{{#yes}}\nb\n{{#no}}\nc\n{{#yes}}\nd\n{{/yes}}\n{{/no}}\ne\n{{/yes}}\n{{#other}}\nf\n{{/other}}\n";
        assert_eq!(FILLING.fill(template), "a\nb\ne\n{{#other}}\nf\n{{/other}}\n");
    }

    #[test]
    fn what_a_condition_leaves_out_leaves_no_gap() {
        assert_eq!(FILLING.fill("a\n\n{{#no}}\nb\n{{/no}}\n\nc\n\n\n"), "a\n\nc\n");
    }

    #[test]
    fn conditions_of_the_built_in_templates_are_closed() {
        for (name, text) in TEMPLATES {
            let count = |mark| text.lines().filter(|line: &&str| line.starts_with(mark)).count();
            assert_eq!(count("{{#"), count("{{/"), "{name}");
        }
    }
}
