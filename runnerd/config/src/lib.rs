//! Configuration files as values: a repository's `config.toml` and the daemon's own settings.
//!
//! Every key is defined once in [`table`], with its type, default and meaning; parsing, the commented file written by
//! `init` and `docs/configuration.md` follow from it. The effect of a value is not decided here, and no file is looked
//! up: callers pass the text and its name.

mod check;
mod choice;
mod commands;
mod cost_limit;
mod daemon;
mod edit;
mod environment;
mod error;
mod executor;
pub mod goal;
mod guard_proposal;
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

pub use cost_limit::{PriceQuote, UnnamedModel, UnpricedBackend};
pub use daemon::DaemonConfig;
pub use edit::{
    SettingEntry, ValueOrigin, apply_defaults, changed_keys, get, key_names, list_changes, list_daemon_settings,
    list_settings, set, unset,
};
pub use error::{ConfigError, ConfigProblem, FaultPosition};
pub use executor::{Effort, Executor, ExecutorKind, Executors, Inherited, Sandbox};
pub use guard_proposal::{GuardSuggestion, workflow_commands};
pub use keys::is_scope_glob;
pub use list_prices::{LIST_PRICES, ListPrices};
pub use money::{MicroUsd, Price};
pub use parse::{MAX_BYTES, decode_text, locate_key};
pub use pattern::{PatternRoot, Patterns};
pub use proposal::SetupProposal;
pub use repository::{
    ContainmentConfig, DeliverConfig, EnvConfig, GitConfig, GuardConfig, HooksConfig, PromptConfig, PublishConfig,
    RepoConfig, ReviewConfig, RolesConfig, ScopeConfig, WorkspaceConfig, is_instruction_path, parse,
};
pub use text::{daemon_default_text, default_text, default_text_with, reference_page};
pub use value_enums::{ChangePolicy, LogLevel, PublishExtras, ReviewPolicy, RolesMode, TimeoutPolicy, WorkspaceKind};

#[cfg(test)]
mod tests;
