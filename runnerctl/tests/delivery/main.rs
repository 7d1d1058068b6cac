//! Deliveries with the real git, a bare repository as the remote, and stand-ins for `gh` and `glab`: what is pushed and
//! reported, what is refused, and that the next delivery completes an interrupted one.

mod completed;
#[path = "../fake/mod.rs"]
mod fake;
mod feedback;
mod offering;
mod pushing;
mod refusals;
mod stage;
