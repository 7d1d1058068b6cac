//! What is kept of landings with the daemon's state: the move of a branch that is under way, and the branch that each run
//! was started from.

use std::collections::BTreeMap;

use protocol::path::WirePath;
use serde::{Deserialize, Serialize};

use crate::repo::kept::Sealable;

/// A move of a branch that was begun: what is needed to put it right after a death.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingLanding {
    /// The work tree that the request named.
    pub path: WirePath,
    /// Short name of the branch.
    pub branch: String,
    /// The commit that it was at; none where it was to be made.
    pub old: Option<String>,
    /// The commit that it was to be at.
    pub new: String,
    /// The work tree that has it checked out.
    pub holder: Option<WirePath>,
}

impl Sealable for PendingLanding {
    const KIND: &'static str = "landing";
    const VERSION: u32 = 1;
}

/// The branch that each run was started from, by id: where its result is to go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LandTargets(pub BTreeMap<String, String>);

impl Sealable for LandTargets {
    const KIND: &'static str = "landing-targets";
    const VERSION: u32 = 1;
}
