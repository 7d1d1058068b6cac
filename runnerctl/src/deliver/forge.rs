//! The forge at which a request to take a branch is opened: GitHub by `gh`, GitLab by `glab`, any other by a program of
//! the person's, or by hand.

use protocol::delivery::FeedbackItem;
use protocol::error::ExitStatus;

use super::address::ForgeRepo;
use super::custom_forge::CustomForge;
use super::forge_cli::ForgeCli;
use super::github::GitHub;
use super::gitlab::GitLab;
use crate::failure::Failure;

/// The forges whose programs may be asked about a host that is not known by its name.
const PROGRAMS: [&str; 2] = ["gh", "glab"];

/// What is offered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewPr<'a> {
    /// The branch.
    pub(crate) head: &'a str,
    /// The branch that is to take it.
    pub(crate) base: &'a str,
    /// One line.
    pub(crate) title: &'a str,
    /// Markdown.
    pub(crate) body: &'a str,
    /// Whether it is ready for review.
    pub(crate) ready: bool,
}

/// What of an open request is to be another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrUpdate<'a> {
    /// The branch that is to take it, where that was asked for.
    pub(crate) base: Option<&'a str>,
    /// The description.
    pub(crate) body: &'a str,
    /// Whether it is ready for review now.
    pub(crate) ready: bool,
}

/// A request that is open.
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

/// What a forge has of a branch: that of the newest request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PrState {
    /// No request.
    None,
    /// An open one.
    Open(OpenPr),
    /// One that somebody has closed.
    Closed {
        /// Its number.
        number: u64,
        /// Its page.
        url: String,
    },
    /// One that was taken.
    Merged {
        /// Its page.
        url: String,
    },
}

/// What was told of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ForgeFeedback {
    /// Failed checks, and what people with a say have said.
    pub(crate) items: Vec<FeedbackItem>,
    /// Comments of others, which were left out.
    pub(crate) left_out: u32,
}

/// A forge.
#[derive(Debug)]
pub(crate) enum Forge {
    /// GitHub.
    GitHub(GitHub),
    /// GitLab.
    GitLab(GitLab),
    /// A program of the person's.
    Own(CustomForge),
    /// None: a person does it by hand.
    ByHand {
        /// Why.
        why: String,
    },
}

impl Forge {
    /// Finds who opens requests for an address: the program of the configuration, else that of the forge.
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

    /// What such a request is called.
    pub(crate) fn noun(&self) -> &'static str {
        if matches!(self, Self::GitLab(_)) { "merge request" } else { "pull request" }
    }

    /// Finds the newest request of a branch.
    pub(crate) async fn standing(&self, desk: &ForgeCli, head: &str) -> Result<PrState, Failure> {
        match self {
            Self::GitHub(github) => github.standing(desk, head).await,
            Self::GitLab(gitlab) => gitlab.standing(desk, head).await,
            Self::Own(_) | Self::ByHand { .. } => Ok(PrState::None),
        }
    }

    /// Says how a closed request is opened again.
    pub(crate) fn reopening(&self, number: u64) -> Option<String> {
        match self {
            Self::GitHub(github) => Some(github.reopening(number)),
            Self::GitLab(gitlab) => Some(gitlab.reopening(number)),
            Self::Own(_) | Self::ByHand { .. } => None,
        }
    }

    /// Opens a request, and returns its page; what a program of the person's printed last, where it printed anything.
    pub(crate) async fn open(&self, desk: &ForgeCli, offer: NewPr<'_>) -> Result<Option<String>, Failure> {
        match self {
            Self::GitHub(github) => github.open(desk, offer).await.map(Some),
            Self::GitLab(gitlab) => gitlab.open(desk, offer).await.map(Some),
            Self::Own(own) => own.open(desk, offer).await,
            Self::ByHand { .. } => Ok(None),
        }
    }

    /// Has an open request say what is so now.
    pub(crate) async fn update(&self, desk: &ForgeCli, open: &OpenPr, renewal: PrUpdate<'_>) -> Result<(), Failure> {
        match self {
            Self::GitHub(github) => github.update(desk, open, renewal).await,
            Self::GitLab(gitlab) => gitlab.update(desk, open, renewal).await,
            Self::Own(_) | Self::ByHand { .. } => Ok(()),
        }
    }

    /// Reads what was told of an open request; of people without a say in the repository too, where `anyone` may be heard.
    pub(crate) async fn hear(&self, desk: &ForgeCli, open: &OpenPr, anyone: bool) -> Result<ForgeFeedback, Failure> {
        match self {
            Self::GitHub(github) => github.hear(desk, open, anyone).await,
            Self::GitLab(gitlab) => gitlab.hear(desk, open, anyone).await,
            Self::Own(_) | Self::ByHand { .. } => Ok(ForgeFeedback::default()),
        }
    }
}
