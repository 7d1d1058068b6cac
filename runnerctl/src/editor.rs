//! Opens a file in the user's editor, and asks whether to edit a rejected text again.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::Command;

use protocol::error::ExitStatus;

use crate::failure::Failure;
use crate::text::sanitize::sanitize_lines;

/// Opens a file in the user's editor and waits until the editor exits. As in git, the variable may contain options.
pub(crate) fn edit_file(file: &Path) -> Result<(), Failure> {
    let from_variable = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let named = from_variable("VISUAL").or_else(|| from_variable("EDITOR"));
    if named.is_none() && !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let message = "no editor is named, and vi needs a terminal; nothing was changed";
        return Err(Failure::new(ExitStatus::Error, "editor", message).hint("set VISUAL or EDITOR"));
    }
    let editor = named.unwrap_or_else(|| "vi".into());
    let name = editor.to_string_lossy().into_owned();
    let mut script = editor;
    script.push(" \"$@\"");
    let status = Command::new("/bin/sh").arg("-c").arg(script).arg("editor").arg(file).status();
    let status = status.map_err(|error| Failure::io(format!("starting the editor `{name}`"), &error))?;
    if status.success() {
        return Ok(());
    }
    let message = format!("the editor `{name}` ended with {status}; nothing was changed");
    Err(Failure::new(ExitStatus::Error, "editor", message).hint("set VISUAL or EDITOR"))
}

/// Reports what was wrong, and asks whether to edit the text again.
pub(crate) fn ask_to_retry(why: &str) -> Result<bool, Failure> {
    let mut answer = String::new();
    let mut stderr = io::stderr().lock();
    stderr
        .write_all(format!("{}\nEdit it again? [Y/n] ", sanitize_lines(why)).as_bytes())
        .and_then(|()| stderr.flush())
        .and_then(|()| io::stdin().read_line(&mut answer))
        .map_err(|error| Failure::io("asking whether to continue", &error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes"))
}
