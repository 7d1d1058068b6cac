//! Parses the text of a case file into a [`Case`]: strictly, and every error gives file, line, column and a suggestion.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::file::{CaseFile, CheckForm};
use super::position::{find_nearest, word_offset};
use super::source::SourceText;
use super::{Case, CaseCheck, CheckRule, RunLimits};
use crate::error::EvalError;

/// Default time limit of a command check, in seconds.
const CHECK_SECONDS: u64 = 60;
const MAX_CHECK_SECONDS: u64 = 3600;
const MAX_LIMIT_SECONDS: u64 = 7 * 24 * 3600;
const MAX_GOAL_BYTES: usize = 64 * 1024;
const CHECK_KINDS: [&str; 6] =
    ["file_exists", "file_matches", "command_succeeds", "runner_completed", "branch_verifies", "at_most"];

/// Parses a case; the caller fills in the digest, because it knows the files next to the case.
pub(crate) fn parse(text: &str, file: &Path) -> Result<Case, EvalError> {
    let source = SourceText { text, file };
    let form: CaseFile = toml::from_str(text).map_err(|error| source.toml_error(&error))?;
    let id = form.case.id;
    if !is_id(id.get_ref()) {
        let why = format!(
            "the id `{}` is not one: 1 to 64 lower-case letters, digits, `-` and `_`, a letter or digit first, no \
             `_latest` at the end",
            id.get_ref()
        );
        return Err(source.error_at(id.span(), why));
    }
    let goal = form.case.goal;
    if goal.get_ref().trim().is_empty() || goal.get_ref().len() > MAX_GOAL_BYTES {
        return Err(source.error_at(goal.span(), "the goal is empty or longer than 64 KiB"));
    }
    let limit = form.case.limit_secs;
    if !(1..=MAX_LIMIT_SECONDS).contains(limit.get_ref()) {
        return Err(source.error_at(limit.span(), format!("`limit_secs` is from 1 to {MAX_LIMIT_SECONDS}")));
    }
    for path in form.files.keys() {
        source.check_path(path.get_ref(), path.span())?;
    }
    for (name, value) in &form.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.get_ref().contains('\0') {
            return Err(source.error_at(value.span(), format!("`{name}` is no variable")));
        }
    }
    let template = form.case.template.map(|folder| source.resolve_template(&folder)).transpose()?;
    let checks =
        form.checks.iter().map(|check| source.parse_check(check.get_ref(), &check.span())).collect::<Result<_, _>>()?;
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

/// Returns whether a word can name a case, and therefore a folder and a link.
pub(crate) fn is_id(word: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=64).contains(&word.len())
        && is_letter(word.as_bytes()[0])
        && word.bytes().all(|byte| is_letter(byte) || matches!(byte, b'-' | b'_'))
        && !word.ends_with("_latest")
}

impl SourceText<'_> {
    fn resolve_template(&self, folder: &toml::Spanned<String>) -> Result<PathBuf, EvalError> {
        self.sibling_folder(folder.get_ref())
            .map_err(|path| self.error_at(folder.span(), format!("there is no template directory {}", path.display())))
    }

    /// Returns a folder next to the case file, or the path as the error if it does not exist.
    fn sibling_folder(&self, folder: &str) -> Result<PathBuf, PathBuf> {
        let path = self.file.parent().unwrap_or(Path::new(".")).join(folder);
        if path.is_dir() { Ok(path) } else { Err(path) }
    }

    fn parse_check(&self, form: &CheckForm, span: &Range<usize>) -> Result<CaseCheck, EvalError> {
        let rule = self.parse_rule(form, span)?;
        self.refuse_foreign_keys(form, &rule, span)?;
        Ok(CaseCheck { name: form.name.clone().unwrap_or_else(|| rule.describe()), rule })
    }

    fn parse_rule(&self, form: &CheckForm, span: &Range<usize>) -> Result<CheckRule, EvalError> {
        Ok(match form.kind.as_str() {
            "file_exists" => CheckRule::FileExists { path: self.parse_path(form, span)? },
            "file_matches" => {
                CheckRule::FileMatches { path: self.parse_path(form, span)?, pattern: self.parse_pattern(form, span)? }
            }
            "command_succeeds" => self.parse_command(form, span)?,
            "runner_completed" => CheckRule::RunnerCompleted,
            "branch_verifies" => CheckRule::BranchVerifies,
            "at_most" => CheckRule::AtMost(self.parse_limits(form, span)?),
            other => {
                let suggestion = find_nearest(other, CHECK_KINDS)
                    .map(|word| format!("; did you mean `{word}`?"))
                    .unwrap_or_default();
                let start = word_offset(self.text, other, span.start);
                let known = CHECK_KINDS.join("`, `");
                return Err(
                    self.error_at(start..start, format!("unknown check `{other}`, known are `{known}`{suggestion}"))
                );
            }
        })
    }

    fn parse_path(&self, form: &CheckForm, span: &Range<usize>) -> Result<String, EvalError> {
        let path = form.path.clone().ok_or_else(|| self.missing_key(form, span, "path"))?;
        let is_inside = Path::new(&path).components().all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || !is_inside {
            return Err(self.error_at(span.clone(), format!("the path `{path}` is to be relative and without `..`")));
        }
        Ok(path)
    }

    fn parse_pattern(&self, form: &CheckForm, span: &Range<usize>) -> Result<String, EvalError> {
        let pattern = form.pattern.clone().ok_or_else(|| self.missing_key(form, span, "pattern"))?;
        match regex::Regex::new(&pattern) {
            Ok(_) => Ok(pattern),
            Err(error) => Err(self.error_at(span.clone(), format!("the pattern is no regular expression: {error}"))),
        }
    }

    fn parse_command(&self, form: &CheckForm, span: &Range<usize>) -> Result<CheckRule, EvalError> {
        let cmd = form.cmd.clone().ok_or_else(|| self.missing_key(form, span, "cmd"))?;
        if cmd.first().is_none_or(String::is_empty) || cmd.iter().any(|word| word.contains('\0')) {
            return Err(self.error_at(span.clone(), "`cmd` names no program"));
        }
        let seconds = form.seconds.unwrap_or(CHECK_SECONDS);
        if !(1..=MAX_CHECK_SECONDS).contains(&seconds) {
            return Err(self.error_at(span.clone(), format!("`seconds` is from 1 to {MAX_CHECK_SECONDS}")));
        }
        let no_folder = |path: PathBuf| {
            self.error_at(
                span.clone(),
                format!("there is no directory {} to lay over the working tree", path.display()),
            )
        };
        let overlay =
            form.overlay.as_deref().map(|folder| self.sibling_folder(folder).map_err(no_folder)).transpose()?;
        Ok(CheckRule::CommandSucceeds { cmd, seconds, overlay })
    }

    fn parse_limits(&self, form: &CheckForm, span: &Range<usize>) -> Result<RunLimits, EvalError> {
        let CheckForm { iterations, attempts, tokens, cost_usd, seconds, .. } = *form;
        if [iterations, attempts, tokens, seconds].iter().all(Option::is_none) && cost_usd.is_none() {
            let why = "`at_most` needs one of `iterations`, `attempts`, `tokens`, `cost_usd`, `seconds`";
            return Err(self.error_at(span.clone(), why));
        }
        if cost_usd.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
            return Err(self.error_at(span.clone(), "`cost_usd` is no amount"));
        }
        Ok(RunLimits { iterations, attempts, tokens, cost_usd, seconds })
    }

    fn missing_key(&self, form: &CheckForm, span: &Range<usize>, key: &str) -> EvalError {
        self.error_at(span.clone(), format!("the check `{}` needs `{key}`", form.kind))
    }

    /// Refuses keys that this kind of check ignores: the author would believe them to be checked.
    fn refuse_foreign_keys(&self, form: &CheckForm, rule: &CheckRule, span: &Range<usize>) -> Result<(), EvalError> {
        let is_ceiling = matches!(rule, CheckRule::AtMost(_));
        let is_command = matches!(rule, CheckRule::CommandSucceeds { .. });
        let is_file = matches!(rule, CheckRule::FileExists { .. } | CheckRule::FileMatches { .. });
        let foreign = [
            ("path", form.path.is_some() && !is_file),
            ("pattern", form.pattern.is_some() && !matches!(rule, CheckRule::FileMatches { .. })),
            ("cmd", form.cmd.is_some() && !is_command),
            ("overlay", form.overlay.is_some() && !is_command),
            ("seconds", form.seconds.is_some() && !is_command && !is_ceiling),
            ("iterations", form.iterations.is_some() && !is_ceiling),
            ("attempts", form.attempts.is_some() && !is_ceiling),
            ("tokens", form.tokens.is_some() && !is_ceiling),
            ("cost_usd", form.cost_usd.is_some() && !is_ceiling),
        ];
        let Some((key, _)) = foreign.into_iter().find(|(_, is_foreign)| *is_foreign) else { return Ok(()) };
        let start = word_offset(self.text, key, span.start);
        Err(self.error_at(start..start, format!("the check `{}` has no `{key}`", form.kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_error(text: &str) -> String {
        parse(text, Path::new("c.toml")).expect_err("is refused").to_string()
    }

    const HEAD: &str = "[case]\nid = \"a\"\ngoal = \"g\"\n";

    #[test]
    fn an_unknown_key_is_told_with_its_place_and_the_one_that_was_meant() {
        let error = parse_error("[case]\nid = \"a\"\ngoal = \"g\"\nlimit_sec = 3\n");
        assert!(error.starts_with("c.toml:4:1: unknown field `limit_sec`"), "{error}");
        assert!(error.ends_with("did you mean `limit_secs`?"), "{error}");
        let error = parse_error(&format!("{HEAD}[confg]\n"));
        assert!(error.starts_with("c.toml:4:2: ") && error.ends_with("did you mean `config`?"), "{error}");
    }

    #[test]
    fn what_is_missing_or_no_toml_is_told_with_its_place() {
        assert!(parse_error("[case]\nid = \"a\"\n").contains("missing field `goal`"));
        assert!(parse_error("[case\n").starts_with("c.toml:1:6: "), "{}", parse_error("[case\n"));
        assert!(parse_error("").starts_with("c.toml:1:1: missing field `case`"));
    }

    #[test]
    fn a_check_has_the_keys_of_its_type_and_no_others() {
        let check = |body: &str| parse_error(&format!("{HEAD}[[checks]]\n{body}\n"));
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
            assert!(parse_error(&id(bad)).starts_with("c.toml:2:6: the id"), "{bad}");
        }
        assert!(parse(&id("calculator-go_2"), Path::new("c.toml")).is_ok());
    }

    #[test]
    fn a_file_stays_inside_of_the_repository() {
        for bad in ["/etc/x", "../x", ".git/config", ".runner/GOAL.md", ".GIT/hooks/x"] {
            let error = parse_error(&format!("{HEAD}[files]\n\"{bad}\" = \"\"\n"));
            assert!(error.starts_with("c.toml:5:1: the path"), "{bad}: {error}");
        }
    }

    #[test]
    fn an_outcome_that_is_none_is_refused() {
        let error = parse_error("[case]\nid = \"a\"\ngoal = \"g\"\nexpect = \"stuk\"\n");
        assert!(error.starts_with("c.toml:4:") && error.contains("did you mean `stuck`?"), "{error}");
    }
}
