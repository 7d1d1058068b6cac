//! From the text of a case file to a [`Case`]: strict, and every error says file, line, column and what was meant.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::form::{CaseForm, CheckForm};
use super::position::{nearest, of_word};
use super::source::Source;
use super::{Case, Ceilings, Check, Rule};
use crate::fault::Fault;

/// Seconds that a command check has.
const CHECK_SECONDS: u64 = 60;
const MAX_CHECK_SECONDS: u64 = 3600;
const MAX_LIMIT_SECONDS: u64 = 7 * 24 * 3600;
const MAX_GOAL_BYTES: usize = 64 * 1024;
const KINDS: [&str; 6] =
    ["file_exists", "file_matches", "command_succeeds", "runner_completed", "branch_verifies", "at_most"];

/// Parses a case; the digest is filled in by who knows the files beside it.
pub(crate) fn parse(text: &str, file: &Path) -> Result<Case, Fault> {
    let source = Source { text, file };
    let form: CaseForm = toml::from_str(text).map_err(|error| source.refuse_toml(&error))?;
    let id = form.case.id;
    if !is_id(id.get_ref()) {
        let why = format!(
            "the id `{}` is not one: 1 to 64 lower-case letters, digits, `-` and `_`, a letter or digit first, no \
             `_latest` at the end",
            id.get_ref()
        );
        return Err(source.refuse(id.span(), why));
    }
    let goal = form.case.goal;
    if goal.get_ref().trim().is_empty() || goal.get_ref().len() > MAX_GOAL_BYTES {
        return Err(source.refuse(goal.span(), "the goal is empty or longer than 64 KiB"));
    }
    let limit = form.case.limit_secs;
    if !(1..=MAX_LIMIT_SECONDS).contains(limit.get_ref()) {
        return Err(source.refuse(limit.span(), format!("`limit_secs` is from 1 to {MAX_LIMIT_SECONDS}")));
    }
    for path in form.files.keys() {
        source.check_path(path.get_ref(), path.span())?;
    }
    for (name, value) in &form.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.get_ref().contains('\0') {
            return Err(source.refuse(value.span(), format!("`{name}` is no variable")));
        }
    }
    let template = form.case.template.map(|folder| source.template(&folder)).transpose()?;
    let checks =
        form.checks.iter().map(|check| source.check(check.get_ref(), &check.span())).collect::<Result<_, _>>()?;
    Ok(Case {
        file: file.to_owned(),
        text: text.to_owned(),
        digest: String::new(),
        id: id.into_inner(),
        goal: goal.into_inner(),
        expect: form.case.expect,
        limit: Duration::from_secs(limit.into_inner()),
        config: form.config,
        daemon: form.daemon,
        env: form.env.into_iter().map(|(name, value)| (name, value.into_inner())).collect(),
        files: form.files.into_iter().map(|(path, text)| (path.into_inner(), text)).collect(),
        template,
        script: form.agent.map(|agent| agent.script),
        tree: form.tree,
        requires: form.requires,
        checks,
    })
}

/// Returns whether a word can name a case, and so a folder and a link beside it.
pub(crate) fn is_id(word: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=64).contains(&word.len())
        && is_letter(word.as_bytes()[0])
        && word.bytes().all(|byte| is_letter(byte) || matches!(byte, b'-' | b'_'))
        && !word.ends_with("_latest")
}

impl Source<'_> {
    fn template(&self, folder: &toml::Spanned<String>) -> Result<PathBuf, Fault> {
        self.beside(folder.get_ref())
            .map_err(|path| self.refuse(folder.span(), format!("there is no template folder {}", path.display())))
    }

    /// Returns a folder beside the case, or the path where there is none.
    fn beside(&self, folder: &str) -> Result<PathBuf, PathBuf> {
        let path = self.file.parent().unwrap_or(Path::new(".")).join(folder);
        if path.is_dir() { Ok(path) } else { Err(path) }
    }

    fn check(&self, form: &CheckForm, at: &Range<usize>) -> Result<Check, Fault> {
        let rule = self.rule(form, at)?;
        self.refuse_others(form, &rule, at)?;
        Ok(Check { name: form.name.clone().unwrap_or_else(|| rule.described()), rule })
    }

    fn rule(&self, form: &CheckForm, at: &Range<usize>) -> Result<Rule, Fault> {
        Ok(match form.kind.as_str() {
            "file_exists" => Rule::FileExists { path: self.path(form, at)? },
            "file_matches" => Rule::FileMatches { path: self.path(form, at)?, pattern: self.pattern(form, at)? },
            "command_succeeds" => self.command(form, at)?,
            "runner_completed" => Rule::RunnerCompleted,
            "branch_verifies" => Rule::BranchVerifies,
            "at_most" => Rule::AtMost(self.ceilings(form, at)?),
            other => {
                let meant = nearest(other, KINDS).map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
                let start = of_word(self.text, other, at.start);
                let known = KINDS.join("`, `");
                return Err(self.refuse(start..start, format!("unknown check `{other}`, known are `{known}`{meant}")));
            }
        })
    }

    fn path(&self, form: &CheckForm, at: &Range<usize>) -> Result<String, Fault> {
        let path = form.path.clone().ok_or_else(|| self.missing(form, at, "path"))?;
        let is_inside = Path::new(&path).components().all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || !is_inside {
            return Err(self.refuse(at.clone(), format!("the path `{path}` is to be relative and without `..`")));
        }
        Ok(path)
    }

    fn pattern(&self, form: &CheckForm, at: &Range<usize>) -> Result<String, Fault> {
        let pattern = form.pattern.clone().ok_or_else(|| self.missing(form, at, "pattern"))?;
        match regex::Regex::new(&pattern) {
            Ok(_) => Ok(pattern),
            Err(error) => Err(self.refuse(at.clone(), format!("the pattern is no regular expression: {error}"))),
        }
    }

    fn command(&self, form: &CheckForm, at: &Range<usize>) -> Result<Rule, Fault> {
        let cmd = form.cmd.clone().ok_or_else(|| self.missing(form, at, "cmd"))?;
        if cmd.first().is_none_or(String::is_empty) || cmd.iter().any(|word| word.contains('\0')) {
            return Err(self.refuse(at.clone(), "`cmd` names no program"));
        }
        let seconds = form.seconds.unwrap_or(CHECK_SECONDS);
        if !(1..=MAX_CHECK_SECONDS).contains(&seconds) {
            return Err(self.refuse(at.clone(), format!("`seconds` is from 1 to {MAX_CHECK_SECONDS}")));
        }
        let no_folder = |path: PathBuf| {
            self.refuse(at.clone(), format!("there is no folder {} to lay over the work tree", path.display()))
        };
        let overlay = form.overlay.as_deref().map(|folder| self.beside(folder).map_err(no_folder)).transpose()?;
        Ok(Rule::CommandSucceeds { cmd, seconds, overlay })
    }

    fn ceilings(&self, form: &CheckForm, at: &Range<usize>) -> Result<Ceilings, Fault> {
        let CheckForm { iterations, attempts, tokens, cost_usd, seconds, .. } = *form;
        if [iterations, attempts, tokens, seconds].iter().all(Option::is_none) && cost_usd.is_none() {
            let why = "`at_most` needs one of `iterations`, `attempts`, `tokens`, `cost_usd`, `seconds`";
            return Err(self.refuse(at.clone(), why));
        }
        if cost_usd.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
            return Err(self.refuse(at.clone(), "`cost_usd` is no amount"));
        }
        Ok(Ceilings { iterations, attempts, tokens, cost_usd, seconds })
    }

    fn missing(&self, form: &CheckForm, at: &Range<usize>, key: &str) -> Fault {
        self.refuse(at.clone(), format!("the check `{}` needs `{key}`", form.kind))
    }

    /// A key that a check does not look at would be believed to be checked.
    fn refuse_others(&self, form: &CheckForm, rule: &Rule, at: &Range<usize>) -> Result<(), Fault> {
        let is_ceiling = matches!(rule, Rule::AtMost(_));
        let is_command = matches!(rule, Rule::CommandSucceeds { .. });
        let is_file = matches!(rule, Rule::FileExists { .. } | Rule::FileMatches { .. });
        let given = [
            ("path", form.path.is_some() && !is_file),
            ("pattern", form.pattern.is_some() && !matches!(rule, Rule::FileMatches { .. })),
            ("cmd", form.cmd.is_some() && !is_command),
            ("overlay", form.overlay.is_some() && !is_command),
            ("seconds", form.seconds.is_some() && !is_command && !is_ceiling),
            ("iterations", form.iterations.is_some() && !is_ceiling),
            ("attempts", form.attempts.is_some() && !is_ceiling),
            ("tokens", form.tokens.is_some() && !is_ceiling),
            ("cost_usd", form.cost_usd.is_some() && !is_ceiling),
        ];
        let Some((key, _)) = given.into_iter().find(|(_, is_strange)| *is_strange) else { return Ok(()) };
        let start = of_word(self.text, key, at.start);
        Err(self.refuse(start..start, format!("the check `{}` has no `{key}`", form.kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text, Path::new("c.toml")).expect_err("is refused").to_string()
    }

    const HEAD: &str = "[case]\nid = \"a\"\ngoal = \"g\"\n";

    #[test]
    fn an_unknown_key_is_told_with_its_place_and_the_one_that_was_meant() {
        let error = refused("[case]\nid = \"a\"\ngoal = \"g\"\nlimit_sec = 3\n");
        assert!(error.starts_with("c.toml:4:1: unknown field `limit_sec`"), "{error}");
        assert!(error.ends_with("did you mean `limit_secs`?"), "{error}");
        let error = refused(&format!("{HEAD}[confg]\n"));
        assert!(error.starts_with("c.toml:4:2: ") && error.ends_with("did you mean `config`?"), "{error}");
    }

    #[test]
    fn what_is_missing_or_no_toml_is_told_with_its_place() {
        assert!(refused("[case]\nid = \"a\"\n").contains("missing field `goal`"));
        assert!(refused("[case\n").starts_with("c.toml:1:6: "), "{}", refused("[case\n"));
        assert!(refused("").starts_with("c.toml:1:1: missing field `case`"));
    }

    #[test]
    fn a_check_has_the_keys_of_its_type_and_no_others() {
        let check = |body: &str| refused(&format!("{HEAD}[[checks]]\n{body}\n"));
        assert!(check("type = \"file_exist\"\npath = \"a\"").contains("did you mean `file_exists`?"));
        assert!(check("type = \"file_exists\"").contains("needs `path`"));
        assert!(check("type = \"file_exists\"\npath = \"a\"\ncmd = [\"x\"]").starts_with("c.toml:7:1: "));
        assert!(check("type = \"file_exists\"\npath = \"../a\"").contains("without `..`"));
        assert!(check("type = \"file_matches\"\npath = \"a\"\npattern = \"(\"").contains("no regular expression"));
        assert!(check("type = \"command_succeeds\"\ncmd = []").contains("names no program"));
        assert!(check("type = \"at_most\"").contains("needs one of"));
    }

    #[test]
    fn an_id_names_a_folder_and_no_link() {
        let id = |id: &str| format!("[case]\nid = \"{id}\"\ngoal = \"g\"\n");
        for bad in ["", "A", "a/b", "..", "-a", "foo_latest", "a b", &"x".repeat(65)] {
            assert!(refused(&id(bad)).starts_with("c.toml:2:6: the id"), "{bad}");
        }
        assert!(parse(&id("calculator-go_2"), Path::new("c.toml")).is_ok());
    }

    #[test]
    fn a_file_stays_inside_of_the_repository() {
        for bad in ["/etc/x", "../x", ".git/config", ".runner/GOAL.md", ".GIT/hooks/x"] {
            let error = refused(&format!("{HEAD}[files]\n\"{bad}\" = \"\"\n"));
            assert!(error.starts_with("c.toml:5:1: the path"), "{bad}: {error}");
        }
    }

    #[test]
    fn an_outcome_that_is_none_is_refused() {
        let error = refused("[case]\nid = \"a\"\ngoal = \"g\"\nexpect = \"stuk\"\n");
        assert!(error.starts_with("c.toml:4:") && error.contains("did you mean `stuck`?"), "{error}");
    }
}
