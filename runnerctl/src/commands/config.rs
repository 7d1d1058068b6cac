//! `config`: reads a repository's configuration.

use clap::{Args, Subcommand};
use protocol::api::ConfigApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::ConfigKey;
use serde_json::Value;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::safe::{safe, safe_lines};

const EXAMPLES: &str = "Examples:
  runnerctl config get                  everything, as key = value
  runnerctl config get guard.command    one value
  runnerctl -C ~/proj config get git";

/// Read a repository's configuration
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
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ConfigArgs) -> Result<ExitStatus, Failure> {
    let ConfigVerb::Get { key } = args.verb;
    let path = invocation.place(None)?;
    let reply = invocation.connect().await?.client().get(ConfigKey { path, key }).await?;
    invocation.ui.answer("config", &reply, |_| render(&reply.value))?;
    Ok(ExitStatus::Fine)
}

/// A text alone is printed as it is, so that a script can use it; a section as `key = value` lines.
fn render(value: &Value) -> String {
    match value {
        Value::String(text) => safe_lines(text) + "\n",
        Value::Object(_) => {
            let mut lines = Vec::new();
            flatten("", value, &mut lines);
            lines.concat()
        }
        other => safe(&other.to_string()) + "\n",
    }
}

fn flatten(prefix: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(section) if !section.is_empty() => {
            for (key, value) in section {
                let dotted = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&dotted, value, lines);
            }
        }
        value => lines.push(format!("{} = {}\n", safe(prefix), safe(&value.to_string()))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_section_is_printed_with_dotted_keys() {
        let config = json!({"guard": {"command": ["just", "ci"], "baseline": true}, "max_cost_usd": null});
        insta::assert_snapshot!(render(&config), @r#"
        guard.baseline = true
        guard.command = ["just","ci"]
        max_cost_usd = null
        "#);
    }

    #[test]
    fn a_text_alone_has_no_quotes() {
        assert_eq!(render(&json!("stop")), "stop\n");
        assert_eq!(render(&json!(["just", "ci"])), "[\"just\",\"ci\"]\n");
    }
}
