//! The fault matrix: one test for each row, `row_NN_…`, in the file of its group. `docs/contributing/faults.md`
//! describes each row, and says which rows cannot be run on this kind of machine.
//!
//! Quick rows are part of the default run; those in modules called `slow` are run by `just test-faults`. Every row ends
//! with [`checks::assert_survived`]; a row about ending processes has a control next to it that must leak.

mod attack;
mod checks;
mod disk;
mod document;
mod git;
mod isolated;
mod output;
mod processes;
mod publishing;
mod refusal;
mod requests;
mod stage;
mod state;
mod time;
mod workspaces;
