//! `config`: reads and sets a repository's configuration.

use std::fs;
use std::io;

use clap::{Args, Subcommand};
use protocol::api::ConfigApiClient as _;
use protocol::client::{CallError, Connection};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::reply::{ConfigEditReply, ConfigSetReply, SettingOrigin, SettingView};
use protocol::request::{AtPath, AtRun, AtSettings, ConfigEditParams, ConfigKey, ConfigSetParams, ConfigTextParams};
use serde_json::Value;

use crate::editor;
use crate::failure::{Failure, is_refusal};
use crate::invocation::Invocation;
use crate::settings::Settings;
use crate::text::change::render_change;
use crate::text::paint::{DIM, paint};
use crate::text::sanitize::{sanitize, sanitize_lines};

const EXAMPLES: &str = "Examples:
  runnerctl config get                               everything, as key = value
  runnerctl config get guard.command                 one value
  runnerctl config set guard.command make test       the words of a command
  runnerctl config set guard.definition '[\"/ci/**\"]' other values as TOML
  runnerctl config set max_cost_usd --default        reset to default
  runnerctl config set prices.gpt-5 '{input = 1.25, output = 10}'
  runnerctl config show --origin                     and where each is set
  runnerctl config edit                              in $VISUAL, else $EDITOR
  runnerctl config path                              the file";

/// The effect of a change to the file in a working tree.
const NEXT: &str = "it becomes part of the next run's branch";

/// Read or change a repository's configuration
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, Subcommand)]
enum ConfigVerb {
    /// Print one value, a section, or everything
    Get {
        /// Dotted key, e.g. `guard.command`
        #[arg(value_name = "KEY")]
        key: Option<String>,
    },
    /// Set a key; the file keeps its comments and order
    ///
    /// If a run is active, or has stopped and its branch is checked out, the change is committed to that branch,
    /// immediately or when the current session ends. Otherwise only the file in the repository is changed, and becomes
    /// part of the next run's branch.
    Set {
        /// Dotted key, e.g. `guard.command`
        #[arg(value_name = "KEY")]
        key: String,
        /// The value as TOML or as a single word; for a command, all its words and options
        #[arg(
            value_name = "VALUE",
            required_unless_present = "default",
            conflicts_with = "default",
            allow_negative_numbers = true
        )]
        value: Vec<String>,
        /// Remove the key from the file, to use its default
        #[arg(long)]
        default: bool,
        /// Run id, or a unique prefix [default: the active run]
        #[arg(long, value_name = "ID")]
        run: Option<String>,
    },
    /// Edit the file in your editor
    ///
    /// Opens a copy in $VISUAL, else $EDITOR, else vi. The copy is checked before anything is changed, and takes effect
    /// as with `config set`. Rejected edits are kept.
    Edit {
        /// Run id, or a unique prefix [default: the active run]
        #[arg(long, value_name = "ID")]
        run: Option<String>,
    },
    /// Print every key as TOML
    Show {
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,
        /// Show the daemon's settings instead of the repository's
        #[arg(long)]
        daemon: bool,
    },
    /// Print the path of the file
    Path {
        /// The file of the daemon's settings instead of the repository's
        #[arg(long)]
        daemon: bool,
    },
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ConfigArgs) -> Result<ExitStatus, Failure> {
    let path = invocation.daemon_path(None)?;
    let connection = invocation.connect().await?;
    let client = connection.client();
    match args.verb {
        ConfigVerb::Get { key } => {
            let reply = client.get(ConfigKey { path, key, defaults: Settings::load()?.defaults() }).await?;
            invocation.ui.print_answer("config", &reply, |_| render_value(&reply.value))?;
        }
        ConfigVerb::Set { key, value, run, .. } => {
            let value = join_command(value);
            let defaults = Settings::load()?.defaults();
            let reply = client.set(ConfigSetParams { at: AtRun { path, run }, key, value, defaults }).await?;
            invocation.ui.print_answer("config-set", &reply, |_| render_set(&reply))?;
        }
        ConfigVerb::Edit { run } => edit(invocation, &connection, AtRun { path, run }).await?,
        ConfigVerb::Show { origin, daemon } => {
            let reply = client.show(AtSettings { path, defaults: Settings::load()?.defaults() }).await?;
            let settings = if daemon { &reply.daemon_settings } else { &reply.settings };
            invocation.ui.print_answer("config-show", &reply, |_| render_settings(settings, origin))?;
        }
        ConfigVerb::Path { daemon } => {
            let reply = client.path(AtPath { path }).await?;
            let file = if daemon { &reply.daemon_file } else { &reply.file };
            invocation.ui.print_answer("config-path", &reply, |_| format!("{}\n", sanitize(&file.to_string())))?;
        }
    }
    Ok(ExitStatus::Success)
}

/// Opens a copy of the file in an editor, repeatedly, until it is accepted or the user gives up.
async fn edit(invocation: &Invocation<'_>, connection: &Connection, at: AtRun) -> Result<(), Failure> {
    let params = ConfigTextParams { at: at.clone(), defaults: Settings::load()?.defaults() };
    let opened = connection.client().text(params).await?;
    let folder = tempfile::Builder::new().prefix("runnerctl-config").tempdir();
    let folder = folder.map_err(|error| Failure::temp_file(&error))?;
    let copy = folder.path().join("config.toml");
    let failed = |doing: &str, error: &io::Error| Failure::io(format!("{doing} {}", copy.display()), error);
    fs::write(&copy, &opened.text).map_err(|error| failed("writing", &error))?;
    loop {
        editor::edit_file(&copy)?;
        let text = fs::read_to_string(&copy).map_err(|error| failed("reading", &error))?;
        if text == opened.text {
            invocation.ui.print_note("Nothing was changed.\n");
            return Ok(());
        }
        let params = ConfigEditParams { at: at.clone(), text, opened: Some(opened.digest.clone()) };
        let error = match connection.client().edit_config(params).await.map_err(CallError::from) {
            Ok(reply) => return invocation.ui.print_answer("config-edit", &reply, |_| render_edit(&reply)),
            Err(error) => error,
        };
        let can_be_fixed = is_refusal(&error, ErrorKind::InvalidRequest) || is_refusal(&error, ErrorKind::InvalidFile);
        if !(can_be_fixed && invocation.ui.can_ask() && editor::ask_to_retry(&error.to_string())?) {
            let file = folder.keep().join("config.toml");
            return Err(Failure::from(error).hint(format!("your edit is kept in {}", file.display())));
        }
    }
}

/// Returns the value: as it was given, or several words, which are those of a command, as TOML; `None` without one.
fn join_command(mut words: Vec<String>) -> Option<String> {
    if words.len() > 1 { Some(toml::Value::from(words).to_string()) } else { words.pop() }
}

fn render_edit(reply: &ConfigEditReply) -> String {
    if let Some(change) = &reply.change {
        return render_change(change);
    }
    let keys = if reply.keys.is_empty() { "comments".to_owned() } else { reply.keys.join(", ") };
    format!("config edit: changed {} in {}\n  {NEXT}\n", sanitize(&keys), sanitize(&reply.file.to_string()))
}

fn render_set(reply: &ConfigSetReply) -> String {
    if let Some(change) = &reply.change {
        return render_change(change);
    }
    let value = reply.value.as_deref().unwrap_or("reset to default");
    format!(
        "config set: {} is {} in {}\n  {NEXT}\n",
        sanitize(&reply.key),
        sanitize(value),
        sanitize(&reply.file.to_string())
    )
}

/// Renders one line of TOML per key; disabled keys and the origin of values are comments.
fn render_settings(settings: &[SettingView], origin: bool) -> String {
    let line = |setting: &SettingView| {
        let value = match &setting.value {
            Some(value) => format!("{} = {value}", setting.key),
            None => format!("# {} is off", setting.key),
        };
        let from = match (setting.origin, &setting.place) {
            (SettingOrigin::Default, _) => "default",
            (_, place) => place.as_deref().unwrap_or_default(),
        };
        if origin {
            format!("{}  {}\n", sanitize(&value), paint(DIM, &sanitize(&format!("# {from}"))))
        } else {
            sanitize(&value) + "\n"
        }
    };
    settings.iter().map(line).collect()
}

/// Renders a value: a lone string as is, so that a script can use it; a section as `key = value` lines.
fn render_value(value: &Value) -> String {
    match value {
        Value::String(text) => sanitize_lines(text) + "\n",
        Value::Object(_) => {
            let mut lines = Vec::new();
            flatten_keys("", value, &mut lines);
            lines.concat()
        }
        other => sanitize(&other.to_string()) + "\n",
    }
}

fn flatten_keys(prefix: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(table) if !table.is_empty() => {
            for (key, value) in table {
                let dotted = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten_keys(&dotted, value, lines);
            }
        }
        value => lines.push(format!("{} = {}\n", sanitize(prefix), sanitize(&value.to_string()))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_section_is_printed_with_dotted_keys() {
        let config = json!({"guard": {"command": ["just", "ci"], "baseline": true}, "max_cost_usd": null});
        insta::assert_snapshot!(render_value(&config), @r#"
        guard.baseline = true
        guard.command = ["just","ci"]
        max_cost_usd = null
        "#);
    }

    #[test]
    fn a_key_is_shown_with_the_line_that_sets_it() {
        let setting = |key: &str, value: Option<&str>, origin, place: Option<&str>| SettingView {
            choices: Vec::new(),
            key: key.into(),
            value: value.map(str::to_owned),
            origin,
            place: place.map(str::to_owned),
        };
        let settings = [
            setting("max_iterations", Some("7"), SettingOrigin::File, Some("/p/config.toml:3")),
            setting("max_cost_usd", None, SettingOrigin::Default, None),
            setting("log_level", Some("\"debug\""), SettingOrigin::Start, Some("RUNNERD_LOG")),
        ];
        insta::assert_snapshot!(anstream::adapter::strip_str(&render_settings(&settings, true)), @r#"
        max_iterations = 7  # /p/config.toml:3
        # max_cost_usd is off  # default
        log_level = "debug"  # RUNNERD_LOG
        "#);
        assert!(render_settings(&settings, false).starts_with("max_iterations = 7\n# max_cost_usd is off\n"));
    }

    #[test]
    fn the_words_of_a_command_are_a_list() {
        let join = |words: &[&str]| join_command(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(join(&["cargo", "test", "--quiet"]).as_deref(), Some(r#"["cargo", "test", "--quiet"]"#));
        assert_eq!(join(&["20"]).as_deref(), Some("20"));
        assert_eq!(join(&[]), None);
    }

    #[test]
    fn a_text_alone_has_no_quotes() {
        assert_eq!(render_value(&json!("stop")), "stop\n");
        assert_eq!(render_value(&json!(["just", "ci"])), "[\"just\",\"ci\"]\n");
    }
}
