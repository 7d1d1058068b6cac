//! Attributes that would change the runner's files, and filters in the copies that guards run in.

use super::fixture::Fixture;
use crate::Repository;

fn find_rule(fixture: &Fixture) -> Option<(usize, String, String)> {
    let rule = fixture.repository().find_runner_attribute().unwrap()?;
    assert_eq!(rule.file, fixture.path(".git/info/attributes"));
    Some((rule.line, rule.attribute, rule.path))
}

#[test]
fn rule_that_outranks_the_runners_own_is_found_with_its_line() {
    let fixture = Fixture::new();
    fixture.write(".runner/.gitattributes", "* -text -ident -filter !working-tree-encoding\n");
    fixture.write(".gitattributes", "* filter=x ident\n");
    fixture.git(&["config", "filter.x.clean", "rev"]);
    assert_eq!(find_rule(&fixture), None);
    fixture.write(".git/info/attributes", "# mine\n*.txt filter=x\n*.json filter=x\n");
    assert_eq!(find_rule(&fixture), Some((3, "filter=x".to_owned(), ".runner/state/tree.json".to_owned())));
    fixture.write(".git/info/attributes", "* filter=none text=auto\n");
    assert_eq!(find_rule(&fixture), None, "a filter without a program changes nothing");
    fixture.write(".git/info/attributes", "* working-tree-encoding=UTF-16\n");
    let goal = ".runner/GOAL.md".to_owned();
    assert_eq!(find_rule(&fixture), Some((1, "working-tree-encoding=UTF-16".to_owned(), goal.clone())));
    fixture.write(".git/info/attributes", "* ident\n/.runner/** -text -ident -filter !working-tree-encoding\n");
    assert_eq!(find_rule(&fixture), None);
    fixture.write(".git/info/attributes", "* ident\n");
    assert_eq!(find_rule(&fixture), Some((1, "ident".to_owned(), goal)));
}

#[test]
fn copy_of_a_commit_is_laid_out_by_the_filters_of_its_repository() {
    let fixture = Fixture::new();
    fixture.git(&["config", "filter.x.clean", "tr a-z A-Z"]);
    fixture.git(&["config", "filter.x.smudge", "tr A-Z a-z"]);
    fixture.write(".gitattributes", "*.f filter=x\n");
    fixture.write("b.f", "small\n");
    fixture.commit_by_git("filtered");
    assert_eq!(fixture.git(&["show", "HEAD:b.f"]), "SMALL");
    let place = fixture.folder().join("copy");
    let repository: Repository = fixture.repository();
    let head = repository.head().unwrap().commit().unwrap();
    repository.create_commit_copy(&head, &place).unwrap();
    assert_eq!(std::fs::read_to_string(place.join("b.f")).unwrap(), "small\n");
}
