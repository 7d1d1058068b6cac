//! A repository's own role templates: where they are, and whether they are usable.
//!
//! Reads no file: callers pass the texts of a commit or of the work tree.

use std::fmt::Display;

use protocol::words::Role;

use super::check_override;
use crate::files::layout;

/// Maximum number of faults reported at once.
const MAX_SHOWN: usize = 5;

/// The templates that a repository may override, by role.
pub const OVERRIDE_TEMPLATES: [(Role, &str); 4] = [
    (Role::Worker, ".runner/prompts/worker.md"),
    (Role::Planner, ".runner/prompts/planner.md"),
    (Role::Repair, ".runner/prompts/repair.md"),
    (Role::Reviewer, ".runner/prompts/reviewer.md"),
];

/// Returns what is wrong with the templates that `read` returns for their paths, each with file and line; a missing
/// template is not a fault.
pub fn find_template_faults<E: Display>(read: impl Fn(&str) -> Result<Option<Vec<u8>>, E>) -> Vec<String> {
    let describe_template = |(role, path): (Role, &str)| {
        let faults = match read(path) {
            Ok(bytes) => bytes.map(|bytes| check_template(role, &bytes)).unwrap_or_default(),
            Err(error) => vec![error.to_string()],
        };
        faults.into_iter().map(|other| format!("{path}: {other}")).collect::<Vec<_>>()
    };
    OVERRIDE_TEMPLATES.into_iter().flat_map(describe_template).take(MAX_SHOWN).collect()
}

fn check_template(role: Role, bytes: &[u8]) -> Vec<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => check_override(role, text).iter().map(ToString::to_string).collect(),
        Err(error) => {
            let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
            vec![format!("line {line}: not UTF-8")]
        }
    }
}

/// Returns what is wrong with file names in the template folder: a name that is almost a role's has no effect.
pub fn find_unknown_templates(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let is_known = |name: &str| name == "README" || OVERRIDE_TEMPLATES.iter().any(|(role, _)| name == role.as_str());
    let unknown = names.into_iter().filter(|name| name.strip_suffix(".md").is_some_and(|name| !is_known(name)));
    let describe_name =
        |name| format!("{}/{name}: no role is called that: worker, planner, repair or reviewer", layout::PROMPTS);
    unknown.take(MAX_SHOWN).map(describe_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_a_template_names_its_file_and_line() {
        let read = |path: &str| match path.rsplit('/').next() {
            Some("planner.md") => Ok(Some(b"Plan.\n\n{{nodes}}\n".to_vec())),
            Some("repair.md") => Ok(Some(b"Repair.\n\xff\n".to_vec())),
            Some("reviewer.md") => Err("may not be read"),
            _ => Ok(None),
        };
        assert_eq!(
            find_template_faults(read),
            [
                ".runner/prompts/planner.md: line 3: there is no `{{nodes}}`; known are `{{node}}`, `{{guard}}`, `{{time}}`",
                ".runner/prompts/repair.md: line 2: not UTF-8",
                ".runner/prompts/reviewer.md: may not be read",
            ]
        );
    }

    #[test]
    fn a_template_of_no_role_is_told() {
        let names = ["worker.md", "workers.md", "README.md", "notes.txt"].map(str::to_owned);
        assert_eq!(find_unknown_templates(names).len(), 1);
    }
}
