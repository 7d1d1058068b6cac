//! A program of the user's that opens pull requests: `[deliver] command`.
//!
//! It reads one JSON object on one line from standard input. The last line of its output is the request's page.

use std::ffi::OsString;

use protocol::error::ExitStatus;
use serde_json::json;

use super::forge::NewPr;
use super::forge_cli::ForgeCli;
use crate::failure::Failure;
use crate::program::LaunchError;

/// Schema name of its input.
const SCHEMA: &str = "runner/delivery.v1";

/// The program.
#[derive(Debug)]
pub(crate) struct CustomForge {
    argv: Vec<String>,
}

impl CustomForge {
    /// Creates it from its command.
    pub(super) fn new(argv: &[String]) -> Self {
        Self { argv: argv.to_vec() }
    }

    /// Runs the program to open or update the request of a branch: the program itself finds out which of the two.
    pub(super) async fn open_pr(&self, cli: &ForgeCli, new_pr: NewPr<'_>) -> Result<Option<String>, Failure> {
        let NewPr { head, base, title, body, ready } = new_pr;
        let request =
            json!({ "schema": SCHEMA, "head": head, "base": base, "title": title, "body": body, "draft": !ready });
        let input = format!("{request}\n").into_bytes();
        let argv: Vec<OsString> = self.argv.iter().map(OsString::from).collect();
        let name = &self.argv[0];
        let output = cli.try_run(argv, input).await.map_err(|error| match error {
            LaunchError::Failed(failure) => failure,
            LaunchError::Missing => {
                let message = format!("`{name}` of [deliver] command is not on your PATH");
                Failure::new(ExitStatus::Error, "missing_command", message).hint("runnerctl config get deliver.command")
            }
        })?;
        let printed = output
            .require_success("forge", &format!("opening the request with `{name}`, after the branch was pushed"))?;
        Ok(printed.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned))
    }
}
