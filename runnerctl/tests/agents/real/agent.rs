//! The differences between the agents: where they are installed, and how they are pointed at a service on loopback.

use std::env;
use std::path::{Path, PathBuf};

use runner_testkit::{Config, Home};

/// Names a folder with the agents in its `node_modules`; the default is `target/agents`.
const AGENTS_VARIABLE: &str = "RUNNER_AGENTS";

/// An agent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RealAgent {
    Codex,
    Claude,
    Opencode,
    Gemini,
}

/// The address of the service, and a folder for the agents' files.
#[derive(Debug)]
pub(crate) struct AgentPaths<'a> {
    pub(crate) service: &'a str,
    pub(crate) folder: &'a Path,
}

/// How the user pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentAccount {
    /// Per use, with a key.
    Key,
    /// For a plan, which has limits.
    Plan,
}

impl RealAgent {
    pub(crate) const ALL: [Self; 4] = [Self::Codex, Self::Claude, Self::Opencode, Self::Gemini];

    /// The kind in a configuration, and the name of the program.
    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
        }
    }

    /// The model that its sessions use.
    pub(crate) const fn model(self) -> &'static str {
        match self {
            Self::Codex => "gpt-5.5",
            Self::Claude => "claude-sonnet-4-5",
            Self::Opencode => "anthropic/claude-sonnet-4-5",
            Self::Gemini => "gemini-2.5-pro",
        }
    }

    /// Where npm has installed its program.
    pub(crate) fn program(self) -> PathBuf {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
        let agents = env::var_os(AGENTS_VARIABLE).map_or_else(|| target.join("agents"), PathBuf::from);
        let program = agents.join("node_modules/.bin").join(self.kind());
        assert!(program.exists(), "{} is missing: scripts/test-agents.sh installs it", program.display());
        program
    }

    /// Adds it to the path of a home, with the settings that its user would have.
    pub(crate) fn install(self, home: Home, account: AgentAccount, at: &AgentPaths<'_>) -> Home {
        let link = home.path().join("bin").join(self.kind());
        std::os::unix::fs::symlink(self.program(), link).expect("a link to the agent can be made");
        let folder = at.folder.join(self.kind());
        std::fs::create_dir(&folder).expect("a folder for the agent can be made");
        let folder = folder.display().to_string();
        match self {
            Self::Codex => home.export("CODEX_HOME", &folder).export("KIT_KEY", "dummy"),
            Self::Claude => home
                .export("CLAUDE_CONFIG_DIR", &folder)
                .export("ANTHROPIC_BASE_URL", at.service)
                .export("CLAUDE_CODE_MAX_RETRIES", "1")
                .export(
                    if account == AgentAccount::Plan { "CLAUDE_CODE_OAUTH_TOKEN" } else { "ANTHROPIC_API_KEY" },
                    "dummy",
                ),
            // It contacts the service of the previous one.
            Self::Opencode => home,
            Self::Gemini => home.export("GOOGLE_GEMINI_BASE_URL", at.service).export("GEMINI_API_KEY", "dummy"),
        }
    }

    /// Configures its sessions: the service, the model, and the prices of a model unknown to its program.
    pub(crate) fn configure(self, config: Config, service: &str) -> Config {
        let config = config.kind(self.kind()).executor(&format!("model = {:?}", self.model()));
        let priced = format!("[prices.{:?}]\ninput = 3.0\ncached = 0.3\noutput = 15.0", self.model());
        match self {
            Self::Codex => config
                .executor(&format!("extra_args = {}", provider(service)))
                .section("[env]\nagent = [\"KIT_KEY\"]")
                .section(&priced),
            Self::Claude => config,
            Self::Opencode => config.section("[env]\nagent = [\"ANTHROPIC_BASE_URL\"]"),
            Self::Gemini => config.section(&priced),
        }
    }

    /// Returns the keys, with values as TOML, without which its sessions would contact another service.
    pub(crate) fn settings(self, service: &str) -> Vec<(&'static str, String)> {
        match self {
            Self::Codex => vec![
                ("executor.model", format!("{:?}", self.model())),
                ("executor.extra_args", provider(service)),
                ("env.agent", "[\"KIT_KEY\"]".to_owned()),
            ],
            Self::Claude | Self::Opencode | Self::Gemini => Vec::new(),
        }
    }
}

/// Returns the arguments that point Codex at a service, as TOML.
fn provider(service: &str) -> String {
    let provider = format!(
        "model_providers.kit={{name=\"kit\",base_url=\"{service}/v1\",env_key=\"KIT_KEY\",wire_api=\"responses\",\
         request_max_retries=1,stream_max_retries=1}}"
    );
    format!("{:?}", ["-c", "model_provider=\"kit\"", "-c", &provider])
}
