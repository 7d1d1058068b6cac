//! Lines for the journal of systemd, which takes them from standard error and has their time already.

use std::env;
use std::fmt;
use std::io;

use nix::sys::stat::fstat;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The variable that names the device and the inode of the journal's end of standard error.
const STREAM_VARIABLE: &str = "JOURNAL_STREAM";

/// Returns whether standard error goes to the journal: a process that was started elsewhere may have the variable, too.
pub(super) fn is_stderr_journal() -> bool {
    let Ok(named) = env::var(STREAM_VARIABLE) else { return false };
    fstat(io::stderr()).is_ok_and(|found| named == format!("{}:{}", found.st_dev, found.st_ino))
}

/// A line without time, and with the priority in front that `sd-daemon(3)` names.
pub(super) struct JournalFormat(Format<Full, ()>);

impl JournalFormat {
    pub(super) fn new() -> Self {
        Self(Format::default().without_time().with_ansi(false))
    }
}

impl<S, N> FormatEvent<S, N> for JournalFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        write!(writer, "<{}>", priority(*event.metadata().level()))?;
        self.0.format_event(context, writer, event)
    }
}

fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}
