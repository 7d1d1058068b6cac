//! Shows long text in a pager, if there is a terminal: `$PAGER`, else `less`.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Child, Command, Stdio};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use protocol::error::ExitStatus;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;
use crate::ui::Ui;

/// Options of `less`: exit if the text fits on one screen, show colors, leave the text on the screen.
const LESS_OPTIONS: &str = "FRX";
/// A shell's exit codes for a command that is not executable, and for one that is not found.
const NOT_STARTED: [i32; 2] = [126, 127];

/// Destination of text.
#[derive(Debug)]
pub(crate) struct Pager<'a> {
    ui: &'a Ui,
    program: Option<PagerProcess>,
    has_color: bool,
}

#[derive(Debug)]
struct PagerProcess {
    child: Child,
    name: String,
    /// Handled so that Ctrl-C goes to the pager and this program outlives it.
    _interrupt: Option<Signal>,
}

impl<'a> Pager<'a> {
    /// Starts the pager; without terminal or pager, or in plain mode, text goes to standard output.
    pub(crate) fn open(ui: &'a Ui) -> Self {
        let is_wanted = io::stdout().is_terminal() && std::env::var_os("TERM").is_some() && !ui.screen().is_plain;
        let has_color = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        Self { ui, program: is_wanted.then(start_pager).flatten(), has_color }
    }

    /// Writes text.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), Failure> {
        let Some(mut pipe) = self.program.as_ref().and_then(|program| program.child.stdin.as_ref()) else {
            return self.ui.print_text(text);
        };
        let text = self.ui.to_displayable(text);
        let plain = if self.has_color { text.into_owned() } else { strip_str(&text).to_string() };
        let written = pipe.write_all(plain.as_bytes()).map_err(|error| Failure::io("writing to the pager", &error));
        // Quitting the pager early is not an error; a pager that never ran is one, and its exit code tells them apart.
        written.or_else(|failure| self.finish().and(Err(failure)))
    }

    /// Waits until the user leaves the pager.
    pub(crate) fn close(mut self) -> Result<(), Failure> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.program.take().map_or(Ok(()), PagerProcess::wait_for_exit)
    }
}

impl PagerProcess {
    fn wait_for_exit(mut self) -> Result<(), Failure> {
        drop(self.child.stdin.take());
        let status = self.child.wait().map_err(|error| Failure::io("waiting for the pager", &error))?;
        if status.code().is_some_and(|code| NOT_STARTED.contains(&code)) {
            let message = format!("the pager `{}` cannot be started", self.name);
            return Err(Failure::new(ExitStatus::Error, "pager", message).hint("PAGER=cat"));
        }
        Ok(())
    }
}

impl Drop for Pager<'_> {
    /// Even after a failed write, the pager must release the terminal first.
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

fn start_pager() -> Option<PagerProcess> {
    let configured = std::env::var("PAGER").ok();
    let mut command = match configured.as_deref() {
        Some("" | "cat") => return None,
        Some(pager) => shell_command(pager),
        None => Command::new("less"),
    };
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS_OPTIONS);
    }
    let child = command.stdin(Stdio::piped()).spawn().ok()?;
    let name = configured.unwrap_or_else(|| "less".to_owned());
    Some(PagerProcess { child, name, _interrupt: signal(SignalKind::interrupt()).ok() })
}

/// Through a shell, because the variable may contain options.
fn shell_command(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    shell
}
