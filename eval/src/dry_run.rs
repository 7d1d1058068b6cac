//! Asks the daemon to validate the configuration of cases before anything is run.
//!
//! Keys and values are the daemon's business: it is asked in one sandbox for all cases, and rejected values are
//! reported with their position in the case file. What a configuration requires of the machine only shows in a run.

use std::collections::BTreeMap;
use std::path::Path;

use jsonrpsee::core::client::Error;
use protocol::api::ConfigApiClient as _;
use protocol::client::{CallError, Connection};
use protocol::path::WirePath;
use protocol::reply::ConfigPathReply;
use protocol::request::{AtPath, AtSettings};
use tokio_util::sync::CancellationToken;
use toml::Table;

use crate::case::{Case, GeneratedPosition, SourceText, trace_to_case};
use crate::error::EvalError;
use crate::plan::RunPlan;
use crate::sandbox::{
    HostEnv, RepositoryAccess, RepositorySeed, Sandbox, SandboxDaemon, SandboxRepository, TestedPrograms, write_file,
};

/// What is needed to ask the daemon.
#[derive(Debug)]
pub(crate) struct DryRun<'a> {
    pub(crate) programs: &'a TestedPrograms,
    pub(crate) host_env: &'a HostEnv,
    pub(crate) stop: &'a CancellationToken,
}

/// Result for each case, in order.
type ConfigChecks = Vec<Result<(), EvalError>>;

impl DryRun<'_> {
    /// Validates each case; the outer error means that the daemon could not be asked.
    pub(crate) async fn check_all(&self, cases: &[(&Case, &RunPlan)]) -> Result<ConfigChecks, EvalError> {
        let sandbox = Sandbox::create()?;
        let checked = self.check_in(&sandbox, cases).await;
        sandbox.remove()?;
        checked
    }

    async fn check_in(&self, sandbox: &Sandbox, cases: &[(&Case, &RunPlan)]) -> Result<ConfigChecks, EvalError> {
        let daemon = SandboxDaemon::start(sandbox, self.programs, &sandbox.env(self.host_env)).await?;
        let checked = match self.create_repository(sandbox).await {
            Ok(repository) => check_cases(&repository, daemon.connection(), cases).await,
            Err(fault) => Err(fault),
        };
        daemon.stop().await;
        checked
    }

    async fn create_repository(&self, sandbox: &Sandbox) -> Result<SandboxRepository, EvalError> {
        let access = RepositoryAccess {
            programs: self.programs.clone(),
            env: sandbox.env(self.host_env),
            client_env: self.host_env.client_env(sandbox),
            view_env: self.host_env.view_env(sandbox),
            stop: self.stop.clone(),
        };
        let seed = RepositorySeed {
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
        SandboxRepository::create(sandbox, &seed, access).await
    }
}

async fn check_cases(
    repository: &SandboxRepository,
    connection: &Connection,
    cases: &[(&Case, &RunPlan)],
) -> Result<ConfigChecks, EvalError> {
    let path = WirePath::from(repository.folder());
    let files = connection.client().path(AtPath { path: path.clone() }).await?;
    let mut checked = Vec::new();
    for (case, plan) in cases {
        let generated = GeneratedFiles::generate(case, plan)?;
        generated.write(&files)?;
        let shown = connection.client().show(AtSettings { path: path.clone(), defaults: None }).await;
        checked.push(shown.map(drop).map_err(|error| generated.to_error(case, &files, error)));
    }
    Ok(checked)
}

/// The configuration files generated from a case.
struct GeneratedFiles {
    repository: String,
    daemon: String,
}

impl GeneratedFiles {
    fn generate(case: &Case, plan: &RunPlan) -> Result<Self, EvalError> {
        let text =
            |table| toml::to_string(table).map_err(|error| EvalError::new("writing a configuration").caused_by(&error));
        Ok(Self { repository: text(&plan.config)?, daemon: text(&case.daemon)? })
    }

    fn write(&self, files: &ConfigPathReply) -> Result<(), EvalError> {
        write_file(files.file.as_path(), &self.repository)?;
        write_file(files.daemon_file.as_path(), &self.daemon)
    }

    /// Reports a rejected value with its position in the case file, if it is written there.
    fn to_error(&self, case: &Case, files: &ConfigPathReply, error: Error) -> EvalError {
        let refusal = match CallError::from(error) {
            CallError::Refused(refusal) => refusal,
            error => return EvalError::new("asking the daemon about a configuration").caused_by(&error),
        };
        let sections = [("config", &files.file, &self.repository), ("daemon", &files.daemon_file, &self.daemon)];
        for (section, file, generated) in sections {
            let Some((position, why)) = split_position(&refusal.message, file.as_path()) else { continue };
            let source = SourceText { text: &case.text, file: &case.file };
            return match trace_to_case(&case.text, GeneratedPosition { section, generated, position }) {
                Some(span) => source.error_at(span, why),
                None => EvalError::usage(format!("{}: `{section}` as it would be used: {why}", case.file.display())),
            };
        }
        EvalError::usage(format!("{}: {}", case.file.display(), refusal.message))
    }
}

/// Splits a message that begins with `file:line:column: `.
fn split_position<'a>(message: &'a str, file: &Path) -> Option<((usize, usize), &'a str)> {
    let rest = message.strip_prefix(file.to_str()?)?.strip_prefix(':')?;
    let (place, why) = rest.split_once(": ")?;
    let (line, column) = place.split_once(':')?;
    Some(((line.parse().ok()?, column.parse().ok()?), why))
}
