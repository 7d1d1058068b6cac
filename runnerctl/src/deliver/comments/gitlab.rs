//! The discussions and failed jobs of a merge request, in the format of GitLab's API.

use protocol::delivery::{FeedbackItem, FeedbackKind};
use serde::Deserialize;

use crate::deliver::forge::ForgeFeedback;

/// Lowest access level whose comments count: developer.
const DEVELOPER: u64 = 30;

/// The API's answers about a merge request.
#[derive(Debug)]
pub(crate) struct MergeRequestActivity {
    /// The discussions.
    pub(crate) discussions: Vec<Discussion>,
    /// The members of the project and their access levels.
    pub(crate) members: Vec<ProjectMember>,
    /// The failed jobs of the newest pipeline.
    pub(crate) jobs: Vec<PipelineJob>,
}

/// A discussion: a sequence of notes.
#[derive(Debug, Deserialize)]
pub(crate) struct Discussion {
    notes: Vec<DiscussionNote>,
}

#[derive(Debug, Deserialize)]
struct DiscussionNote {
    id: u64,
    body: String,
    author: GitLabUser,
    /// Whether GitLab itself wrote it.
    #[serde(default)]
    system: bool,
    #[serde(default)]
    resolved: bool,
    position: Option<NotePosition>,
}

#[derive(Debug, Deserialize)]
struct GitLabUser {
    id: u64,
    username: String,
}

#[derive(Debug, Deserialize)]
struct NotePosition {
    new_path: Option<String>,
    new_line: Option<u64>,
    old_path: Option<String>,
    old_line: Option<u64>,
}

/// A person with access to the project.
#[derive(Debug, Deserialize)]
pub(crate) struct ProjectMember {
    id: u64,
    access_level: u64,
}

/// A failed job.
#[derive(Debug, Deserialize)]
pub(crate) struct PipelineJob {
    id: u64,
    name: String,
    stage: Option<String>,
    web_url: Option<String>,
    failure_reason: Option<String>,
    #[serde(default)]
    allow_failure: bool,
}

/// Returns the feedback in it, without resolved discussions.
pub(crate) fn collect_feedback(activity: &MergeRequestActivity, page: &str, anyone: bool) -> ForgeFeedback {
    let mut feedback = ForgeFeedback::default();
    feedback.items.extend(activity.jobs.iter().filter(|job| !job.allow_failure).map(job_item));
    let notes = activity.discussions.iter().flat_map(|discussion| &discussion.notes);
    for note in notes.filter(|note| !note.system && !note.resolved) {
        let is_trusted =
            activity.members.iter().any(|member| member.id == note.author.id && member.access_level >= DEVELOPER);
        if anyone || is_trusted { feedback.items.push(note_item(note, page)) } else { feedback.skipped += 1 }
    }
    feedback
}

fn job_item(job: &PipelineJob) -> FeedbackItem {
    FeedbackItem {
        kind: FeedbackKind::Check,
        id: job.id.to_string(),
        by: job.stage.as_ref().map_or_else(|| job.name.clone(), |stage| format!("{stage} / {}", job.name)),
        at: None,
        text: job.failure_reason.as_ref().map(|reason| format!("It ended with: {reason}.")).unwrap_or_default(),
        url: job.web_url.clone(),
        log: None,
    }
}

fn note_item(note: &DiscussionNote, page: &str) -> FeedbackItem {
    FeedbackItem {
        kind: FeedbackKind::Comment,
        id: note.id.to_string(),
        by: note.author.username.clone(),
        at: note.position.as_ref().and_then(note_location),
        text: note.body.clone(),
        url: Some(format!("{page}#note_{}", note.id)),
        log: None,
    }
}

/// Returns the position of a note; on a removed line, its old position.
fn note_location(position: &NotePosition) -> Option<String> {
    let (path, line) = match position.new_line {
        Some(line) => (&position.new_path, Some(line)),
        None => (if position.old_line.is_some() { &position.old_path } else { &position.new_path }, position.old_line),
    };
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    path.as_ref().map(|path| format!("{path}{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliver::comments::parse_pages;

    fn sample_activity() -> MergeRequestActivity {
        MergeRequestActivity {
            discussions: parse_pages(include_str!("../../../tests/forges/glab-discussions.json"), "glab api")
                .expect("pages"),
            members: parse_pages(include_str!("../../../tests/forges/glab-members.json"), "glab api").expect("pages"),
            jobs: parse_pages(include_str!("../../../tests/forges/glab-jobs.json"), "glab api").expect("pages"),
        }
    }

    #[test]
    fn failed_jobs_and_open_notes_of_developers_are_heard() {
        let feedback = collect_feedback(&sample_activity(), "https://gitlab.com/o/r/-/merge_requests/3", false);
        let rendered: Vec<String> = feedback
            .items
            .iter()
            .map(|item| format!("{} {} {} {:?}", item.kind, item.by, item.at.as_deref().unwrap_or("-"), item.text))
            .collect();
        insta::assert_snapshot!(rendered.join("\n"), @r#"
        check test / rspec - "It ended with: script_failure."
        comment carol - "Name the limit."
        comment carol src/a.rb:12 "Off by one."
        "#);
        assert_eq!(feedback.skipped, 1);
    }
}
