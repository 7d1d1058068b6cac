//! Isolated runs through the real daemon and client: beside the work of whoever started them, several at once, and gone
//! without a trace but their branch.

mod alike;
mod beside;
mod crowd;
mod kit;
mod large;
mod lost_source;
mod several;
mod shared;
mod swept;
