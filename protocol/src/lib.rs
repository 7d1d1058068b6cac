//! The protocol between `runnerctl` and `runnerd`, and the data formats that both share.
//!
//! Plain data with public fields, the method traits, and (feature `client`) the client's half of the connection.
//! Nothing here decides anything, and nothing here knows how the daemon works.

pub mod answer;
pub mod api;
pub mod begin;
pub mod bisect;
pub mod branch;
#[cfg(feature = "client")]
pub mod client;
pub mod command;
pub mod delivery;
pub mod doctor;
pub mod error;
pub mod event;
pub mod explain;
pub mod flakes;
pub mod hex;
pub mod hook;
pub mod host;
pub mod id_lookup;
pub mod landing;
pub mod meta;
pub mod path;
pub mod paths;
pub mod private_dir;
pub mod reply;
pub mod request;
pub mod review;
pub mod sanitize;
pub mod service;
pub mod settings_file;
pub mod shell;
pub mod startup;
pub mod state;
pub mod test_record;
pub mod text_file;
pub mod tip_log;
pub mod tree;
pub mod verify;
pub mod view;
pub mod words;
