//! What the daemon says of the configuration of cases, before anything is run.
//!
//! Keys and values are its own business: it is asked, in one lab for all cases, and what it refuses is told with the place in the
//! case file. What a configuration needs of a machine shows in a run.

use std::collections::BTreeMap;
use std::path::Path;

use jsonrpsee::core::client::Error;
use protocol::api::ConfigApiClient as _;
use protocol::client::{CallError, Connection};
use protocol::path::WirePath;
use protocol::reply::ConfigPathReply;
use protocol::request::AtPath;
use tokio_util::sync::CancellationToken;
use toml::Table;

use crate::case::{Case, Place, Source, trace};
use crate::fault::Fault;
use crate::lab::{Access, Daemon, Lab, Programs, Repository, Seed, Surroundings, write};
use crate::plan::Plan;

/// What is needed to ask.
#[derive(Debug)]
pub(crate) struct Rehearsal<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) around: &'a Surroundings,
    pub(crate) stop: &'a CancellationToken,
}

/// What came of each case, in their order.
type Checked = Vec<Result<(), Fault>>;

impl Rehearsal<'_> {
    /// Asks about each case; a fault of its own says why the daemon could not be asked.
    pub(crate) async fn check(&self, cases: &[(&Case, &Plan)]) -> Result<Checked, Fault> {
        let lab = Lab::make()?;
        let checked = self.check_in(&lab, cases).await;
        lab.remove()?;
        checked
    }

    async fn check_in(&self, lab: &Lab, cases: &[(&Case, &Plan)]) -> Result<Checked, Fault> {
        let daemon = Daemon::start(lab, self.programs, &lab.env(self.around)).await?;
        let checked = match self.repository(lab).await {
            Ok(repository) => ask(&repository, daemon.connection(), cases).await,
            Err(fault) => Err(fault),
        };
        daemon.stop().await;
        checked
    }

    async fn repository(&self, lab: &Lab) -> Result<Repository, Fault> {
        let access = Access {
            programs: self.programs.clone(),
            env: lab.env(self.around),
            client_env: self.around.of_client(lab),
            view_env: self.around.of_view(lab),
            stop: self.stop.clone(),
        };
        let seed = Seed {
            name: "rehearsal",
            goal: "",
            template: None,
            files: &BTreeMap::new(),
            justfile: None,
            config: &Table::new(),
            tree: None,
            prompts: None,
            script: None,
        };
        Repository::make(lab, &seed, access).await
    }
}

async fn ask(repository: &Repository, connection: &Connection, cases: &[(&Case, &Plan)]) -> Result<Checked, Fault> {
    let at = AtPath { path: WirePath::from(repository.folder()) };
    let files = connection.client().path(at.clone()).await?;
    let mut checked = Vec::new();
    for (case, plan) in cases {
        let made = Made::of(case, plan)?;
        made.write(&files)?;
        let told = connection.client().show(at.clone()).await;
        checked.push(told.map(drop).map_err(|error| made.refused(case, &files, error)));
    }
    Ok(checked)
}

/// The files that are made of a case.
struct Made {
    repository: String,
    daemon: String,
}

impl Made {
    fn of(case: &Case, plan: &Plan) -> Result<Self, Fault> {
        let text =
            |table| toml::to_string(table).map_err(|error| Fault::new("writing a configuration").caused_by(&error));
        Ok(Self { repository: text(&plan.config)?, daemon: text(&case.daemon)? })
    }

    fn write(&self, files: &ConfigPathReply) -> Result<(), Fault> {
        write(files.file.as_path(), &self.repository)?;
        write(files.daemon_file.as_path(), &self.daemon)
    }

    /// Tells what was refused with the place in the case file, where it is written there.
    fn refused(&self, case: &Case, files: &ConfigPathReply, error: Error) -> Fault {
        let refusal = match CallError::from(error) {
            CallError::Refused(refusal) => refusal,
            error => return Fault::new("asking the daemon about a configuration").caused_by(&error),
        };
        let sections = [("config", &files.file, &self.repository), ("daemon", &files.daemon_file, &self.daemon)];
        for (section, file, made) in sections {
            let Some((at, why)) = placed(&refusal.message, file.as_path()) else { continue };
            let source = Source { text: &case.text, file: &case.file };
            return match trace(&case.text, Place { section, made, at }) {
                Some(span) => source.refuse(span, why),
                None => Fault::usage(format!("{}: `{section}` as it would be used: {why}", case.file.display())),
            };
        }
        Fault::usage(format!("{}: {}", case.file.display(), refusal.message))
    }
}

/// Takes a message apart that begins with `file:line:column: `.
fn placed<'a>(message: &'a str, file: &Path) -> Option<((usize, usize), &'a str)> {
    let rest = message.strip_prefix(file.to_str()?)?.strip_prefix(':')?;
    let (place, why) = rest.split_once(": ")?;
    let (line, column) = place.split_once(':')?;
    Some(((line.parse().ok()?, column.parse().ok()?), why))
}
