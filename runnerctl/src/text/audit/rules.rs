//! The description of each rule: a section of `docs/verify-rules.md`, which is compiled into the program.
//!
//! Only finds sections; what a rule requires is up to the audit.

use protocol::verify::AuditRule;

const PAGE: &str = include_str!("../../../../docs/verify-rules.md");

/// Returns the description of a rule, in Markdown, without its heading.
pub(super) fn rule_section(rule: AuditRule) -> &'static str {
    let heading = format!("\n## {rule}\n");
    let section = PAGE.split_once(&heading).map_or("", |(_, rest)| rest);
    section.split("\n## ").next().unwrap_or_default().trim()
}

/// Returns the first paragraph of a rule's description, on one line.
pub(super) fn rule_summary(rule: AuditRule) -> String {
    rule_section(rule).split("\n\n").next().unwrap_or_default().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_a_section_and_each_section_a_rule() {
        let headings: Vec<&str> = PAGE.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let rules: Vec<&str> = AuditRule::ALL.iter().map(|rule| rule.as_str()).collect();
        assert_eq!(headings, rules);
        for rule in AuditRule::ALL {
            let parts = rule_section(*rule).split("\n\n").count();
            assert!(parts >= 3, "{rule}: what holds, what a finding means, what to do");
            assert!(
                rule_summary(*rule).ends_with('.') && rule_summary(*rule).len() < 250,
                "{rule}: {}",
                rule_summary(*rule)
            );
        }
    }
}
