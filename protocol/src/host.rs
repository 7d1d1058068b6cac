//! Another machine, as a person names it: `ssh://[user@]host[:port]`.
//!
//! Keys, jump hosts and aliases are left to the configuration of ssh. Nothing is resolved here.

use std::fmt;
use std::str::FromStr;

use crate::shell;

/// The variable that names the machine of the daemon.
pub const HOST_VARIABLE: &str = "RUNNER_HOST";

const SCHEME: &str = "ssh://";

/// A machine that ssh can connect to. Its parts are safe as arguments of a program and in a shell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    user: Option<String>,
    name: String,
    port: Option<u16>,
}

/// Why a text does not name a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It does not start with `ssh://`.
    #[error("`{0}` does not begin with {SCHEME}")]
    Scheme(String),
    /// It has something after the machine; commands take the path separately.
    #[error("`{0}` has something behind the host; a path is named with -C or PATH")]
    TrailingText(String),
    /// The user's name has invalid characters.
    #[error("`{0}` is no name of a user")]
    User(String),
    /// The machine's name has invalid characters, or could be read as an option.
    #[error("`{0}` is no name of a host")]
    Name(String),
    /// The port is not a number from 1 to 65535.
    #[error("`{0}` is no port")]
    Port(String),
}

impl Host {
    /// Returns ssh's arguments for this machine, none of which can be read as another option.
    pub fn ssh_arguments(&self) -> Vec<String> {
        self.ssh_options().chain(["--".to_owned(), self.name.clone()]).collect()
    }

    fn ssh_options(&self) -> impl Iterator<Item = String> {
        let options = [("-l", self.user.clone()), ("-p", self.port.map(|port| port.to_string()))];
        options.into_iter().flat_map(|(option, value)| value.into_iter().flat_map(|value| [option.to_owned(), value]))
    }

    /// Returns the words of the command that runs a shell command there.
    pub fn ssh_argv(&self, line: &str) -> Vec<String> {
        let ssh = ["ssh", "-t"].map(str::to_owned).into_iter();
        ssh.chain(self.ssh_options()).chain([self.name.clone(), line.to_owned()]).collect()
    }

    /// Returns that command as typed in a shell.
    pub fn ssh_command_line(&self, line: &str) -> String {
        shell::join_args(self.ssh_argv(line).iter().map(String::as_str))
    }

    /// Returns a text in which each `runnerctl` command has the option for this machine.
    pub fn with_host_in_text(&self, text: &str) -> String {
        let with_host = format!("runnerctl --host {self} ");
        let mut words = text.split("runnerctl ");
        let mut result = words.next().unwrap_or_default().to_owned();
        for rest in words {
            let has_host = rest.starts_with("--host ");
            result += if has_host { "runnerctl " } else { &with_host };
            result += rest;
        }
        result
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| HostError::Scheme(text.to_owned()))?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err(HostError::TrailingText(text.to_owned()));
        }
        let (user, address) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(check_word(user, "._-+", HostError::User)?), place),
            None => (None, rest),
        };
        let (name, port) = split_port(address);
        let port = port.map(|port| match port.parse() {
            Ok(number) if number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
            _ => Err(HostError::Port(port.to_owned())),
        });
        let name = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            Some(address) if address.contains(':') => check_word(address, ":.", HostError::Name)?,
            _ => check_word(name, "._-", HostError::Name)?,
        };
        Ok(Self { user, name, port: port.transpose()? })
    }
}

/// Splits off the port, which may also follow an address in brackets.
fn split_port(address: &str) -> (&str, Option<&str>) {
    match address.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (address, None),
    }
}

/// Takes a word of letters, digits and some other characters that does not start like an option.
fn check_word(word: &str, others: &str, error: fn(String) -> HostError) -> Result<String, HostError> {
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || others.contains(letter);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(is_usual) {
        Ok(word.to_owned())
    } else {
        Err(error(word.to_owned()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{SCHEME}")?;
        if let Some(user) = &self.user {
            write!(out, "{user}@")?;
        }
        let (open, close) = if self.name.contains(':') { ("[", "]") } else { ("", "") };
        write!(out, "{open}{}{close}", self.name)?;
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_host(text: &str) -> Host {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_host_is_written_as_it_was_read() {
        for text in
            ["ssh://gpu", "ssh://me@gpu-1.example.org:2222", "ssh://[::1]:22", "ssh://[fe80::1]", "ssh://10.0.0.7"]
        {
            assert_eq!(parse_host(text).to_string(), text);
        }
        assert_eq!(parse_host("ssh://gpu/").to_string(), "ssh://gpu");
    }

    #[test]
    fn ssh_is_given_words_that_are_no_options() {
        assert_eq!(parse_host("ssh://me@gpu:22").ssh_arguments(), ["-l", "me", "-p", "22", "--", "gpu"]);
        assert_eq!(parse_host("ssh://[::1]").ssh_arguments(), ["--", "::1"]);
        assert_eq!(
            parse_host("ssh://me@gpu").ssh_command_line("runnerctl doctor"),
            "ssh -t -l me gpu 'runnerctl doctor'"
        );
    }

    #[test]
    fn what_could_be_an_option_or_a_piece_of_a_shell_is_refused() {
        let parse_error = |text: &str| text.parse::<Host>().expect_err(text);
        for text in ["gpu", "me@gpu", "http://gpu", "", "-oProxyCommand=x"] {
            assert!(matches!(parse_error(text), HostError::Scheme(_)), "{text}");
        }
        for text in [
            "ssh://-oProxyCommand=x",
            "ssh://",
            "ssh://a b",
            "ssh://$(x)",
            "ssh://a;b",
            "ssh://a\nb",
            "ssh://é",
            "ssh://me@",
        ] {
            assert!(matches!(parse_error(text), HostError::Name(_)), "{text}");
        }
        for text in ["ssh://-x@gpu", "ssh://@gpu", "ssh://a'b@gpu", "ssh://a:b@gpu"] {
            assert!(matches!(parse_error(text), HostError::User(_)), "{text}");
        }
        for text in ["ssh://gpu:0", "ssh://gpu:65536", "ssh://gpu:", "ssh://gpu:+7", "ssh://gpu:x"] {
            assert!(matches!(parse_error(text), HostError::Port(_)), "{text}");
        }
        assert!(matches!(parse_error("ssh://gpu/srv/app"), HostError::TrailingText(_)));
    }

    #[test]
    fn commands_in_a_text_are_told_to_ask_there() {
        let text = parse_host("ssh://gpu").with_host_in_text("runnerctl pause, or `runnerctl --host ssh://gpu status`");
        assert_eq!(text, "runnerctl --host ssh://gpu pause, or `runnerctl --host ssh://gpu status`");
    }
}
