//! `delivery.*`: what a branch tells those who are to take it, and what they say of it, told to sessions.
//!
//! Nothing is sent anywhere: that is a client's.

use jsonrpsee::Extensions;
use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::DeliveryApiServer;
use protocol::delivery::{DescribeParams, DescribeReply, FeedbackParams, FeedbackReply, MAX_FEEDBACK_ITEMS};
use protocol::error::{ErrorData, ErrorKind};
use protocol::shell;
use runner_core::change::{Addition, Change};
use runner_core::delivery::{Delivered, Feedback, Made, Told, describe, feedback, leaf_title};
use runner_core::tree;
use tokio_util::sync::CancellationToken;

use super::tree::load_tip;
use super::verify::told;
use super::{Api, blocking};
use crate::admit::{self, git_error};
use crate::git::Repository;
use crate::repo::layout::Layout;
use crate::store::{Queued, Store, repo_id};
use crate::verify::{Target, target, verify};
use crate::worker::{Handle, Loaded, began_at, load, receipts};

/// Most commits that are looked through for receipts.
const MAX_COMMITS: usize = 100_000;

#[async_trait]
impl DeliveryApiServer for Api {
    async fn describe(&self, extensions: &Extensions, params: DescribeParams) -> RpcResult<DescribeReply> {
        let DescribeParams { path, run, remote, confirmed } = params;
        let repository = self.repository(path.as_path()).await?;
        let worker = self.registry.find(repository.common_dir()).await;
        let store = Store::new(&self.vault, &repo_id(repository.common_dir()));
        let (found, target) = blocking({
            let (repository, suspects) = (repository.clone(), store.suspects());
            move || {
                // The person's own git pushes what is described here.
                admit::users_push(&suspects, confirmed)?;
                let Target { run, tip } = target(&repository, run.as_deref())?;
                // What a session has committed since it began is not judged yet.
                let tip = began_at(&store, &run).unwrap_or(tip);
                Ok((repository, Target { run, tip }))
            }
        })
        .await?;
        let words = format!("describe {} {} {remote:?}", target.run, target.tip);
        let read = move |stop: &CancellationToken| described(&found, &target, (remote, stop));
        let (reply, digest) = self.in_turn(extensions, (&repository, &words), read).await?;
        let known = match &worker {
            Some(worker) => worker.list().await.1,
            None => Vec::new(),
        };
        if !reply.command.is_empty() && !confirmed && !known.contains(&digest) {
            return Err(unconfirmed(&reply.command).into());
        }
        let at_work = worker.and_then(|worker| self.who_is_at_work(&worker));
        Ok(DescribeReply { at_work, ..reply })
    }

    async fn feedback(&self, params: FeedbackParams) -> RpcResult<FeedbackReply> {
        let FeedbackParams { at, request, items, add, dry_run } = params;
        if items.len() > MAX_FEEDBACK_ITEMS {
            let message = format!("{} pieces of feedback at once; at most {MAX_FEEDBACK_ITEMS} are taken", items.len());
            return Err(ErrorData::new(ErrorKind::InvalidRequest, message).into());
        }
        let repository = self.repository(at.path.as_path()).await?;
        let store = Store::new(&self.vault, &repo_id(repository.common_dir()));
        let run = at.run.clone();
        let (told, root, request) = blocking(move || {
            let loaded = load_tip(&repository, run.as_deref())?;
            let waiting = waiting(&store)?;
            let before = known(&loaded, &waiting);
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            let told = feedback(&Feedback { request: &request, items: &items, before: &before });
            Ok((told, loaded.tree.root.id.clone(), request))
        })
        .await?;
        let Told { text, told, known, left } = told;
        let change = if dry_run || text.is_empty() {
            None
        } else {
            Some(self.change(at, order(add, (root, &request), text.clone()), None).await?)
        };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Ok(FeedbackReply { told: count(told), known: count(known), left: count(left), text, change })
    }
}

impl Api {
    /// Returns the run whose session may have written git's configuration without that having been put back yet.
    fn who_is_at_work(&self, worker: &Handle) -> Option<String> {
        let status = worker.status();
        let is_suspect = self.is_live(worker) || status.repo.held.is_some();
        let name = || status.run.as_ref().map_or_else(|| "of this repository".to_owned(), |run| run.summary.id.clone());
        is_suspect.then(name)
    }
}

/// Describes what a branch holds; returns the digest of the configuration's commands too.
fn described(
    repository: &Repository,
    target: &Target,
    (remote, stop): (Option<String>, &CancellationToken),
) -> Result<(DescribeReply, String), ErrorData> {
    let loaded = load(repository, target.tip).map_err(|error| error.told("runnerctl verify"))?;
    let audit = verify(repository, target, false, stop).map_err(|error| told(repository, &error))?;
    let receipts = receipts(repository, &target.run, target.tip, MAX_COMMITS).map_err(|error| git_error(&error))?;
    let made: Vec<Made> =
        receipts.into_iter().rev().map(|(id, receipt)| Made { commit: id.to_string(), receipt }).collect();
    let (branch, settings) = (format!("deliver/{}", target.run), &loaded.config.deliver);
    let remote = remote.unwrap_or_else(|| settings.remote.clone());
    let description = describe(&Delivered {
        run: &target.run,
        branch: &branch,
        remote: &remote,
        goal: loaded.goal.body(),
        tree: &loaded.tree,
        run_state: &loaded.run_state,
        questions: loaded.text(Layout::QUESTIONS),
        guard: &loaded.config.guard.command,
        made: &made,
        audit: &audit,
    });
    let (leaves_passed, leaves_total) = loaded.tree.root.leaves();
    let reply = DescribeReply {
        run: target.run.clone(),
        tip: target.tip.to_string(),
        branch,
        at_work: None,
        leaves_passed,
        leaves_total,
        title: description.title,
        body: description.body,
        remote,
        base: settings.base.clone(),
        command: settings.command.clone(),
        on_complete: settings.on_complete,
    };
    Ok((reply, loaded.config.commands_digest()))
}

fn unconfirmed(command: &[String]) -> ErrorData {
    let shown = shell::words(command.iter().map(String::as_str));
    let message = format!("`[deliver] command` of this repository was not confirmed; it would run:\n  {shown}");
    ErrorData::new(ErrorKind::Unconfirmed, message).hint("look at the command, then add --yes")
}

/// Reads what waits to be committed: it is told already.
fn waiting(store: &Store) -> Result<Vec<Queued>, ErrorData> {
    let changes = store.load_changes();
    changes
        .map(|changes| changes.queue)
        .map_err(|error| ErrorData::new(ErrorKind::Held, error.to_string()).caused_by(&error))
}

/// Returns the texts that feedback on a run may stand in.
fn known(loaded: &Loaded, waiting: &[Queued]) -> Vec<String> {
    let goals = tree::walk(&loaded.tree).into_iter().map(|placed| placed.node.goal.clone());
    let of_run = waiting.iter().filter(|waiting| loaded.run_state.run_id.as_ref() == Some(&waiting.run));
    let queued = of_run.filter_map(|waiting| match &waiting.change {
        Change::Note { text, .. } => Some(text.clone()),
        Change::Add(addition) => Some(addition.goal.clone()),
        _ => None,
    });
    std::iter::once(loaded.text(Layout::NOTES).to_owned()).chain(goals).chain(queued).collect()
}

/// A leaf for feedback, or a note.
fn order(add: bool, (root, request): (String, &str), text: String) -> Change {
    if !add {
        return Change::Note { id: String::new(), text };
    }
    let (title, acceptance) = (leaf_title(request), Vec::new());
    Change::Add(Addition { parent: root, title, goal: text, acceptance, after: None, order: None })
}
