//! The daemon as a library: what `runnerd` is made of, for its binary and its tests.

pub mod admit;
pub mod agent;
pub mod causes;
pub mod client_gone;
pub mod clock;
pub mod config;
pub mod containment_check;
pub mod daemon;
pub mod events;
pub mod git;
pub mod guard;
pub mod hidden;
pub mod logging;
pub mod methods;
pub mod obstruction;
pub mod private;
pub mod process;
pub mod registry;
pub mod repo;
pub mod review;
pub mod rpc;
pub mod service;
pub mod startup;
pub mod store;
mod temporary;
pub mod verify;
pub mod worker;
