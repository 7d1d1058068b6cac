//! `edit`: opens the task tree in an editor, then has the result checked and committed.
//!
//! Edits are never lost: they stay in their file until they are committed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use protocol::api::{RunApiClient as _, TreeApiClient};
use protocol::client::{CallError, Connection};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::path::WirePath;
use protocol::reply::ChangeReply;
use protocol::request::{AtRun, EditParams};
use tempfile::TempDir;

use crate::editor;
use crate::failure::{Failure, is_refusal};
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::change::render_change;
use crate::text_file;

/// Maximum size of a file with a task tree, in kibibytes: well above that of any legal one.
const TREE_LIMIT_KIB: u64 = 64 << 10;

const EXAMPLES: &str = "Examples:
  runnerctl edit                     in $VISUAL, else $EDITOR, else vi
  runnerctl edit --file tree.json    without an editor; `-` is stdin";

/// Edit the task tree in your editor
///
/// You can change everything except tasks that have passed. The edited tree is checked and committed, immediately or
/// when the current session ends. Rejected edits are kept.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    target: RunTarget,
    /// Read the tree from FILE
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: EditArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let at = args.target.resolve_one(invocation, connection.client()).await?;
    let folder = tempfile::Builder::new().prefix("runnerctl-edit").tempdir();
    let folder = folder.map_err(|error| Failure::temp_file(&error))?;
    match args.file {
        Some(file) => {
            let text = read_tree_file(&file)?;
            let file = folder.path().join("tree.json");
            fs::write(&file, text).map_err(|error| Failure::io(format!("writing {}", file.display()), &error))?;
            let reply = send_edit(&connection, EditParams { at, file: WirePath(file), opened: None }).await?;
            print_reply(invocation, &reply)
        }
        None => edit_interactively(invocation, &connection, at, folder).await,
    }
}

fn read_tree_file(file: &Path) -> Result<String, Failure> {
    let text = if file == Path::new("-") {
        io::read_to_string(io::stdin()).map_err(|error| Failure::io("reading standard input", &error))
    } else {
        text_file::read_text("task tree", file, TREE_LIMIT_KIB)
    };
    text.map_err(|failure| failure.or_hint("name an existing file, or use your editor: runnerctl edit"))
}

/// Opens the tree in an editor, repeatedly, until it is accepted or the user gives up.
async fn edit_interactively(
    invocation: &Invocation<'_>,
    connection: &Connection,
    at: AtRun,
    folder: TempDir,
) -> Result<ExitStatus, Failure> {
    let status = connection.client().status(at.clone()).await?;
    let run = status.run.map(|run| run.summary.id).or(at.run);
    let at = AtRun { run, ..at };
    let tree = TreeApiClient::get(connection.client(), at.clone()).await?;
    let text = serde_json::to_string_pretty(&tree.tree).expect("BUG: a tree does not serialize") + "\n";
    let file = folder.path().join("tree.json");
    fs::write(&file, &text).map_err(|error| Failure::io(format!("writing {}", file.display()), &error))?;
    let params = EditParams { at, file: WirePath(file.clone()), opened: Some(tree.digest) };
    loop {
        editor::edit_file(&file)
            .map_err(|failure| failure.hint("set VISUAL or EDITOR, or: runnerctl edit --file FILE"))?;
        if read_tree_file(&file)? == text {
            invocation.ui.print_note("Nothing was changed.\n");
            return Ok(ExitStatus::Success);
        }
        let error = match connection.client().edit(params.clone()).await.map_err(CallError::from) {
            Ok(reply) => return print_reply(invocation, &reply),
            Err(error) => error,
        };
        let can_be_fixed = is_refusal(&error, ErrorKind::InvalidRequest) || is_refusal(&error, ErrorKind::WrongState);
        if !(can_be_fixed && invocation.ui.can_ask() && editor::ask_to_retry(&error.to_string())?) {
            let file = folder.keep().join("tree.json");
            return Err(Failure::from(error)
                .hint(format!("your edit is kept; to try again: runnerctl edit --file {}", file.display())));
        }
    }
}

async fn send_edit(connection: &Connection, params: EditParams) -> Result<ChangeReply, Failure> {
    Ok(connection.client().edit(params).await?)
}

fn print_reply(invocation: &Invocation<'_>, reply: &ChangeReply) -> Result<ExitStatus, Failure> {
    invocation.ui.print_answer("edit", reply, |_| render_change(reply))?;
    Ok(ExitStatus::Success)
}
