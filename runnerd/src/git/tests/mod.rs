//! The module against the git program's own results, in repositories that no configuration but their own reaches. Each
//! case is carried out by both engines.

mod branches;
mod commits;
mod differential;
mod false_objects;
mod fixture;
mod forged;
mod grafts;
mod held_back;
mod index;
mod landings;
mod links;
mod own;
mod pipes;
mod preload;
mod random;
mod reading;
mod replicas;
mod rescues;
mod transfer;
mod trusted;
mod upkeep;
mod within;
