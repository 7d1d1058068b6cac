//! The harness from outside, with the real daemon and client.

mod cases;
mod imports;
mod kit;
mod prompts;
mod slow;
