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

use self::bundle::{ExportBundle, written};
use self::gather::{ExportedRun, title};
use self::template::PageTemplate;
use crate::app::App;
use crate::args::Args;
use crate::problem::ApiProblem;
use crate::target::IterationId;
use crate::wire::{ErrorReply, FileMade, RunFile};

/// Maximum size of the file, in bytes.
const MOST: usize = 20_000_000;
/// Bytes reserved for the file's description of itself.
const ABOUT: usize = 4096;

/// Writes a run to a file: the named run, else the current one.
///
/// # Errors
///
/// Explains why nothing was written.
pub async fn export(app: &App, to: &Path, args: &Args) -> Result<FileMade, ErrorReply> {
    write(app, to, args).await.map_err(ErrorReply::from)
}

async fn write(app: &App, to: &Path, args: &Args) -> Result<FileMade, ApiProblem> {
    if !args.force && fs::symlink_metadata(to).is_ok() {
        return Err(taken(to));
    }
    let sheet = PageTemplate::embedded()?;
    let subject = ExportedRun::find(app, args.run.as_deref()).await?;
    let read = ExportContents::of(&subject, MOST - sheet.html(&subject.empty()).len() - ABOUT).await?;
    let cuts = read.cuts();
    let mut made = FileMade {
        run: subject.run.clone(),
        bytes: 0,
        iterations: read.iterations,
        shortened: read.parcel.shortened,
        without_texts: read.without_texts,
        cuts,
    };
    let shown = RunFile {
        cuts: made.cuts.clone(),
        without_texts: made.without_texts.clone(),
        replies: read.parcel.replies,
        texts: read.parcel.texts,
        ..subject.empty()
    };
    let html = sheet.html(&shown);
    made.bytes = html.len() as u64;
    place(html, to.to_owned(), args.force).await?;
    Ok(made)
}

impl ExportedRun {
    fn empty(&self) -> RunFile {
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
    parcel: ExportBundle,
    iterations: u64,
    without_texts: Vec<String>,
}

impl ExportContents {
    /// Reads the run, then the outcome of each iteration, then the texts they left, newest first.
    async fn of(subject: &ExportedRun, room: usize) -> Result<Self, ApiProblem> {
        let (whole, iterations) = subject.whole().await?;
        let mut all: Vec<IterationId> = iterations.iter().map(iter).collect();
        all.extend(subject.live().map(|number| IterationId { number, wait: None }));
        // Names of iterations whose texts may be omitted.
        let names = all.iter().map(|iter| written(&title(*iter)).len() + 1).sum();
        let mut read =
            Self { parcel: ExportBundle::new(room.saturating_sub(names)), iterations: 0, without_texts: Vec::new() };
        read.iterations = iterations.len() as u64;
        if !read.parcel.take(whole) {
            let message =
                format!("the task tree and the list of iterations alone are larger than {} MB", MOST / 1_000_000);
            return Err(ApiProblem::not_valid(message).hint("runnerctl ui"));
        }
        for iter in all.iter().rev() {
            if !read.parcel.take(subject.outcome(*iter).await?) {
                break;
            }
        }
        let mut is_full = false;
        for iter in all.iter().rev() {
            is_full = is_full || !read.parcel.take(subject.texts(*iter).await?);
            if is_full {
                read.without_texts.push(title(*iter));
            }
        }
        read.without_texts.reverse();
        Ok(read)
    }

    fn cuts(&self) -> Vec<String> {
        let mut cuts = Vec::new();
        match self.parcel.shortened.len() {
            0 => {}
            1 => cuts.push("one long text is here with its beginning and its end alone".to_owned()),
            count => cuts.push(format!("{count} long texts are here with their beginning and their end alone")),
        }
        match (&self.without_texts[..], MOST / 1_000_000) {
            ([], _) => {}
            ([one], most) => cuts.push(format!("the texts of iteration {one} are left out: a file holds {most} MB")),
            ([first, .., last], most) => {
                cuts.push(format!("the texts of iterations {first} to {last} are left out: a file holds {most} MB"));
            }
        }
        cuts
    }
}

fn iter(view: &IterationView) -> IterationId {
    IterationId { number: view.iter, wait: view.wait }
}

/// Writes the file atomically; an existing file is only replaced if requested.
async fn place(html: String, to: PathBuf, force: bool) -> Result<(), ApiProblem> {
    let shown = to.display().to_string();
    let put = move || {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(html.as_bytes())?;
        file.as_file().sync_all()?;
        let placed = if force { file.persist(&to) } else { file.persist_noclobber(&to) };
        placed.map(drop).map_err(|error| error.error)
    };
    let put = tokio::task::spawn_blocking(put).await.map_err(io::Error::other).and_then(|put| put);
    put.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => taken(Path::new(&shown)),
        _ => ApiProblem::fault(format!("writing {shown}: {error}")),
    })
}

fn taken(to: &Path) -> ApiProblem {
    ApiProblem::invalid(format!("{} is there already; nothing is overwritten without --force", to.display()))
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
        let put = |text: &str, force| place(text.to_owned(), to.clone(), force);
        put("one", false).await.expect("nothing is there");
        let refused = put("two", false).await.expect_err("it is there");
        assert!(refused.to_string().contains("--force"), "{refused}");
        assert_eq!(fs::read_to_string(&to).expect("a file"), "one");
        put("three", true).await.expect("that is asked for");
        assert_eq!(fs::read_to_string(&to).expect("a file"), "three");
        assert_eq!(fs::metadata(&to).expect("a file").permissions().mode() & 0o777, 0o600);
        place("four".into(), folder.path().join("none/run.html"), false).await.expect_err("there is no such folder");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is left");
    }
}
