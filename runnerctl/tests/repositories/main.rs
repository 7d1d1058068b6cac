//! Unusual repositories, through the real daemon and client: work trees that people have, and what is refused in them.
//!
//! How the daemon uses git is tested in `runnerd`; here it is tested as a user sees it, with the git program.

mod answers;
mod begin;
mod bytes;
mod contents;
mod guard_files;
mod guards;
mod place;
mod readme;
mod refusals;
mod sparse;
mod stored;
mod taken_settings;
