//! The clock for all measurements.

use std::time::Duration;

use nix::time::ClockId;

/// Returns the time since the machine started, including the time it slept.
///
/// Setting the system time does not change it, and all processes of one boot read the same value. It is meaningless in
/// another boot.
pub fn since_boot() -> Duration {
    ClockId::CLOCK_BOOTTIME.now().expect("BUG: every supported kernel has CLOCK_BOOTTIME").into()
}
