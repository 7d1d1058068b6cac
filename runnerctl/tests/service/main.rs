//! The daemon as a service: under a service manager of the tests' own, under systemd's programs where they are
//! installed, and replaced by another one while a run is going.

mod installed;
mod managed;
mod systemd;
