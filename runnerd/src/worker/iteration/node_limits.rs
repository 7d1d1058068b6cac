//! `nodes/<id>/tools.json`: restricts what sessions on a node and its descendants may do, within the configuration.
//!
//! Read from From and writable by people only: an agent's change is restored. Whether an agent's own sandbox can
//! enforce it is up to its backend.

use std::fs;

use runner_config::{Executor, Sandbox};
use runner_git::{GitError, Id, Repository};
use serde::Deserialize;

use crate::repo::durable::{self, DurableError};
use crate::repo::layout::Layout;

/// The name of the file in a node's folder.
const FILE_NAME: &str = "tools.json";
/// Size limit of the file in bytes.
const LIMIT: usize = 4 * 1024;

/// Upper limits on what is allowed; absent fields leave the configuration as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeLimits {
    #[serde(default)]
    sandbox: Option<Sandbox>,
    #[serde(default)]
    network: Option<bool>,
}

impl NodeLimits {
    /// Removes what is not allowed from an executor; never adds anything.
    pub(crate) fn narrow(&self, executor: &mut Executor) {
        executor.sandbox = self.sandbox.map_or(executor.sandbox, |limit| limit.min(executor.sandbox));
        executor.network &= self.network.unwrap_or(true);
        // Without a sandbox nothing could enforce it.
        if self.network == Some(false) {
            executor.sandbox = executor.sandbox.min(Sandbox::WorkspaceWrite);
        }
    }
}

/// What is wrong with a limits file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeLimitsError {
    /// It cannot be read.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// It exceeds the size limit.
    #[error("it has {0} bytes, and at most {LIMIT} are taken")]
    TooLarge(usize),
    /// It is not valid JSON of this form.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
}

/// A limits file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {error}")]
pub(crate) struct InvalidNodeLimits {
    file: String,
    error: NodeLimitsError,
}

impl InvalidNodeLimits {
    fn for_node(id: &str) -> impl FnOnce(NodeLimitsError) -> Self {
        move |error| Self { file: limits_path(id), error }
    }
}

/// Returns the path of a node's file, relative to the work tree.
fn limits_path(id: &str) -> String {
    format!("{}/{id}/{FILE_NAME}", Layout::NODES)
}

/// Returns the limits on the way from the root to a node, or what is wrong with one of their files.
pub(crate) fn limits_on_path(
    repository: &Repository,
    commit: &Id,
    path: &[String],
) -> Result<Result<Vec<NodeLimits>, InvalidNodeLimits>, GitError> {
    let mut limits = Vec::new();
    for id in path {
        let Some(bytes) = repository.read_file(commit, &limits_path(id))? else { continue };
        match parse_limits(&bytes) {
            Ok(parsed) => limits.push(parsed),
            Err(error) => return Ok(Err(InvalidNodeLimits::for_node(id)(error))),
        }
    }
    Ok(Ok(limits))
}

/// Describes what is wrong with the limits files of a work tree.
pub fn find_faults(layout: &Layout) -> Vec<String> {
    let nodes = fs::read_dir(layout.nodes()).into_iter().flatten().flatten();
    let mut ids: Vec<String> = nodes.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    ids.sort();
    let fault = |id: &String| {
        let bytes = durable::read(&layout.node(id).join(FILE_NAME)).transpose()?;
        let parsed = bytes.map_err(NodeLimitsError::from).and_then(|bytes| parse_limits(&bytes));
        Some(InvalidNodeLimits::for_node(id)(parsed.err()?).to_string())
    };
    ids.iter().filter_map(fault).collect()
}

fn parse_limits(bytes: &[u8]) -> Result<NodeLimits, NodeLimitsError> {
    if bytes.len() > LIMIT {
        return Err(NodeLimitsError::TooLarge(bytes.len()));
    }
    Ok(serde_json::from_slice(bytes)?)
}

#[cfg(test)]
mod tests {
    use runner_config::RepoConfig;

    use super::*;

    fn narrowed(text: &str, sandbox: Sandbox, network: bool) -> (Sandbox, bool) {
        let mut executor = Executor { sandbox, network, ..RepoConfig::default().executor.work };
        parse_limits(text.as_bytes()).expect("valid").narrow(&mut executor);
        (executor.sandbox, executor.network)
    }

    #[test]
    fn a_node_takes_away_and_never_gives() {
        use Sandbox::{DangerFullAccess, ReadOnly, WorkspaceWrite};
        for sandbox in [ReadOnly, WorkspaceWrite, DangerFullAccess] {
            for network in [true, false] {
                assert_eq!(narrowed("{}", sandbox, network), (sandbox, network));
                let widest = r#"{"sandbox": "danger-full-access", "network": true}"#;
                assert_eq!(narrowed(widest, sandbox, network), (sandbox, network));
                assert_eq!(narrowed(r#"{"sandbox": "read-only"}"#, sandbox, network), (ReadOnly, network));
                let (narrowed_sandbox, none) = narrowed(r#"{"network": false}"#, sandbox, network);
                assert_eq!((narrowed_sandbox, none), (sandbox.min(WorkspaceWrite), false));
            }
        }
    }

    #[test]
    fn what_is_not_known_is_an_error_with_its_place() {
        let wrong = |text: &str| parse_limits(text.as_bytes()).expect_err("invalid").to_string();
        insta::assert_snapshot!(
            [wrong("{\n  \"deny\": []}"), wrong("{\"sandbox\": \"none\"}"), wrong("{\"network\": 1}")].join("\n"), @r"
        unknown field `deny`, expected `sandbox` or `network` at line 2 column 8
        unknown variant `none`, expected one of `read-only`, `workspace-write`, `danger-full-access` at line 1 column 18
        invalid type: integer `1`, expected a boolean at line 1 column 13
        ");
        assert!(wrong(&" ".repeat(LIMIT + 1)).contains("4097 bytes"));
    }
}
