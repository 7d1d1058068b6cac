//! Holds a program so that nothing of it outlives it: a small process between the harness and the program.
//!
//! `keeper` is that process, `held` is the harness's end of it. Nothing here knows cases or runs.

mod managed_process;
mod child_supervisor;

pub(crate) use self::managed_process::{CapturedOutput, ProcessEnd, ManagedProcess, ProcessSpec, containment_level};
pub(crate) use self::child_supervisor::{INIT_COMMAND, KEEPER_COMMAND, init_main, supervisor_main};
