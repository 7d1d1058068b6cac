//! Settings for a repository that has none: the guard of its kind of project and an installed agent. They are shown with
//! their reasons, and taken only if the user agrees.

use std::fmt::Write as _;
use std::time::Duration;

use protocol::api::DoctorApiClient as _;
use protocol::client::{Connection, caller_env};
use protocol::doctor::{AgentFacts, AgentFitness, GuardSuggestion, RepositoryFacts};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::path::WirePath;
use protocol::request::{AtSettings, UserDefaults, ValidateParams};
use protocol::shell;
use tokio::time::timeout;

use crate::confirm::ask_yes_no;
use crate::failure::{Failure, repeat_command, typed_words};
use crate::program::has_program;
use crate::settings::Settings;
use crate::text::sanitize::sanitize;
use crate::ui::Ui;

/// Time limit for the facts about a repository, and for agents to report their versions.
const FACTS_TIMEOUT: Duration = Duration::from_secs(5);
const AGENTS_TIMEOUT: Duration = Duration::from_secs(20);
/// What a repository without settings uses.
const DEFAULT_GUARD: [&str; 2] = ["just", "ci"];
const DEFAULT_AGENT: &str = "codex";

/// A setting that was detected.
#[derive(Debug, PartialEq, Eq)]
struct DetectedSetting {
    key: &'static str,
    /// Its value as TOML.
    value: String,
    reason: String,
}

/// The settings for a new configuration.
pub(crate) struct NewSettings {
    /// The user's own defaults, and what was detected.
    pub(crate) defaults: Option<UserDefaults>,
    /// Whether something was detected and taken.
    pub(crate) has_detected: bool,
}

/// Who is asked about detected settings.
pub(crate) struct Asker<'a> {
    pub(crate) ui: &'a Ui,
    /// Whether the user has agreed up front.
    pub(crate) yes: bool,
    /// Whether the command continues with the defaults if the user declines.
    pub(crate) is_optional: bool,
    /// Whether the daemon is on this machine, and programs can be looked for.
    pub(crate) is_local: bool,
}

/// Returns the settings for a new configuration of a repository; asks about those that were detected.
pub(crate) async fn choose_settings(
    connection: &Connection,
    path: &WirePath,
    asker: Asker<'_>,
) -> Result<NewSettings, Failure> {
    let settings = Settings::load()?;
    let own = settings.defaults();
    let client = connection.client();
    let facts =
        timeout(FACTS_TIMEOUT, client.repository_facts(AtSettings { path: path.clone(), defaults: None })).await;
    // A path without a repository is reported by the command itself.
    let Ok(Ok(facts)) = facts else { return Ok(NewSettings { defaults: own, has_detected: false }) };
    if facts.has_settings {
        return Ok(NewSettings { defaults: own, has_detected: false });
    }
    let mut detected: Vec<DetectedSetting> =
        detect_guard(&facts, asker.is_local).filter(|_| !settings.has_default("guard.command")).into_iter().collect();
    if !settings.has_default("executor.kind") {
        let params = ValidateParams { path: path.clone(), env: caller_env::collect(connection, path).await };
        let agents = timeout(AGENTS_TIMEOUT, client.installed_agents(params)).await;
        detected.extend(agents.ok().and_then(Result::ok).and_then(|agents| choose_agent(&agents)));
    }
    if detected.is_empty() {
        if facts.guard_suggestion.is_none() && !settings.has_default("guard.command") {
            asker.ui.print_note(&render_ci_hint(&facts.ci_commands));
        }
        return Ok(NewSettings { defaults: own, has_detected: false });
    }
    if asker.confirm(&render_detected(&detected, &facts.ci_commands))? {
        return Ok(NewSettings { defaults: Some(add_detected(own, &detected)), has_detected: true });
    }
    Ok(NewSettings { defaults: own, has_detected: false })
}

impl Asker<'_> {
    fn confirm(&self, text: &str) -> Result<bool, Failure> {
        if self.yes {
            self.ui.print_note(text);
            return Ok(true);
        }
        let refused = |message: String| Failure::new(ExitStatus::Refused, ErrorKind::Unconfirmed.as_str(), message);
        if !self.ui.can_ask() {
            let words = typed_words();
            let again = repeat_command(&words, &["--yes"]);
            let again = shell::join_args(again.iter().map(AsRef::as_ref));
            return Err(refused(text.trim_end().to_owned())
                .hint(format!("to take them: {again}; others: runnerctl config edit")));
        }
        if ask_yes_no(&format!("{text}Take these settings? [y/N] "))? {
            return Ok(true);
        }
        if self.is_optional {
            return Ok(false);
        }
        Err(refused("nothing was started".into()).hint("runnerctl init && runnerctl config edit"))
    }
}

/// Returns the suggested guard, unless it is the default; says if its program is missing on this machine.
fn detect_guard(facts: &RepositoryFacts, is_local: bool) -> Option<DetectedSetting> {
    let GuardSuggestion { command, reason } =
        facts.guard_suggestion.as_ref().filter(|found| found.command != DEFAULT_GUARD)?;
    let is_missing = is_local && !has_program(command, facts.path.as_path());
    let missing =
        command.first().filter(|_| is_missing).map(|program| format!("; {program} is not installed: install it"));
    let value = toml::Value::from(command.clone()).to_string();
    Some(DetectedSetting { key: "guard.command", value, reason: format!("{reason}{}", missing.unwrap_or_default()) })
}

/// Returns the agent that can work and is logged in, else the first that can work and may be; with its version and
/// whether it is logged in.
pub(crate) fn find_fit_agent(agents: &[AgentFacts]) -> Option<(&AgentFacts, String, bool)> {
    let version = |facts: &AgentFacts, login_state: Option<bool>| match &facts.fitness {
        AgentFitness::Fit { version, login, .. } if *login == login_state => Some(version.clone().unwrap_or_default()),
        AgentFitness::Fit { .. } | AgentFitness::Unfit { .. } | AgentFitness::Unknown { .. } => None,
    };
    let find = |login_state: Option<bool>| agents.iter().find_map(|facts| Some((facts, version(facts, login_state)?)));
    let logged_in = find(Some(true)).map(|(facts, version)| (facts, version, true));
    logged_in.or_else(|| find(None).map(|(facts, version)| (facts, version, false)))
}

/// Returns the suggested agent, unless it is the default.
fn choose_agent(agents: &[AgentFacts]) -> Option<DetectedSetting> {
    let (chosen, version, has_login) = find_fit_agent(agents)?;
    let login = if has_login { "is installed and logged in" } else { "is installed, perhaps without a login" };
    if chosen.kind == DEFAULT_AGENT {
        return None;
    }
    let default = match agents.iter().find(|facts| facts.kind == DEFAULT_AGENT).map(|facts| &facts.fitness) {
        None => format!("{DEFAULT_AGENT} is not installed"),
        Some(AgentFitness::Unfit { what, .. }) => what.clone(),
        Some(_) => format!("{DEFAULT_AGENT} is not logged in"),
    };
    let reason = format!("{} {version} {login}; {default}", chosen.kind);
    Some(DetectedSetting { key: "executor.kind", value: format!("{:?}", chosen.kind), reason })
}

fn render_detected(detected: &[DetectedSetting], ci_commands: &[String]) -> String {
    let mut text = "this repository has no settings; detected:\n".to_owned();
    for DetectedSetting { key, value, reason } in detected {
        let _ = writeln!(text, "  {key} = {}\n    because {}", sanitize(value), sanitize(reason));
    }
    if !ci_commands.is_empty() {
        let commands: Vec<String> = ci_commands.iter().map(|command| sanitize(command)).collect();
        let _ = writeln!(text, "  its CI runs: {}", commands.join("; "));
    }
    text
}

/// Says what the CI of a repository runs for which no guard was detected; empty if it runs nothing.
fn render_ci_hint(ci_commands: &[String]) -> String {
    let Some(first) = ci_commands.first() else { return String::new() };
    let rows = ci_commands.iter().map(|command| format!("  {}\n", sanitize(command))).collect::<Vec<_>>().concat();
    let example = sanitize(&guard_words(first));
    let head = "no guard was detected; the CI of this repository runs:\n";
    format!("{head}{rows}to use one: runnerctl config set guard.command {example}\n")
}

/// Returns a command of a CI workflow as the words of a guard: its own, unless it needs a shell.
pub(crate) fn guard_words(ci_command: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || " ./_-=:,@+".contains(char);
    if ci_command.chars().all(is_plain) {
        shell::join_args(ci_command.split_whitespace())
    } else {
        shell::join_args(["sh", "-c", ci_command])
    }
}

fn add_detected(own: Option<UserDefaults>, detected: &[DetectedSetting]) -> UserDefaults {
    let mut defaults =
        own.unwrap_or_else(|| UserDefaults { text: String::new(), file: WirePath(".runner/state/config.toml".into()) });
    for DetectedSetting { key, value, .. } in detected {
        let _ = writeln!(defaults.text, "{key} = {value}");
    }
    defaults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(kind: &str, login: Option<bool>) -> AgentFacts {
        let fitness = AgentFitness::Fit { version: Some("2.1.0".into()), tested: None, login };
        AgentFacts { section: "executor".into(), kind: kind.into(), fitness }
    }

    #[test]
    fn an_agent_with_a_login_is_preferred_and_the_default_needs_no_setting() {
        let chosen =
            |agents: &[AgentFacts]| choose_agent(agents).map(|found| format!("{}: {}", found.value, found.reason));
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[agent("codex", Some(true)), agent("claude", Some(true))]), None);
        assert_eq!(chosen(&[agent("codex", Some(false))]), None);
        let found =
            [chosen(&[agent("codex", Some(false)), agent("claude", Some(true))]), chosen(&[agent("claude", None)])];
        insta::assert_snapshot!(found.map(Option::unwrap_or_default).join("\n"), @r#"
        "claude": claude 2.1.0 is installed and logged in; codex is not logged in
        "claude": claude 2.1.0 is installed, perhaps without a login; codex is not installed
        "#);
    }

    #[test]
    fn what_the_ci_runs_is_a_hint_where_no_guard_was_detected() {
        assert_eq!(render_ci_hint(&[]), "");
        insta::assert_snapshot!(render_ci_hint(&["./run-tests.sh --all".into(), "a && b".into()]), @r"
        no guard was detected; the CI of this repository runs:
          ./run-tests.sh --all
          a && b
        to use one: runnerctl config set guard.command ./run-tests.sh --all
        ");
        assert_eq!(guard_words("a && b"), "sh -c 'a && b'");
    }

    #[test]
    fn what_was_detected_is_shown_and_added_to_the_users_own_defaults() {
        let guard = DetectedSetting {
            key: "guard.command",
            value: "[\"cargo\", \"test\"]".into(),
            reason: "Cargo.toml".into(),
        };
        insta::assert_snapshot!(render_detected(&[guard], &["cargo test --locked".into()]), @r#"
        this repository has no settings; detected:
          guard.command = ["cargo", "test"]
            because Cargo.toml
          its CI runs: cargo test --locked
        "#);
        let guard = DetectedSetting { key: "guard.command", value: "[\"make\"]".into(), reason: String::new() };
        let own = UserDefaults { text: "max_cost_usd = 20\n".into(), file: WirePath("/c".into()) };
        assert_eq!(add_detected(Some(own), &[guard]).text, "max_cost_usd = 20\nguard.command = [\"make\"]\n");
    }
}
