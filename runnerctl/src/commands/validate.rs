//! `validate`: checks the files in the work tree, as a start would.

use std::fmt::Write as _;

use clap::Args;
use protocol::api::TreeApiClient as _;
use protocol::client::caller_env;
use protocol::error::ExitStatus;
use protocol::reply::ValidateReply;
use protocol::request::ValidateParams;

use crate::args::RepoTarget;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::paint::{BAD, GOOD, paint};
use crate::text::sanitize::sanitize;

const EXAMPLES: &str = "Examples:
  runnerctl validate           one line per check
  runnerctl validate ~/proj

Exit codes:
  0  every check passed
  1  a check failed";

/// Check the files under `.runner/` and the programs that they name
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    repo: RepoTarget,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ValidateArgs) -> Result<ExitStatus, Failure> {
    args.repo.check_path(invocation)?;
    let path = invocation.daemon_path(args.repo.path())?;
    let connection = invocation.connect().await?;
    let env = caller_env::collect(&connection, &path).await;
    let reply = connection.client().validate(ValidateParams { path, env }).await?;
    invocation.ui.print_answer("validate", &reply, |_| render(&reply))?;
    Ok(if reply.ok { ExitStatus::Success } else { ExitStatus::Error })
}

fn render(reply: &ValidateReply) -> String {
    let mut text = String::new();
    for check in &reply.checks {
        let name = sanitize(&check.name);
        if check.ok {
            let _ = writeln!(text, "{name:<10} {}", paint(GOOD, "ok"));
        }
        for fault in &check.faults {
            let _ = writeln!(text, "{name:<10} {} {}", paint(BAD, "fault"), sanitize(fault));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anstream::adapter::strip_str;
    use protocol::view::CheckView;

    use super::*;

    #[test]
    fn each_check_is_ok_or_has_its_faults() {
        let check = |name: &str, faults: &[&str]| CheckView {
            name: name.into(),
            ok: faults.is_empty(),
            faults: faults.iter().map(ToString::to_string).collect(),
        };
        let checks = vec![check("layout", &[]), check("tree", &["/root/x: unknown field", "/root/id: empty"])];
        let reply = ValidateReply { path: Path::new("/p").into(), ok: false, checks };
        insta::assert_snapshot!(strip_str(&render(&reply)), @r"
        layout     ok
        tree       fault /root/x: unknown field
        tree       fault /root/id: empty
        ");
    }
}
