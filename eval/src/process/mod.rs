//! Supervises a program so that no part of it outlives it, with a small process between the harness and the program.
//!
//! `child_supervisor` is that process, the keeper; `managed_process` is the harness's side of it. Nothing here knows
//! about cases or runs.

mod child_supervisor;
mod managed_process;

pub(crate) use self::child_supervisor::{INIT_COMMAND, SUPERVISOR_COMMAND, init_main, supervisor_main};
pub(crate) use self::managed_process::{CapturedOutput, ManagedProcess, ProcessEnd, ProcessSpec, containment_level};
