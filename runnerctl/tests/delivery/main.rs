//! Deliveries with the real git, a bare repository for a remote and stand-ins for `gh` and `glab`: what is pushed and said,
//! what is refused, and that a delivery which was interrupted is brought to its end by the next one.

mod completed;
#[path = "../fake/mod.rs"]
mod fake;
mod feedback;
mod offering;
mod pushing;
mod refusals;
mod stage;
