//! Exports a run as one file that displays it without a server: the page, and the replies it would request. Never
//! changes the run.

mod bundle;
mod gather;
mod template;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use protocol::view::IterationView;
use tempfile::NamedTempFile;

use self::bundle::{ExportBundle, to_embedded_json};
use self::gather::{ExportedRun, iteration_title};
use self::template::PageTemplate;
use crate::app::App;
use crate::args::Args;
use crate::problem::ApiProblem;
use crate::target::IterationId;
use crate::wire::{ErrorReply, ExportedFile, RunFile};

/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: usize = 20_000_000;
/// Bytes reserved for the file's description of itself.
const METADATA_BYTES: usize = 4096;

/// Writes a run to a file: the named run, else the current one.
///
/// # Errors
///
/// Explains why nothing was written.
pub async fn export(app: &App, to: &Path, args: &Args) -> Result<ExportedFile, ErrorReply> {
    write_run_file(app, to, args).await.map_err(ErrorReply::from)
}

async fn write_run_file(app: &App, to: &Path, args: &Args) -> Result<ExportedFile, ApiProblem> {
    if !args.force && fs::symlink_metadata(to).is_ok() {
        return Err(already_exists(to));
    }
    let template = PageTemplate::from_embedded()?;
    let exported_run = ExportedRun::find(app, args.run.as_deref()).await?;
    let page_bytes = template.render(&exported_run.empty_file()).len() + METADATA_BYTES;
    let contents = ExportContents::read(&exported_run, MAX_FILE_BYTES.saturating_sub(page_bytes)).await?;
    let cuts = contents.describe_cuts();
    let mut summary = ExportedFile {
        run: exported_run.run.clone(),
        bytes: 0,
        iterations: contents.iterations,
        shortened: contents.bundle.shortened,
        without_texts: contents.without_texts,
        cuts,
    };
    let run_file = RunFile {
        cuts: summary.cuts.clone(),
        without_texts: summary.without_texts.clone(),
        replies: contents.bundle.replies,
        texts: contents.bundle.texts,
        ..exported_run.empty_file()
    };
    let html = template.render(&run_file);
    summary.bytes = html.len() as u64;
    persist_file(html, to.to_owned(), args.force).await?;
    Ok(summary)
}

impl ExportedRun {
    fn empty_file(&self) -> RunFile {
        RunFile {
            version: env!("CARGO_PKG_VERSION").into(),
            made_at: Timestamp::now(),
            repo: self.repo.clone(),
            run: self.run.clone(),
            cuts: Vec::new(),
            without_texts: Vec::new(),
            replies: BTreeMap::new(),
            texts: BTreeMap::new(),
        }
    }
}

/// Contents of the file, within its size limit.
struct ExportContents {
    bundle: ExportBundle,
    iterations: u64,
    without_texts: Vec<String>,
}

impl ExportContents {
    /// Reads the run, then the outcome of each iteration, then the texts they left, newest first.
    async fn read(subject: &ExportedRun, limit: usize) -> Result<Self, ApiProblem> {
        let (overview, iterations) = subject.read_overview().await?;
        let mut all: Vec<IterationId> = iterations.iter().map(iteration_id).collect();
        all.extend(subject.live_iteration().map(|number| IterationId { number, wait: None }));
        // Names of iterations whose texts may be omitted.
        let names = all.iter().map(|iter| to_embedded_json(&iteration_title(*iter)).len() + 1).sum();
        let mut contents =
            Self { bundle: ExportBundle::new(limit.saturating_sub(names)), iterations: 0, without_texts: Vec::new() };
        contents.iterations = iterations.len() as u64;
        if !contents.bundle.add_all(overview) {
            let message = format!(
                "the task tree and the list of iterations alone are larger than {} MB",
                MAX_FILE_BYTES / 1_000_000
            );
            return Err(ApiProblem::invalid_file(message).hint("runnerctl ui"));
        }
        for iter in all.iter().rev() {
            if !contents.bundle.add_all(subject.read_outcome(*iter).await?) {
                break;
            }
        }
        let mut is_full = false;
        for iter in all.iter().rev() {
            is_full = is_full || !contents.bundle.add_all(subject.read_texts(*iter).await?);
            if is_full {
                contents.without_texts.push(iteration_title(*iter));
            }
        }
        contents.without_texts.reverse();
        Ok(contents)
    }

    fn describe_cuts(&self) -> Vec<String> {
        let mut cuts = Vec::new();
        match self.bundle.shortened.len() {
            0 => {}
            1 => cuts.push("one long text is here with its beginning and its end alone".to_owned()),
            count => cuts.push(format!("{count} long texts are here with their beginning and their end alone")),
        }
        match (&self.without_texts[..], MAX_FILE_BYTES / 1_000_000) {
            ([], _) => {}
            ([one], most) => cuts.push(format!("the texts of iteration {one} are left out: a file holds {most} MB")),
            ([first, .., last], most) => {
                cuts.push(format!("the texts of iterations {first} to {last} are left out: a file holds {most} MB"));
            }
        }
        cuts
    }
}

fn iteration_id(view: &IterationView) -> IterationId {
    IterationId { number: view.iter, wait: view.wait }
}

/// Writes the file atomically; an existing file is only replaced if requested.
async fn persist_file(html: String, to: PathBuf, force: bool) -> Result<(), ApiProblem> {
    let shown = to.display().to_string();
    let persist = move || {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(html.as_bytes())?;
        file.as_file().sync_all()?;
        let placed = if force { file.persist(&to) } else { file.persist_noclobber(&to) };
        placed.map(drop).map_err(|error| error.error)
    };
    let result = tokio::task::spawn_blocking(persist).await.map_err(io::Error::other).and_then(|put| put);
    result.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(Path::new(&shown)),
        _ => ApiProblem::fault(format!("writing {shown}: {error}")),
    })
}

fn already_exists(to: &Path) -> ApiProblem {
    ApiProblem::invalid(format!("{} already exists; nothing is overwritten without --force", to.display()))
        .hint("name another file, or add --force")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_replaced_only_where_that_is_asked_for_and_is_open_to_nobody_else() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("run.html");
        let persist_text = |text: &str, force| persist_file(text.to_owned(), to.clone(), force);
        persist_text("one", false).await.expect("nothing is there");
        let refused = persist_text("two", false).await.expect_err("it is there");
        assert!(refused.to_string().contains("--force"), "{refused}");
        assert_eq!(fs::read_to_string(&to).expect("a file"), "one");
        persist_text("three", true).await.expect("that is asked for");
        assert_eq!(fs::read_to_string(&to).expect("a file"), "three");
        assert_eq!(fs::metadata(&to).expect("a file").permissions().mode() & 0o777, 0o600);
        persist_file("four".into(), folder.path().join("none/run.html"), false)
            .await
            .expect_err("there is no such folder");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is left");
    }
}
