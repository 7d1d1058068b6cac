//! `export prometheus`: writes the state of all repositories as metrics to a file that is replaced atomically.
//!
//! Not part of the daemon: to collect metrics, run a client. Names follow Prometheus' conventions.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use jsonrpsee::core::client::{Client, Error};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use protocol::api::RunApiClient as _;
use protocol::client::OneShotClient;
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::view::{RunView, StatusView};
use tokio::signal::unix::{SignalKind, signal};

use crate::events::{EventFeed, FeedSource, FeedUpdate};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::ui::Ui;

/// Where figures go.
#[derive(Debug, Args)]
pub(super) struct PrometheusArgs {
    /// The file to write or replace; `-` for standard output
    #[arg(value_name = "FILE")]
    to: PathBuf,
    /// Write again at each change, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
}

/// All repositories.
pub(super) struct AllRepositories;

impl FeedSource for AllRepositories {
    type View = Vec<StatusView>;

    fn path(&self) -> Option<&WirePath> {
        None
    }

    async fn read(&self, client: &Client) -> Result<Vec<StatusView>, Error> {
        client.status_all().await
    }
}

/// Runs the command.
pub(super) async fn run(invocation: &Invocation<'_>, args: PrometheusArgs) -> Result<ExitStatus, Failure> {
    let to = if args.to == Path::new("-") { None } else { Some(invocation.resolve_local(Some(&args.to))?) };
    if !args.watch {
        let all = invocation.ask(async |client: &OneShotClient| client.status_all().await).await??;
        replace_file(to.as_deref(), &render_metrics(&all))?;
        return Ok(ExitStatus::Success);
    }
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| Failure::io("listening for Ctrl-C", &error))?;
    let mut feed = EventFeed::open(invocation, AllRepositories).await?;
    loop {
        let news = tokio::select! {
            biased;
            _ = interrupt.recv() => return Ok(ExitStatus::Interrupted),
            news = feed.next() => news?,
        };
        if let FeedUpdate::Status(all) = news {
            replace_file(to.as_deref(), &render_metrics(&all))?;
        }
    }
}

/// Replaces the file atomically, so that the collector never reads a partial one.
fn replace_file(to: Option<&Path>, text: &str) -> Result<(), Failure> {
    let Some(to) = to else { return Ui::print_verbatim(text) };
    let folder = to.parent().unwrap_or(Path::new("/"));
    let replace = || {
        let mut file = tempfile::Builder::new().prefix(".runner-").tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        // The collector runs as another user.
        file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        file.persist(to).map_err(|error| error.error)
    };
    replace().map(drop).map_err(|error| Failure::io(format!("writing {}", to.display()), &error))
}

/// The labels of a run.
type MetricLabels = Vec<(&'static str, String)>;
type GaugeFamily = Family<MetricLabels, Gauge>;

/// Metrics of each run.
#[derive(Default)]
struct RunMetrics {
    state: GaugeFamily,
    needs_you: GaugeFamily,
    queued: GaugeFamily,
    leaves: GaugeFamily,
    passed: GaugeFamily,
    iterations: GaugeFamily,
    questions: GaugeFamily,
    tokens: GaugeFamily,
    cost: Family<MetricLabels, Gauge<f64, std::sync::atomic::AtomicU64>>,
    time: Family<MetricLabels, Gauge<f64, std::sync::atomic::AtomicU64>>,
}

fn render_metrics(all: &[StatusView]) -> String {
    let metrics = RunMetrics::default();
    for status in all {
        let repository = ("repository", status.repo.path.to_string());
        let queued = i64::try_from(status.repo.queue.len()).unwrap_or(i64::MAX);
        metrics.queued.get_or_create(&vec![repository.clone()]).set(queued);
        if let Some(run) = &status.run {
            metrics.record_run(&vec![repository, ("run", run.summary.id.clone())], run);
        }
    }
    let mut text = String::new();
    encode(&mut text, &metrics.into_registry()).expect("BUG: text can be written to a string");
    text
}

impl RunMetrics {
    fn record_run(&self, labels: &MetricLabels, run: &RunView) {
        let with_label = |name, value: &str| [&labels[..], &[(name, value.to_owned())]].concat();
        self.state.get_or_create(&with_label("state", run.summary.state.as_str())).set(1);
        for (figure, value) in [
            (&self.needs_you, run.summary.needs_you.into()),
            (&self.leaves, run.leaves_total),
            (&self.passed, run.leaves_passed),
            (&self.iterations, run.iteration.saturating_sub(1)),
            (&self.questions, run.questions),
        ] {
            figure.get_or_create(labels).set(value.into());
        }
        let usage = &run.usage;
        for (kind, tokens) in
            [("input", usage.input_tokens), ("cached", usage.cached_tokens), ("output", usage.output_tokens)]
        {
            // Unknown is not 0.
            let Some(tokens) = tokens else { continue };
            self.tokens.get_or_create(&with_label("kind", kind)).set(i64::try_from(tokens).unwrap_or(i64::MAX));
        }
        if let Some(cost) = usage.cost_micro_usd {
            self.cost.get_or_create(labels).set(from_thousandths(cost / 1000));
        }
        self.time.get_or_create(labels).set(from_thousandths(run.elapsed_ms));
    }

    fn into_registry(self) -> Registry {
        let mut registry = Registry::with_prefix("runner");
        registry.register("run_state", "1 for the state that a run is in", self.state);
        registry.register("run_needs_you", "1 if a run waits for a person", self.needs_you);
        registry.register("queue_length", "Runs of a repository that are not over", self.queued);
        registry.register("run_leaves", "Tasks without subtasks", self.leaves);
        registry.register("run_leaves_passed", "Tasks without subtasks that pass", self.passed);
        registry.register("run_iterations", "Iterations that it has had", self.iterations);
        registry.register("run_questions", "Questions that are open", self.questions);
        registry.register("run_tokens", "Tokens that its sessions consumed, as far as they said", self.tokens);
        let dollars = Unit::Other("dollars".into());
        registry.register_with_unit("run_cost", "Cost of its sessions, as far as it is known", dollars, self.cost);
        registry.register_with_unit("run_work", "Time spent in sessions and guards", Unit::Seconds, self.time);
        registry
    }
}

fn from_thousandths(value: u64) -> f64 {
    std::time::Duration::from_millis(value).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::samples;

    #[test]
    fn the_dashboard_asks_for_figures_that_there_are_and_for_all_of_them() {
        let board = include_str!("../../../../docs/grafana.json");
        let dashboard: serde_json::Value = serde_json::from_str(board).expect("it is JSON");
        let queried: std::collections::BTreeSet<String> = dashboard["panels"]
            .as_array()
            .expect("there are panels")
            .iter()
            .flat_map(|panel| panel["targets"].as_array().expect("it asks for something"))
            .flat_map(|target| {
                target["expr"].as_str().expect("a query").split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            })
            .filter(|word| word.starts_with("runner_"))
            .map(str::to_owned)
            .collect();
        let mut status = samples::status();
        status.run.as_mut().expect("a run").usage.cost_micro_usd = Some(1);
        let exported = render_metrics(&[status]);
        let exported = exported
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
            .map(str::to_owned)
            .collect();
        assert_eq!(queried, exported);
    }

    #[test]
    fn a_run_is_told_in_figures_and_hostile_words_stay_words() {
        let mut status = samples::status();
        status.repo.path = WirePath("/home/me/\"pro\nj\\".into());
        let text = render_metrics(&[status]);
        let run = r#"repository="/home/me/\"pro\nj\\",run="run-1a2b3c4d""#;
        for line in [
            format!(r#"runner_run_state{{{run},state="running"}} 1"#),
            format!("runner_run_needs_you{{{run}}} 0"),
            format!("runner_run_leaves_passed{{{run}}} 4"),
            format!(r#"runner_run_tokens{{{run},kind="cached"}} 800000"#),
            format!("runner_run_work_seconds{{{run}}} 3900.0"),
        ] {
            assert!(text.lines().any(|printed| printed == line), "{line}: {text}");
        }
        // Unknown values are not reported as 0.
        assert!(!text.contains("cost"), "{text}");
        assert!(text.lines().all(|line| line.starts_with("# ") || line.starts_with("runner_")), "{text}");
    }
}
