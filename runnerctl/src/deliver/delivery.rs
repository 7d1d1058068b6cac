//! Performs a delivery: inspect, land, push, open or update the request. Repeated after an interruption, it continues
//! from the current state.
//!
//! Everything that can be refused without making a change is checked before anything is moved.

use protocol::api::{DeliveryApiClient as _, LandApiClient as _};
use protocol::client::{Connection, caller_env};
use protocol::delivery::{DescribeParams, DescribeReply};
use protocol::error::ExitStatus;
use protocol::landing::{LandForm, LandOutcome, LandParams, LandReply, LandedCommit, RunLanding};
use protocol::path::WirePath;
use protocol::shell::{join_args, quote};
use serde::Serialize;

use super::address::ForgeRepo;
use super::body;
use super::checkout::{GitCheckout, PushRemote, RemoteRefs};
use super::forge::{Forge, NewPr, OpenPr, PrState, PrUpdate};
use super::forge_cli::ForgeCli;
use crate::confirm::with_confirmation;
use crate::failure::Failure;
use crate::text::landing::describe_checkout;
use crate::ui::Ui;

/// Options of a delivery.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own on the command line")]
pub(crate) struct DeliveryOptions {
    /// The target branch, if one was named.
    pub(crate) base: Option<String>,
    /// Form of the landed commits.
    pub(crate) form: LandForm,
    /// Whether to include `.runner/`.
    pub(crate) with_runner: bool,
    /// Whether to deliver even though a part of the branch could not be checked.
    pub(crate) unproven: bool,
    /// Whether the request is opened ready for review.
    pub(crate) ready: bool,
    /// Whether commands are confirmed.
    pub(crate) yes: bool,
}

/// Result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DeliveryReport {
    /// Id of the run.
    pub(crate) run: String,
    /// The branch that was pushed.
    pub(crate) branch: String,
    /// Name of the remote.
    pub(crate) remote: String,
    /// The target branch; null if unknown.
    pub(crate) base: Option<String>,
    /// The commits created, or those that a preview would create.
    pub(crate) commits: Vec<LandedCommit>,
    /// The commit that the remote has now; null in a preview.
    pub(crate) commit: Option<String>,
    /// Whether this delivery pushed it.
    pub(crate) pushed: bool,
    /// What was done with the request.
    pub(crate) action: DeliveryAction,
    /// The forge's term for a request.
    #[serde(skip)]
    pub(crate) noun: &'static str,
    /// Page of the request, or the page for opening it.
    pub(crate) url: Option<String>,
    /// Its title.
    pub(crate) title: String,
    /// Its description.
    pub(crate) body: String,
    /// Further notes for the user.
    pub(crate) notes: Vec<String>,
}

/// What was done with the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeliveryAction {
    /// It was opened.
    Opened,
    /// It was open and has been updated.
    Updated,
    /// The user has to open it.
    ByHand,
    /// It was merged before, and there is nothing new.
    Merged,
    /// Nothing, because the result is on the target branch without a request.
    Landed,
    /// Nothing, because the result is on the branch here that the run was started from.
    LandedHere,
    /// Nothing, because this was a preview.
    Preview,
}

/// A delivery.
pub(crate) struct Delivery<'a> {
    /// Where output goes.
    pub(crate) ui: &'a Ui,
    /// The daemon.
    pub(crate) connection: &'a Connection,
    /// A folder in the repository.
    pub(crate) path: WirePath,
    /// The run to deliver.
    pub(crate) description: &'a DescribeReply,
    /// Options of the delivery.
    pub(crate) options: DeliveryOptions,
}

impl Delivery<'_> {
    fn git_checkout(&self) -> GitCheckout {
        GitCheckout { folder: self.path.as_path().to_owned(), can_ask: self.ui.can_ask() }
    }

    /// Refuses to use git's configuration while a running session could write to it.
    pub(crate) fn refuse_at_work(description: &DescribeReply) -> Result<(), Failure> {
        let Some(run) = &description.at_work else { return Ok(()) };
        let message = format!(
            "run {run} is at work in this repository, and what its session writes could direct git elsewhere: nothing was \
             pushed"
        );
        Err(Failure::new(ExitStatus::Refused, "wrong_state", message).hint(format!("runnerctl pause {}", quote(run))))
    }

    /// Returns what would be created and said, without contacting anyone.
    pub(crate) async fn preview(&self) -> Result<DeliveryReport, Failure> {
        Self::refuse_at_work(self.description)?;
        let checkout = self.git_checkout();
        let description = self.description;
        self.refuse_conflicting_branch(&checkout.read_tracked_refs(&description.remote, &description.branch).await?)?;
        if let Some(onto) = &description.landed_on {
            return Ok(self.new_report(Some(onto.clone()), DeliveryAction::LandedHere));
        }
        let base = self.options.base.clone().or_else(|| description.base.clone());
        let tracked = |base: &str| format!("refs/remotes/{}/{base}", description.remote);
        let start = match &base {
            Some(base) if checkout.resolve_commit(&tracked(base)).await?.is_some() => tracked(base),
            Some(base) => base.clone(),
            None => tracked("HEAD"),
        };
        let exists = checkout.resolve_commit(&format!("refs/heads/{}", description.branch)).await?.is_some();
        let start_commit = checkout.resolve_commit(&start).await?;
        let (commits, notes) = if exists || start_commit.is_some() {
            let landing = self.land_run(start_commit, true).await?;
            let is_new = landing.outcome == LandOutcome::Landed;
            if !is_new && !exists {
                return Ok(DeliveryReport { notes: landing.notes, ..self.new_report(base, DeliveryAction::Landed) });
            }
            (if is_new { landing.commits } else { Vec::new() }, landing.notes)
        } else {
            (Vec::new(), vec![format!("{start} is not here, so the commits are not known yet")])
        };
        Ok(DeliveryReport { commits, notes, ..self.new_report(base, DeliveryAction::Preview) })
    }

    fn new_report(&self, base: Option<String>, action: DeliveryAction) -> DeliveryReport {
        let DescribeReply { run, branch, remote, title, body, .. } = self.description.clone();
        let commits = Vec::new();
        let notes = Vec::new();
        let commit = None;
        let pushed = false;
        let url = None;
        let noun = "request";
        DeliveryReport { run, branch, remote, base, commits, commit, pushed, action, noun, url, title, body, notes }
    }

    /// Performs the delivery.
    pub(crate) async fn deliver(&self) -> Result<DeliveryReport, Failure> {
        Self::refuse_at_work(self.description)?;
        let checkout = self.git_checkout();
        let description = self.description;
        let branch = &description.branch;
        let remote = checkout.find_remote(&description.remote).await?;
        let cli = ForgeCli::create()?;
        let forge = Forge::find(&cli, &remote.address, &description.command).await?;
        let remote_refs = checkout.read_refs(&remote, branch).await?;
        self.refuse_conflicting_branch(&remote_refs)?;
        let (base, start) = self.find_base(&checkout, &remote, &remote_refs).await?;
        let pr_state = forge.find_pr(&cli, branch).await?;
        self.refuse_closed(&forge, &pr_state)?;
        if let Some(onto) = description.landed_on.clone().filter(|_| !matches!(pr_state, PrState::Merged { .. })) {
            return Ok(self.new_report(Some(onto), DeliveryAction::LandedHere));
        }
        self.integrate_pushed(&checkout, &remote, &remote_refs).await?;
        if checkout.resolve_commit(&start).await?.is_none() {
            checkout.fetch(&remote, &base).await?;
        }
        let landing = self.land_run(Some(start.clone()), false).await?;
        let report = DeliveryReport {
            noun: forge.request_noun(),
            ..self.new_report(Some(base.clone()), DeliveryAction::Merged)
        };
        if let (PrState::Merged { url }, LandOutcome::AlreadyLanded) = (&pr_state, landing.outcome) {
            return Ok(DeliveryReport {
                url: Some(url.clone()),
                commit: remote_refs.branch,
                notes: landing.notes,
                ..report
            });
        }
        let tip = checkout.resolve_commit(&format!("refs/heads/{branch}")).await?;
        let is_on_base = match &tip {
            Some(tip) => checkout.is_ancestor(tip, &start).await?,
            None => true,
        };
        if landing.outcome == LandOutcome::AlreadyLanded && is_on_base && !matches!(pr_state, PrState::Open(_)) {
            return Ok(DeliveryReport { action: DeliveryAction::Landed, notes: landing.notes, ..report });
        }
        let tip = tip.ok_or_else(|| Failure::new(ExitStatus::Error, "git", format!("{branch} is gone")))?;
        let is_pushed = remote_refs.branch.as_ref() == Some(&tip);
        if !is_pushed {
            // The guard may have taken long: a session may have started meanwhile.
            self.recheck_not_at_work().await?;
            checkout.push(&remote, branch, &tip, remote_refs.branch.as_deref()).await?;
        }
        let commits = if landing.outcome == LandOutcome::Landed { landing.commits } else { Vec::new() };
        let report = DeliveryReport { commits, commit: Some(tip), pushed: !is_pushed, notes: landing.notes, ..report };
        // A person may have edited the request meanwhile.
        let pr_state = forge.find_pr(&cli, branch).await?;
        self.publish_pr(&cli, &forge, pr_state, report, &remote.address).await
    }

    /// Repeats [`Self::refuse_at_work`] with the daemon's current state.
    async fn recheck_not_at_work(&self) -> Result<(), Failure> {
        let run = Some(self.description.run.clone());
        let params = DescribeParams {
            path: self.path.clone(),
            run,
            remote: Some(self.description.remote.clone()),
            confirmed: true,
        };
        Self::refuse_at_work(&self.connection.client().describe(params).await?)
    }

    /// Returns the target branch and its commit on the remote.
    async fn find_base(
        &self,
        checkout: &GitCheckout,
        remote: &PushRemote,
        remote_refs: &RemoteRefs,
    ) -> Result<(String, String), Failure> {
        let run = &self.description.run;
        let name = &remote.name;
        let not_found = |message: String| {
            Err(Failure::new(ExitStatus::Refused, "not_found", message)
                .hint(format!("runnerctl deliver {run} --base BRANCH")))
        };
        let base = self.options.base.as_ref().or(self.description.base.as_ref()).or(remote_refs.head.as_ref());
        let Some(base) = base else {
            return not_found(format!("{name} does not say which branch is to take the result"));
        };
        match checkout.read_refs(remote, base).await?.branch {
            Some(commit) => Ok((base.clone(), commit)),
            None => not_found(format!("{name} has no branch {base}")),
        }
    }

    /// Refuses if the remote has a branch whose name conflicts with the one to push.
    fn refuse_conflicting_branch(&self, remote_refs: &RemoteRefs) -> Result<(), Failure> {
        let Some(conflicting) = &remote_refs.conflicting_branch else { return Ok(()) };
        let DescribeReply { branch, remote, .. } = self.description;
        let message = format!(
            "the branch `{conflicting}` at {remote} is in the way of `{branch}`: git cannot hold both; nothing was landed or pushed"
        );
        let hint =
            format!("have it renamed or removed there, then: git fetch --prune {}", join_args([remote.as_str()]));
        Err(Failure::new(ExitStatus::Refused, "wrong_state", message).hint(hint))
    }

    fn refuse_closed(&self, forge: &Forge, pr_state: &PrState) -> Result<(), Failure> {
        let PrState::Closed { number, url } = pr_state else { return Ok(()) };
        let message = format!("someone has closed {} {number}: {url}; nothing was pushed", forge.request_noun());
        let failure = Failure::new(ExitStatus::Refused, "wrong_state", message);
        let retry = format!("runnerctl deliver {}", self.description.run);
        Err(match forge.reopen_command(*number) {
            Some(reopen) => failure.hint(format!("{reopen}\n{retry}")),
            None => failure,
        })
    }

    /// Integrates what others have pushed to the branch. Refuses if that would overwrite something.
    async fn integrate_pushed(
        &self,
        checkout: &GitCheckout,
        remote: &PushRemote,
        remote_refs: &RemoteRefs,
    ) -> Result<(), Failure> {
        let branch = &self.description.branch;
        let name = &remote.name;
        let Some(remote_tip) = &remote_refs.branch else { return Ok(()) };
        let local_ref = format!("refs/heads/{branch}");
        if checkout.is_ancestor(remote_tip, &local_ref).await? {
            return Ok(());
        }
        if checkout.fast_forward(remote, branch).await? {
            self.ui.print_note(&format!("took in what others have pushed to {branch}\n"));
            return Ok(());
        }
        let message = format!(
            "{branch} at {name} has commits that yours has not, and yours has others, or is checked out; theirs are not \
             overwritten, and nothing was pushed"
        );
        let hint = format!("git fetch {} {branch}\ngit switch {branch}\ngit merge FETCH_HEAD", remote.shell_name());
        Err(Failure::new(ExitStatus::Refused, "wrong_state", message).hint(hint))
    }

    /// Has the daemon land the run on the branch, which is created at `from` if it does not exist.
    async fn land_run(&self, from: Option<String>, preview: bool) -> Result<RunLanding, Failure> {
        let DeliveryOptions { form, with_runner, unproven, yes, .. } = self.options.clone();
        let client = self.connection.client();
        let params = LandParams {
            path: self.path.clone(),
            runs: vec![self.description.run.clone()],
            onto: Some(self.description.branch.clone()),
            from,
            form,
            with_runner,
            unproven,
            accepted: Vec::new(),
            preview,
            confirmed: preview,
            env: caller_env::collect(self.connection, &self.path).await,
        };
        let request = async |yes: bool| client.land(LandParams { confirmed: yes || preview, ..params.clone() }).await;
        let reply: LandReply = with_confirmation(self.ui, yes, request).await?;
        let checkout = describe_checkout(&reply).filter(|_| !preview);
        let landing = reply.runs.into_iter().find(|landing| landing.run == self.description.run);
        let missing = || Failure::new(ExitStatus::Error, "protocol", "the daemon does not say what became of the run");
        let mut landing = landing.ok_or_else(missing)?;
        landing.notes.extend(checkout);
        match landing.refusal.clone().filter(|_| landing.outcome == LandOutcome::LeftOut) {
            None => Ok(landing),
            Some(refusal) => {
                let failure = Failure::new(ExitStatus::Refused, "wrong_state", refusal.message);
                Err(match refusal.hint {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                })
            }
        }
    }

    /// Opens or updates the request.
    async fn publish_pr(
        &self,
        cli: &ForgeCli,
        forge: &Forge,
        pr_state: PrState,
        report: DeliveryReport,
        address: &str,
    ) -> Result<DeliveryReport, Failure> {
        let base = report.base.clone().unwrap_or_default();
        let DescribeReply { branch, title, body, .. } = self.description;
        if let PrState::Open(pr) = pr_state {
            return self.update_existing(cli, forge, &pr, report).await;
        }
        if let Forge::Manual { why } = forge {
            let page = ForgeRepo::from_url(address).and_then(|address| address.new_request_url(branch, &base));
            let mut notes = report.notes.clone();
            notes.push(why.clone());
            return Ok(DeliveryReport { action: DeliveryAction::ByHand, url: page, notes, ..report });
        }
        let new_pr = NewPr { head: branch, base: &base, title, body, ready: self.options.ready };
        let url = forge.open_pr(cli, new_pr).await?;
        Ok(DeliveryReport { action: DeliveryAction::Opened, url, ..report })
    }

    async fn update_existing(
        &self,
        cli: &ForgeCli,
        forge: &Forge,
        pr: &OpenPr,
        report: DeliveryReport,
    ) -> Result<DeliveryReport, Failure> {
        let mut notes = report.notes.clone();
        let body = body::replace_own_part(&pr.body, &self.description.body).unwrap_or_else(|| {
            notes.push("someone has removed the runner's part from the description, which stays unchanged".to_owned());
            pr.body.clone()
        });
        let update = PrUpdate { base: self.options.base.as_deref(), body: &body, ready: self.options.ready };
        forge.update_pr(cli, pr, update).await?;
        let url = Some(pr.url.clone());
        let title = pr.title.clone();
        Ok(DeliveryReport { action: DeliveryAction::Updated, url, title, body, notes, ..report })
    }
}
