//! The clock of everything that is measured.

use std::time::Duration;

use nix::time::ClockId;

/// Returns the time since the machine started, the time it slept included.
///
/// Setting the clock does not change it, and all processes of one boot read the same value. It means nothing in another
/// boot.
pub fn since_boot() -> Duration {
    ClockId::CLOCK_BOOTTIME.now().expect("BUG: every supported kernel has CLOCK_BOOTTIME").into()
}
