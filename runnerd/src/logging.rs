//! The daemon's own log: where it goes, what it contains, and how that is changed at run time.
//!
//! For operators. What happened to a run is in its records and events: this log may lose lines under load rather than
//! block the daemon.

mod files;
mod filter;
mod journal;

use std::env;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use protocol::private_dir::{self, PrivateDirError};
use tracing::Subscriber;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use self::files::{LIMITS, RollingFile};
use self::filter::parse_filter;
pub use self::filter::{FilterError, FilterHandle};
use crate::log_redactor::LogRedactor;

/// The variable that holds directives which override the settings.
pub const FILTER_VARIABLE: &str = "RUNNERD_LOG";
const DEFAULT_FILTER: &str = "info";
/// Number of lines that may be queued for the disk.
const MAX_BUFFERED_LINES: usize = 16 * 1024;

/// Where the log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogDestination {
    /// Standard error if it is a terminal or the journal, else the files.
    #[default]
    Auto,
    /// Standard error.
    Stderr,
    /// Eight files of at most 8 MiB each.
    Files,
}

/// Why the log cannot be set up or changed.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The directives cannot be read.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The log was already set up.
    #[error("cannot set up the log")]
    Init(#[from] TryInitError),
}

/// The log of this process; queued lines are written when this is dropped.
#[derive(Debug)]
pub struct Logging {
    filter: FilterHandle,
    redactor: LogRedactor,
    folder: Option<PathBuf>,
    dropped: Option<ErrorCounter>,
    _worker: Option<WorkerGuard>,
}

impl Logging {
    /// Returns a handle that changes the filter.
    pub fn filter(&self) -> FilterHandle {
        self.filter.clone()
    }

    /// Returns the secrets that are redacted in the log.
    pub fn redactor(&self) -> LogRedactor {
        self.redactor.clone()
    }

    /// Returns the folder of the files; `None` if the log goes to standard error.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns how many lines were lost because the disk was too slow.
    pub fn dropped_lines(&self) -> usize {
        self.dropped.as_ref().map_or(0, ErrorCounter::dropped_lines)
    }
}

/// Sets up the log of this process; creates `folder` if necessary.
///
/// `level` comes from the settings; [`FILTER_VARIABLE`] overrides it. If the folder is not writable, the log goes to
/// standard error instead.
///
/// # Errors
///
/// Fails if the directives cannot be parsed, or if the log was already set up.
pub fn init(folder: &Path, destination: LogDestination, level: Option<&str>) -> Result<Logging, LoggingError> {
    let variable = env::var(FILTER_VARIABLE).ok().filter(|value| !value.is_empty());
    let filter = match (&variable, level) {
        (Some(directives), _) => parse_filter(directives, FILTER_VARIABLE)?,
        (None, level) => parse_filter(level.unwrap_or(DEFAULT_FILTER), "log_level")?,
    };
    let (sink, sink_error) = LogSink::open(folder, destination);
    let (subscriber, mut logging) = build_subscriber(sink, filter);
    logging.folder = logging.dropped.is_some().then(|| folder.to_owned());
    subscriber.try_init()?;
    if let Some(error) = sink_error {
        tracing::warn!(error = &error as &dyn std::error::Error, "logging to standard error instead");
    }
    Ok(logging)
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
enum LogFilesError {
    #[error(transparent)]
    Folder(#[from] PrivateDirError),
    #[error("cannot write the log in {path}")]
    Open { path: PathBuf, source: io::Error },
}

/// The destination of lines.
enum LogSink {
    Stderr,
    Journal,
    Files(RollingFile),
}

impl LogSink {
    /// Opens the destination, or else standard error, and returns why the requested one was not used.
    fn open(folder: &Path, destination: LogDestination) -> (Self, Option<LogFilesError>) {
        match destination {
            LogDestination::Auto | LogDestination::Stderr if journal::is_stderr_journal() => {
                return (Self::Journal, None);
            }
            LogDestination::Auto if io::stderr().is_terminal() => return (Self::Stderr, None),
            LogDestination::Stderr => return (Self::Stderr, None),
            LogDestination::Auto | LogDestination::Files => {}
        }
        match open_files(folder) {
            Ok(files) => (Self::Files(files), None),
            Err(error) => (Self::Stderr, Some(error)),
        }
    }
}

fn open_files(folder: &Path) -> Result<RollingFile, LogFilesError> {
    private_dir::create_private_dir(folder)?;
    RollingFile::open(folder, LIMITS).map_err(|source| LogFilesError::Open { path: folder.to_owned(), source })
}

fn build_subscriber(sink: LogSink, filter: EnvFilter) -> (impl Subscriber + Send + Sync, Logging) {
    let (filter, handle) = reload::Layer::new(filter);
    let is_journal = matches!(sink, LogSink::Journal);
    let (writer, ansi, worker, dropped) = match sink {
        LogSink::Stderr => (BoxMakeWriter::new(io::stderr), wants_colour(), None, None),
        LogSink::Journal => (BoxMakeWriter::new(io::stderr), false, None, None),
        LogSink::Files(files) => {
            let (writer, worker) =
                NonBlockingBuilder::default().lossy(true).buffered_lines_limit(MAX_BUFFERED_LINES).finish(files);
            let dropped = writer.error_counter();
            (BoxMakeWriter::new(writer), false, Some(worker), Some(dropped))
        }
    };
    let redactor = LogRedactor::default();
    let lines = fmt::layer().with_writer(RedactingMakeWriter { writer, redactor: redactor.clone() }).with_ansi(ansi);
    let lines = if is_journal { lines.event_format(journal::JournalFormat::new()).boxed() } else { lines.boxed() };
    let logging = Logging { filter: FilterHandle { handle }, redactor, folder: None, dropped, _worker: worker };
    (tracing_subscriber::registry().with(filter).with(lines), logging)
}

/// Redacts the secrets in each line.
struct RedactingMakeWriter {
    writer: BoxMakeWriter,
    redactor: LogRedactor,
}

impl<'a> MakeWriter<'a> for RedactingMakeWriter {
    type Writer = RedactingWriter<'a>;

    fn make_writer(&'a self) -> RedactingWriter<'a> {
        RedactingWriter { writer: self.writer.make_writer(), redactor: &self.redactor }
    }
}

/// Writes each buffer at once, which is a whole line.
struct RedactingWriter<'a> {
    writer: Box<dyn Write + 'a>,
    redactor: &'a LogRedactor,
}

impl Write for RedactingWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.writer.write_all(&self.redactor.redact(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

fn wants_colour() -> bool {
    io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use runner_core::text::redact::Secrets;

    use super::*;

    /// Runs `work` with a log in `folder` and returns the content of the log.
    fn capture_log(folder: &Path, work: impl FnOnce(&FilterHandle)) -> String {
        capture_log_with(folder, |logging| work(&logging.filter()))
    }

    fn capture_log_with(folder: &Path, work: impl FnOnce(&Logging)) -> String {
        let (sink, sink_error) = LogSink::open(folder, LogDestination::Files);
        assert!(sink_error.is_none(), "{sink_error:?}");
        let (subscriber, logging) = build_subscriber(sink, parse_filter(DEFAULT_FILTER, "test").unwrap());
        tracing::subscriber::with_default(subscriber, || work(&logging));
        drop(logging);
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.map(|file| fs::read_to_string(file).unwrap()).collect()
    }

    #[test]
    fn the_log_is_written_to_a_private_folder_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("logs");
        let text = capture_log(&folder, |_| tracing::info!("one line"));
        assert!(text.contains("one line"), "{text}");
        private_dir::check_private_dir(&folder).unwrap();
    }

    #[test]
    fn a_secret_is_in_no_line() {
        let dir = tempfile::tempdir().unwrap();
        let text = capture_log_with(&dir.path().join("logs"), |logging| {
            logging.redactor().set("one", Secrets::from_variables([("API_KEY", "sk-0123456789")]).unwrap());
            tracing::info!(what = "with sk-0123456789", "and in the message: sk-0123456789");
        });
        assert!(!text.contains("sk-0123456789"), "{text}");
        assert_eq!(text.matches("[redacted: API_KEY]").count(), 2, "{text}");
    }

    #[test]
    fn the_filter_can_be_changed_while_the_log_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let text = capture_log(&dir.path().join("logs"), |filter| {
            tracing::debug!("before");
            filter.set("debug").unwrap();
            tracing::debug!("after");
            assert!(filter.current().contains("debug"), "{}", filter.current());
        });
        assert!(!text.contains("before") && text.contains("after"), "{text}");
    }

    #[test]
    fn directives_that_cannot_be_read_leave_the_filter_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let text = capture_log(&dir.path().join("logs"), |filter| {
            let error = filter.set("runnerd=loud").unwrap_err();
            assert!(error.to_string().starts_with("cannot read `runnerd=loud`, at character 1 "), "{error}");
            tracing::info!("still here");
        });
        assert!(text.contains("still here"), "{text}");
    }

    #[test]
    fn every_connection_is_told_of_only_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let text = capture_log(&dir.path().join("logs"), |filter| {
            filter.set("debug").unwrap();
            tracing::debug!(target: "jsonrpsee-server", "quiet");
            filter.set("jsonrpsee-server=debug").unwrap();
            tracing::debug!(target: "jsonrpsee-server", "asked for");
        });
        assert!(!text.contains("quiet") && text.contains("asked for"), "{text}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_sends_the_log_to_standard_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let (sink, sink_error) = LogSink::open(&file.join("logs"), LogDestination::Files);
        assert!(matches!(sink, LogSink::Stderr));
        assert!(matches!(sink_error, Some(LogFilesError::Folder(_))), "{sink_error:?}");
    }
}
