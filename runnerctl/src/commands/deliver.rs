//! `deliver`: publishes a run as a branch and a pull request, and reads the feedback on it.

use clap::Args;
use protocol::api::{ConfigApiClient as _, DeliveryApiClient as _, RunApiClient as _};
use protocol::client::{Connection, caller_env};
use protocol::delivery::DescribeParams;
use protocol::error::ExitStatus;
use protocol::landing::LandForm;
use protocol::path::WirePath;
use protocol::request::{AtRun, ConfigKey, StartParams};
use protocol::shell;

use super::land::{self, LandFormArg};
use super::start::render_start;
use crate::confirm::with_confirmation;
use crate::deliver::delivery::{Delivery, DeliveryOptions};
use crate::deliver::feedback::{FeedbackCommand, send_feedback};
use crate::failure::Failure;
use crate::interrupts::unless_interrupted;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::settings::Settings;
use crate::text::deliver::{render_delivery, render_feedback};
use crate::text::paint::{HINT, paint};
use crate::text::sanitize::sanitize_lines;
use crate::ui::Ui;

/// The operation that an interruption message names.
const DELIVERY_NAME: &str = "the delivery";

const EXAMPLES: &str = "Examples:
  runnerctl deliver port                  push deliver/port, open a draft
  runnerctl deliver port --dry-run        show commits, title and description
  runnerctl deliver port --ready --as squash --base main
  runnerctl deliver port --feedback       a note about checks and comments
  runnerctl deliver port --feedback --add    a task instead of a note";

/// Push a run's result and open or update its pull request
///
/// Lands the result on the branch deliver/RUN, pushes that branch with your own git, and opens the pull request with
/// gh, glab or the program in `[deliver] command`. Run the command again to update branch and description. It never
/// overwrites commits that others have pushed to the branch.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own on the command line")]
pub(crate) struct DeliverArgs {
    #[command(flatten)]
    target: RunTarget,
    /// The remote to push to [default: `deliver.remote`]
    #[arg(long, value_name = "REMOTE")]
    remote: Option<String>,
    /// The target branch of the pull request [default: `deliver.base`, else the remote's default branch]
    #[arg(long, value_name = "BRANCH")]
    base: Option<String>,
    /// The commits of the result
    #[arg(long = "as", value_name = "FORM", value_enum, default_value_t = LandFormArg::Leaves)]
    form: LandFormArg,
    /// Open the pull request ready for review, not as a draft
    #[arg(long)]
    ready: bool,
    /// Include `.runner/`
    #[arg(long)]
    with_runner: bool,
    /// Deliver even though part of the branch could not be checked
    #[arg(long)]
    unproven: bool,
    /// Only show the commits, the title and the description; contacts no remote
    #[arg(long)]
    dry_run: bool,
    /// Leave the run a note about failed checks and comments, for its next session
    #[arg(long, conflicts_with_all = ["base", "ready", "with_runner", "unproven"])]
    feedback: bool,
    /// Add a task for the feedback instead of a note
    #[arg(long, requires = "feedback")]
    add: bool,
    /// Start a run for the feedback, from the delivered branch and to land on it
    #[arg(long, requires = "feedback", conflicts_with_all = ["add", "dry_run"])]
    start: bool,
    /// Include comments by people without write access to the repository
    #[arg(long, requires = "feedback")]
    anyone: bool,
    /// Run the configured commands without asking
    #[arg(short, long)]
    yes: bool,
}

/// Delivers a run that `--wait` was following, if both the work tree's configuration and the run's own ask for it.
pub(crate) async fn deliver_on_complete(
    invocation: &Invocation<'_>,
    path: WirePath,
    run: String,
) -> Result<(), Failure> {
    let connection = invocation.connect().await?;
    let client = connection.client();
    let key = ConfigKey { path: path.clone(), key: Some("deliver.on_complete".to_owned()), defaults: None };
    // A configuration that cannot be read asks for nothing.
    if !client.get(key).await.is_ok_and(|reply| reply.value == true) {
        return Ok(());
    }
    let params = DescribeParams { path: path.clone(), run: Some(run), remote: None, confirmed: false };
    let description = client.describe(params).await?;
    if !description.on_complete {
        return Ok(());
    }
    if let Some(host) = &invocation.host {
        let command = host.ssh_command_line(&format!("runnerctl -C {} deliver", shell::quote(&path.to_string())));
        invocation.ui.print_note(&format!("To deliver it, as the configuration asks for: {command}\n"));
        return Ok(());
    }
    let options = DeliveryOptions {
        base: None,
        form: LandForm::Leaves,
        with_runner: false,
        unproven: false,
        ready: false,
        // The run's guard was confirmed together with the run.
        yes: true,
    };
    let delivery = Delivery { ui: invocation.ui, connection: &connection, path, description: &description, options };
    let report = unless_interrupted(DELIVERY_NAME, delivery.deliver()).await?;
    invocation.ui.print_answer("deliver", &report, |_| render_delivery(&report))
}

/// A run that continues a delivered one.
struct FeedbackRun {
    goal: String,
    /// The branch from which it begins, and on which it lands.
    branch: String,
    yes: bool,
}

async fn start_run(
    invocation: &Invocation<'_>,
    connection: &Connection,
    path: WirePath,
    FeedbackRun { goal, branch, yes }: FeedbackRun,
) -> Result<ExitStatus, Failure> {
    let params = StartParams {
        env: caller_env::collect(connection, &path).await,
        path,
        goal: Some(goal),
        goal_file: None,
        id: None,
        base: Some(branch.clone()),
        onto: Some(branch),
        keep_tree: false,
        queue_only: false,
        isolated: None,
        default_config: false,
        defaults: Settings::load()?.defaults(),
        confirmed: false,
    };
    let request = async |confirmed| connection.client().start(StartParams { confirmed, ..params.clone() }).await;
    let reply = with_confirmation(invocation.ui, yes, request).await?;
    invocation.ui.print_answer("start", &reply, |screen| render_start(&reply, screen))?;
    let land = shell::join_args(["runnerctl", "land", &reply.run.id]);
    invocation.ui.print_note(&format!("\nWhen it is completed: {}, and deliver again\n", paint(HINT, &land)));
    Ok(ExitStatus::Success)
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: DeliverArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let ui = invocation.ui;
    let client = connection.client();
    let AtRun { path, run } = args.target.resolve(invocation, client).await?;
    let params = DescribeParams { path: path.clone(), run, remote: args.remote, confirmed: false };
    // A dry run, or reading feedback, starts no program of the configuration.
    let is_read_only = args.dry_run || args.feedback;
    let request =
        async |yes: bool| client.describe(DescribeParams { confirmed: yes || is_read_only, ..params.clone() }).await;
    let description = with_confirmation(ui, args.yes, request).await?;
    if args.feedback {
        let command = FeedbackCommand { add: args.add, anyone: args.anyone, dry_run: args.dry_run || args.start };
        let feedback_result = send_feedback(&connection, path.clone(), &description, command);
        let (reply, skipped) = unless_interrupted(DELIVERY_NAME, feedback_result).await?;
        if args.start && !reply.text.is_empty() {
            let order = FeedbackRun { goal: reply.text, branch: description.branch.clone(), yes: args.yes };
            return start_run(invocation, &connection, path, order).await;
        }
        if args.dry_run && !ui.json {
            ui.print_note(&render_feedback(&reply, skipped));
            Ui::print_verbatim(&sanitize_lines(&reply.text))?;
            return Ok(ExitStatus::Success);
        }
        ui.print_answer("feedback", &reply, |_| render_feedback(&reply, skipped))?;
        return Ok(ExitStatus::Success);
    }
    let DeliverArgs { base, form, ready, with_runner, unproven, yes, dry_run, .. } = args;
    let options = DeliveryOptions { base, form: land::to_land_form(form), with_runner, unproven, ready, yes };
    let delivery = Delivery { ui, connection: &connection, path, description: &description, options };
    let report =
        if dry_run { delivery.preview().await? } else { unless_interrupted(DELIVERY_NAME, delivery.deliver()).await? };
    ui.print_answer("deliver", &report, |_| render_delivery(&report))?;
    Ok(ExitStatus::Success)
}
