//! Asks the user once before running commands of a repository that they did not write.

use std::io::{self, Write as _};

use protocol::client::CallError;
use protocol::error::{ErrorKind, ExitStatus};
use protocol::shell;

use crate::failure::{Failure, is_refusal, repeat_command, typed_words};
use crate::text::sanitize::sanitize_lines;
use crate::text::wrap::fit_lines;
use crate::ui::Ui;

/// Sends a request, and sends it again as confirmed if the daemon requires that and the user agrees.
pub(crate) async fn with_confirmation<T, E: Into<CallError>>(
    ui: &Ui,
    yes: bool,
    request: impl AsyncFn(bool) -> Result<T, E>,
) -> Result<T, Failure> {
    let error = match request(yes).await {
        Ok(reply) => return Ok(reply),
        Err(error) => error.into(),
    };
    if yes || !is_refusal(&error, ErrorKind::Unconfirmed) {
        return Err(error.into());
    }
    if !ui.can_ask() {
        return Err(Failure::from(error).hint(confirm_hint()));
    }
    if !ask_yes_no(&format!("{}\nRun these commands? [y/N] ", sanitize_lines(&error.to_string())))? {
        return Err(Failure::from(error).hint(confirm_hint()));
    }
    request(true).await.map_err(|error| error.into().into())
}

/// Says how to confirm the commands that a refusal shows.
fn confirm_hint() -> String {
    let words = typed_words();
    let again = repeat_command(&words, &["--yes"]);
    format!("look at the commands, then: {}", shell::join_args(again.iter().map(AsRef::as_ref)))
}

/// Asks the user up front about something that cannot be asked later.
pub(crate) fn require_confirmation(ui: &Ui, yes: bool, question: &str) -> Result<(), Failure> {
    let refused = || Failure::new(ExitStatus::Refused, ErrorKind::Unconfirmed.as_str(), "it was not confirmed");
    if yes {
        return Ok(());
    }
    if !ui.can_ask() {
        return Err(refused().hint("look at the commands in .runner/state/config.toml, then add --yes"));
    }
    if ask_yes_no(&format!("{question} [y/N] "))? { Ok(()) } else { Err(refused()) }
}

/// Asks a question on the terminal.
pub(crate) fn ask_yes_no(question: &str) -> Result<bool, Failure> {
    Ok(matches!(ask_line(question)?.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Asks which of several items is meant, by its number in a list; `None` if none of them is.
pub(crate) fn ask_choice(question: &str, items: &[String]) -> Result<Option<usize>, Failure> {
    let rows: Vec<String> = items.iter().zip(1..).map(|(item, number)| format!("  {number}  {item}\n")).collect();
    let answer = ask_line(&format!("{question}\n{}Number: ", rows.concat()))?;
    Ok(answer.trim().parse().ok().filter(|number| (1..=items.len()).contains(number)).map(|number: usize| number - 1))
}

fn ask_line(question: &str) -> Result<String, Failure> {
    let mut answer = String::new();
    let width = terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0));
    let mut stderr = io::stderr().lock();
    stderr
        .write_all(fit_lines(question, width).as_bytes())
        .and_then(|()| stderr.flush())
        .and_then(|()| io::stdin().read_line(&mut answer))
        .map_err(|error| Failure::io("asking", &error))?;
    Ok(answer)
}
