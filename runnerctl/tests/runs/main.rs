//! Whole runs: the real daemon and client in a home of their own, a scripted agent, the git program as witness.
//!
//! What the rules decide is tested without processes in `runner-core`; here it is seen in the branch.

mod agents;
mod audits;
mod bisect;
mod broken;
mod ci;
mod claude;
mod codex;
mod containment;
mod determinism;
mod elsewhere;
mod explain;
mod fallback;
mod flood;
mod forged_index;
mod forgeries;
mod fork;
mod guard_definition;
mod histories;
mod history;
mod hooks;
mod logs;
mod plain;
mod play;
mod precedence;
mod records;
mod refused;
mod replaced_objects;
mod review;
mod review_by_person;
mod roles;
mod secrets;
mod settings;
mod side_files;
mod signatures;
mod sleep;
mod slow;
mod status;
mod steering;
mod usage;
mod verdicts;
mod verify_formats;
mod waiting;
mod watch;
mod workspaces;
