//! Inputs of a rendering other than its view: width, character set, the time, and whether it is meant for a screen
//! reader.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use protocol::command::Command;
use protocol::host::Host;

/// The reader's environment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// Width; `None` if the output is not a terminal.
    pub(crate) width: Option<usize>,
    /// Whether characters beyond ASCII can be shown.
    pub(crate) unicode: bool,
    /// Whether each fact is written in words on its own line, for screen readers and the like.
    pub(crate) is_plain: bool,
    /// The current time, for ages.
    pub(crate) now: Timestamp,
    /// Whether times of day are in the reader's time zone; otherwise they are in UTC.
    pub(crate) is_local: bool,
    /// The shell's current folder; `None` renders all paths as if the reader were there.
    pub(crate) shell_dir: Option<&'static Path>,
    /// The machine that the output is about, if it is not the reader's.
    pub(crate) host: Option<&'static Host>,
}

impl Screen {
    /// Returns the same screen for another machine: `--host` is added to suggested commands.
    pub(crate) fn for_host(self, host: &Host) -> Self {
        // The strings live as long as the program; there are only a few machines.
        Self { host: Some(Box::leak(Box::new(host.clone()))), ..self }
    }

    /// Determines the locale, and the terminal's capabilities unless plain output is requested, which has no width and
    /// no symbols.
    pub(crate) fn from_stdout(is_plain: bool) -> Self {
        Self {
            width: None,
            unicode: !is_plain && is_utf8(|name| std::env::var(name).ok()),
            is_plain,
            now: Timestamp::now(),
            is_local: true,
            shell_dir: shell_dir(),
            host: None,
        }
        .refreshed()
    }

    /// Updates the time and the size of the terminal.
    pub(crate) fn refreshed(self) -> Self {
        let size = || terminal_size::terminal_size_of(std::io::stdout());
        let width = if self.is_plain { None } else { size().map(|(width, _)| usize::from(width.0)) };
        Self { width, now: Timestamp::now(), ..self }
    }

    /// Returns a time by the reader's clock.
    pub(crate) fn to_zoned(self, time: Timestamp) -> Zoned {
        time.to_zoned(if self.is_local { TimeZone::system() } else { TimeZone::UTC })
    }

    /// Returns a command about a work tree as typed by the reader: with its path, unless they are in it. Git
    /// gets paths relative to the root of the work tree, while `runnerctl` works in any folder below it.
    pub(crate) fn command_line(self, command: &Command, work_tree: &Path) -> String {
        if let (Some(host), Some(path)) = (self.host, work_tree.to_str()) {
            return command.in_directory(path).on_host(host).to_shell();
        }
        let is_shell_dir = self.shell_dir.is_none_or(|shell_dir| match command.argv.first().map(String::as_str) {
            Some("git") => shell_dir == work_tree,
            _ => shell_dir.starts_with(work_tree),
        });
        match work_tree.to_str() {
            Some(path) if !is_shell_dir => command.in_directory(path).to_shell(),
            _ => command.to_shell(),
        }
    }

    /// Returns a text with its commands as the reader types them: with `--host` for another machine.
    pub(crate) fn with_host_in_text(self, text: &str) -> Cow<'_, str> {
        self.host.map_or(Cow::Borrowed(text), |host| Cow::Owned(host.with_host_in_text(text)))
    }

    /// Returns the character if it can be shown, otherwise its replacement.
    pub(crate) fn pick_symbol(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }
}

/// Returns the folder in which this program was started, which it never leaves.
fn shell_dir() -> Option<&'static Path> {
    static HERE: OnceLock<Option<PathBuf>> = OnceLock::new();
    HERE.get_or_init(|| std::env::current_dir().ok()).as_deref()
}

/// Whether plain output is requested other than on the command line: by `RUNNER_PLAIN`, or by a terminal that cannot
/// move its cursor.
pub(crate) fn is_plain_requested(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = variable("RUNNER_PLAIN").is_some_and(|value| !value.is_empty() && value != "0");
    is_set || variable("TERM").is_some_and(|term| term == "dumb")
}

/// Uses the first locale variable that is set, in POSIX order.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variable(name).filter(|value| !value.is_empty())).is_some_and(
        |locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        },
    )
}

#[cfg(test)]
impl Screen {
    /// A wide terminal in a UTF-8 locale at a fixed time.
    pub(crate) fn fixed() -> Self {
        let now = "2026-01-01T12:00:00Z".parse().expect("a time");
        Self { width: Some(100), unicode: true, is_plain: false, now, is_local: false, shell_dir: None, host: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_its_place_unless_the_reader_is_there() {
        let command_line = |shell_dir: &'static str, command: &Command| {
            Screen { shell_dir: Some(Path::new(shell_dir)), ..Screen::fixed() }
                .command_line(command, Path::new("/srv/a b"))
        };
        let resume = Command::retry("x");
        let stage = Command::stage(["y"]);
        assert_eq!(command_line("/srv/a b", &resume), "runnerctl retry x --resume");
        assert_eq!(command_line("/srv/a b/src", &resume), "runnerctl retry x --resume");
        assert_eq!(command_line("/srv", &resume), "runnerctl -C '/srv/a b' retry x --resume");
        assert_eq!(command_line("/srv/a b", &stage), "git add -- y");
        assert_eq!(command_line("/srv/a b/src", &stage), "git -C '/srv/a b' add -- y");
    }

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let variable = |name: &str| match name {
            "LC_ALL" => Some(String::new()),
            "LC_CTYPE" => Some("en_US.UTF-8".to_owned()),
            _ => Some("C".to_owned()),
        };
        assert!(is_utf8(variable));
        assert!(!is_utf8(|name| (name == "LANG").then(|| "C".to_owned())));
        assert!(!is_utf8(|_| None));
    }

    #[test]
    fn a_plain_reading_is_wanted_by_variable_or_by_the_terminal() {
        let is_wanted =
            |set: &'static str, to: &'static str| is_plain_requested(|name| (name == set).then(|| to.to_owned()));
        assert!(is_wanted("RUNNER_PLAIN", "1") && is_wanted("TERM", "dumb"));
        assert!(!is_wanted("RUNNER_PLAIN", "0") && !is_wanted("RUNNER_PLAIN", "") && !is_wanted("TERM", "xterm"));
    }
}
