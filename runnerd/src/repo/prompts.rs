//! A repository's own templates of roles: where they are, and whether they can be used.
//!
//! Reads no file: callers have the texts of a commit or of the work tree.

use protocol::words::Role;
use runner_core::prompt::check_override;

use super::Layout;

/// Most faults that are told at once.
const SHOWN: usize = 5;

/// The templates that a repository may bring, by role.
pub const OVERRIDES: [(Role, &str); 4] = [
    (Role::Worker, ".runner/prompts/worker.md"),
    (Role::Planner, ".runner/prompts/planner.md"),
    (Role::Repair, ".runner/prompts/repair.md"),
    (Role::Reviewer, ".runner/prompts/reviewer.md"),
];

/// Returns what is wrong with the templates that `text` finds by path, each with file and line.
pub fn faults(text: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let of = |(role, path): (Role, &str)| {
        let faults = text(path).map(|text| check_override(role, &text)).unwrap_or_default();
        faults.into_iter().map(|fault| format!("{path}: {fault}")).collect::<Vec<_>>()
    };
    OVERRIDES.into_iter().flat_map(of).take(SHOWN).collect()
}

/// Returns what is wrong with the names of files in the folder of templates: one that is nearly a role's does nothing.
pub fn unknown(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let is_known = |name: &str| name == "README" || OVERRIDES.iter().any(|(role, _)| name == role.as_str());
    let unknown = names.into_iter().filter(|name| name.strip_suffix(".md").is_some_and(|name| !is_known(name)));
    let told =
        |name| format!("{}/{name}: no role is called that: worker, planner, repair or reviewer", Layout::PROMPTS);
    unknown.take(SHOWN).map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_a_template_names_its_file_and_line() {
        let text = |path: &str| path.ends_with("planner.md").then(|| "Plan.\n\n{{nodes}}\n".to_owned());
        let told = faults(text);
        assert_eq!(
            told,
            [".runner/prompts/planner.md: line 3: there is no `{{nodes}}`; known are `{{node}}`, `{{guard}}`"]
        );
    }

    #[test]
    fn a_template_of_no_role_is_told() {
        let names = ["worker.md", "workers.md", "README.md", "notes.txt"].map(str::to_owned);
        assert_eq!(unknown(names).len(), 1);
    }
}
