//! The comments, reviews and checks of a pull request, in the format of `gh`.

use protocol::delivery::{FeedbackItem, FeedbackKind};
use serde::Deserialize;

use crate::deliver::forge::ForgeFeedback;

/// Author associations whose comments count.
const TRUSTED_ASSOCIATIONS: [&str; 3] = ["OWNER", "MEMBER", "COLLABORATOR"];
/// Conclusions of a check that count as failure.
const FAILED_CONCLUSIONS: [&str; 6] = ["FAILURE", "ERROR", "TIMED_OUT", "STARTUP_FAILURE", "ACTION_REQUIRED", "STALE"];

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
pub(crate) fn collect_feedback(view: &PullRequestView, line_comments: &[LineComment], anyone: bool) -> ForgeFeedback {
    let mut feedback = ForgeFeedback::default();
    feedback.items.extend(view.status_check_rollup.iter().flatten().filter_map(check_item));
    let comments = view.reviews.iter().filter_map(review_item);
    let comments = comments.chain(view.comments.iter().filter(|comment| !comment.is_minimized).map(comment_item));
    for (association, item) in comments.chain(line_comments.iter().map(line_item)) {
        if anyone || TRUSTED_ASSOCIATIONS.contains(&association) {
            feedback.items.push(item);
        } else {
            feedback.skipped += 1;
        }
    }
    feedback
}

fn check_item(check: &StatusCheck) -> Option<FeedbackItem> {
    let conclusion = check.conclusion.as_deref().or(check.state.as_deref())?;
    let name = check.name.as_deref().or(check.context.as_deref())?;
    let url = check.details_url.clone().or(check.target_url.clone());
    FAILED_CONCLUSIONS.contains(&conclusion).then(|| FeedbackItem {
        kind: FeedbackKind::Check,
        id: url.clone().unwrap_or_default(),
        by: match check.workflow_name.as_deref() {
            Some(workflow) if !workflow.is_empty() => format!("{workflow} / {name}"),
            _ => name.to_owned(),
        },
        at: None,
        text: if conclusion == "FAILURE" {
            String::new()
        } else {
            format!("It ended as {}.", conclusion.to_ascii_lowercase())
        },
        url,
        log: None,
    })
}

/// Converts a review that has text or requests changes; an approval without text is not feedback.
fn review_item(review: &PullRequestReview) -> Option<(&str, FeedbackItem)> {
    let text = match (review.body.trim(), review.state.as_str()) {
        (_, "PENDING" | "DISMISSED") => return None,
        ("", "CHANGES_REQUESTED") => "Asks for changes.",
        ("", _) => return None,
        (text, _) => text,
    };
    let item = FeedbackItem {
        kind: FeedbackKind::Review,
        id: review.submitted_at.clone().unwrap_or_default(),
        by: author_name(review.author.as_ref(), &review.author_association),
        at: None,
        text: text.to_owned(),
        url: None,
        log: None,
    };
    Some((&review.author_association, item))
}

fn comment_item(comment: &IssueComment) -> (&str, FeedbackItem) {
    let item = FeedbackItem {
        kind: FeedbackKind::Comment,
        id: comment.id.clone(),
        by: author_name(comment.author.as_ref(), &comment.author_association),
        at: None,
        text: comment.body.clone(),
        url: comment.url.clone(),
        log: None,
    };
    (&comment.author_association, item)
}

fn line_item(comment: &LineComment) -> (&str, FeedbackItem) {
    let line = comment.line.or(comment.original_line).map(|line| format!(":{line}")).unwrap_or_default();
    let item = FeedbackItem {
        kind: FeedbackKind::Comment,
        id: comment.id.to_string(),
        by: author_name(comment.user.as_ref(), &comment.author_association),
        at: Some(format!("{}{line}", comment.path)),
        text: comment.body.clone(),
        url: comment.html_url.clone(),
        log: None,
    };
    (&comment.author_association, item)
}

fn author_name(user: Option<&GitHubUser>, association: &str) -> String {
    let login = user.map_or("a deleted account", |person| person.login.as_str());
    format!("{login} ({})", association.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliver::comments::{parse_json, parse_pages};

    const PR_VIEW: &str = include_str!("../../../tests/forges/gh-pr-view.json");
    const LINES: &str = include_str!("../../../tests/forges/gh-api-comments.json");

    fn collect_sample(anyone: bool) -> ForgeFeedback {
        let view = parse_json(PR_VIEW, "gh pr view").expect("a view");
        let lines = parse_pages(LINES, "gh api").expect("pages");
        collect_feedback(&view, &lines, anyone)
    }

    #[test]
    fn failed_checks_and_the_words_of_people_with_a_say_are_heard() {
        let feedback = collect_sample(false);
        let rendered: Vec<String> = feedback
            .items
            .iter()
            .map(|item| format!("{} {} {} {:?}", item.kind, item.by, item.at.as_deref().unwrap_or("-"), item.text))
            .collect();
        insta::assert_snapshot!(rendered.join("\n"), @r#"
        check CI / test (linux) - ""
        check deploy/preview - "It ended as error."
        review alice (member) - "The error is swallowed in two places."
        comment bob (owner) - "Please keep the flag `--old` working."
        comment alice (member) src/lib.rs:42 "This loses the last line."
        comment a deleted account (collaborator) src/main.rs:7 "Outdated?"
        "#);
        assert_eq!(feedback.skipped, 2);
    }

    #[test]
    fn where_anyone_is_heard_nobody_is_left_out_but_what_was_hidden() {
        let feedback = collect_sample(true);
        assert_eq!((feedback.skipped, feedback.items.len()), (0, 8));
        assert!(!feedback.items.iter().any(|item| item.text.contains("spam")));
    }
}
