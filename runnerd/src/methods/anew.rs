//! A workspace that is gone while its run goes on, made anew: what from, is `runner_core::publish`'s to say.

use std::path::Path;

use protocol::error::{ErrorData, ErrorKind};
use protocol::event::EventKind;
use runner_core::publish::{Anew, Left, Lost, Start, anew};
use tokio_util::sync::CancellationToken;

use super::isolated::{lay, not_made};
use super::run::{is_at_work, is_driven_elsewhere};
use super::{Api, blocking};
use crate::admit::{self, git_error};
use crate::events::About;
use crate::git::{Id, Repository};
use crate::publish::{Published, last_kept};
use crate::repo::kept::KeptError;
use crate::store::{Source, Store, repo_id};
use crate::worker::{self, Handle, Trusted};
use crate::workspace::{self, Order, Owner};

/// Who makes a workspace anew: one at a time, whoever asks how often.
static ANEW: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A workspace that may be gone.
struct Gone<'a> {
    of_source: &'a Store,
    of_workspace: &'a Store,
    source: &'a Source,
    place: &'a Path,
    /// Whether a session may be writing to the source's work tree: nothing is taken from it then.
    is_at_work: bool,
}

impl Api {
    /// Makes the workspace of a run anew where it is gone, from what is left of the run.
    pub(super) async fn make_anew(&self, worker: &Handle) -> Result<(), ErrorData> {
        let Some(source) = worker.source.clone() else { return Ok(()) };
        let place = worker.status().repo.path.0.clone();
        let _turn = ANEW.lock().await;
        if worker.is_driving() {
            return Ok(());
        }
        let common_dir = source.common_dir.as_path();
        let own = self.registry.find(common_dir).await;
        let is_at_work = own.as_ref().is_some_and(|own| is_at_work(&own.status(), source.path.as_path()))
            || is_driven_elsewhere(own.as_ref(), common_dir);
        let of_source = Store::new(&self.vault, &repo_id(common_dir));
        let of_workspace = Store::new(&self.vault, &worker.id);
        let (stop, run) = (self.shutdown.child_token(), source.run.clone());
        let said = blocking(move || {
            let (of_source, of_workspace, source, place) = (&of_source, &of_workspace, &*source, place.as_path());
            Gone { of_source, of_workspace, source, place, is_at_work }.make_anew(&stop)
        })
        .await?;
        if let Some(message) = said {
            let about = About { repo: Some(worker.id.clone()), run: Some(run), iter: None };
            self.events.publish(about, EventKind::Warning { message });
        }
        Ok(())
    }
}

impl Gone<'_> {
    /// Makes it anew; returns what a person should know, where it was gone.
    fn make_anew(&self, stop: &CancellationToken) -> Result<Option<String>, ErrorData> {
        let path = self.source.path.as_path();
        let known = Trusted::of(self.of_source, path).repository().map_err(|error| git_error(&error))?;
        let repository = known.map_or_else(|| admit::present(path), Ok)?;
        // What was sent may be ahead of a branch that is in use.
        let kept = last_kept(&repository, &self.source.run).map_err(|error| git_error(&error))?;
        if self.place.join(".git").symlink_metadata().is_ok() {
            return self.complete(kept).map(|()| None);
        }
        let said = match anew(self.left(&repository, kept)?) {
            Anew::Published(tip) => self.at_published(&repository, tip, stop)?,
            Anew::Base(base) => self.at_base(&repository, base, stop)?,
            Anew::Nothing(lost) => return Err(self.nothing(&repository, lost)?),
        };
        Ok(Some(said))
    }

    fn left(&self, repository: &Repository, kept: Option<Id>) -> Result<Left<Id>, ErrorData> {
        let file = self.of_workspace.read().map_err(|error| fault(&error))?;
        let run = file.and_then(|file| file.runs.into_iter().find(|run| run.id == self.source.run));
        let base = run.and_then(|run| run.beginning).and_then(|beginning| beginning.base?.parse::<Id>().ok());
        let beginning = match base {
            Some(base) if repository.holds(&base).map_err(|error| git_error(&error))? => Some(Start::At(base)),
            Some(_) => Some(Start::Gone),
            None => None,
        };
        let was_published = self.published()?.is_some_and(|published| published.was_there());
        Ok(Left { kept, was_published, beginning })
    }

    fn published(&self) -> Result<Option<Published>, ErrorData> {
        self.of_workspace.published().read().map_err(|error: KeptError| fault(&error))
    }

    /// Makes it at the published tip of its run, on the run's branch.
    fn at_published(&self, repository: &Repository, tip: Id, stop: &CancellationToken) -> Result<String, ErrorData> {
        let config = worker::load_config(repository, tip)
            .map_err(|error| ErrorData::new(ErrorKind::InvalidFile, error.to_string()).caused_by(&error))?;
        let order = Order { source: repository, place: self.place, base: tip, copy: &config.workspace.copy };
        self.make(&order, stop)?;
        self.complete(Some(tip))?;
        let run = &self.source.run;
        Ok(format!("the workspace was gone, and was made anew from runner/{run}: what was not committed in it is lost"))
    }

    /// Makes it at the commit that its run is to begin from, with what comes along from the source's work tree as it is now.
    fn at_base(&self, repository: &Repository, base: Id, stop: &CancellationToken) -> Result<String, ErrorData> {
        let (taken, config) = admit::comes_along(repository, base, self.is_at_work)?;
        let order = Order { source: repository, place: self.place, base, copy: &config.workspace.copy };
        self.make(&order, stop)?;
        lay(self.place, &taken)?;
        let from = base.short(12);
        Ok(format!("the workspace was gone before anything was committed in it, and was made anew from {from}"))
    }

    fn make(&self, order: &Order<'_>, stop: &CancellationToken) -> Result<(), ErrorData> {
        // What had been set up is gone with it.
        self.of_workspace.workspace().remove().map_err(|error| fault(&error))?;
        let owner = Owner::of(self.of_workspace.key());
        workspace::make((order, &owner), &|_| (), stop).map(drop).map_err(|error| not_made(&error))
    }

    /// Puts it on its run's branch, if it has none and the source keeps one: a death came in between.
    fn complete(&self, tip: Option<Id>) -> Result<(), ErrorData> {
        let Some(tip) = tip else { return Ok(()) };
        let branch = format!("runner/{}", self.source.run);
        let workspace = Repository::discover_alone(self.place).map_err(|error| git_error(&error))?;
        if workspace.branch(&branch).map_err(|error| git_error(&error))?.is_some() {
            return Ok(());
        }
        workspace.start_branch(&branch, &tip).map_err(|error| git_error(&error))
    }

    /// Says why there is nothing to make it from.
    fn nothing(&self, repository: &Repository, lost: Lost) -> Result<ErrorData, ErrorData> {
        // The last commit may be there yet without a branch.
        let tip = match self.published()?.map(|published| published.to) {
            Some(tip) if repository.holds(&tip).map_err(|error| git_error(&error))? => Some(tip.to_string()),
            _ => None,
        };
        let places = [self.source.path.to_string(), self.place.display().to_string()];
        let why = lost.reason(&self.source.run, places.each_ref().map(String::as_str), tip.as_deref());
        let refused = ErrorData::new(ErrorKind::Held, why.message.clone());
        Ok(why.ways().into_iter().fold(refused, ErrorData::hint))
    }
}

fn fault(error: &(dyn std::error::Error + 'static)) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}
