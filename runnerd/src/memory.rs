//! Settings of the system's allocator for a daemon that runs for months.

/// Number of malloc arenas, which threads share: one for each of the threads that drive what others wait for.
#[cfg(target_env = "gnu")]
const MAX_ARENAS: i32 = 2;

/// Makes threads share arenas: otherwise the system's allocator gives each thread its own, which keeps the memory that
/// a large task tree once used there. Must be called before there are other threads.
pub fn limit_arenas() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "there is no other way to set it from within; it only takes two numbers")]
    // SAFETY: there is no other thread yet, and unknown options have no effect.
    unsafe {
        nix::libc::mallopt(nix::libc::M_ARENA_MAX, MAX_ARENAS);
    }
}

/// Returns freed memory to the system: memory used for a long read would otherwise stay with the daemon, since small
/// allocations follow it.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "no library calls it; it takes a number, and may be called by any thread")]
    // SAFETY: it locks what it looks at, and touches only what is free.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}
