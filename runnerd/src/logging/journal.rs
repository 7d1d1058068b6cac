//! Formats lines for the journal of systemd, which reads standard error and adds its own timestamps.

use std::env;
use std::fmt;
use std::io;

use nix::sys::stat::fstat;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The variable with the device and inode numbers of standard error, if it is connected to the journal.
const STREAM_VARIABLE: &str = "JOURNAL_STREAM";

/// Whether standard error goes to the journal: the variable alone may have been inherited from another process.
pub(super) fn is_stderr_journal() -> bool {
    let Ok(stream) = env::var(STREAM_VARIABLE) else { return false };
    fstat(io::stderr()).is_ok_and(|metadata| stream == format!("{}:{}", metadata.st_dev, metadata.st_ino))
}

/// Formats a line without a time, and with the priority prefix of `sd-daemon(3)`.
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
