//! The environment that the harness runs in, and which parts of it enter a sandbox.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use protocol::paths::{SOCKET_VARIABLE, STATE_VARIABLE};

use super::Sandbox;

/// Toolchains located by a variable, with the default folder in the home, which a sandbox does not have.
const TOOLCHAINS: [(&str, &str); 7] = [
    ("RUSTUP_HOME", ".rustup"),
    ("CARGO_HOME", ".cargo"),
    ("PYENV_ROOT", ".pyenv"),
    ("NVM_DIR", ".nvm"),
    ("VOLTA_HOME", ".volta"),
    ("ASDF_DATA_DIR", ".asdf"),
    ("MISE_DATA_DIR", ".local/share/mise"),
];
/// Login folders of agents, in the same form.
const LOGINS: [(&str, &str); 2] = [("CODEX_HOME", ".codex"), ("CLAUDE_CONFIG_DIR", ".claude")];
const PASSED_VARIABLES: [&str; 6] = ["LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL"];

/// The harness's own environment.
#[derive(Debug, Clone)]
pub(crate) struct HostEnv {
    env: BTreeMap<String, String>,
}

impl HostEnv {
    /// Reads it; variables that are not UTF-8 are omitted.
    pub(crate) fn from_env() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { env: env::vars_os().filter_map(text).collect() }
    }

    pub(crate) fn has_variable(&self, name: &str) -> bool {
        self.env.get(name).is_some_and(|value| !value.is_empty())
    }

    /// Returns the path of a program, if `PATH` contains it.
    pub(crate) fn find_program(&self, name: &str) -> Option<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        let can_run = |path: &PathBuf| {
            path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        let path = self.env.get("PATH").map(String::as_str).unwrap_or_default();
        env::split_paths(path).map(|folder| folder.join(name)).find(can_run)
    }

    /// Returns the variables that agent and guard of a sandbox get in addition to the common ones.
    pub(crate) fn toolchains(&self) -> BTreeMap<String, String> {
        TOOLCHAINS.iter().filter_map(|(name, folder)| self.variable_or_home(name, folder)).collect()
    }

    /// Returns the environment of a client that starts a run: the harness's own, with the sandbox in place of the home.
    /// The daemon passes on only what its configuration names.
    pub(crate) fn client_env(&self, sandbox: &Sandbox) -> BTreeMap<String, String> {
        let is_foreign =
            |name: &str| name.starts_with("GIT_") || name.starts_with("RUNNER") || name.starts_with("XDG_");
        let mut env: BTreeMap<_, _> = self.env.clone();
        env.retain(|name, _| !is_foreign(name));
        env.extend(LOGINS.iter().filter_map(|(name, folder)| self.variable_or_home(name, folder)));
        env.extend(self.sandbox_env(sandbox));
        env
    }

    /// Returns the environment of the web view: the user's own, because it opens the user's browser, with the sandbox's
    /// daemon.
    pub(crate) fn view_env(&self, sandbox: &Sandbox) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        env.insert(SOCKET_VARIABLE.into(), sandbox.socket().display().to_string());
        env.insert(STATE_VARIABLE.into(), sandbox.path("state").display().to_string());
        env
    }

    /// Returns the environment of everything else in a sandbox.
    pub(super) fn sandbox_env(&self, sandbox: &Sandbox) -> BTreeMap<String, String> {
        let mut env = self.toolchains();
        let is_passed = |name: &str| PASSED_VARIABLES.contains(&name) || name.starts_with("LC_");
        env.extend(
            self.env.iter().filter(|(name, _)| is_passed(name)).map(|(name, value)| (name.clone(), value.clone())),
        );
        let sandbox_path = |name: &str| sandbox.path(name).display().to_string();
        let path = self.env.get("PATH").cloned().unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let own = [
            ("PATH", format!("{}:{path}", sandbox_path("bin"))),
            ("HOME", sandbox_path("home")),
            ("TMPDIR", sandbox_path("tmp")),
            ("XDG_CONFIG_HOME", sandbox_path("config")),
            ("XDG_STATE_HOME", sandbox_path("home/.local/state")),
            ("XDG_CACHE_HOME", sandbox_path("home/.cache")),
            ("XDG_DATA_HOME", sandbox_path("home/.local/share")),
            ("XDG_RUNTIME_DIR", sandbox_path("run")),
            (STATE_VARIABLE, sandbox_path("state")),
            (SOCKET_VARIABLE, sandbox.socket().display().to_string()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ];
        env.extend(own.map(|(name, value)| (name.to_owned(), value)));
        env
    }

    fn variable_or_home(&self, name: &str, folder: &str) -> Option<(String, String)> {
        let in_home = || {
            let folder = Path::new(self.env.get("HOME")?).join(folder);
            folder.is_dir().then(|| folder.display().to_string())
        };
        let value = self.env.get(name).filter(|value| !value.is_empty()).cloned().or_else(in_home)?;
        Some((name.to_owned(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_env(pairs: &[(&str, &str)]) -> HostEnv {
        HostEnv { env: pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect() }
    }

    #[test]
    fn keys_reach_the_client_alone_and_nothing_of_the_users_daemon_does() {
        let sandbox = Sandbox::create().expect("a sandbox");
        let around =
            host_env(&[("ANTHROPIC_API_KEY", "k"), ("RUNNERD_SOCKET", "/mine"), ("GIT_DIR", "/g"), ("PATH", "/bin")]);
        let client = around.client_env(&sandbox);
        let others = sandbox.env(&around);
        assert_eq!(client.get("ANTHROPIC_API_KEY").map(String::as_str), Some("k"));
        assert!(!others.contains_key("ANTHROPIC_API_KEY") && !client.contains_key("GIT_DIR"));
        assert_eq!(client["RUNNERD_SOCKET"], sandbox.socket().display().to_string());
        assert!(client["PATH"].ends_with(":/bin"));
        sandbox.remove().expect("removes");
    }

    #[test]
    fn a_toolchain_in_the_home_is_found_from_the_sandbox() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(home.path().join(".rustup")).expect("a folder");
        let path = home.path().display().to_string();
        let found = host_env(&[("HOME", &path), ("CARGO_HOME", "/elsewhere")]).toolchains();
        assert_eq!(found.get("RUSTUP_HOME"), Some(&format!("{path}/.rustup")));
        assert_eq!(found.get("CARGO_HOME").map(String::as_str), Some("/elsewhere"));
        assert!(!found.contains_key("PYENV_ROOT"));
    }
}
