//! The forge on which pull requests are opened: GitHub through `gh`, GitLab through `glab`, any other through a program
//! of the user's, or by hand.

use protocol::delivery::FeedbackItem;
use protocol::error::ExitStatus;

use super::address::ForgeRepo;
use super::custom_forge::CustomForge;
use super::forge_cli::ForgeCli;
use super::github::GitHub;
use super::gitlab::GitLab;
use crate::failure::Failure;

/// Forge programs that are asked about a host whose name is not recognized.
const FORGE_PROGRAMS: [&str; 2] = ["gh", "glab"];

/// A pull request to open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewPr<'a> {
    /// The branch to merge.
    pub(crate) head: &'a str,
    /// The target branch.
    pub(crate) base: &'a str,
    /// One line of text.
    pub(crate) title: &'a str,
    /// Markdown.
    pub(crate) body: &'a str,
    /// Whether it is ready for review.
    pub(crate) ready: bool,
}

/// Fields of an open pull request to change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrUpdate<'a> {
    /// The new target branch, if one was requested.
    pub(crate) base: Option<&'a str>,
    /// The description.
    pub(crate) body: &'a str,
    /// Whether to mark it ready for review.
    pub(crate) ready: bool,
}

/// An open pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenPr {
    /// Its number.
    pub(crate) number: u64,
    /// Its page.
    pub(crate) url: String,
    /// Whether it is a draft.
    pub(crate) draft: bool,
    /// Its title.
    pub(crate) title: String,
    /// Its description.
    pub(crate) body: String,
}

/// State of the newest pull request of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PrState {
    /// There is none.
    None,
    /// An open one.
    Open(OpenPr),
    /// It was closed without merging.
    Closed {
        /// Its number.
        number: u64,
        /// Its page.
        url: String,
    },
    /// It was merged.
    Merged {
        /// Its page.
        url: String,
    },
}

/// Feedback on a pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ForgeFeedback {
    /// Failed checks, and comments of people with write access.
    pub(crate) items: Vec<FeedbackItem>,
    /// Number of comments of other people, which were omitted.
    pub(crate) skipped: u32,
}

/// A forge.
#[derive(Debug)]
pub(crate) enum Forge {
    /// GitHub.
    GitHub(GitHub),
    /// GitLab.
    GitLab(GitLab),
    /// A program of the user's.
    Custom(CustomForge),
    /// No program: the user opens it by hand.
    Manual {
        /// Why there is none.
        why: String,
    },
}

impl Forge {
    /// Finds the forge for a URL: the configured program, else the forge's own.
    pub(crate) async fn find(cli: &ForgeCli, url: &str, command: &[String]) -> Result<Self, Failure> {
        if !command.is_empty() {
            return Ok(Self::Custom(CustomForge::new(command)));
        }
        let Some(address) = ForgeRepo::from_url(url) else {
            return Ok(Self::Manual { why: "the remote is no repository at a forge".to_owned() });
        };
        let program = match (address.is_github(), address.is_gitlab()) {
            (true, _) => Some("gh"),
            (_, true) => Some("glab"),
            _ => {
                let mut with_login = None;
                for program in FORGE_PROGRAMS {
                    if with_login.is_none() && cli.has_login(program, &address.host).await {
                        with_login = Some(program);
                    }
                }
                with_login
            }
        };
        let Some(program) = program else {
            let why = format!("neither gh nor glab knows {}; `[deliver] command` can name a program", address.host);
            return Ok(Self::Manual { why });
        };
        if !cli.is_installed(program).await {
            return Ok(Self::Manual { why: format!("{program} is not on your PATH") });
        }
        if !cli.has_login(program, &address.host).await {
            let message = format!("{program} has no login for {}; nothing was pushed", address.host);
            return Err(Failure::new(ExitStatus::Refused, "forge", message)
                .hint(format!("{program} auth login --hostname {}", address.host)));
        }
        Ok(if program == "gh" { Self::GitHub(GitHub::new(address)) } else { Self::GitLab(GitLab::new(address)) })
    }

    /// Returns the forge's term for a pull request.
    pub(crate) fn request_noun(&self) -> &'static str {
        if matches!(self, Self::GitLab(_)) { "merge request" } else { "pull request" }
    }

    /// Finds the newest pull request of a branch.
    pub(crate) async fn find_pr(&self, cli: &ForgeCli, head: &str) -> Result<PrState, Failure> {
        match self {
            Self::GitHub(github) => github.find_pr(cli, head).await,
            Self::GitLab(gitlab) => gitlab.find_pr(cli, head).await,
            Self::Custom(_) | Self::Manual { .. } => Ok(PrState::None),
        }
    }

    /// Explains how to reopen a closed pull request.
    pub(crate) fn reopen_command(&self, number: u64) -> Option<String> {
        match self {
            Self::GitHub(github) => Some(github.reopen_command(number)),
            Self::GitLab(gitlab) => Some(gitlab.reopen_command(number)),
            Self::Custom(_) | Self::Manual { .. } => None,
        }
    }

    /// Opens a pull request and returns its page; for a program of the user's, its last line of output, if any.
    pub(crate) async fn open_pr(&self, cli: &ForgeCli, new_pr: NewPr<'_>) -> Result<Option<String>, Failure> {
        match self {
            Self::GitHub(github) => github.open_pr(cli, new_pr).await.map(Some),
            Self::GitLab(gitlab) => gitlab.open_pr(cli, new_pr).await.map(Some),
            Self::Custom(own) => own.open_pr(cli, new_pr).await,
            Self::Manual { .. } => Ok(None),
        }
    }

    /// Updates an open pull request.
    pub(crate) async fn update_pr(&self, cli: &ForgeCli, pr: &OpenPr, update: PrUpdate<'_>) -> Result<(), Failure> {
        match self {
            Self::GitHub(github) => github.update_pr(cli, pr, update).await,
            Self::GitLab(gitlab) => gitlab.update_pr(cli, pr, update).await,
            Self::Custom(_) | Self::Manual { .. } => Ok(()),
        }
    }

    /// Reads the feedback on an open pull request; `anyone` includes people without write access to the repository.
    pub(crate) async fn read_feedback(
        &self,
        cli: &ForgeCli,
        pr: &OpenPr,
        anyone: bool,
    ) -> Result<ForgeFeedback, Failure> {
        match self {
            Self::GitHub(github) => github.read_feedback(cli, pr, anyone).await,
            Self::GitLab(gitlab) => gitlab.read_feedback(cli, pr, anyone).await,
            Self::Custom(_) | Self::Manual { .. } => Ok(ForgeFeedback::default()),
        }
    }
}
