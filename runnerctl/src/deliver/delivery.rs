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
use protocol::shell::words;
use serde::Serialize;

use super::address::ForgeRepo;
use super::body;
use super::checkout::{GitCheckout, PushRemote, RemoteRefs};
use super::forge::{Forge, NewPr, OpenPr, PrState, PrUpdate};
use super::forge_cli::ForgeCli;
use crate::confirm::confirmed;
use crate::failure::Failure;
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
    pub(crate) described: &'a DescribeReply,
    /// Options of the delivery.
    pub(crate) wanted: DeliveryOptions,
}

impl Delivery<'_> {
    fn checkout(&self) -> GitCheckout {
        GitCheckout { folder: self.path.as_path().to_owned(), can_ask: self.ui.can_ask() }
    }

    /// Refuses to use git's configuration while a running session could write to it.
    pub(crate) fn refuse_at_work(described: &DescribeReply) -> Result<(), Failure> {
        let Some(run) = &described.at_work else { return Ok(()) };
        let message = format!(
            "run {run} is at work in this repository, and what its session writes could direct git elsewhere: nothing was \
             pushed"
        );
        Err(Failure::new(ExitStatus::Refused, "wrong_state", message).hint("runnerctl pause"))
    }

    /// Returns what would be created and said, without contacting anyone.
    pub(crate) async fn preview(&self) -> Result<DeliveryReport, Failure> {
        Self::refuse_at_work(self.described)?;
        let (checkout, described) = (self.checkout(), self.described);
        self.refuse_no_room(&checkout.recall(&described.remote, &described.branch).await?)?;
        let named = self.wanted.base.clone().or_else(|| described.base.clone());
        let tracked = |base: &str| format!("refs/remotes/{}/{base}", described.remote);
        let from = match &named {
            Some(base) if checkout.commit(&tracked(base)).await?.is_some() => tracked(base),
            Some(base) => base.clone(),
            None => tracked("HEAD"),
        };
        let is_there = checkout.commit(&format!("refs/heads/{}", described.branch)).await?.is_some();
        let begins = checkout.commit(&from).await?;
        let (commits, notes) = if is_there || begins.is_some() {
            let landing = self.land(begins, true).await?;
            let is_new = landing.outcome == LandOutcome::Landed;
            (if is_new { landing.commits } else { Vec::new() }, landing.notes)
        } else {
            (Vec::new(), vec![format!("{from} is not here, so the commits are not known yet")])
        };
        Ok(DeliveryReport { commits, notes, ..self.answer(named, DeliveryAction::Preview) })
    }

    fn answer(&self, base: Option<String>, action: DeliveryAction) -> DeliveryReport {
        let DescribeReply { run, branch, remote, title, body, .. } = self.described.clone();
        let (commits, notes) = (Vec::new(), Vec::new());
        let (commit, pushed, url, noun) = (None, false, None, "request");
        DeliveryReport { run, branch, remote, base, commits, commit, pushed, action, noun, url, title, body, notes }
    }

    /// Performs the delivery.
    pub(crate) async fn send(&self) -> Result<DeliveryReport, Failure> {
        Self::refuse_at_work(self.described)?;
        let (checkout, described) = (self.checkout(), self.described);
        let branch = &described.branch;
        let remote = checkout.remote(&described.remote).await?;
        let desk = ForgeCli::make()?;
        let forge = Forge::find(&desk, &remote.address, &described.command).await?;
        let seen = checkout.look(&remote, branch).await?;
        self.refuse_no_room(&seen)?;
        let (base, from) = self.base((&checkout, &remote), &seen).await?;
        let standing = forge.standing(&desk, branch).await?;
        self.refuse_closed(&forge, &standing)?;
        self.take_in((&checkout, &remote), &seen).await?;
        if checkout.commit(&from).await?.is_none() {
            checkout.fetch(&remote, &base).await?;
        }
        let landed = self.land(Some(from), false).await?;
        let answer = DeliveryReport { noun: forge.noun(), ..self.answer(Some(base.clone()), DeliveryAction::Merged) };
        if let (PrState::Merged { url }, LandOutcome::AlreadyLanded) = (&standing, landed.outcome) {
            return Ok(DeliveryReport { url: Some(url.clone()), commit: seen.branch, notes: landed.notes, ..answer });
        }
        let tip = checkout.commit(&format!("refs/heads/{branch}")).await?;
        let tip = tip.ok_or_else(|| Failure::new(ExitStatus::Error, "git", format!("{branch} is gone")))?;
        let is_there = seen.branch.as_ref() == Some(&tip);
        if !is_there {
            // The guard may have taken long: a session may have started meanwhile.
            self.refuse_at_work_now().await?;
            checkout.push(&remote, (branch, &tip), seen.branch.as_deref()).await?;
        }
        let commits = if landed.outcome == LandOutcome::Landed { landed.commits } else { Vec::new() };
        let pushed = DeliveryReport { commits, commit: Some(tip), pushed: !is_there, notes: landed.notes, ..answer };
        // A person may have edited the request meanwhile.
        let standing = forge.standing(&desk, branch).await?;
        self.request((&desk, &forge), standing, (pushed, &remote.address)).await
    }

    /// Repeats [`Self::refuse_at_work`] with the daemon's current state.
    async fn refuse_at_work_now(&self) -> Result<(), Failure> {
        let run = Some(self.described.run.clone());
        let params = DescribeParams {
            path: self.path.clone(),
            run,
            remote: Some(self.described.remote.clone()),
            confirmed: true,
        };
        Self::refuse_at_work(&self.connection.client().describe(params).await?)
    }

    /// Returns the target branch and its commit on the remote.
    async fn base(
        &self,
        (checkout, remote): (&GitCheckout, &PushRemote),
        seen: &RemoteRefs,
    ) -> Result<(String, String), Failure> {
        let (run, name) = (&self.described.run, &remote.name);
        let refused = |message: String| {
            Err(Failure::new(ExitStatus::Refused, "not_found", message)
                .hint(format!("runnerctl deliver {run} --base BRANCH")))
        };
        let named = self.wanted.base.as_ref().or(self.described.base.as_ref()).or(seen.head.as_ref());
        let Some(base) = named else {
            return refused(format!("{name} does not say which branch is to take the result"));
        };
        match checkout.look(remote, base).await?.branch {
            Some(commit) => Ok((base.clone(), commit)),
            None => refused(format!("{name} has no branch {base}")),
        }
    }

    /// Refuses if the remote has a branch whose name conflicts with the one to push.
    fn refuse_no_room(&self, seen: &RemoteRefs) -> Result<(), Failure> {
        let Some(standing) = &seen.in_the_way else { return Ok(()) };
        let DescribeReply { branch, remote, .. } = self.described;
        let message = format!(
            "the branch `{standing}` at {remote} is in the way of `{branch}`: git cannot hold both; nothing was landed or pushed"
        );
        let hint = format!("have it renamed or removed there, then: git fetch --prune {}", words([remote.as_str()]));
        Err(Failure::new(ExitStatus::Refused, "wrong_state", message).hint(hint))
    }

    fn refuse_closed(&self, forge: &Forge, standing: &PrState) -> Result<(), Failure> {
        let PrState::Closed { number, url } = standing else { return Ok(()) };
        let message = format!("somebody has closed {} {number}: {url}; nothing was pushed", forge.noun());
        let failure = Failure::new(ExitStatus::Refused, "wrong_state", message);
        let again = format!("runnerctl deliver {}", self.described.run);
        Err(match forge.reopening(*number) {
            Some(reopen) => failure.hint(format!("{reopen}\n{again}")),
            None => failure,
        })
    }

    /// Integrates what others have pushed to the branch. Refuses if something would have to be overwritten.
    async fn take_in(&self, (checkout, remote): (&GitCheckout, &PushRemote), seen: &RemoteRefs) -> Result<(), Failure> {
        let (branch, name) = (&self.described.branch, &remote.name);
        let Some(theirs) = &seen.branch else { return Ok(()) };
        let own = format!("refs/heads/{branch}");
        if checkout.is_within(theirs, &own).await? {
            return Ok(());
        }
        if checkout.catch_up(remote, branch).await? {
            self.ui.note(&format!("took in what others have pushed to {branch}\n"));
            return Ok(());
        }
        let message = format!(
            "{branch} at {name} has commits that yours has not, and yours has others, or is checked out; theirs are not \
             overwritten, and nothing was pushed"
        );
        let hint = format!("git fetch {} {branch}\ngit switch {branch}\ngit merge FETCH_HEAD", remote.in_shell());
        Err(Failure::new(ExitStatus::Refused, "wrong_state", message).hint(hint))
    }

    /// Has the daemon land the run on the branch, which is created at `from` if it does not exist.
    async fn land(&self, from: Option<String>, preview: bool) -> Result<RunLanding, Failure> {
        let DeliveryOptions { form, with_runner, unproven, yes, .. } = self.wanted.clone();
        let client = self.connection.client();
        let params = LandParams {
            path: self.path.clone(),
            runs: vec![self.described.run.clone()],
            onto: Some(self.described.branch.clone()),
            from,
            form,
            with_runner,
            unproven,
            preview,
            confirmed: preview,
            env: caller_env::collect(self.connection, &self.path).await,
        };
        let request = async |yes: bool| client.land(LandParams { confirmed: yes || preview, ..params.clone() }).await;
        let reply: LandReply = confirmed(self.ui, yes, request).await?;
        let landing = reply.runs.into_iter().find(|landing| landing.run == self.described.run);
        let missing = || Failure::new(ExitStatus::Error, "protocol", "the daemon does not say what became of the run");
        let landing = landing.ok_or_else(missing)?;
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
    async fn request(
        &self,
        (desk, forge): (&ForgeCli, &Forge),
        standing: PrState,
        (pushed, address): (DeliveryReport, &str),
    ) -> Result<DeliveryReport, Failure> {
        let base = pushed.base.clone().unwrap_or_default();
        let DescribeReply { branch, title, body, .. } = self.described;
        if let PrState::Open(open) = standing {
            return self.renew((desk, forge), &open, pushed).await;
        }
        if let Forge::ByHand { why } = forge {
            let page = ForgeRepo::of(address).and_then(|address| address.page(branch, &base));
            let mut notes = pushed.notes.clone();
            notes.push(why.clone());
            return Ok(DeliveryReport { action: DeliveryAction::ByHand, url: page, notes, ..pushed });
        }
        let offer = NewPr { head: branch, base: &base, title, body, ready: self.wanted.ready };
        let url = forge.open(desk, offer).await?;
        Ok(DeliveryReport { action: DeliveryAction::Opened, url, ..pushed })
    }

    async fn renew(
        &self,
        (desk, forge): (&ForgeCli, &Forge),
        open: &OpenPr,
        pushed: DeliveryReport,
    ) -> Result<DeliveryReport, Failure> {
        let mut notes = pushed.notes.clone();
        let body = body::renewed(&open.body, &self.described.body).unwrap_or_else(|| {
            notes.push("somebody has taken the runner's part out of its description, which stays as it is".to_owned());
            open.body.clone()
        });
        let renewal = PrUpdate { base: self.wanted.base.as_deref(), body: &body, ready: self.wanted.ready };
        forge.update(desk, open, renewal).await?;
        let (url, title) = (Some(open.url.clone()), open.title.clone());
        Ok(DeliveryReport { action: DeliveryAction::Updated, url, title, body, notes, ..pushed })
    }
}
