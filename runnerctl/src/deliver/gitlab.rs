//! Merge requests on GitLab, through `glab api`: the service's own API, whose format is documented and stable.

use serde::Deserialize;

use super::address::{ForgeRepo, percent_encode};
use super::comments::{self, gitlab as read};
use super::forge::{ForgeFeedback, NewPr, OpenPr, PrState, PrUpdate};
use super::forge_cli::ForgeCli;
use super::logs;
use crate::failure::Failure;

/// Title prefix of a draft.
const DRAFT_PREFIX: &str = "Draft: ";

/// A project on GitLab.
#[derive(Debug)]
pub(crate) struct GitLab {
    address: ForgeRepo,
    /// Path of the project in the API.
    project: String,
}

#[derive(Debug, Deserialize)]
struct ListedMergeRequest {
    iid: u64,
    web_url: String,
    state: String,
    #[serde(default)]
    draft: bool,
    title: String,
    description: Option<String>,
    source_project_id: Option<u64>,
    target_project_id: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct PipelineId {
    id: u64,
}

impl GitLab {
    /// Creates it from a parsed URL.
    pub(super) fn new(address: ForgeRepo) -> Self {
        let project = format!("projects/{}", percent_encode(&address.path, ""));
        Self { address, project }
    }

    async fn call_api(&self, cli: &ForgeCli, args: &[&str], doing: &str) -> Result<String, Failure> {
        let host = format!("--hostname={}", self.address.host);
        let command = ["glab", "api", &host].into_iter().chain(args.iter().copied());
        cli.run(command).await?.require_success("forge", doing)
    }

    /// Finds the newest merge request of a branch of this project.
    pub(super) async fn find_pr(&self, cli: &ForgeCli, head: &str) -> Result<PrState, Failure> {
        let query = format!("source_branch={}&state=all&per_page=50", percent_encode(head, ""));
        let path = format!("{}/merge_requests?{query}", self.project);
        let text = self.call_api(cli, &[&path], &format!("looking for a merge request of {head}")).await?;
        Ok(newest_merge_request(comments::parse_json(&text, "glab api")?))
    }

    /// Explains how to reopen a closed merge request.
    pub(super) fn reopen_command(&self, number: u64) -> String {
        format!("glab mr reopen {number} --repo https://{}/{}", self.address.host, self.address.path)
    }

    /// Opens a merge request and returns its page.
    pub(super) async fn open_pr(&self, cli: &ForgeCli, new_pr: NewPr<'_>) -> Result<String, Failure> {
        let file = cli.write_description(new_pr.body)?;
        let path = format!("{}/merge_requests", self.project);
        let [source, target, title, body] = [
            format!("--raw-field=source_branch={}", new_pr.head),
            format!("--raw-field=target_branch={}", new_pr.base),
            format!("--raw-field=title={}", draft_title(new_pr.title, !new_pr.ready)),
            format!("--field=description=@{}", file.display()),
        ];
        let args = ["--method=POST", &path, &source, &target, &title, &body];
        let text = self.call_api(cli, &args, "opening a merge request, after the branch was pushed").await?;
        Ok(comments::parse_json::<ListedMergeRequest>(&text, "glab api")?.web_url)
    }

    /// Updates an open merge request; the title stays as people have set it, except for the draft prefix.
    pub(super) async fn update_pr(&self, cli: &ForgeCli, pr: &OpenPr, update: PrUpdate<'_>) -> Result<(), Failure> {
        let file = cli.write_description(update.body)?;
        let path = format!("{}/merge_requests/{}", self.project, pr.number);
        let body = format!("--field=description=@{}", file.display());
        let target = update.base.map(|base| format!("--raw-field=target_branch={base}"));
        let title = (update.ready && pr.draft).then(|| format!("--raw-field=title={}", pr.title));
        let mut args = vec!["--method=PUT", &path, &body];
        args.extend(target.as_deref().into_iter().chain(title.as_deref()));
        self.call_api(cli, &args, &format!("updating merge request {}, after the branch was pushed", pr.number))
            .await?;
        Ok(())
    }

    /// Reads the feedback on a merge request.
    pub(super) async fn read_feedback(
        &self,
        cli: &ForgeCli,
        pr: &OpenPr,
        anyone: bool,
    ) -> Result<ForgeFeedback, Failure> {
        let request = format!("{}/merge_requests/{}", self.project, pr.number);
        let doing = format!("reading the feedback on merge request {}", pr.number);
        let [discussions, members, pipelines] = [
            format!("{request}/discussions?per_page=100"),
            format!("{}/members/all?per_page=100", self.project),
            format!("{request}/pipelines?per_page=1"),
        ];
        let discussions = self.call_api(cli, &["--paginate", &discussions], &doing).await?;
        let members =
            if anyone { "[]".to_owned() } else { self.call_api(cli, &["--paginate", &members], &doing).await? };
        let pipelines: Vec<PipelineId> =
            comments::parse_json(&self.call_api(cli, &[&pipelines], &doing).await?, "glab api")?;
        let jobs = match pipelines.first() {
            None => "[]".to_owned(),
            Some(PipelineId { id }) => {
                let path = format!("{}/pipelines/{id}/jobs?scope[]=failed&per_page=100", self.project);
                self.call_api(cli, &["--paginate", &path], &doing).await?
            }
        };
        let activity = read::MergeRequestActivity {
            discussions: comments::parse_pages(&discussions, "glab api")?,
            members: comments::parse_pages(&members, "glab api")?,
            jobs: comments::parse_pages(&jobs, "glab api")?,
        };
        let mut feedback = read::collect_feedback(&activity, &pr.url, anyone);
        for (item, job) in logs::failed_jobs(&mut feedback.items, |item| Some(item.id.clone())) {
            let host = format!("--hostname={}", self.address.host);
            let path = format!("{}/jobs/{job}/trace", self.project);
            // A log that is gone or not written yet does not prevent reporting the failure.
            let log = cli.read_log(["glab", "api", &host, &path], logs::LOG_TAIL).await;
            item.log = log.as_deref().and_then(logs::job_lines);
        }
        Ok(feedback)
    }
}

fn draft_title(title: &str, draft: bool) -> String {
    if draft { format!("{DRAFT_PREFIX}{title}") } else { title.to_owned() }
}

/// Prefers an open merge request of a branch, else the newest; those of other projects are ignored.
fn newest_merge_request(mut merge_requests: Vec<ListedMergeRequest>) -> PrState {
    merge_requests.retain(|request| request.source_project_id == request.target_project_id);
    merge_requests.sort_by_key(|request| (request.state == "opened", request.iid));
    match merge_requests.pop() {
        None => PrState::None,
        Some(ListedMergeRequest { iid: number, web_url: url, draft, title, description, state, .. }) => {
            match state.as_str() {
                "opened" | "locked" => {
                    let title = title.strip_prefix(DRAFT_PREFIX).unwrap_or(&title).to_owned();
                    PrState::Open(OpenPr { number, url, draft, title, body: description.unwrap_or_default() })
                }
                "merged" => PrState::Merged { url },
                _ => PrState::Closed { number, url },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed_request(iid: u64, state: &str, from: u64) -> ListedMergeRequest {
        ListedMergeRequest {
            iid,
            web_url: format!("https://gitlab.com/o/r/-/merge_requests/{iid}"),
            state: state.into(),
            draft: true,
            title: "Draft: A".into(),
            description: None,
            source_project_id: Some(from),
            target_project_id: Some(1),
        }
    }

    #[test]
    fn an_open_request_of_this_project_counts_before_newer_ones() {
        let state = newest_merge_request(vec![
            listed_request(3, "opened", 1),
            listed_request(5, "closed", 1),
            listed_request(7, "opened", 2),
        ]);
        assert!(matches!(state, PrState::Open(open) if open.number == 3 && open.title == "A"));
        assert!(matches!(
            newest_merge_request(vec![listed_request(5, "closed", 1)]),
            PrState::Closed { number: 5, .. }
        ));
        assert_eq!(newest_merge_request(vec![listed_request(7, "opened", 2)]), PrState::None);
    }
}
