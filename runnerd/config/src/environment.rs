//! Which of the caller's variables a program gets: an allow-list, and what a pattern cannot add to it.

/// Variables that every program gets.
const ALWAYS_PASSED: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE"];
/// Variables that give access to something outside the program: a bus, an ssh agent, a display, the folder of their
/// sockets.
const SESSION_HANDLES: [&str; 12] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "GPG_AGENT_INFO",
    "NOTIFY_SOCKET",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "TMUX",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
];
/// Variables that make shells, loaders, interpreters or build tools run code or read files that are not on their
/// command line.
const CODE_LOADING: [&str; 14] = [
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "MAKEFLAGS",
    "NODE_OPTIONS",
    "PERL5LIB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "SHELLOPTS",
    "ZDOTDIR",
];
/// Families of such variables.
const CODE_LOADING_PREFIXES: [&str; 6] = ["BASH_FUNC_", "DYLD_", "GIT_", "LD_", "LISTEN_", "SYSTEMD_"];

/// Returns whether every program gets a variable.
pub(crate) fn is_always_passed(name: &str) -> bool {
    ALWAYS_PASSED.contains(&name) || name.starts_with("LC_")
}

/// Returns whether a variable is the runner's own: only the runner sets it.
pub(crate) fn is_runner_variable(name: &str) -> bool {
    name.starts_with("RUNNER_") || name.starts_with("RUNNERD_")
}

/// Returns whether a pattern such as `*` may match a variable; any other must be named in full.
pub(crate) fn may_match_pattern(name: &str) -> bool {
    let is_loading =
        CODE_LOADING.contains(&name) || CODE_LOADING_PREFIXES.iter().any(|family| name.starts_with(family));
    !is_loading && !SESSION_HANDLES.contains(&name) && !is_runner_variable(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_gets_what_it_needs_to_run() {
        for name in ["PATH", "HOME", "LANG", "LC_ALL", "TZ"] {
            assert!(is_always_passed(name), "{name}");
        }
        for name in ["TERM", "SSH_AUTH_SOCK", "PATHEXT", "EDITOR"] {
            assert!(!is_always_passed(name), "{name}");
        }
    }

    #[test]
    fn pattern_adds_neither_what_loads_code_nor_what_reaches_beyond() {
        for name in [
            "BASH_ENV",
            "ENV",
            "LD_PRELOAD",
            "GIT_DIR",
            "PYTHONSTARTUP",
            "SSH_AUTH_SOCK",
            "XDG_RUNTIME_DIR",
            "RUNNER_OUTPUT",
        ] {
            assert!(!may_match_pattern(name), "{name}");
        }
        for name in ["ACME_API_KEY", "HTTPS_PROXY", "CARGO_HOME", "ENVIRONMENT", "XDG_CONFIG_HOME"] {
            assert!(may_match_pattern(name), "{name}");
        }
    }
}
