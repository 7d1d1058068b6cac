//! Reports of programs that only run others: just and make. They name the step that failed, but not the reason.

use super::{LineContinuation, ReportLevel, ReportLine, ReportParser};

/// just.
pub(super) const JUST: ReportParser = ReportParser {
    level: ReportLevel::Wrapper,
    continuation: |_| LineContinuation::Over,
    ..ReportParser::diagnostics("just", read_just)
};

/// make.
pub(super) const MAKE: ReportParser = ReportParser {
    level: ReportLevel::Wrapper,
    continuation: |_| LineContinuation::Over,
    ..ReportParser::diagnostics("make", read_make)
};

fn read_just(line: &str) -> Option<ReportLine<'_>> {
    let rest = line.strip_prefix("error: ")?;
    let is_recipe = (rest.starts_with("recipe `") || rest.starts_with("Recipe `")) && rest.contains("` failed");
    is_recipe.then_some(ReportLine::FailureStart(line))
}

fn read_make(line: &str) -> Option<ReportLine<'_>> {
    let rest = line.strip_prefix("make").or_else(|| line.strip_prefix("gmake"))?;
    let (level, message) = rest.split_once(": *** ")?;
    let is_level = level.is_empty() || (level.starts_with('[') && level.ends_with(']'));
    (is_level && message.contains("Error ")).then_some(ReportLine::FailureStart(line))
}
