//! The order of repositories in lists: by path, each followed by its isolated runs in the order in which they were
//! requested. Their descriptions are made elsewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use protocol::path::WirePath;
use protocol::view::{RepoView, StatusView};

/// Sort key of a repository; a workspace sorts by the repository that it was made from.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RepoSortKey {
    path: WirePath,
    /// Two repositories may have been registered at one path.
    id: String,
    is_workspace: bool,
    queued_at: Option<Timestamp>,
    own_path: PathBuf,
}

/// The paths of repositories that are not workspaces, by id.
type RepoPaths = BTreeMap<String, WirePath>;

/// Sorts repositories.
pub(super) fn sort_repositories(views: &mut [RepoView]) {
    let paths = source_paths(views.iter());
    views.sort_by_cached_key(|view| RepoSortKey::for_view(view, view.queue.first().map(|run| run.queued_at), &paths));
}

/// Sorts the statuses of repositories.
pub(super) fn sort_statuses(views: &mut [StatusView]) {
    let paths = source_paths(views.iter().map(|view| &view.repo));
    let queued_at = |view: &StatusView| view.run.as_ref().map(|run| run.summary.queued_at);
    views.sort_by_cached_key(|view| RepoSortKey::for_view(&view.repo, queued_at(view), &paths));
}

fn source_paths<'a>(views: impl Iterator<Item = &'a RepoView>) -> RepoPaths {
    let sources = views.filter(|view| view.source_id.is_none());
    sources.map(|view| (view.id.clone(), view.path.clone())).collect()
}

impl RepoSortKey {
    fn for_view(view: &RepoView, queued_at: Option<Timestamp>, paths: &RepoPaths) -> Self {
        let id = view.source_id.as_ref().unwrap_or(&view.id);
        // The run may have been requested in another work tree than the registered one.
        let path = paths.get(id).or(view.source.as_ref()).unwrap_or(&view.path);
        let path = path.clone();
        let id = id.clone();
        let own_path = view.path.0.clone();
        Self { path, id, is_workspace: view.source_id.is_some(), queued_at, own_path }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn view(id: &str, path: &str, of: Option<(&str, &str)>) -> RepoView {
        RepoView {
            id: id.to_owned(),
            path: Path::new(path).into(),
            held: None,
            queue: Vec::new(),
            source: of.map(|(_, path)| Path::new(path).into()),
            source_id: of.map(|(id, _)| id.to_owned()),
        }
    }

    #[test]
    fn isolated_runs_stand_behind_the_repository_that_they_were_begun_from() {
        let of_b = |id, path, asked_in| view(id, path, Some(("b", asked_in)));
        let mut views = [
            of_b("w2", "/state/w/2", "/home/b-linked"),
            view("c", "/home/c", None),
            of_b("w1", "/state/w/1", "/home/b"),
            view("b", "/home/b", None),
            view("a", "/home/a", None),
        ];
        sort_repositories(&mut views);
        assert_eq!(views.map(|view| view.id), ["a", "b", "w1", "w2", "c"]);
    }

    #[test]
    fn a_workspace_whose_source_is_not_listed_stands_where_it_would() {
        let mut views =
            [view("c", "/home/c", None), view("w", "/a/w", Some(("b", "/home/b"))), view("a", "/home/a", None)];
        sort_repositories(&mut views);
        assert_eq!(views.map(|view| view.id), ["a", "w", "c"]);
    }
}
