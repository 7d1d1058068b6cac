//! Configuration files as values: a repository's `config.toml` and the daemon's own settings.
//!
//! Every key stands once in [`table`], with its type, default and meaning; reading, the commented
//! file that `init` writes and `docs/configuration.md` follow from there. What a value does is not
//! decided here, and no file is looked up: callers pass the text and the name it goes by.

mod cost_limit;
mod check;
mod choice;
mod commands;
mod daemon;
mod edit;
mod error;
mod executor;
mod keys;
mod list_prices;
mod money;
mod parse;
mod pattern;
mod proposal;
mod repository;
mod table;
mod text;
mod value_enums;

pub use cost_limit::{PriceQuote, UnpricedBackend};
pub use daemon::DaemonConfig;
pub use edit::{ValueOrigin, SettingEntry, get, key_names, set, list_settings, list_daemon_settings, unset};
pub use error::{ConfigError, FaultPosition, ConfigProblem};
pub use executor::{Executor, ExecutorKind, Executors, Sandbox};
pub use list_prices::{LIST_PRICES, ListPrices};
pub use money::{MicroUsd, Price};
pub use parse::decode_text;
pub use pattern::{PatternRoot, Patterns};
pub use proposal::SetupProposal;
pub use repository::{
    ContainmentConfig, DeliverConfig, EnvConfig, GitConfig, GuardConfig, HooksConfig, PromptConfig, PublishConfig,
    RepoConfig, ReviewConfig, RolesConfig, WorkspaceConfig, parse,
};
pub use text::{daemon_default_text, default_text, default_text_with, reference_page};
pub use value_enums::{Extras, LogLevel, OnChange, OnTimeout, Reviewer, RoleMode, WorkspaceKind};

#[cfg(test)]
mod tests;
