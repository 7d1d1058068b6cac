//! The daemon as a service: with the tests' own service manager, with systemd's programs if they are installed, and
//! replaced by another daemon while a run is active.

mod installed;
mod managed;
mod systemd;
