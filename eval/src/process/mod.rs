//! Holds a program so that nothing of it outlives it: a small process between the harness and the program.
//!
//! `keeper` is that process, `held` is the harness's end of it. Nothing here knows cases or runs.

mod child_supervisor;
mod managed_process;

pub(crate) use self::child_supervisor::{INIT_COMMAND, KEEPER_COMMAND, init_main, supervisor_main};
pub(crate) use self::managed_process::{CapturedOutput, ManagedProcess, ProcessEnd, ProcessSpec, containment_level};
