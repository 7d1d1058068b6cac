//! Reports of what only runs others: just and make. They name the step that failed, and not why.

use super::{Level, Next, Runner, Sign};

/// just.
pub(super) const JUST: Runner =
    Runner { level: Level::Wrapper, next: |_| Next::Over, ..Runner::diagnostics("just", read_just) };

/// make.
pub(super) const MAKE: Runner =
    Runner { level: Level::Wrapper, next: |_| Next::Over, ..Runner::diagnostics("make", read_make) };

fn read_just(line: &str) -> Option<Sign<'_>> {
    let rest = line.strip_prefix("error: ")?;
    let is_recipe = (rest.starts_with("recipe `") || rest.starts_with("Recipe `")) && rest.contains("` failed");
    is_recipe.then_some(Sign::Begins(line))
}

fn read_make(line: &str) -> Option<Sign<'_>> {
    let rest = line.strip_prefix("make").or_else(|| line.strip_prefix("gmake"))?;
    let (level, said) = rest.split_once(": *** ")?;
    let is_level = level.is_empty() || (level.starts_with('[') && level.ends_with(']'));
    (is_level && said.contains("Error ")).then_some(Sign::Begins(line))
}
