//! Odd repositories, through the real daemon and client: work trees as people have them, and what is refused in them.
//!
//! What the engine does with git is tested in `runnerd`; here it is seen by a user, and by the git program.

mod answers;
mod begin;
mod bytes;
mod contents;
mod guard_files;
mod guards;
mod place;
mod readme;
mod refusals;
mod stored;
