//! Compares the module with the git program's results, in repositories with no configuration but their own. Both
//! engines run each case.

mod branches;
mod commits;
mod differential;
mod false_objects;
mod fixture;
mod forged;
mod grafts;
mod held_back;
mod ignore_rules;
mod index;
mod landings;
mod large_files;
mod links;
mod own;
mod pipes;
mod preload;
mod random;
mod reading;
mod replicas;
mod rescues;
mod runner_attributes;
mod transfer;
mod trusted;
mod upkeep;
mod within;
