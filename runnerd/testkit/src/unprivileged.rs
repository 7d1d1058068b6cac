//! Runs a part of a test as an ordinary user: if the tests run as root, access that is denied to others would be
//! allowed.

use std::panic::resume_unwind;
use std::thread;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// The user `nobody`.
const NOBODY: u32 = 65534;

/// Runs a closure in a separate thread as an ordinary user; programs it starts run as that user, too.
///
/// # Panics
///
/// Panics if `act` does, or if root cannot switch to another user.
pub fn run_unprivileged<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let result = thread::scope(|scope| {
        let act = || {
            if geteuid().is_root() {
                drop_privileges().expect("root can become an ordinary user");
            }
            act()
        };
        scope.spawn(act).join()
    });
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

fn drop_privileges() -> rustix::io::Result<()> {
    let user = Uid::from_raw(NOBODY);
    let group = Gid::from_raw(NOBODY);
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)
}
