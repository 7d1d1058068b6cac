//! What the system's allocator is told about the memory of a daemon that lives for months.

/// Places that threads take memory from: one for each of those that drive what others wait for.
#[cfg(target_env = "gnu")]
const PLACES: i32 = 2;

/// Has threads share what they take memory from: the system's allocator gives each of them a place of its own, which
/// keeps the room that a large task tree took there once. Called before there are any.
pub fn limit_arenas() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "there is no other way to set it from within; it only takes two numbers")]
    // SAFETY: no other thread is there yet, and what it does not know it leaves as it is.
    unsafe {
        nix::libc::mallopt(nix::libc::M_ARENA_MAX, PLACES);
    }
}

/// Gives the system back what was freed: what a long read took would stay with the daemon for good, since something small
/// lies behind it.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "no library calls it; it takes a number, and may be called by any thread")]
    // SAFETY: it locks what it looks at, and touches only what is free.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}
