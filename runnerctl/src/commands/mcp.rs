//! `mcp`: a Model Context Protocol server on standard input and output.

use clap::Args;
use protocol::error::ExitStatus;
use rmcp::ServiceExt as _;
use rmcp::transport::stdio;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::mcp::McpTools;

const EXAMPLES: &str = "Examples:
  claude mcp add runner -- runnerctl mcp
  codex mcp add runner -- runnerctl mcp --steer";

/// Serve runs to an agent, as tools of the Model Context Protocol
///
/// The agent starts this command and talks to it over standard input and output. Without `--steer`, its tools only
/// read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    /// Offer tools that queue a goal, leave a note, answer a question, approve and reject
    #[arg(long)]
    steer: bool,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: McpArgs) -> Result<ExitStatus, Failure> {
    let place = invocation.daemon_path_if_any(None)?;
    let tools = McpTools::new(invocation.default_options(), place, args.steer);
    let failed = |error: String| Failure::new(ExitStatus::Error, "mcp", "serving the client").caused_by(error);
    let service = tools.serve(stdio()).await.map_err(|error| failed(error.to_string()))?;
    service.waiting().await.map_err(|error| failed(error.to_string()))?;
    Ok(ExitStatus::Success)
}
