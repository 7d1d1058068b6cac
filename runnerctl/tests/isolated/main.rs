//! Isolated runs through the real daemon and client: alongside the work of the people who started them, several at
//! once, and removed with nothing left but their branches.

mod alike;
mod beside;
mod crowd;
mod kit;
mod large;
mod lost_source;
mod several;
mod shared;
mod swept;
