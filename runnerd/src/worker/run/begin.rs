//! How a run begins when its turn comes: branch, `.runner/`, identity, start and resume commits.
//!
//! Every step is recognised if it was done before a crash. The baseline is `baseline`'s.

use protocol::command::{Command, Ways};
use protocol::state::{Feedback, RunState};
use protocol::tree::TaskTree;
use protocol::view::StopReason;
use runner_core::message::{Milestone, NameList, RunnerCommit};
use runner_core::person;
use runner_core::run::{self, Beginning, ResumeOrder};
use runner_core::transition::PROGRESS_HEADING;
use runner_core::{json, schema, shell, tree, uncommitted, validate};

use crate::config::{self, Proposal, RepoConfig};
use crate::git::{Change, CommitInfo, CommitRequest, GitError, HoldBack, Id, Repository};
use crate::repo::durable::{self, Access};
use crate::repo::goal::Goal;
use crate::repo::init::{InitError, InitOptions, init};
use crate::repo::layout::Layout;
use crate::worker::clear::clear_leftovers;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::{definition, watched};
use crate::worker::load::{LoadError, MAX_PERSON_COMMITS, last_settled, load};
use crate::worker::people::persons_commits;
use crate::worker::receipt::version;
use crate::worker::unready::Unready;

/// Puts the run on its branch and makes its start commit, unless both are there.
pub(crate) fn begin(context: &RunContext, beginning: &Beginning, previous: Option<&str>) -> Result<(), Unready> {
    let repository = context.repository()?;
    clear_leftovers(&repository)?;
    if let Some(operation) = repository.operation() {
        let message = format!("a {operation} is in progress in {}", repository.work_dir().display());
        return Err(Unready::Hold(StopReason::new(
            message,
            Ways::from(format!("finish or abort the {operation}")).then("runnerctl resume"),
        )));
    }
    refuse_pipes(&repository)?;
    refuse_dirty(&repository)?;
    let was_there = repository.branch(&context.branch())?;
    refuse_other_rules(&repository, was_there.or(repository.remote_branch("origin", &context.branch())?))?;
    let base = check_out(context, &repository, beginning, previous)?;
    let head = repository.head()?.commit();
    let is_begun = |head| {
        if was_there.is_some() { is_begun(context, &repository, head) } else { is_named(context, &repository, head) }
    };
    if head.map_or(Ok(false), is_begun)? {
        return Ok(repository.flush_head()?);
    }
    let (summary, files) = if beginning.fork {
        of_fork(context, &repository, base)?
    } else {
        let committed = repository.read(&base, Layout::TREE)?.and_then(|text| validate::load(&text).ok());
        (String::new(), of_beginning(context, beginning, base, committed.as_ref())?)
    };
    let start = Milestone { summary, driver: context.driver.clone(), ..milestone(context, head) };
    commit(context, &RunnerCommit::Start(start), &files)?;
    Ok(())
}

/// Refuses a branch whose last commit of the runner's is of other rules: it would be taken for one that has not begun.
fn refuse_other_rules(repository: &Repository, tip: Option<Id>) -> Result<(), Unready> {
    match tip.map(|tip| last_settled(repository, tip)).transpose() {
        Ok(_) => Ok(()),
        Err(LoadError::Git(error)) => Err(error.into()),
        Err(error) => Err(Unready::Hold(error.hold())),
    }
}

/// Refuses pipes in the place of files that git reads: it would wait for ever, and so would the run.
fn refuse_pipes(repository: &Repository) -> Result<(), Unready> {
    let Some(pipe) = repository.find_pipes().into_iter().next() else { return Ok(()) };
    let message = format!("{} is a pipe, which git would wait for ever to read", pipe.display());
    Err(Unready::Hold(StopReason::new(
        message,
        Ways::from(format!("rm {}", shell::quoted(&pipe.display().to_string()))).then("runnerctl resume"),
    )))
}

/// Refuses changes outside `.runner/`; those inside go into the start commit.
fn refuse_dirty(repository: &Repository) -> Result<(), Unready> {
    let changes = RunContext::changes(repository)?;
    repository.refuse_unstorable(&changes)?;
    let foreign = changes.iter().map(Change::display_path).filter(|path| !path.starts_with(".runner/"));
    refuse(&foreign.collect::<Vec<_>>())
}

fn refuse(foreign: &[String]) -> Result<(), Unready> {
    if foreign.is_empty() {
        return Ok(());
    }
    let shown = foreign.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
    let message = format!("the work tree has changes that are not committed: {shown}");
    let ways = uncommitted::ways(foreign).join("; then: ", "runnerctl resume");
    Err(Unready::Hold(StopReason::new(message, ways)))
}

/// Puts a run that has begun on its branch when it goes on, and returns HEAD.
///
/// Another run may have had its turn since. What is not committed stays where it is, and is refused.
pub(crate) fn take_up(context: &RunContext) -> Result<Id, Unready> {
    let repository = context.repository()?;
    clear_leftovers(&repository)?;
    let branch = context.branch();
    let is_there = repository.branch(&branch)?.is_some();
    if is_there && repository.operation().is_none() && repository.head()?.branch() != Some(branch.as_str()) {
        refuse(&RunContext::changes(&repository)?.iter().map(Change::display_path).collect::<Vec<_>>())?;
        repository.switch(&branch)?;
    }
    repository.head()?.commit().ok_or_else(|| {
        let (what, ways) = if is_there {
            ("HEAD has no commit".to_owned(), Ways::from(Command::switch(&branch)).then("runnerctl resume"))
        } else {
            let ways = Ways::from(format!("git branch {branch} COMMIT")).then("runnerctl resume; or: runnerctl cancel");
            (format!("branch {branch} is gone"), ways)
        };
        Unready::Hold(StopReason::new(format!("there is no commit to go on from: {what}"), ways))
    })
}

/// Checks out the run's branch, making it if there is none; returns the base.
fn check_out(
    context: &RunContext,
    repository: &Repository,
    beginning: &Beginning,
    previous: Option<&str>,
) -> Result<Id, Unready> {
    let branch = context.branch();
    let head = repository.head()?;
    let missing =
        || Unready::Hold(StopReason::new("the repository has no commit yet", "git commit --allow-empty -m Begin"));
    if beginning.fork {
        return check_out_fork(context, repository, beginning);
    }
    if let Some(tip) = repository.branch(&branch)? {
        if head.branch() != Some(branch.as_str()) {
            repository.switch(&branch)?;
        }
        return Ok(tip);
    }
    if let Some(tip) = repository.remote_branch("origin", &branch)? {
        repository.start_branch(&branch, &tip)?;
        return Ok(tip);
    }
    let base = match (&beginning.base, previous) {
        (Some(base), _) => repository.resolve(base)?,
        (None, Some(previous)) => repository.branch(&format!("runner/{previous}"))?.or(head.commit()),
        (None, None) => head.commit(),
    };
    let base = base.ok_or_else(missing)?;
    repository.start_branch(&branch, &base)?;
    Ok(base)
}

/// Checks out the branch of a fork, making it at its base; returns the base.
///
/// Nothing may be in the way: a fork is what stands in the commit. A branch that is there is its own only as an earlier
/// try has left it.
fn check_out_fork(context: &RunContext, repository: &Repository, beginning: &Beginning) -> Result<Id, Unready> {
    let branch = context.branch();
    let base = beginning.base.as_ref().map(|base| repository.resolve(base)).transpose()?.flatten();
    let base = base.ok_or_else(|| {
        let what = beginning.base.as_deref().unwrap_or("no commit");
        Unready::Hold(StopReason::new(
            format!("the commit that the fork begins from is gone: {what}"),
            "runnerctl cancel",
        ))
    })?;
    let tip = repository.branch(&branch)?;
    let is_own = tip.map_or(Ok(false), |tip| Ok::<_, GitError>(tip == base || is_begun(context, repository, tip)?))?;
    match tip {
        None => {
            refuse(&RunContext::changes(repository)?.iter().map(Change::display_path).collect::<Vec<_>>())?;
            repository.start_branch(&branch, &base)?;
        }
        Some(_) if is_own => {
            if repository.head()?.branch() != Some(branch.as_str()) {
                repository.switch(&branch)?;
            }
        }
        Some(_) => {
            let message = format!("branch {branch} is there and is not the fork's");
            return Err(Unready::Hold(StopReason::new(message, "runnerctl cancel, and fork with another --id")));
        }
    }
    Ok(base)
}

/// Gives the state at the base the identity of the fork, and nothing else; returns what its commit says and has.
fn of_fork(context: &RunContext, repository: &Repository, base: Id) -> Result<(String, Files), Unready> {
    let before = match load(repository, base) {
        Ok(loaded) => loaded,
        Err(LoadError::Git(error)) => return Err(error.into()),
        Err(error) => return Err(Unready::of_file(&error)),
    };
    let state = RunState { run_id: Some(context.run.clone()), base: Some(base.to_string()), ..before.run_state };
    let goal = before.goal.with_id(&context.run).map_err(|error| Unready::of_file(&error))?;
    let upon = repository.first_parents(&base, 1)?.pop().map(|commit| RunnerCommit::parse(&commit.message));
    let summary = match upon {
        Some(Ok(RunnerCommit::Iteration(of))) => format!("Forked from iteration {:04} of run {}.", of.iter, of.run),
        _ => String::new(),
    };
    Ok((summary, vec![(Layout::RUN_STATE, json::canonical(&state)), (Layout::GOAL, goal)]))
}

/// Whether the run's identity stands in the commit already.
fn is_named(context: &RunContext, repository: &Repository, head: Id) -> Result<bool, GitError> {
    let run = Some(context.run.as_str());
    match load(repository, head) {
        Ok(loaded) => Ok(loaded.goal.id() == run && loaded.run_state.run_id.as_deref() == run),
        Err(LoadError::Git(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

/// Whether a branch has the run's start, though a person may have made its state unreadable since.
fn is_begun(context: &RunContext, repository: &Repository, tip: Id) -> Result<bool, GitError> {
    let is_start = |commit: &CommitInfo| matches!(RunnerCommit::parse(&commit.message), Ok(RunnerCommit::Start(start)) if start.run == context.run);
    Ok(is_named(context, repository, tip)? || repository.first_parents(&tip, MAX_PERSON_COMMITS)?.iter().any(is_start))
}

/// Makes what is missing of `.runner/`, and returns the files that the start commit has otherwise.
fn of_beginning(
    context: &RunContext,
    beginning: &Beginning,
    base: Id,
    committed: Option<&TaskTree>,
) -> Result<Files, Unready> {
    let layout = &context.layout;
    make_layout(layout, false, None)?;
    let old_goal = read_goal(layout)?;
    let before: RunState = read_state(layout)?;
    let goal = match &beginning.goal {
        Some(text) => Goal::parse(text.as_bytes(), &layout.goal()).map_err(|error| Unready::of_file(&error))?,
        None => old_goal,
    };
    if goal.is_unwritten() {
        let message = "no goal is written in .runner/GOAL.md: there is nothing to reach";
        return Err(Unready::Hold(StopReason::new(message, "write it there, then: runnerctl resume")));
    }
    let config = read_config(layout)?;
    let keeps_tree = beginning.keep_tree || before.run_id.as_ref().is_none_or(|id| *id == context.run);
    let tree = if keeps_tree { prepared_tree(layout, committed)? } else { fresh_tree(&config, &goal) };
    // What `init` has made says nothing yet.
    let is_untouched = tree == tree::fresh(tree.root.max_attempts);
    let tree = if is_untouched { fresh_tree(&config, &goal) } else { tree };
    let state = RunState {
        run_id: Some(context.run.clone()),
        base: Some(base.to_string()),
        // Their file stays, and what was answered to in the run before is not told again.
        notes_used: notes_used(&context.repository()?, &base)?,
        guard_definition: watched::begun(&context.repository()?, base, &config)?.accepted,
        ..RunState::default()
    };
    let goal = goal.with_id(&context.run).map_err(|error| Unready::of_file(&error))?;
    // The tree comes before the state: done again after a crash, the id in the state says that the tree is written.
    Ok(vec![
        (Layout::TREE, tree::canonical(&tree)),
        (Layout::RUN_STATE, json::canonical(&state)),
        (Layout::FEEDBACK, json::canonical(&Feedback::default())),
        (Layout::PROGRESS, PROGRESS_HEADING.to_owned()),
        (Layout::SCHEMA, schema::tree_text()),
        (Layout::ANSWER_SCHEMA, schema::answer_text()),
        (Layout::GOAL, goal),
    ])
}

/// Returns the notes that sessions have answered to, as they stand at the base: what a work tree says besides is nobody's word.
fn notes_used(repository: &Repository, base: &Id) -> Result<Vec<String>, GitError> {
    let committed = repository.read(base, Layout::RUN_STATE)?.unwrap_or_default();
    // What cannot be read there names no note: the run tells all of them again.
    Ok(serde_json::from_slice(&committed).map(|state: RunState| state.notes_used).unwrap_or_default())
}

/// Makes what is missing of `.runner/`.
pub fn make_layout(
    layout: &Layout,
    force: bool,
    proposal: Option<&Proposal>,
) -> Result<crate::repo::init::InitReport, InitError> {
    let config = RepoConfig::default();
    let texts = [
        (Layout::TREE, tree::canonical(&tree::fresh(config.max_attempts_default))),
        (Layout::SCHEMA, schema::tree_text()),
        (Layout::ANSWER_SCHEMA, schema::answer_text()),
        (Layout::RUN_STATE, json::canonical(&RunState::default())),
        (Layout::FEEDBACK, json::canonical(&Feedback::default())),
        (Layout::CONFIG, config::default_text_with(proposal)),
    ];
    let files: Vec<(&str, &[u8])> = texts.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    init(layout, &InitOptions { force, goal: None, files: &files })
}

/// Returns what could be set for workspaces of the work tree. What cannot be listed is no reason to make no layout.
pub fn proposal(layout: &Layout) -> Option<Proposal> {
    let entries = std::fs::read_dir(layout.root()).into_iter().flatten().flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    Proposal::of(&names)
}

fn read_goal(layout: &Layout) -> Result<Goal, Unready> {
    let path = layout.goal();
    let bytes = durable::read(&path)?.unwrap_or_default();
    Goal::parse(&bytes, &path).map_err(|error| Unready::of_file(&error))
}

fn read_state(layout: &Layout) -> Result<RunState, Unready> {
    let path = layout.run_state();
    let bytes = durable::read(&path)?.unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("{} is not valid: {error}", path.display());
        Unready::Hold(StopReason::new(message, "fix it, then: runnerctl resume"))
    })
}

fn read_config(layout: &Layout) -> Result<RepoConfig, Unready> {
    let path = layout.config();
    let bytes = durable::read(&path)?.unwrap_or_default();
    config::text(&bytes, &path).and_then(|text| config::parse(text, &path)).map_err(|error| Unready::of_file(&error))
}

fn read_tree(layout: &Layout) -> Result<TaskTree, Unready> {
    let path = layout.tree();
    let bytes = durable::read(&path)?.unwrap_or_default();
    validate::load(&bytes).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let message = format!("{} is not valid: {}", path.display(), faults.join("; "));
        Unready::Hold(StopReason::new(message, "fix it, then: runnerctl resume"))
    })
}

/// Reads the tree that a run is to begin with, whoever prepared it: it passes nowhere where the committed one does not.
fn prepared_tree(layout: &Layout, committed: Option<&TaskTree>) -> Result<TaskTree, Unready> {
    let tree = read_tree(layout)?;
    person::check_start(committed, &tree).map_err(|breach| {
        let message = format!("{} was changed by hand: {breach}", layout.tree().display());
        Unready::Hold(StopReason::new(
            message,
            Ways::from(format!("set it back in {}", Layout::TREE)).join("; then: ", "runnerctl resume"),
        ))
    })?;
    Ok(tree)
}

fn fresh_tree(config: &RepoConfig, goal: &Goal) -> TaskTree {
    let mut tree = tree::fresh(config.max_attempts_default);
    if let Some(title) = goal.headline() {
        tree.root.title = title;
    }
    tree
}

/// Goes back to the run's branch, resets counters and grants iterations: the latter in a commit of its own, where
/// there is anything to do.
///
/// `order.from` was kept before; a commit upon it is recognised, so that nothing is granted twice.
pub(crate) fn resume(context: &RunContext, order: &ResumeOrder) -> Result<(), Unready> {
    let repository = context.repository()?;
    clear_leftovers(&repository)?;
    let branch = context.branch();
    if repository.head()?.branch() != Some(branch.as_str()) && repository.branch(&branch)?.is_some() {
        refuse_dirty(&repository)?;
        repository.switch(&branch)?;
    }
    let Some(head) = repository.head()?.commit() else { return Ok(()) };
    let from = order.from.clone().unwrap_or_else(|| head.to_string());
    let made = RunContext::was_made(&repository, &from, |commit| matches!(commit, RunnerCommit::Resume(_)))?;
    if made.is_some() || repository.head()?.branch() != Some(context.branch().as_str()) {
        return Ok(repository.flush_head()?);
    }
    let loaded = match load(&repository, head) {
        Ok(loaded) => loaded,
        Err(LoadError::Git(error)) => return Err(error.into()),
        // What is wrong is said when the iteration is opened.
        Err(_) => return Ok(()),
    };
    // A breach is named when the iteration is opened; a commit of the runner's upon it would hide it.
    if persons_commits(&repository, &loaded).map_err(Obstacle::from)?.is_some() {
        return Ok(());
    }
    let mut state = run::on_resume(&loaded.standing(&context.uncommitted), order.reset, order.more);
    if state == loaded.run_state {
        return Ok(());
    }
    refuse_beside_the_state(context, &repository)?;
    // A commit of the runner's: what a person has changed before it counts as accepted after it too.
    state.guard_definition = definition::at(&repository, &loaded).map_err(Obstacle::from)?.accepted;
    let files = [(Layout::RUN_STATE, json::canonical(&state))];
    commit(context, &RunnerCommit::Resume(milestone(context, Some(head))), &files)?;
    Ok(())
}

/// Refuses changes that are not committed: they would be in a commit of the runner's, where nobody looks for them.
///
/// An earlier try may have written the bookkeeping already.
fn refuse_beside_the_state(context: &RunContext, repository: &Repository) -> Result<(), Unready> {
    durable::remove_leftovers(&context.layout.state())?;
    let changes = RunContext::changes(repository)?;
    let others = changes.iter().map(Change::display_path).filter(|path| path != Layout::RUN_STATE);
    refuse(&others.collect::<Vec<_>>())
}

/// Returns what the runner's commits between iterations say.
pub(crate) fn milestone(context: &RunContext, from: Option<Id>) -> Milestone {
    Milestone {
        run: context.run.clone(),
        summary: String::new(),
        version: version(),
        from: from.map(|from| from.to_string()),
        guard_run: None,
        reverted: NameList::default(),
        driver: None,
    }
}

/// Files of a commit, by path, with what they hold.
type Files = Vec<(&'static str, String)>;

/// Writes files, in this order, and commits everything as one of the runner's commits between iterations.
pub(crate) fn commit(
    context: &RunContext,
    commit: &RunnerCommit,
    files: &[(&'static str, String)],
) -> Result<Id, Unready> {
    let repository = context.repository()?;
    let config = read_config(&context.layout)?;
    // What an interrupted try has left is nobody's work.
    for folder in [context.layout.folder(), context.layout.state()] {
        durable::remove_leftovers(&folder)?;
    }
    for (path, text) in files {
        durable::replace(&context.layout.path(path), text.as_bytes(), Access::Repository)?;
    }
    let hold_back =
        HoldBack { names: config.git.hold_back.as_slice().to_vec(), max_file_bytes: config.git.max_file_bytes };
    let written: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    let committed = repository.commit_all(&CommitRequest {
        message: &commit.compose(),
        author: RunContext::identity(&repository),
        parent: repository.head()?.commit(),
        hold_back: &hold_back,
        sign: config.git.sign,
        allow_empty: true,
        within: None,
        written: &written,
        leaves_refused: false,
    })?;
    Ok(committed.commit)
}
