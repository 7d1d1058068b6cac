//! One iteration: the loop, what it asks of the world, and a file for each effect.

pub(crate) mod brief;
pub(crate) mod drive;
pub(crate) mod effects;
pub(crate) mod guard;
pub(crate) mod inspect;
pub(crate) mod log;
pub(crate) mod node_limits;
pub(crate) mod open;
pub(crate) mod relay;
pub(crate) mod review;
pub(crate) mod session;
pub(crate) mod settle;
pub(crate) mod world;
