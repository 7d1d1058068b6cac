//! Checks a repository's own template of a role: its size, and the names of its slots and conditions.
//!
//! Looks only at the text. Braces around anything but a name are text, so that a template may talk about other
//! templates.

use std::fmt;

use protocol::words::Role;

/// Most bytes of the text of a role.
pub(crate) const ROLE_LIMIT: usize = 4 * 1024;
/// Flags that a condition may test.
const FLAGS: [&str; 5] = ["auto", "strict", "root", "leaf", "narrowing"];

/// Returns the slots that are filled in the template of a role.
const fn known_slots(role: Role) -> &'static [&'static str] {
    match role {
        Role::Reviewer => &["node", "guard", "time", "from"],
        Role::Worker | Role::Planner | Role::Repair | Role::Human => &["node", "guard", "time"],
    }
}

/// What is wrong with a template, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFault {
    /// Number of the line, from 1; `None` if the fault concerns the whole template.
    pub line: Option<usize>,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for TemplateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Checks a repository's own template of a role; returns its faults from top to bottom.
pub fn check_override(role: Role, text: &str) -> Vec<TemplateFault> {
    let mut check = TemplateChecker { role, faults: Vec::new(), open: Vec::new() };
    if text.trim().is_empty() {
        check.push_fault(None, "it is empty; remove the file to have the built-in text".to_owned());
    }
    if text.len() > ROLE_LIMIT {
        check.push_fault(None, format!("it has {} bytes, and at most {ROLE_LIMIT} are taken", text.len()));
    }
    for (number, line) in (1..).zip(text.lines()) {
        check.check_line(number, line);
    }
    for (flag, line) in std::mem::take(&mut check.open) {
        check.push_fault(Some(line), format!("`{{{{#{flag}}}}}` is not closed"));
    }
    check.faults.sort_by_key(|fault| fault.line);
    check.faults
}

struct TemplateChecker<'a> {
    role: Role,
    faults: Vec<TemplateFault>,
    /// The open conditions, each with the line that opened it.
    open: Vec<(&'a str, usize)>,
}

impl<'a> TemplateChecker<'a> {
    fn push_fault(&mut self, line: Option<usize>, what: String) {
        self.faults.push(TemplateFault { line, what });
    }

    fn check_line(&mut self, number: usize, line: &'a str) {
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("{{") {
            rest = after;
            let Some((inner, _)) = after.split_once("}}") else { continue };
            let alone = line.trim().len() == inner.len() + "{{}}".len();
            match (inner.strip_prefix('#'), inner.strip_prefix('/')) {
                (Some(flag), _) if is_name(flag) => self.check_condition(number, flag, alone, true),
                (_, Some(flag)) if is_name(flag) => self.check_condition(number, flag, alone, false),
                _ if is_name(inner) => self.check_slot(number, inner),
                _ => {}
            }
        }
    }

    fn check_slot(&mut self, number: usize, name: &str) {
        let known = known_slots(self.role);
        if !known.contains(&name) {
            let known: Vec<String> = known.iter().map(|slot| format!("`{{{{{slot}}}}}`")).collect();
            self.push_fault(Some(number), format!("there is no `{{{{{name}}}}}`; known are {}", known.join(", ")));
        }
    }

    fn check_condition(&mut self, number: usize, flag: &'a str, alone: bool, opens: bool) {
        let mark = format!("`{{{{{}{flag}}}}}`", if opens { '#' } else { '/' });
        if !FLAGS.contains(&flag) {
            self.push_fault(Some(number), format!("there is no {mark}; conditions are {}", FLAGS.join(", ")));
        } else if !alone {
            self.push_fault(Some(number), format!("{mark} must be alone on its line"));
        } else if opens {
            self.open.push((flag, number));
        } else if self.open.pop_if(|(opened, _)| *opened == flag).is_none() {
            self.push_fault(Some(number), format!("{mark} closes nothing that is open here"));
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> String {
        check_override(Role::Worker, text).iter().flat_map(|fault| [fault.to_string(), "\n".to_owned()]).collect()
    }

    #[test]
    fn what_a_template_may_hold_is_taken() {
        let text = "Work on {{node}}; run `{{guard}}`.\n{{#strict}}\n  {{#leaf}}\nPlan not.\n{{/leaf}}\n{{/strict}}\n";
        assert_eq!(faults(text), "");
        assert_eq!(check_override(Role::Reviewer, "git diff {{from}}"), []);
    }

    #[test]
    fn braces_around_something_else_are_text() {
        assert_eq!(faults("{{ .Values.port }} and {{ node }}, {{}}, {{{{x y}} {{ and }}"), "");
    }

    #[test]
    fn a_wrong_name_or_a_condition_that_is_not_one_is_told_with_its_line() {
        let text =
            "{{nod}} and {{guard}}\n{{#lief}}\n{{from}}\ntext {{#leaf}}\n{{/auto}}\n{{#root}}\n{{#auto}}\n{{/root}}\n";
        insta::assert_snapshot!(faults(text), @r"
        line 1: there is no `{{nod}}`; known are `{{node}}`, `{{guard}}`, `{{time}}`
        line 2: there is no `{{#lief}}`; conditions are auto, strict, root, leaf, narrowing
        line 3: there is no `{{from}}`; known are `{{node}}`, `{{guard}}`, `{{time}}`
        line 4: `{{#leaf}}` must be alone on its line
        line 5: `{{/auto}}` closes nothing that is open here
        line 6: `{{#root}}` is not closed
        line 7: `{{#auto}}` is not closed
        line 8: `{{/root}}` closes nothing that is open here
        ");
    }

    #[test]
    fn a_template_is_neither_empty_nor_larger_than_what_is_shown() {
        assert_eq!(faults(" \n"), "it is empty; remove the file to have the built-in text\n");
        assert_eq!(faults(&"x".repeat(ROLE_LIMIT)), "");
        assert_eq!(faults(&"x".repeat(ROLE_LIMIT + 1)), "it has 4097 bytes, and at most 4096 are taken\n");
    }

    #[test]
    fn the_built_in_templates_keep_to_what_an_override_must() {
        for &role in Role::ALL {
            assert_eq!(check_override(role, super::super::built_in_template(role)), [], "{role}");
        }
    }
}
