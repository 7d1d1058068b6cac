//! The client's own settings, one file per user: other machines, and the batch systems that jobs are submitted to.
//!
//! A missing file means the defaults; an unknown key, or a value of the wrong type, is an error with line and column.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::PathBuf;

use protocol::error::ExitStatus;
use protocol::host::{Host, HostError};
use protocol::path::WirePath;
use protocol::paths::client_settings_path;
use protocol::request::UserDefaults;
use protocol::settings_file::{SettingsFileError, open_settings};
use serde::Deserialize;
use toml::de::{DeTable, DeValue};

use crate::failure::Failure;
use crate::submit::batch_system::BatchSystem;

/// Error kind of a file that cannot be parsed.
const INVALID_KIND: &str = "invalid_file";
/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Other machines by what a person calls them.
    #[serde(default)]
    pub(crate) hosts: BTreeMap<String, HostUrl>,
    #[serde(default)]
    engine: BatchSystemsTable,
    /// Settings of every repository that has none of its own; the daemon checks them.
    #[serde(default)]
    defaults: toml::Table,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    file: PathBuf,
}

/// `[hosts]`: where a machine is.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct HostUrl(pub(crate) Host);

impl TryFrom<String> for HostUrl {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, HostError> {
        text.parse().map(Self)
    }
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BatchSystemsTable {
    slurm: BatchSystemSettings,
    kubernetes: BatchSystemSettings,
    command: BatchSystemSettings,
}

/// `[engine.<name>]`.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BatchSystemSettings {
    /// A template in the place of the one that comes with the program; relative to the folder of the settings.
    pub(crate) template: Option<PathBuf>,
    /// The program that takes a job from standard input, and its arguments.
    pub(crate) submit: Vec<String>,
    /// Further arguments of `runnerd drive`.
    pub(crate) drive: Vec<String>,
    /// Kubernetes: the image of a job.
    pub(crate) image: Option<String>,
    /// Kubernetes: the secret whose keys become variables of a job.
    pub(crate) secret: Option<String>,
    /// The file that these settings are from.
    #[serde(skip)]
    pub(crate) file: PathBuf,
}

impl Settings {
    /// Reads the settings file.
    pub(crate) fn load() -> Result<Self, Failure> {
        let Some(file) = client_settings_path() else { return Ok(Self::default()) };
        let mut text = String::new();
        match open_settings(&file).and_then(|opened| Ok(opened.take(MAX_BYTES + 1).read_to_string(&mut text)?)) {
            Err(SettingsFileError::Open(error)) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { file, ..Self::default() })
            }
            Err(SettingsFileError::Open(error)) => {
                Err(Failure::io(format!("reading the settings {}", file.display()), &error))
            }
            Err(error) => {
                let message = format!("the settings are not obeyed: {error}");
                Err(Failure::new(ExitStatus::Error, INVALID_KIND, message))
            }
            Ok(read) if read as u64 > MAX_BYTES => {
                let message = format!("the settings {} are longer than {MAX_BYTES} bytes", file.display());
                Err(Failure::new(ExitStatus::Error, INVALID_KIND, message))
            }
            Ok(_) => Self::parse(&text, file),
        }
    }

    fn parse(text: &str, file: PathBuf) -> Result<Self, Failure> {
        match toml::from_str::<Self>(text) {
            Ok(settings) => Ok(Self { text: text.to_owned(), file, ..settings }),
            Err(error) => {
                let at = error.span().map_or_else(String::new, |span| line_and_column(text, span.start));
                let message = format!("{}{at}: {}", file.display(), error.message().replace('\n', " "));
                Err(Failure::new(ExitStatus::Error, INVALID_KIND, message))
            }
        }
    }

    /// Returns `[defaults]` as the text of a configuration, each key on its line in the file; `None` if there are none.
    pub(crate) fn defaults(&self) -> Option<UserDefaults> {
        let mut text = String::new();
        for (key, span) in self.list_defaults() {
            let line = self.text.get(..span.start)?.matches('\n').count();
            text.extend(std::iter::repeat_n('\n', line.saturating_sub(text.matches('\n').count())));
            let _ = writeln!(text, "{key} = {}", self.text.get(span)?);
        }
        (!text.is_empty()).then(|| UserDefaults { text, file: WirePath(self.file.clone()) })
    }

    /// Whether `[defaults]` sets a key.
    pub(crate) fn has_default(&self, key: &str) -> bool {
        self.list_defaults().iter().any(|(set, _)| set == key)
    }

    /// Returns the keys of `[defaults]` with the places of their values, in their order.
    fn list_defaults(&self) -> Vec<(String, Range<usize>)> {
        let mut values = Vec::new();
        // The text was parsed before.
        if let (false, Ok(root)) = (self.defaults.is_empty(), DeTable::parse(&self.text)) {
            let defaults = root.get_ref().iter().find(|(name, _)| name.get_ref() == "defaults");
            if let Some((_, table)) = defaults {
                collect_values("", table.get_ref(), &mut values);
            }
        }
        values.sort_by_key(|(_, span)| span.start);
        values
    }

    /// Returns the settings of an engine.
    pub(crate) fn batch_system(&self, engine: BatchSystem) -> BatchSystemSettings {
        let BatchSystemsTable { slurm, kubernetes, command } = self.engine.clone();
        let settings = match engine {
            BatchSystem::Slurm => slurm,
            BatchSystem::Kubernetes => kubernetes,
            BatchSystem::Command => command,
        };
        let template =
            settings.template.map(|path| self.file.parent().map_or(path.clone(), |folder| folder.join(path)));
        BatchSystemSettings { template, file: self.file.clone(), ..settings }
    }
}

/// Collects the values of a table with their dotted keys and places.
fn collect_values(prefix: &str, value: &DeValue<'_>, values: &mut Vec<(String, Range<usize>)>) {
    let Some(table) = value.as_table() else { return };
    for (name, value) in table {
        let name = name.get_ref();
        let is_bare = name.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char));
        let name = if is_bare { name.to_string() } else { serde_json::Value::from(&**name).to_string() };
        let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value.get_ref() {
            table @ DeValue::Table(_) => collect_values(&key, table, values),
            _ => values.push((key, value.span())),
        }
    }
}

/// Formats an offset in the text as `:line:column`, both counted from 1.
fn line_and_column(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!(":{}:{column}", before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, Failure> {
        Settings::parse(text, PathBuf::from("/home/u/.config/runnerctl/config.toml"))
    }

    #[test]
    fn a_template_stands_beside_the_settings() {
        let settings = parse("[engine.slurm]\ntemplate = \"a.sh\"\n").expect("it can be read");
        let template = settings.batch_system(BatchSystem::Slurm).template.expect("one is named");
        assert_eq!(template, PathBuf::from("/home/u/.config/runnerctl/a.sh"));
        assert_eq!(settings.batch_system(BatchSystem::Kubernetes).template, None);
    }

    #[test]
    fn defaults_keep_their_lines() {
        let text = "[hosts]\n[defaults]\nmax_cost_usd = 20.0\nexecutor.kind = \"claude\"\n\n[defaults.prices.\"a b\"]\ninput = 1\n";
        let defaults = parse(text).expect("it can be read").defaults().expect("there are some");
        let lines = ["", "", "max_cost_usd = 20.0", "executor.kind = \"claude\"", "", "", "prices.\"a b\".input = 1"];
        assert_eq!(defaults.text.lines().collect::<Vec<_>>(), lines);
        assert_eq!(parse("[hosts]\n").expect("it can be read").defaults(), None);
    }

    #[test]
    fn what_is_not_known_is_told_with_its_place() {
        for (text, place) in [
            ("[engine.slrum]\n", ":1:9: "),
            ("[engine.slurm]\n model = 1\n", ":2:2: "),
            ("[hosts]\ngpu = \"gpu\"\n", ":2:7: "),
        ] {
            let Err(Failure::Report(report)) = parse(text) else { panic!("{text} is taken") };
            let start = format!("/home/u/.config/runnerctl/config.toml{place}");
            assert!(report.message.starts_with(&start), "{}", report.message);
        }
    }
}
