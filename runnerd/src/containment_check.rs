//! Requirements of a configuration that this machine does not meet: refused, never ignored silently.
//!
//! Checked when a run is started and again when an iteration is opened, since a commit in between may bring another
//! configuration.

use runner_config::RepoConfig;
use runner_process::HostCapabilities;

/// A setting that could not be enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedSetting {
    /// What is required, naming the key.
    pub message: String,
    /// What to change.
    pub hint: String,
}

/// Explains why programs would be contained less strictly than the repository requires; `None` if they would not.
pub fn check_containment(config: &RepoConfig, capabilities: &HostCapabilities) -> Option<UnsupportedSetting> {
    let required = config.containment.require;
    let missing = capabilities.unused_levels().iter().find(|missing| missing.level == required);
    let is_wrapped = config.executor.by_section().into_iter().any(|(_, executor)| !executor.wrapper.is_empty());
    let (actual_level, subject, change) = if capabilities.level() < required {
        (capabilities.level(), "this machine", missing.map_or("see docs/daemon.md", |missing| missing.hint.as_str()))
    } else if is_wrapped {
        (capabilities.level_for(false), "an agent with a wrapper", "take out executor.wrapper")
    } else {
        return None;
    };
    let why = missing.map(|missing| format!(": {}", missing.why)).unwrap_or_default();
    let message =
        format!("containment.require is \"{required}\", but {subject} reaches no more than \"{actual_level}\"{why}");
    let hint = format!("{change}; or lower containment.require in .runner/state/config.toml");
    (actual_level < required).then(|| unsupported_setting(message, hint))
}

fn unsupported_setting(message: impl Into<String>, hint: impl Into<String>) -> UnsupportedSetting {
    UnsupportedSetting { message: message.into(), hint: hint.into() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use runner_config::parse;

    use super::*;

    #[test]
    fn a_level_that_is_required_must_be_reached_by_every_program() {
        let message_for = |text: &str| {
            let config = parse(text, Path::new("config.toml")).unwrap();
            check_containment(&config, &HostCapabilities::default()).map(|loose| loose.message)
        };
        assert_eq!(message_for("[containment]\nrequire = \"walk\"\n[executor]\nwrapper = [\"w\"]\n"), None);
        insta::assert_snapshot!(message_for("[containment]\nrequire = \"cgroup\"\n").unwrap_or_default(), @r#"containment.require is "cgroup", but this machine reaches no more than "walk""#);
    }
}
