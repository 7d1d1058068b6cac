//! Notes about landings in the daemon's state: the branch move in progress, and the branch that each run was started
//! from.

use std::collections::BTreeMap;

use protocol::path::WirePath;
use serde::{Deserialize, Serialize};

use crate::repo::sealed::Sealable;

/// A branch move that was begun: what is needed to repair it after a crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingLanding {
    /// The work tree that the request named.
    pub path: WirePath,
    /// Short name of the branch.
    pub branch: String,
    /// Commit it was at; `None` if it was to be created.
    pub old: Option<String>,
    /// Commit it was to be moved to.
    pub new: String,
    /// The work tree that has it checked out, if any.
    pub holder: Option<WirePath>,
}

impl Sealable for PendingLanding {
    const KIND: &'static str = "landing";
    const VERSION: u32 = 1;
}

/// The branch that each run was started from, by run id: where its result should land.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LandTargets(pub BTreeMap<String, String>);

impl Sealable for LandTargets {
    const KIND: &'static str = "landing-targets";
    const VERSION: u32 = 1;
}
