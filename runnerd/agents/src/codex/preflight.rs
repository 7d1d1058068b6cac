//! Checks for what keeps every session of `codex` from working, as far as files and variables show.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use runner_config::{Executor, Sandbox};

use super::super::agent_unavailable::AgentUnavailable;
use super::super::environment::env_value;

/// Variables each of which is a login.
const LOGIN_VARIABLES: [&str; 2] = ["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"];
/// Arguments that select another service, or another place for the login.
const OTHER_LOGIN_ARGS: [&str; 5] = ["model_provider", "cli_auth_credentials_store", "--oss", "--profile", "-p"];
/// Folder in which a machine's administrator may select another service.
const MANAGED_CONFIG: &str = "/etc/codex";

/// Checks the folder of the program, and its login.
pub(super) fn check_setup(executor: &Executor, env: &[(OsString, OsString)]) -> Result<(), AgentUnavailable> {
    let Some(home) = super::codex_home(env) else { return Ok(()) };
    // Without a wrapper its home is the session's own.
    if executor.sandbox != Sandbox::DangerFullAccess && !executor.wrapper.is_empty() {
        check_home(&home, &temp_dir(env))?;
    }
    check_provider_key(executor, env)?;
    if is_logged_in(executor, env, &home) {
        return Ok(());
    }
    let what = format!(
        "codex has no login: {} cannot be read, and CODEX_API_KEY is not set",
        home.join("auth.json").display()
    );
    Err(AgentUnavailable::new(
        what,
        "codex login; or export CODEX_API_KEY; or name a model_provider in executor.extra_args",
    ))
}

/// Refuses a home below the temporary folder: `codex` installs no helper programs there, and its sandbox needs them.
fn check_home(home: &Path, temporary: &Path) -> Result<(), AgentUnavailable> {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if !canonical(home).starts_with(canonical(temporary)) {
        return Ok(());
    }
    let home = home.display();
    let temporary = temporary.display();
    let what = format!(
        "the directory of codex, {home}, is below the temporary directory {temporary}, where none of its commands works"
    );
    Err(AgentUnavailable::new(what, "export CODEX_HOME=$HOME/.codex; or set TMPDIR to another directory"))
}

/// Checks the key of a provider named in the arguments: its variable must be passed on.
fn check_provider_key(executor: &Executor, env: &[(OsString, OsString)]) -> Result<(), AgentUnavailable> {
    let key = executor.extra_args.iter().find_map(|argument| {
        let (_, value) = argument.split_once("env_key")?;
        let quoted = value.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
        quoted.split_once('"').map(|(name, _)| name)
    });
    match key {
        Some(key) if env_value(env, key).is_none() => Err(AgentUnavailable::new(
            format!("codex is to find the key of its service in {key}, which it is not given"),
            format!("export {key}, and in .runner/state/config.toml under [env]: agent = [\"{key}\"]"),
        )),
        _ => Ok(()),
    }
}

/// Whether there is a login, or another service; `None` if the home is unknown.
pub(super) fn has_login(executor: &Executor, env: &[(OsString, OsString)]) -> Option<bool> {
    super::codex_home(env).map(|home| is_logged_in(executor, env, &home))
}

fn is_logged_in(executor: &Executor, env: &[(OsString, OsString)], home: &Path) -> bool {
    let is_other = |argument: &String| OTHER_LOGIN_ARGS.iter().any(|word| argument.starts_with(word));
    LOGIN_VARIABLES.iter().any(|name| env_value(env, name).is_some())
        || executor.extra_args.iter().any(is_other)
        || access(&home.join("auth.json"), AccessFlags::R_OK).is_ok()
        || Path::new(MANAGED_CONFIG).exists()
}

fn temp_dir(env: &[(OsString, OsString)]) -> PathBuf {
    env_value(env, "TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// A home that contains a folder for temporary files.
    struct CodexTestHome {
        home: TempDir,
        temporary: PathBuf,
    }

    impl CodexTestHome {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let temporary = home.path().join("tmp");
            fs::create_dir(&temporary).unwrap();
            Self { home, temporary }
        }

        fn log_in(&self) {
            let folder = self.home.path().join(".codex");
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("auth.json"), "{}").unwrap();
        }

        fn check(&self, settings: &str, more: &[(&str, &str)]) -> Result<(), AgentUnavailable> {
            let text = format!("[executor]\nkind = \"codex\"\n{settings}\n");
            let config = runner_config::parse(&text, Path::new("config.toml")).unwrap();
            let own = [("HOME", self.home.path().to_str().unwrap()), ("TMPDIR", self.temporary.to_str().unwrap())];
            let env: Vec<_> = own.iter().chain(more).map(|(name, value)| (name.into(), value.into())).collect();
            check_setup(&config.executor.work, &env)
        }
    }

    #[test]
    fn a_login_is_a_file_a_key_or_another_service() {
        let place = CodexTestHome::new();
        let error = place.check("", &[]).unwrap_err();
        assert!(error.what.contains("auth.json") && error.fix.starts_with("codex login"), "{error}");
        assert_eq!(place.check("", &[("CODEX_API_KEY", "dummy")]), Ok(()));
        assert!(place.check("", &[("CODEX_API_KEY", "")]).is_err());
        assert_eq!(place.check("extra_args = [\"-c\", \"model_provider=\\\"mine\\\"\"]", &[]), Ok(()));
        place.log_in();
        assert_eq!(place.check("", &[]), Ok(()));
    }

    #[test]
    fn folder_below_the_temporary_one_is_refused_with_a_sandbox_behind_a_wrapper() {
        let place = CodexTestHome::new();
        place.log_in();
        let below = place.temporary.join("codex");
        let env = [("CODEX_HOME", below.to_str().unwrap()), ("CODEX_API_KEY", "dummy")];
        let wrapped = "wrapper = [\"env\"]";
        let error = place.check(wrapped, &env).unwrap_err();
        assert!(error.what.contains("temporary directory") && error.fix.contains("CODEX_HOME"), "{error}");
        assert_eq!(place.check(&format!("{wrapped}\nsandbox = \"danger-full-access\""), &env), Ok(()));
        assert_eq!(place.check("", &env), Ok(()), "its home is the session's own");
    }

    #[test]
    fn key_that_a_provider_names_must_be_given() {
        let place = CodexTestHome::new();
        let provider = r#"extra_args = ["-c", "model_provider=\"x\"", "-c", "model_providers.x={name=\"x\",env_key = \"X_KEY\"}"]"#;
        let error = place.check(provider, &[]).unwrap_err();
        assert!(error.fix.contains("agent = [\"X_KEY\"]"), "{error}");
        assert_eq!(place.check(provider, &[("X_KEY", "dummy")]), Ok(()));
    }
}
