//! The supported batch systems: their templates, how values are quoted in them, and the program that takes the script.

use std::ffi::OsString;
use std::path::Path;

use clap::ValueEnum;
use protocol::error::ExitStatus;
use protocol::shell;
use sha2::{Digest as _, Sha256};

use super::template::{UnknownPlaceholder, fill_template};
use crate::failure::Failure;
use crate::program::{LaunchError, ProgramCall, run_program};
use crate::settings::BatchSystemSettings;
use crate::text_file;

/// Maximum size of a template, in kibibytes.
const TEMPLATE_LIMIT_KIB: u64 = 1024;
/// Maximum length of a job name: Kubernetes derives a host name from it, with the pod's number.
const MAX_NAME_LEN: usize = 52;
/// Kubernetes secret with the agents' keys, unless the settings name another.
const DEFAULT_SECRET: &str = "runnerd";
/// Placeholder for further arguments of the driver.
const OPTIONS_PLACEHOLDER: &str = "{{options}}";

/// An engine that starts jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BatchSystem {
    /// `sbatch`
    Slurm,
    /// `kubectl`
    Kubernetes,
    /// The program in `[engine.command] submit`
    Command,
}

/// A run as submitted to an engine.
#[derive(Debug)]
pub(crate) struct JobSpec<'a> {
    /// Its id.
    pub(crate) run: &'a str,
    /// URL of the remote that has it.
    pub(crate) remote: &'a str,
    /// The program that drives it, as named on the submitting machine.
    pub(crate) runnerd: &'a str,
}

impl BatchSystem {
    /// Returns its name in the settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::Kubernetes => "kubernetes",
            Self::Command => "command",
        }
    }

    /// Returns the script for the engine.
    pub(crate) fn render_script(self, settings: &BatchSystemSettings, job: &JobSpec<'_>) -> Result<String, Failure> {
        let (text, name) = match &settings.template {
            Some(path) => (text_file::read_text("template", path, TEMPLATE_LIMIT_KIB)?, path.display().to_string()),
            None => (self.default_template().to_owned(), format!("the template of {}", self.name())),
        };
        if !settings.drive.is_empty() && !text.contains(OPTIONS_PLACEHOLDER) {
            let message = format!("{name} has no place for `drive` of {}", settings.file.display());
            return Err(Failure::new(ExitStatus::Error, "invalid_file", message)
                .hint(format!("write {OPTIONS_PLACEHOLDER} right behind the last argument of `runnerd drive`")));
        }
        let value = |key: &str| match key {
            "options" => Some(settings.drive.iter().map(|option| self.extra_argument(option)).collect()),
            key => self.template_value(key, settings, job).map(|value| self.quote_value(&value)),
        };
        fill_template(&text, value).map_err(|UnknownPlaceholder { line, word }| match word.as_str() {
            "image" if self == Self::Kubernetes => {
                Failure::new(ExitStatus::Refused, "engine", "nothing says which image has runnerd and the agents in it")
                    .hint(format!("name it in {}: [engine.kubernetes] image = \"…\"", settings.file.display()))
            }
            _ => Failure::new(ExitStatus::Error, "invalid_file", format!("{name}, line {line}: `{word}` is no value"))
                .hint("there are run, remote, name, runnerd and options, and for kubernetes image and secret"),
        })
    }

    /// Submits the script; returns the engine's job id.
    pub(crate) async fn submit_job(
        self,
        settings: &BatchSystemSettings,
        options: &[OsString],
        name: &str,
        script: &str,
        folder: &Path,
    ) -> Result<String, Failure> {
        let mut argv: Vec<OsString> = match (self, settings.submit.as_slice()) {
            (_, [_, ..]) => settings.submit.iter().map(OsString::from).collect(),
            (Self::Slurm, []) => ["sbatch", "--parsable"].map(OsString::from).to_vec(),
            (Self::Kubernetes, []) => {
                ["kubectl", "create", "--output=name", "--filename=-"].map(OsString::from).to_vec()
            }
            (Self::Command, []) => {
                let message = "nothing says which program takes a job";
                let hint = format!("name it in {}: [engine.command] submit = [\"…\"]", settings.file.display());
                return Err(Failure::new(ExitStatus::Refused, "engine", message).hint(hint));
            }
        };
        argv.extend_from_slice(options);
        let program = argv[0].display().to_string();
        let call = ProgramCall { argv, folder, env: &[], input: script.as_bytes().to_vec(), tail: None };
        let output = run_program(call).await.map_err(|error| match error {
            LaunchError::Failed(failure) => failure,
            LaunchError::Missing => {
                let message = format!("`{program}` is not on your PATH");
                Failure::new(ExitStatus::Error, "missing_command", message)
                    .hint("submit from a machine that has it; --print shows what it would be given")
            }
        })?;
        let printed = output.require_success("engine", &format!("handing job {name} to `{program}`"))?;
        self.parse_job_id(&printed).ok_or_else(|| {
            let hint = self
                .status_command(None, name)
                .map_or_else(String::new, |look| format!("see whether it is there: {look}"));
            Failure::new(ExitStatus::Error, "engine", format!("`{program}` did not say what it calls job {name}"))
                .caused_by(format!("it printed {:?}", printed.chars().take(200).collect::<String>()))
                .hint(hint)
        })
    }

    /// Returns the command that shows a job.
    pub(crate) fn status_command(self, job: Option<&str>, name: &str) -> Option<String> {
        match (self, job) {
            (Self::Slurm, Some(job)) => Some(shell::join_args(["squeue", "--jobs", job])),
            (Self::Slurm, None) => Some(shell::join_args(["squeue", "--name", name])),
            (Self::Kubernetes, _) => Some(shell::join_args(["kubectl", "get", "job", name])),
            (Self::Command, _) => None,
        }
    }

    /// Parses the job id from the output of the engine's program.
    fn parse_job_id(self, printed: &str) -> Option<String> {
        let last = printed.lines().map(str::trim).rfind(|line| !line.is_empty());
        match self {
            // `4711`, or `4711;cluster`.
            Self::Slurm => {
                let id = last?.split(';').next()?;
                (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())).then(|| id.to_owned())
            }
            Self::Kubernetes => last?.strip_prefix("job.batch/").map(str::to_owned),
            Self::Command => Some(last.unwrap_or_default().to_owned()),
        }
    }

    fn default_template(self) -> &'static str {
        match self {
            Self::Slurm => include_str!("slurm.sh"),
            Self::Kubernetes => include_str!("kubernetes.yaml"),
            Self::Command => include_str!("command.sh"),
        }
    }

    fn template_value(self, key: &str, settings: &BatchSystemSettings, job: &JobSpec<'_>) -> Option<String> {
        match (key, self) {
            ("run", _) => Some(job.run.to_owned()),
            ("remote", _) => Some(job.remote.to_owned()),
            ("name", _) => Some(job_name(job)),
            // An image has its own.
            ("runnerd", Self::Kubernetes) => Some("runnerd".to_owned()),
            ("runnerd", _) => Some(job.runnerd.to_owned()),
            ("image", Self::Kubernetes) => settings.image.clone(),
            ("secret", Self::Kubernetes) => Some(settings.secret.clone().unwrap_or_else(|| DEFAULT_SECRET.to_owned())),
            _ => None,
        }
    }

    /// Returns one more argument, to be appended to another.
    fn extra_argument(self, value: &str) -> String {
        let separator = if self == Self::Kubernetes { ", " } else { " " };
        format!("{separator}{}", self.quote_value(value))
    }

    /// Quotes a value for the template: as a shell word, or as a YAML string, in which `$` has a meaning for
    /// Kubernetes.
    fn quote_value(self, value: &str) -> String {
        match self {
            Self::Slurm | Self::Command => shell::quote(value),
            Self::Kubernetes => serde_json::Value::from(value.replace('$', "$$")).to_string(),
        }
    }
}

/// Returns the job name of a run, valid for Kubernetes, too: submitting the same run again yields the same name.
pub(crate) fn job_name(job: &JobSpec<'_>) -> String {
    let path = job.remote.trim_end_matches('/').trim_end_matches(".git").trim_end_matches('/');
    let repository = path.rsplit(['/', ':']).next().unwrap_or_default();
    let whole = format!("{repository}-{}", job.run);
    let clean: String =
        whole.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let clean = clean.trim_matches('-');
    if clean == whole && clean.len() <= MAX_NAME_LEN {
        return whole;
    }
    let digest = Sha256::digest(format!("{}\0{}", job.remote, job.run));
    let suffix = format!("{:08x}", u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]));
    let prefix = clean[..clean.len().min(MAX_NAME_LEN - suffix.len() - 1)].trim_end_matches('-');
    format!("{prefix}-{suffix}").trim_start_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn job<'a>(run: &'a str, remote: &'a str) -> JobSpec<'a> {
        JobSpec { run, remote, runnerd: "runnerd" }
    }

    #[test]
    fn a_job_is_named_by_repository_and_run_in_letters_that_every_engine_takes() {
        for (run, remote, expected) in [
            ("tidy-1", "ssh://git@host/srv/project.git", "project-tidy-1"),
            ("tidy-1", "git@host:project.git/", "project-tidy-1"),
            ("x", "/", "x-493c07e4"),
        ] {
            assert_eq!(job_name(&job(run, remote)), expected, "{remote}");
        }
        let upper = job_name(&job("Tidy_1", "/srv/p.git"));
        let lower = job_name(&job("tidy-1", "/srv/p.git"));
        assert!(upper.starts_with("p-tidy-1-") && upper != lower, "{upper}");
        let long = job_name(&job(&"a".repeat(128), "/srv/p.git"));
        assert!(long.len() <= MAX_NAME_LEN && long.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'));
    }

    #[test]
    fn nothing_of_a_value_is_read_as_part_of_a_script() {
        let remote = "/srv/a'b\"$(touch x)`id`\n#SBATCH --wrap=x\n";
        let script = BatchSystem::Command
            .render_script(&BatchSystemSettings::default(), &job("x", remote))
            .expect("it is filled");
        let command = script.replace("exec ", "printf '%s\\n' ");
        let out = Command::new("sh").args(["-c", &command]).output().expect("sh runs").stdout;
        assert_eq!(String::from_utf8_lossy(&out), format!("runnerd\ndrive\n{remote}\n--run\nx\n--yes\n"));

        let image = Some("i".to_owned());
        let settings = BatchSystemSettings { image, ..BatchSystemSettings::default() };
        let yaml = BatchSystem::Kubernetes.render_script(&settings, &job("x", remote)).expect("it is filled");
        let read: serde_json::Value = serde_saphyr::from_str(&yaml).expect("it is YAML");
        let args = &read["spec"]["template"]["spec"]["containers"][0]["args"];
        assert_eq!(args[2], remote.replace('$', "$$"), "Kubernetes takes `$$` for `$`");
    }

    #[test]
    fn further_arguments_of_the_driver_come_last_and_never_get_lost() {
        let drive = ["--records", "/shared/it's $HOME"].map(str::to_owned).to_vec();
        let settings = BatchSystemSettings { drive, image: Some("i".to_owned()), ..BatchSystemSettings::default() };
        let job = job("x", "/srv/p");
        let script = BatchSystem::Command.render_script(&settings, &job).expect("it is filled");
        let command = script.replace("exec ", "printf '%s\\n' ");
        let out = Command::new("sh").args(["-c", &command]).output().expect("sh runs").stdout;
        assert!(String::from_utf8_lossy(&out).ends_with("\n--yes\n--records\n/shared/it's $HOME\n"), "{script}");
        let yaml = BatchSystem::Kubernetes.render_script(&settings, &job).expect("it is filled");
        let read: serde_json::Value = serde_saphyr::from_str(&yaml).expect("it is YAML");
        let args = read["spec"]["template"]["spec"]["containers"][0]["args"].as_array().expect("arguments");
        assert_eq!(args[args.len() - 2..], ["--records", "/shared/it's $$HOME"]);

        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(&file, "#!/bin/sh\nrunnerd drive {{remote}}\n").expect("it is written");
        let settings = BatchSystemSettings { template: Some(file.path().to_owned()), ..settings };
        let Err(Failure::Report(report)) = BatchSystem::Slurm.render_script(&settings, &job) else {
            panic!("it is taken")
        };
        assert!(report.message.contains("has no place for `drive`"), "{}", report.message);
    }

    #[test]
    fn what_an_engine_calls_the_job_is_read_and_nothing_else() {
        for (engine, printed, expected) in [
            (BatchSystem::Slurm, "4711\n", Some("4711")),
            (BatchSystem::Slurm, "sbatch: a word\n4711;north\n", Some("4711")),
            (BatchSystem::Slurm, "Submitted batch job 4711\n", None),
            (BatchSystem::Slurm, "", None),
            (BatchSystem::Kubernetes, "job.batch/p-x\n", Some("p-x")),
            (BatchSystem::Kubernetes, "created\n", None),
            (BatchSystem::Command, "", Some("")),
        ] {
            assert_eq!(engine.parse_job_id(printed).as_deref(), expected, "{printed:?}");
        }
    }

    #[test]
    fn a_template_that_asks_for_what_there_is_not_is_refused_with_its_line() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(&file, "#!/bin/sh\nrunnerd drive {{place}}\n").expect("it is written");
        let settings = BatchSystemSettings { template: Some(file.path().to_owned()), ..BatchSystemSettings::default() };
        let Err(Failure::Report(report)) = BatchSystem::Slurm.render_script(&settings, &job("x", "/srv/p")) else {
            panic!("it is taken")
        };
        assert_eq!(report.message, format!("{}, line 2: `place` is no value", file.path().display()));
    }
}
