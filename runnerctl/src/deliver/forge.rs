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
const PROGRAMS: [&str; 2] = ["gh", "glab"];

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
    /// Failed checks, and comments of people who are heard.
    pub(crate) items: Vec<FeedbackItem>,
    /// Number of comments of other people, which were omitted.
    pub(crate) left_out: u32,
}

/// A forge.
#[derive(Debug)]
pub(crate) enum Forge {
    /// GitHub.
    GitHub(GitHub),
    /// GitLab.
    GitLab(GitLab),
    /// A program of the user's.
    Own(CustomForge),
    /// No program: the user opens it by hand.
    ByHand {
        /// Why there is none.
        why: String,
    },
}

impl Forge {
    /// Finds the forge for a URL: the configured program, else the forge's own.
    pub(crate) async fn find(desk: &ForgeCli, url: &str, command: &[String]) -> Result<Self, Failure> {
        if !command.is_empty() {
            return Ok(Self::Own(CustomForge::new(command)));
        }
        let Some(address) = ForgeRepo::of(url) else {
            return Ok(Self::ByHand { why: "the remote is no repository at a forge".to_owned() });
        };
        let program = match (address.is_github(), address.is_gitlab()) {
            (true, _) => Some("gh"),
            (_, true) => Some("glab"),
            _ => {
                let mut knowing = None;
                for program in PROGRAMS {
                    if knowing.is_none() && desk.knows(program, &address.host).await {
                        knowing = Some(program);
                    }
                }
                knowing
            }
        };
        let Some(program) = program else {
            let why = format!("neither gh nor glab knows {}; `[deliver] command` can name a program", address.host);
            return Ok(Self::ByHand { why });
        };
        if !desk.has(program).await {
            return Ok(Self::ByHand { why: format!("{program} is not on your PATH") });
        }
        if !desk.knows(program, &address.host).await {
            let message = format!("{program} has no login for {}; nothing was pushed", address.host);
            return Err(Failure::new(ExitStatus::Refused, "forge", message)
                .hint(format!("{program} auth login --hostname {}", address.host)));
        }
        Ok(if program == "gh" { Self::GitHub(GitHub::new(address)) } else { Self::GitLab(GitLab::new(address)) })
    }

    /// Returns the forge's term for a pull request.
    pub(crate) fn noun(&self) -> &'static str {
        if matches!(self, Self::GitLab(_)) { "merge request" } else { "pull request" }
    }

    /// Finds the newest pull request of a branch.
    pub(crate) async fn standing(&self, desk: &ForgeCli, head: &str) -> Result<PrState, Failure> {
        match self {
            Self::GitHub(github) => github.standing(desk, head).await,
            Self::GitLab(gitlab) => gitlab.standing(desk, head).await,
            Self::Own(_) | Self::ByHand { .. } => Ok(PrState::None),
        }
    }

    /// Explains how to reopen a closed pull request.
    pub(crate) fn reopening(&self, number: u64) -> Option<String> {
        match self {
            Self::GitHub(github) => Some(github.reopening(number)),
            Self::GitLab(gitlab) => Some(gitlab.reopening(number)),
            Self::Own(_) | Self::ByHand { .. } => None,
        }
    }

    /// Opens a pull request and returns its page; for a program of the user's, its last line of output, if any.
    pub(crate) async fn open(&self, desk: &ForgeCli, offer: NewPr<'_>) -> Result<Option<String>, Failure> {
        match self {
            Self::GitHub(github) => github.open(desk, offer).await.map(Some),
            Self::GitLab(gitlab) => gitlab.open(desk, offer).await.map(Some),
            Self::Own(own) => own.open(desk, offer).await,
            Self::ByHand { .. } => Ok(None),
        }
    }

    /// Updates an open pull request.
    pub(crate) async fn update(&self, desk: &ForgeCli, open: &OpenPr, renewal: PrUpdate<'_>) -> Result<(), Failure> {
        match self {
            Self::GitHub(github) => github.update(desk, open, renewal).await,
            Self::GitLab(gitlab) => gitlab.update(desk, open, renewal).await,
            Self::Own(_) | Self::ByHand { .. } => Ok(()),
        }
    }

    /// Reads the feedback on an open pull request; `anyone` includes people without write access to the repository.
    pub(crate) async fn hear(&self, desk: &ForgeCli, open: &OpenPr, anyone: bool) -> Result<ForgeFeedback, Failure> {
        match self {
            Self::GitHub(github) => github.hear(desk, open, anyone).await,
            Self::GitLab(gitlab) => gitlab.hear(desk, open, anyone).await,
            Self::Own(_) | Self::ByHand { .. } => Ok(ForgeFeedback::default()),
        }
    }
}
