//! Pull requests on GitHub, through `gh`.
//!
//! Only long-established options are used, supported at least since version 2.23. A description is passed as a file.

use protocol::error::ExitStatus;
use serde::Deserialize;

use super::address::{ForgeRepo, percent_encode};
use super::comments::{self, github as read};
use super::forge::{ForgeFeedback, NewPr, OpenPr, PrState, PrUpdate};
use super::forge_cli::ForgeCli;
use super::logs;
use crate::failure::Failure;

/// Fields requested when looking up a pull request.
const LIST_FIELDS: &str = "number,url,state,isDraft,title,body,isCrossRepository";

/// A repository on GitHub.
#[derive(Debug)]
pub(crate) struct GitHub {
    address: ForgeRepo,
    /// `HOST/OWNER/NAME`.
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedPr {
    number: u64,
    url: String,
    state: String,
    is_draft: bool,
    title: String,
    body: String,
    is_cross_repository: bool,
}

impl GitHub {
    /// Creates it from a parsed URL.
    pub(super) fn new(address: ForgeRepo) -> Self {
        let name = format!("{}/{}", address.host, address.path);
        Self { address, name }
    }

    /// Finds the newest pull request of a branch of this repository: a fork may have a branch of the same name.
    pub(super) async fn find_pr(&self, cli: &ForgeCli, head: &str) -> Result<PrState, Failure> {
        let [repo, head_option] = [format!("--repo={}", self.name), format!("--head={head}")];
        let fields = format!("--json={LIST_FIELDS}");
        let output = cli.run(["gh", "pr", "list", &repo, &head_option, "--state=all", "--limit=50", &fields]).await?;
        let text = output.require_success("forge", &format!("looking for a pull request of {head}"))?;
        let prs: Vec<ListedPr> = comments::parse_json(&text, "gh pr list")?;
        Ok(newest_pr(prs))
    }

    /// Explains how to reopen a closed pull request.
    pub(super) fn reopen_command(&self, number: u64) -> String {
        format!("gh pr reopen {number} --repo {}", self.name)
    }

    /// Opens a pull request and returns its page.
    pub(super) async fn open_pr(&self, cli: &ForgeCli, new_pr: NewPr<'_>) -> Result<String, Failure> {
        let file = cli.write_description(new_pr.body)?;
        let options = [
            format!("--repo={}", self.name),
            format!("--head={}", new_pr.head),
            format!("--base={}", new_pr.base),
            format!("--title={}", new_pr.title),
            format!("--body-file={}", file.display()),
        ];
        let draft = (!new_pr.ready).then_some("--draft");
        let argv = ["gh", "pr", "create"].into_iter().chain(options.iter().map(String::as_str)).chain(draft);
        let output = cli.run(argv).await?;
        if !output.status.success() {
            let failure = output.to_failure("forge", "opening a pull request, after the branch was pushed");
            let is_about_drafts = !new_pr.ready && output.stderr.to_ascii_lowercase().contains("draft");
            let ready = if is_about_drafts { " --ready" } else { "" };
            return Err(failure.hint(format!("runnerctl deliver {}{ready}", run_of_branch(new_pr.head))));
        }
        let page = output.stdout.lines().rev().map(str::trim).find(|line| line.starts_with("http")).map(str::to_owned);
        page.ok_or_else(|| {
            Failure::new(ExitStatus::Error, "forge", "gh has opened a pull request, and did not say where")
        })
    }

    /// Updates an open pull request; the title stays as people have set it.
    ///
    /// Through the API rather than `gh pr edit`, which in many versions fails because of projects that are not
    /// involved.
    pub(super) async fn update_pr(&self, cli: &ForgeCli, pr: &OpenPr, update: PrUpdate<'_>) -> Result<(), Failure> {
        let file = cli.write_description(update.body)?;
        let path = format!("repos/{}/pulls/{}", self.api_path(), pr.number);
        let [host, body] = [format!("--hostname={}", self.address.host), format!("--field=body=@{}", file.display())];
        let base = update.base.map(|base| format!("--raw-field=base={base}"));
        let argv = ["gh", "api", &host, "--method=PATCH", &path, &body].into_iter().chain(base.as_deref());
        let output = cli.run(argv).await?;
        output
            .require_success("forge", &format!("updating pull request {}, after the branch was pushed", pr.number))?;
        if update.ready && pr.draft {
            let number = pr.number.to_string();
            let repo = format!("--repo={}", self.name);
            let output = cli.run(["gh", "pr", "ready", &number, &repo]).await?;
            output.require_success("forge", &format!("marking pull request {number} as ready"))?;
        }
        Ok(())
    }

    /// Reads the feedback on a pull request.
    pub(super) async fn read_feedback(
        &self,
        cli: &ForgeCli,
        pr: &OpenPr,
        anyone: bool,
    ) -> Result<ForgeFeedback, Failure> {
        let number = pr.number.to_string();
        let repo = format!("--repo={}", self.name);
        let doing = format!("reading the feedback on pull request {number}");
        let fields = "--json=comments,reviews,statusCheckRollup";
        let view = cli.run(["gh", "pr", "view", &number, &repo, fields]).await?.require_success("forge", &doing)?;
        let host = format!("--hostname={}", self.address.host);
        let path = self.api_path();
        let path = format!("repos/{path}/pulls/{number}/comments?per_page=100");
        let line_comments =
            cli.run(["gh", "api", &host, "--paginate", &path]).await?.require_success("forge", &doing)?;
        let mut feedback = read::collect_feedback(
            &comments::parse_json(&view, "gh pr view")?,
            &comments::parse_pages(&line_comments, "gh api")?,
            anyone,
        );
        for (item, job) in logs::failed_jobs(&mut feedback.items, |item| job_id(item.url.as_deref()?)) {
            // A log that is gone or not written yet does not prevent reporting the failure.
            let argv = ["gh", "run", "view", &repo, &format!("--job={job}"), "--log-failed"].map(str::to_owned);
            let log = cli.read_log(argv.iter().map(String::as_str), logs::LOG_TAIL).await;
            item.log = log.as_deref().and_then(logs::job_lines);
        }
        Ok(feedback)
    }

    fn api_path(&self) -> String {
        percent_encode(&self.address.path, "/")
    }
}

/// Returns the job id of a GitHub Actions check: `…/actions/runs/1/job/2`.
fn job_id(url: &str) -> Option<String> {
    let (before, job) = url.rsplit_once("/job/")?;
    let job = job.split(['?', '#']).next()?;
    let is_number = !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && before.contains("/actions/runs/")).then(|| job.to_owned())
}

fn run_of_branch(head: &str) -> &str {
    head.strip_prefix("deliver/").unwrap_or(head)
}

/// Prefers an open pull request of a branch, else the newest.
fn newest_pr(mut prs: Vec<ListedPr>) -> PrState {
    prs.retain(|pr| !pr.is_cross_repository);
    prs.sort_by_key(|pr| (pr.state == "OPEN", pr.number));
    match prs.pop() {
        None => PrState::None,
        Some(ListedPr { number, url, is_draft, title, body, state, .. }) => match state.as_str() {
            "OPEN" => PrState::Open(OpenPr { number, url, draft: is_draft, title, body }),
            "MERGED" => PrState::Merged { url },
            _ => PrState::Closed { number, url },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed_pr(number: u64, state: &str, is_cross_repository: bool) -> ListedPr {
        let url = format!("https://github.com/o/r/pull/{number}");
        ListedPr {
            number,
            url,
            state: state.into(),
            is_draft: true,
            title: String::new(),
            body: String::new(),
            is_cross_repository,
        }
    }

    #[test]
    fn a_job_of_githubs_own_runner_is_known_by_its_page() {
        assert_eq!(job_id("https://github.com/o/r/actions/runs/1/job/22?pr=5").as_deref(), Some("22"));
        for other in ["https://ci.org/job/22", "https://github.com/o/r/actions/runs/1/job/-x", "https://github.com/o/r"]
        {
            assert_eq!(job_id(other), None, "{other}");
        }
    }

    #[test]
    fn an_open_request_counts_before_newer_ones_and_those_of_forks_never_do() {
        let state =
            newest_pr(vec![listed_pr(3, "OPEN", false), listed_pr(5, "CLOSED", false), listed_pr(7, "OPEN", true)]);
        assert!(matches!(state, PrState::Open(open) if open.number == 3));
        assert!(matches!(
            newest_pr(vec![listed_pr(3, "MERGED", false), listed_pr(5, "CLOSED", false)]),
            PrState::Closed { number: 5, .. }
        ));
        assert!(matches!(newest_pr(vec![listed_pr(6, "MERGED", false)]), PrState::Merged { .. }));
        assert_eq!(newest_pr(vec![listed_pr(7, "OPEN", true)]), PrState::None);
    }
}
