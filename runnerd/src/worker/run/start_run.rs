//! How a run begins at its first turn: branch, `.runner/`, identity, start and resume commits.
//!
//! Every step recognizes that it was done before a crash. The baseline is in `baseline`.

use protocol::command::{Command, NextSteps};
use protocol::shell;
use protocol::state::{Feedback, RunState};
use protocol::test_record::TestRecord;
use protocol::tree::TaskTree;
use protocol::view::StopReason;
use runner_config::RepoConfig;
use runner_config::goal::Goal;
use runner_core::files::person_edit;
use runner_core::iteration::transition::PROGRESS_HEADING;
use runner_core::message::{MarkerCommit, NameList, RunnerCommit};
use runner_core::run::{self, ResumeOrder, StartSpec, commit_advice};
use runner_core::text::json;
use runner_core::tree::{self, schema, validate};
use runner_git::{CommitInfo, CommitRequest, GitError, HoldBackRule, Id, Repository, WorktreeChange};

use crate::repo::durable::{self, FileAccess};
use crate::repo::layout::Layout;
use crate::store::{RepoStore, RunSettings};
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::hold_back::marker_hold_back;
use crate::worker::integrity::{definition, watched};
use crate::worker::load::{LoadError, MAX_PERSON_COMMITS, last_runner_commit, load_state, read_file_or_committed};
use crate::worker::person_commits::check_person_commits;
use crate::worker::prepare_error::PrepareError;
use crate::worker::receipt::runner_version;
use crate::worker::run::branch_checkout;
use crate::worker::run::create_layout::{create_layout, read_committed_layout};

/// Puts the run on its branch and makes its start commit, unless both exist. Its settings are remembered in `store` for
/// the next run.
pub(crate) fn begin_run(
    context: &RunContext,
    spec: &StartSpec,
    previous: Option<&str>,
    store: &RepoStore,
) -> Result<(), PrepareError> {
    let repository = context.repository()?;
    branch_checkout::clear_work_tree(context, &repository)?;
    if let Some(operation) = repository.operation() {
        let message = format!("a {operation} is in progress in {}", repository.work_dir().display());
        return Err(PrepareError::Hold(StopReason::new(
            message,
            NextSteps::from(format!("finish or abort the {operation}")).then("runnerctl resume"),
        )));
    }
    refuse_pipes(&repository)?;
    refuse_dirty(&repository)?;
    let existing_tip = repository.find_branch_tip(&context.branch())?;
    refuse_incompatible_commit(
        &repository,
        existing_tip.or(repository.find_remote_branch("origin", &context.branch())?),
    )?;
    let base = check_out(context, &repository, spec, previous)?;
    let head = repository.head()?.commit();
    let is_started = |head| {
        if existing_tip.is_some() {
            has_start_commit(context, &repository, head)
        } else {
            has_run_identity(context, &repository, head)
        }
    };
    if head.map_or(Ok(false), is_started)? {
        return Ok(repository.sync_head()?);
    }
    let (summary, files) = if spec.fork {
        fork_files(context, &repository, base)?
    } else {
        let committed = repository.read_file(&base, Layout::TREE)?.and_then(|text| validate::load(&text).ok());
        (String::new(), start_files(context, spec, base, committed.as_ref())?)
    };
    let start = MarkerCommit { summary, driver: context.driver.clone(), ..marker_commit(context, head) };
    // Written before the commit: a commit that is found after a crash may be another program's.
    let text = read_config_text(&repository)?;
    store.settings_file().write(&RunSettings { run: context.run.clone(), text }).map_err(EffectError::from)?;
    commit_files(context, &RunnerCommit::Start(start), &files)?;
    Ok(())
}

/// Refuses a branch whose last commit of the runner was made under other rules: it would seem not to have begun.
fn refuse_incompatible_commit(repository: &Repository, tip: Option<Id>) -> Result<(), PrepareError> {
    match tip.map(|tip| last_runner_commit(repository, tip)).transpose() {
        Ok(_) => Ok(()),
        Err(LoadError::Git(error)) => Err(error.into()),
        Err(error) => Err(PrepareError::Hold(error.to_stop_reason())),
    }
}

/// Refuses pipes in the place of files that git reads: git would block forever, and so would the run.
fn refuse_pipes(repository: &Repository) -> Result<(), PrepareError> {
    let Some(pipe) = repository.find_pipes().into_iter().next() else { return Ok(()) };
    let message = format!("{} is a pipe, which git would wait for ever to read", pipe.display());
    Err(PrepareError::Hold(StopReason::new(
        message,
        NextSteps::from(format!("rm {}", shell::quote_path(&pipe))).then("runnerctl resume"),
    )))
}

/// Refuses changes outside `.runner/`; those inside become part of the start commit.
fn refuse_dirty(repository: &Repository) -> Result<(), PrepareError> {
    let changes = RunContext::changes_after_cleanup(repository)?;
    repository.check_storable(&changes)?;
    let foreign = changes.iter().map(WorktreeChange::display_path).filter(|path| !path.starts_with(".runner/"));
    refuse_uncommitted(&foreign.collect::<Vec<_>>())
}

fn refuse_uncommitted(foreign: &[String]) -> Result<(), PrepareError> {
    if foreign.is_empty() {
        return Ok(());
    }
    let list = foreign.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
    let message = format!("the working tree has changes that are not committed: {list}");
    let ways = commit_advice::commit_ways(foreign).join("; then: ", "runnerctl resume");
    Err(PrepareError::Hold(StopReason::new(message, ways)))
}

/// Puts a run that has begun back on its branch, and returns HEAD.
///
/// Another run may have had its turn since. Uncommitted changes stay where they are, and are refused.
pub(crate) fn anchor_resume(context: &RunContext) -> Result<Id, PrepareError> {
    let repository = context.repository()?;
    branch_checkout::clear_work_tree(context, &repository)?;
    let branch = context.branch();
    let branch_exists = repository.find_branch_tip(&branch)?.is_some();
    if branch_exists && repository.operation().is_none() && repository.head()?.branch() != Some(branch.as_str()) {
        refuse_uncommitted(
            &RunContext::changes_after_cleanup(&repository)?
                .iter()
                .map(WorktreeChange::display_path)
                .collect::<Vec<_>>(),
        )?;
        branch_checkout::switch_branch(context, &repository, &branch)?;
    }
    repository.head()?.commit().ok_or_else(|| {
        let (what, ways) = if branch_exists {
            ("HEAD has no commit".to_owned(), NextSteps::from(Command::switch(&branch)).then("runnerctl resume"))
        } else {
            let ways =
                NextSteps::from(format!("git branch {branch} COMMIT")).then("runnerctl resume; or: runnerctl cancel");
            (format!("branch {branch} is gone"), ways)
        };
        PrepareError::Hold(StopReason::new(format!("there is no commit to continue from: {what}"), ways))
    })
}

/// Checks out the run's branch, creating it if necessary; returns the base.
fn check_out(
    context: &RunContext,
    repository: &Repository,
    spec: &StartSpec,
    previous: Option<&str>,
) -> Result<Id, PrepareError> {
    let branch = context.branch();
    let head = repository.head()?;
    let no_commit_error =
        || PrepareError::Hold(StopReason::new("the repository has no commit yet", "git commit --allow-empty -m Begin"));
    if spec.fork {
        return check_out_fork(context, repository, spec);
    }
    if let Some(tip) = repository.find_branch_tip(&branch)? {
        if head.branch() != Some(branch.as_str()) {
            branch_checkout::switch_branch(context, repository, &branch)?;
        }
        return Ok(tip);
    }
    if let Some(tip) = repository.find_remote_branch("origin", &branch)? {
        branch_checkout::start_branch(context, repository, &branch, &tip)?;
        return Ok(tip);
    }
    let base = match (&spec.base, previous) {
        (Some(base), _) => repository.resolve_revision(base)?,
        (None, Some(previous)) => repository.find_branch_tip(&format!("runner/{previous}"))?.or(head.commit()),
        (None, None) => head.commit(),
    };
    let base = base.ok_or_else(no_commit_error)?;
    branch_checkout::start_branch(context, repository, &branch, &base)?;
    Ok(base)
}

/// Checks out the branch of a fork, creating it at its base; returns the base.
///
/// The work tree must be clean: a fork is exactly its commit. An existing branch counts as its own only in a state that
/// an earlier attempt could have left.
fn check_out_fork(context: &RunContext, repository: &Repository, spec: &StartSpec) -> Result<Id, PrepareError> {
    let branch = context.branch();
    let base = spec.base.as_ref().map(|base| repository.resolve_revision(base)).transpose()?.flatten();
    let base = base.ok_or_else(|| {
        let what = spec.base.as_deref().unwrap_or("no commit");
        PrepareError::Hold(StopReason::new(
            format!("the commit that the fork begins from is gone: {what}"),
            "runnerctl cancel",
        ))
    })?;
    let tip = repository.find_branch_tip(&branch)?;
    let is_own =
        tip.map_or(Ok(false), |tip| Ok::<_, GitError>(tip == base || has_start_commit(context, repository, tip)?))?;
    match tip {
        None => {
            refuse_uncommitted(
                &RunContext::changes_after_cleanup(repository)?
                    .iter()
                    .map(WorktreeChange::display_path)
                    .collect::<Vec<_>>(),
            )?;
            branch_checkout::start_branch(context, repository, &branch, &base)?;
        }
        Some(_) if is_own => {
            if repository.head()?.branch() != Some(branch.as_str()) {
                branch_checkout::switch_branch(context, repository, &branch)?;
            }
        }
        Some(_) => {
            let message = format!("branch {branch} exists and is not the fork's");
            return Err(PrepareError::Hold(StopReason::new(message, "runnerctl cancel, and fork with another --id")));
        }
    }
    Ok(base)
}

/// Gives the state at the base the identity of the fork, and nothing else; returns the summary and files of its commit.
fn fork_files(
    context: &RunContext,
    repository: &Repository,
    base: Id,
) -> Result<(String, CommitFileList), PrepareError> {
    let before = match load_state(repository, base) {
        Ok(loaded) => loaded,
        Err(LoadError::Git(error)) => return Err(error.into()),
        Err(error) => return Err(PrepareError::from_file_error(&error)),
    };
    let state =
        RunState { run_id: Some(context.run.clone()), base: Some(base.to_string()), ..(*before.run_state).clone() };
    let goal = before.goal.with_id(&context.run).map_err(|error| PrepareError::from_file_error(&error))?;
    let parent = repository.first_parents(&base, 1)?.pop().map(|commit| RunnerCommit::parse(&commit.message));
    let summary = match parent {
        Some(Ok(RunnerCommit::Iteration(of))) => format!("Forked from iteration {:04} of run {}.", of.iter, of.run),
        _ => String::new(),
    };
    Ok((summary, vec![(Layout::RUN_STATE, json::to_canonical_json(&state)), (Layout::GOAL, goal)]))
}

/// Whether a commit already has the run's identity.
fn has_run_identity(context: &RunContext, repository: &Repository, head: Id) -> Result<bool, GitError> {
    let run = Some(context.run.as_str());
    match load_state(repository, head) {
        Ok(loaded) => Ok(loaded.goal.id() == run && loaded.run_state.run_id.as_deref() == run),
        Err(LoadError::Git(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

/// Whether a branch contains the run's start, even if a person has made its state unreadable since.
fn has_start_commit(context: &RunContext, repository: &Repository, tip: Id) -> Result<bool, GitError> {
    let is_start = |commit: &CommitInfo| matches!(RunnerCommit::parse(&commit.message), Ok(RunnerCommit::Start(start)) if start.run == context.run);
    Ok(has_run_identity(context, repository, tip)?
        || repository.first_parents(&tip, MAX_PERSON_COMMITS)?.iter().any(is_start))
}

/// Creates what is missing of `.runner/`, and returns the contents of the files that the start commit sets.
fn start_files(
    context: &RunContext,
    spec: &StartSpec,
    base: Id,
    committed: Option<&TaskTree>,
) -> Result<CommitFileList, PrepareError> {
    let layout = &context.layout;
    let at_base = read_committed_layout(&context.repository()?, Some(base))?;
    create_layout(layout, false, spec.config.clone().unwrap_or_else(runner_config::default_text), &at_base)?;
    let old_goal = read_goal_file(layout)?;
    let before: RunState = read_state_file(layout)?;
    let goal = match &spec.goal {
        Some(text) => {
            Goal::parse(text.as_bytes(), &layout.goal()).map_err(|error| PrepareError::from_file_error(&error))?
        }
        None => old_goal,
    };
    if goal.is_template() {
        let message = "no goal is written in .runner/GOAL.md: there is nothing to reach";
        return Err(PrepareError::Hold(StopReason::new(message, "write it there, then: runnerctl resume")));
    }
    let config = read_config_file(&context.repository()?)?;
    let keeps_tree = spec.keep_tree || before.run_id.as_ref().is_none_or(|id| *id == context.run);
    let tree = if keeps_tree { read_prepared_tree(layout, committed)? } else { new_tree(&config, &goal) };
    // A tree created by `init` carries no decision.
    let is_untouched = tree == tree::new_tree(tree.root.max_attempts);
    let tree = if is_untouched { new_tree(&config, &goal) } else { tree };
    let state = RunState {
        run_id: Some(context.run.clone()),
        base: Some(base.to_string()),
        // Their file stays, but notes handled in the previous run are not shown to sessions again.
        notes_used: read_notes_used(&context.repository()?, &base)?,
        guard_definition: watched::watched_at_start(&context.repository()?, base, &config)?.accepted,
        ..RunState::default()
    };
    let goal = goal.with_id(&context.run).map_err(|error| PrepareError::from_file_error(&error))?;
    // The tree comes before the state: on a redo after a crash, the id in the state shows that the tree was written.
    Ok(vec![
        (Layout::TREE, tree::canonical(&tree)),
        (Layout::RUN_STATE, json::to_canonical_json(&state)),
        (Layout::FEEDBACK, json::to_canonical_json(&Feedback::default())),
        (Layout::TESTS, json::to_canonical_json(&TestRecord::default())),
        (Layout::PROGRESS, PROGRESS_HEADING.to_owned()),
        (Layout::SCHEMA, schema::tree_schema_text()),
        (Layout::ANSWER_SCHEMA, schema::answer_schema_text()),
        (Layout::GOAL, goal),
    ])
}

/// Returns the notes that sessions have responded to, as of the base: other claims in the work tree are not trusted.
fn read_notes_used(repository: &Repository, base: &Id) -> Result<Vec<String>, GitError> {
    let committed = repository.read_file(base, Layout::RUN_STATE)?.unwrap_or_default();
    // An unreadable state names no note: the run shows all of them again.
    Ok(serde_json::from_slice(&committed).map(|state: RunState| state.notes_used).unwrap_or_default())
}

fn read_goal_file(layout: &Layout) -> Result<Goal, PrepareError> {
    let path = layout.goal();
    let bytes = durable::read(&path)?.unwrap_or_default();
    Goal::parse(&bytes, &path).map_err(|error| PrepareError::from_file_error(&error))
}

fn read_state_file(layout: &Layout) -> Result<RunState, PrepareError> {
    let path = layout.run_state();
    let bytes = durable::read(&path)?.unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("{} is not valid: {error}", path.display());
        PrepareError::Hold(StopReason::new(message, "fix it, then: runnerctl resume"))
    })
}

fn read_config_file(repository: &Repository) -> Result<RepoConfig, PrepareError> {
    let text = read_config_text(repository)?;
    let path = repository.work_dir().join(Layout::CONFIG);
    runner_config::parse(&text, &path).map_err(|error| PrepareError::from_file_error(&error))
}

fn read_config_text(repository: &Repository) -> Result<String, PrepareError> {
    let path = repository.work_dir().join(Layout::CONFIG);
    let bytes = read_file_or_committed(repository, Layout::CONFIG)?.unwrap_or_default();
    runner_config::decode_text(&bytes, &path).map(str::to_owned).map_err(|error| PrepareError::from_file_error(&error))
}

fn read_tree_file(layout: &Layout) -> Result<TaskTree, PrepareError> {
    let path = layout.tree();
    let bytes = durable::read(&path)?.unwrap_or_default();
    validate::load(&bytes).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let message = format!("{} is not valid: {}", path.display(), faults.join("; "));
        PrepareError::Hold(StopReason::new(message, "fix it, then: runnerctl resume"))
    })
}

/// Reads the prepared tree for a new run, and checks that no node is marked as passed unless the committed tree has it
/// passed.
fn read_prepared_tree(layout: &Layout, committed: Option<&TaskTree>) -> Result<TaskTree, PrepareError> {
    let tree = read_tree_file(layout)?;
    person_edit::check_start(committed, &tree).map_err(|breach| {
        let message = format!("{} was changed by hand: {breach}", layout.tree().display());
        PrepareError::Hold(StopReason::new(
            message,
            NextSteps::from(format!("set it back in {}", Layout::TREE)).join("; then: ", "runnerctl resume"),
        ))
    })?;
    Ok(tree)
}

fn new_tree(config: &RepoConfig, goal: &Goal) -> TaskTree {
    let mut tree = tree::new_tree(config.max_attempts_default);
    if let Some(title) = goal.headline() {
        tree.root.title = title;
    }
    tree
}

/// Returns to the run's branch, resets counters and grants iterations, in a commit if that changes anything.
///
/// `order.from` was saved before; a commit on top of it is recognized, so that nothing is granted twice.
pub(crate) fn resume_run(context: &RunContext, order: &ResumeOrder) -> Result<(), PrepareError> {
    let repository = context.repository()?;
    branch_checkout::clear_work_tree(context, &repository)?;
    let branch = context.branch();
    if repository.head()?.branch() != Some(branch.as_str()) && repository.find_branch_tip(&branch)?.is_some() {
        refuse_dirty(&repository)?;
        branch_checkout::switch_branch(context, &repository, &branch)?;
    }
    let Some(head) = repository.head()?.commit() else { return Ok(()) };
    let from = order.from.clone().unwrap_or_else(|| head.to_string());
    let own_commit =
        RunContext::find_own_commit(&repository, &from, |commit| matches!(commit, RunnerCommit::Resume(_)))?;
    if own_commit.is_some() || repository.head()?.branch() != Some(context.branch().as_str()) {
        return Ok(repository.sync_head()?);
    }
    let loaded = match load_state(&repository, head) {
        Ok(loaded) => loaded,
        Err(LoadError::Git(error)) => return Err(error.into()),
        // The fault is reported when the iteration is opened.
        Err(_) => return Ok(()),
    };
    // A rule violation is reported when the iteration is opened; a commit of the runner on top would hide it.
    if check_person_commits(&repository, &loaded).map_err(EffectError::from)?.is_some() {
        return Ok(());
    }
    let mut state = run::state_on_resume(&loaded.run_inputs(&context.uncommitted), order.reset, order.more);
    if state == *loaded.run_state {
        return Ok(());
    }
    refuse_other_changes(context, &repository)?;
    // This is a commit of the runner: what a person has changed before it must still count as accepted after it.
    state.guard_definition = definition::definition_at(&repository, &loaded).map_err(EffectError::from)?.accepted;
    let files = [(Layout::RUN_STATE, json::to_canonical_json(&state))];
    commit_files(context, &RunnerCommit::Resume(marker_commit(context, Some(head))), &files)?;
    Ok(())
}

/// Refuses uncommitted changes: they would end up in a commit of the runner, where no one expects them.
///
/// An earlier attempt may already have written the bookkeeping.
fn refuse_other_changes(context: &RunContext, repository: &Repository) -> Result<(), PrepareError> {
    durable::remove_leftovers(&context.layout.state())?;
    let changes = RunContext::changes_after_cleanup(repository)?;
    let other_paths = changes.iter().map(WorktreeChange::display_path).filter(|path| path != Layout::RUN_STATE);
    refuse_uncommitted(&other_paths.collect::<Vec<_>>())
}

/// Returns the content common to the runner's commits between iterations.
pub(crate) fn marker_commit(context: &RunContext, from: Option<Id>) -> MarkerCommit {
    MarkerCommit {
        run: context.run.clone(),
        summary: String::new(),
        version: runner_version(),
        from: from.map(|from| from.to_string()),
        guard_run: None,
        reverted: NameList::default(),
        guard_wrote: NameList::default(),
        driver: None,
    }
}

/// Files of a commit: paths and contents.
type CommitFileList = Vec<(&'static str, String)>;

/// Writes files in this order, and commits everything as one of the runner's commits between iterations.
pub(crate) fn commit_files(
    context: &RunContext,
    commit: &RunnerCommit,
    files: &[(&'static str, String)],
) -> Result<Id, PrepareError> {
    let repository = context.repository()?;
    let config = read_config_file(&repository)?;
    // Leftovers of an interrupted attempt belong to no one.
    for folder in [context.layout.folder(), context.layout.state()] {
        durable::remove_leftovers(&folder)?;
    }
    for (path, text) in files {
        durable::replace(&context.layout.path(path), text.as_bytes(), FileAccess::Repository)?;
    }
    let head = repository.head()?.commit();
    let hold_back = head.map(|head| marker_hold_back(context, &repository, commit, head, &config)).transpose();
    let hold_back = hold_back.map_err(EffectError::from)?.unwrap_or_else(HoldBackRule::nested_only);
    let written: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    let committed = repository.commit_all(&CommitRequest {
        message: &commit.compose(),
        author: RunContext::identity(&repository),
        parent: head,
        hold_back: &hold_back,
        sign: config.git.sign,
        allow_empty: true,
        paths: None,
        expected_files: &written,
        keeps_unstorable: false,
    })?;
    Ok(committed.commit)
}
