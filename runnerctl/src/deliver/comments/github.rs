//! The comments, reviews and checks of a pull request, in the format of `gh`.

use protocol::delivery::{FeedbackItem, FeedbackKind};
use serde::Deserialize;

use crate::deliver::forge::ForgeFeedback;

/// Author associations that are heard.
const WITH_A_SAY: [&str; 3] = ["OWNER", "MEMBER", "COLLABORATOR"];
/// Conclusions of a check that count as failure.
const FAILED: [&str; 6] = ["FAILURE", "ERROR", "TIMED_OUT", "STARTUP_FAILURE", "ACTION_REQUIRED", "STALE"];

/// Output of `gh pr view --json comments,reviews,statusCheckRollup`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PullRequestView {
    #[serde(default)]
    comments: Vec<IssueComment>,
    #[serde(default)]
    reviews: Vec<PullRequestReview>,
    status_check_rollup: Option<Vec<StatusCheck>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GitHubUser {
    login: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct IssueComment {
    id: String,
    author: Option<GitHubUser>,
    author_association: String,
    body: String,
    #[serde(default)]
    is_minimized: bool,
    url: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PullRequestReview {
    author: Option<GitHubUser>,
    author_association: String,
    body: String,
    submitted_at: Option<String>,
    state: String,
}

/// A check run has a name and a conclusion, a status a context and a state.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusCheck {
    name: Option<String>,
    context: Option<String>,
    workflow_name: Option<String>,
    conclusion: Option<String>,
    state: Option<String>,
    details_url: Option<String>,
    target_url: Option<String>,
}

/// A comment on a line, in the format of the REST API.
#[derive(Debug, Deserialize)]
pub(crate) struct LineComment {
    id: u64,
    user: Option<GitHubUser>,
    author_association: String,
    body: String,
    path: String,
    line: Option<u64>,
    original_line: Option<u64>,
    html_url: Option<String>,
}

/// Returns the feedback in it.
pub(crate) fn heard(told: &PullRequestView, lines: &[LineComment], anyone: bool) -> ForgeFeedback {
    let mut heard = ForgeFeedback::default();
    heard.items.extend(told.status_check_rollup.iter().flatten().filter_map(check));
    let spoken = told.reviews.iter().filter_map(review);
    let spoken = spoken.chain(told.comments.iter().filter(|comment| !comment.is_minimized).map(comment));
    for (association, item) in spoken.chain(lines.iter().map(line)) {
        if anyone || WITH_A_SAY.contains(&association) { heard.items.push(item) } else { heard.left_out += 1 }
    }
    heard
}

fn check(check: &StatusCheck) -> Option<FeedbackItem> {
    let end = check.conclusion.as_deref().or(check.state.as_deref())?;
    let name = check.name.as_deref().or(check.context.as_deref())?;
    let url = check.details_url.clone().or(check.target_url.clone());
    FAILED.contains(&end).then(|| FeedbackItem {
        kind: FeedbackKind::Check,
        id: url.clone().unwrap_or_default(),
        by: match check.workflow_name.as_deref() {
            Some(workflow) if !workflow.is_empty() => format!("{workflow} / {name}"),
            _ => name.to_owned(),
        },
        at: None,
        text: if end == "FAILURE" { String::new() } else { format!("It ended as {}.", end.to_ascii_lowercase()) },
        url,
        log: None,
    })
}

/// Converts a review that has text or requests changes; an approval without text is not feedback.
fn review(review: &PullRequestReview) -> Option<(&str, FeedbackItem)> {
    let text = match (review.body.trim(), review.state.as_str()) {
        (_, "PENDING" | "DISMISSED") => return None,
        ("", "CHANGES_REQUESTED") => "Asks for changes.",
        ("", _) => return None,
        (text, _) => text,
    };
    let item = FeedbackItem {
        kind: FeedbackKind::Review,
        id: review.submitted_at.clone().unwrap_or_default(),
        by: named(review.author.as_ref(), &review.author_association),
        at: None,
        text: text.to_owned(),
        url: None,
        log: None,
    };
    Some((&review.author_association, item))
}

fn comment(comment: &IssueComment) -> (&str, FeedbackItem) {
    let item = FeedbackItem {
        kind: FeedbackKind::Comment,
        id: comment.id.clone(),
        by: named(comment.author.as_ref(), &comment.author_association),
        at: None,
        text: comment.body.clone(),
        url: comment.url.clone(),
        log: None,
    };
    (&comment.author_association, item)
}

fn line(comment: &LineComment) -> (&str, FeedbackItem) {
    let line = comment.line.or(comment.original_line).map(|line| format!(":{line}")).unwrap_or_default();
    let item = FeedbackItem {
        kind: FeedbackKind::Comment,
        id: comment.id.to_string(),
        by: named(comment.user.as_ref(), &comment.author_association),
        at: Some(format!("{}{line}", comment.path)),
        text: comment.body.clone(),
        url: comment.html_url.clone(),
        log: None,
    };
    (&comment.author_association, item)
}

fn named(person: Option<&GitHubUser>, association: &str) -> String {
    let login = person.map_or("somebody who is gone", |person| person.login.as_str());
    format!("{login} ({})", association.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliver::comments::{json, pages};

    const VIEW: &str = include_str!("../../../tests/forges/gh-pr-view.json");
    const LINES: &str = include_str!("../../../tests/forges/gh-api-comments.json");

    fn read(anyone: bool) -> ForgeFeedback {
        let (told, lines) = (json(VIEW, "gh pr view").expect("a view"), pages(LINES, "gh api").expect("pages"));
        heard(&told, &lines, anyone)
    }

    #[test]
    fn failed_checks_and_the_words_of_people_with_a_say_are_heard() {
        let heard = read(false);
        let told: Vec<String> = heard
            .items
            .iter()
            .map(|item| format!("{} {} {} {:?}", item.kind, item.by, item.at.as_deref().unwrap_or("-"), item.text))
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        check CI / test (linux) - ""
        check deploy/preview - "It ended as error."
        review alice (member) - "The error is swallowed in two places."
        comment bob (owner) - "Please keep the flag `--old` working."
        comment alice (member) src/lib.rs:42 "This loses the last line."
        comment somebody who is gone (collaborator) src/main.rs:7 "Outdated?"
        "#);
        assert_eq!(heard.left_out, 2);
    }

    #[test]
    fn where_anyone_is_heard_nobody_is_left_out_but_what_was_hidden() {
        let heard = read(true);
        assert_eq!((heard.left_out, heard.items.len()), (0, 8));
        assert!(!heard.items.iter().any(|item| item.text.contains("spam")));
    }
}
