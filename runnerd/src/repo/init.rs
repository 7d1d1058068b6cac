//! Creates the layout of `.runner/` in a work tree; can be repeated.
//!
//! Contents that depend on types (tree, schemas, run state) are passed in as bytes. Commits nothing, and leaves
//! existing files as they are unless replacing them was requested.

use std::collections::BTreeMap;

use runner_config::goal::{self, Goal, GoalError};

use super::durable::{self, DurableError, FileAccess};
use super::layout::Layout;

/// Ignore rules that keep local files out of git.
const GITIGNORE_LINES: [&str; 2] = ["context/", "iterations/"];

/// Makes git store and check out everything byte for byte, as the runner does, in people's commits and checkouts as
/// well.
const RAW_ATTRIBUTES: &str = "* -text -ident -filter !working-tree-encoding\n";

/// The files that people and agents append to, with the heading of each.
const HEADED_FILES: [(&str, &str); 6] = [
    (Layout::PROGRESS, "# Progress\n"),
    (Layout::NOTES, "# Notes\n"),
    (Layout::ASSUMPTIONS, "# Assumptions\n"),
    (Layout::QUESTIONS, "# Questions\n"),
    (Layout::GUARDRAILS, "# Guardrails\n"),
    (Layout::IMPROVEMENTS, "# Improvements\n"),
];

/// Options of [`init_layout`].
#[derive(Debug, Clone, Copy, Default)]
pub struct InitOptions<'o> {
    /// Whether existing files are replaced. The goal is replaced only if one is given.
    pub force: bool,
    /// The text of the goal.
    pub goal: Option<&'o str>,
    /// Files to write: the path relative to the root of the work tree, and the content.
    pub files: &'o [(&'o str, &'o [u8])],
    /// Files that HEAD has: a missing one is created as it is there, unless all are to be replaced.
    pub committed: Option<&'o BTreeMap<&'static str, Vec<u8>>>,
}

/// What [`init_layout`] did, as paths relative to the root of the work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitReport {
    /// Files that did not exist.
    pub created: Vec<String>,
    /// Files that were left as they were.
    pub unchanged: Vec<String>,
    /// Files that existed and were changed.
    pub overwritten: Vec<String>,
}

/// Why the layout could not be created.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A file or folder could not be written.
    #[error(transparent)]
    Durable(#[from] DurableError),
    /// The given goal is unusable.
    #[error(transparent)]
    Goal(#[from] GoalError),
}

/// Returns the paths of the files whose content does not depend on types.
pub fn text_paths() -> impl Iterator<Item = &'static str> {
    let headed = HEADED_FILES.iter().map(|(path, _)| *path);
    [Layout::GOAL, Layout::GITIGNORE, Layout::GITATTRIBUTES].into_iter().chain(headed)
}

/// Creates the missing parts of the layout.
pub fn init_layout(layout: &Layout, options: &InitOptions<'_>) -> Result<InitReport, InitError> {
    if let Some(goal) = options.goal {
        Goal::parse(goal.as_bytes(), &layout.goal())?;
    }
    durable::create_dir_below(layout.root(), Layout::STATE, FileAccess::Repository)?;
    // Leftovers of an earlier attempt that was killed belong to no one.
    for folder in [layout.folder(), layout.state()] {
        durable::remove_leftovers(&folder)?;
    }
    let committed = options.committed.filter(|_| !options.force);
    let mut writer = LayoutWriter { layout, committed, report: InitReport::default() };
    writer.write_goal(options)?;
    writer.write_gitignore()?;
    writer.write_file(Layout::GITATTRIBUTES, RAW_ATTRIBUTES.as_bytes(), options.force)?;
    let headed = HEADED_FILES.iter().map(|(path, heading)| (*path, heading.as_bytes()));
    for (path, content) in options.files.iter().copied().chain(headed) {
        writer.write_file(path, content, options.force)?;
    }
    Ok(writer.report)
}

struct LayoutWriter<'w> {
    layout: &'w Layout,
    committed: Option<&'w BTreeMap<&'static str, Vec<u8>>>,
    report: InitReport,
}

impl LayoutWriter<'_> {
    fn write_goal(&mut self, options: &InitOptions<'_>) -> Result<(), DurableError> {
        let goal = options.goal.unwrap_or(goal::TEMPLATE);
        let replaces = options.force && options.goal.is_some();
        self.write_file(Layout::GOAL, goal.as_bytes(), replaces)
    }

    fn write_gitignore(&mut self) -> Result<(), DurableError> {
        let old = durable::read(&self.layout.path(Layout::GITIGNORE))?;
        let old = old.or_else(|| self.committed?.get(Layout::GITIGNORE).cloned()).unwrap_or_default();
        self.replace_file(Layout::GITIGNORE, &add_gitignore_lines(&old), true)
    }

    fn write_file(&mut self, relative: &str, content: &[u8], replaces: bool) -> Result<(), DurableError> {
        let committed = self.committed.and_then(|committed| committed.get(relative));
        self.replace_file(relative, committed.map_or(content, Vec::as_slice), replaces)
    }

    fn replace_file(&mut self, relative: &str, content: &[u8], replaces: bool) -> Result<(), DurableError> {
        let path = self.layout.path(relative);
        let old = durable::read(&path)?;
        let list = match &old {
            None => &mut self.report.created,
            Some(old) if old == content || !replaces => {
                self.report.unchanged.push(relative.to_owned());
                return Ok(());
            }
            Some(_) => &mut self.report.overwritten,
        };
        durable::replace(&path, content, FileAccess::Repository)?;
        list.push(relative.to_owned());
        Ok(())
    }
}

/// Adds the missing lines and keeps the rest.
fn add_gitignore_lines(old: &[u8]) -> Vec<u8> {
    let mut text = old.to_vec();
    for ignored in GITIGNORE_LINES {
        let present = text.split(|byte| *byte == b'\n').any(|line| line.trim_ascii() == ignored.as_bytes());
        if !present {
            if text.last().is_some_and(|last| *last != b'\n') {
                text.push(b'\n');
            }
            text.extend_from_slice(ignored.as_bytes());
            text.push(b'\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const FILES: &[(&str, &[u8])] = &[(Layout::TREE, b"{}\n"), (Layout::CONFIG, b"# config\n")];

    fn fresh() -> (tempfile::TempDir, Layout) {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        (home, layout)
    }

    fn options() -> InitOptions<'static> {
        InitOptions { files: FILES, ..InitOptions::default() }
    }

    #[test]
    fn the_whole_layout_is_made() {
        let (_home, layout) = fresh();
        let report = init_layout(&layout, &options()).unwrap();
        insta::assert_snapshot!(report.created.join("\n"), @r#"
        .runner/GOAL.md
        .runner/.gitignore
        .runner/.gitattributes
        .runner/state/tree.json
        .runner/state/config.toml
        .runner/state/progress.md
        .runner/state/notes.md
        .runner/state/assumptions.md
        .runner/state/questions.md
        .runner/state/guardrails.md
        .runner/state/improvements.md
        "#);
        assert_eq!(report.unchanged, Vec::<String>::new());
        assert_eq!(fs::read_to_string(layout.path(Layout::GITIGNORE)).unwrap(), "context/\niterations/\n");
        assert_eq!(fs::read(layout.tree()).unwrap(), b"{}\n");
        let goal = Goal::parse(&fs::read(layout.goal()).unwrap(), &layout.goal()).unwrap();
        assert_eq!((goal.id(), goal.title()), (None, None));
    }

    #[test]
    fn repeating_it_changes_nothing() {
        let (_home, layout) = fresh();
        let first = init_layout(&layout, &options()).unwrap();
        fs::write(layout.tree(), "mine").unwrap();
        let second = init_layout(&layout, &options()).unwrap();
        assert_eq!(second.unchanged, first.created);
        assert!(second.created.is_empty() && second.overwritten.is_empty());
        assert_eq!(fs::read(layout.tree()).unwrap(), b"mine");
    }

    #[test]
    fn force_replaces_everything_except_a_goal_that_was_not_given_again() {
        let (_home, layout) = fresh();
        init_layout(&layout, &InitOptions { goal: Some("# Mine\n"), ..options() }).unwrap();
        fs::write(layout.tree(), "mine").unwrap();
        let report = init_layout(&layout, &InitOptions { force: true, ..options() }).unwrap();
        assert_eq!(report.overwritten, [Layout::TREE]);
        assert_eq!(fs::read_to_string(layout.goal()).unwrap(), "# Mine\n");
        let other = InitOptions { force: true, goal: Some("# Other\n"), ..options() };
        assert_eq!(init_layout(&layout, &other).unwrap().overwritten, [Layout::GOAL]);
    }

    #[test]
    fn a_gitignore_gains_only_the_lines_it_lacks() {
        let (_home, layout) = fresh();
        fs::create_dir(layout.folder()).unwrap();
        fs::write(layout.path(Layout::GITIGNORE), "scratch/\r\n  iterations/\r\n*.log").unwrap();
        init_layout(&layout, &options()).unwrap();
        let text = fs::read_to_string(layout.path(Layout::GITIGNORE)).unwrap();
        assert_eq!(text, "scratch/\r\n  iterations/\r\n*.log\ncontext/\n");
    }

    #[test]
    fn an_unusable_goal_is_refused_before_anything_is_written() {
        let (_home, layout) = fresh();
        let result = init_layout(&layout, &InitOptions { goal: Some("---\nid: a b\n---\n"), ..options() });
        assert!(matches!(result, Err(InitError::Goal(_))));
        assert!(!layout.folder().exists());
    }

    #[test]
    fn a_linked_folder_is_refused() {
        let (_home, layout) = fresh();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), layout.folder()).unwrap();
        let result = init_layout(&layout, &options());
        assert!(matches!(result, Err(InitError::Durable(DurableError::Symlink { .. }))));
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}
