//! `export otlp`: sends iterations as traces to a collector that accepts OTLP over HTTP.
//!
//! Not part of the daemon, like `export prometheus`: to collect traces, run a client.

mod spans;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::env;
use std::slice::from_ref;
use std::thread;
use std::time::Duration;

use clap::Args;
use jsonrpsee::core::client::Client;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use percent_encoding::percent_decode_str;
use prost::Message as _;
use protocol::api::{IterationApiClient, RunApiClient};
use protocol::error::ExitStatus;
use protocol::request::AtRun;
use protocol::view::{IterationView, RepoView, RunView, StatusView};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use ureq::http::{HeaderName, HeaderValue};

use self::spans::build_request;
use super::prometheus::AllRepositories;
use crate::events::{EventFeed, FeedUpdate};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::sanitize::sanitize;

/// Number of iterations per request: a collector accepts at least 4 MiB.
const BATCH_SIZE: usize = 500;
/// Time limit for the collector to accept a request.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of iterations queued for a collector that is down; older ones are dropped.
const PENDING_LIMIT: usize = 10_000;
/// Maximum number of bytes read from the collector's response.
const RESPONSE_LIMIT: u64 = 64 * 1024;
/// Status codes after which OpenTelemetry requires a retry.
const RETRY_STATUS_CODES: [u16; 4] = [429, 502, 503, 504];
/// OpenTelemetry's variable for additional headers, such as credentials.
const HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Which iterations, and where to.
#[derive(Debug, Args)]
pub(super) struct OtlpArgs {
    /// The collector, such as `http://127.0.0.1:4318`
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    target: RunTarget,
    /// Send each iteration when it ends, until Ctrl-C
    #[arg(short, long, conflicts_with_all = ["target", "run"])]
    watch: bool,
}

/// What was sent.
#[derive(Debug, Default, Serialize)]
struct OtlpSummary {
    to: String,
    iterations: usize,
    spans: usize,
    /// Number of spans that the collector rejected.
    rejected: u64,
}

/// Runs the command.
pub(super) async fn run(invocation: &Invocation<'_>, args: OtlpArgs) -> Result<ExitStatus, Failure> {
    let collector = OtlpCollector::from_url(&args.url)?;
    if args.watch {
        let mut interrupt =
            signal(SignalKind::interrupt()).map_err(|error| Failure::io("listening for Ctrl-C", &error))?;
        return tokio::select! {
            _ = interrupt.recv() => Ok(ExitStatus::Interrupted),
            ended = send_ended_iterations(invocation, &collector) => match ended? {},
        };
    }
    let connection = invocation.connect().await?;
    let client = connection.client();
    let all = if args.target.is_empty() {
        client.status_all().await?
    } else {
        vec![client.status(args.target.resolve(invocation, client).await?).await?]
    };
    let mut summary = OtlpSummary { to: collector.traces.clone(), ..OtlpSummary::default() };
    for status in &all {
        let Some(run) = &status.run else { continue };
        let iterations = list_iterations(client, run).await?;
        collector
            .send_iterations(&status.repo, &iterations, &mut summary)
            .await
            .map_err(|why| collector.to_failure(why))?;
    }
    invocation.ui.print_answer("export-otlp", &summary, |_| render(&summary))?;
    Ok(ExitStatus::Success)
}

async fn list_iterations(client: &Client, run: &RunView) -> Result<Vec<IterationView>, Failure> {
    let at = AtRun { path: run.summary.path.clone(), run: Some(run.summary.id.clone()) };
    Ok(IterationApiClient::list(client, at).await?)
}

/// Sends iterations as they end. If the collector is down, they are queued, and that is reported once; if it rejects
/// them, they are reported and dropped.
async fn send_ended_iterations(invocation: &Invocation<'_>, collector: &OtlpCollector) -> Result<Infallible, Failure> {
    let mut feed = EventFeed::open(invocation, AllRepositories).await?;
    let mut last_seen = None::<LastIterations>;
    let mut pending = VecDeque::new();
    let mut is_away = false;
    loop {
        let FeedUpdate::Status(all) = feed.next().await? else { continue };
        let Some(before) = &last_seen else {
            last_seen = Some(last_iterations(&all));
            let to = sanitize(&collector.traces);
            invocation.ui.print_note(&format!("Sending what ends from now on to {to}; Ctrl-C ends it\n"));
            continue;
        };
        match iterations_ended_since(&feed, &all, before).await {
            Ok(ended) => pending.extend(ended),
            // Read the state again once the daemon is back.
            Err(failure) if failure.status() == ExitStatus::NoDaemon => continue,
            Err(failure) => return Err(failure),
        }
        last_seen = Some(last_iterations(&all));
        let surplus = pending.len().saturating_sub(PENDING_LIMIT);
        pending.drain(..surplus);
        is_away = flush_pending(invocation, collector, &mut pending, is_away).await;
    }
}

type PendingIterations = VecDeque<(RepoView, IterationView)>;

/// Sends queued iterations in order; returns whether the collector is down, and keeps what was not sent.
async fn flush_pending(
    invocation: &Invocation<'_>,
    collector: &OtlpCollector,
    pending: &mut PendingIterations,
    was_away: bool,
) -> bool {
    let report = |why: &str, then: &str| {
        let to = sanitize(&collector.traces);
        let why = sanitize(why);
        invocation.ui.print_note(&format!("{to} has not taken all of an iteration: {why}; {then}\n"));
    };
    while let Some((repo, iteration)) = pending.front() {
        let mut summary = OtlpSummary::default();
        match collector.send_iterations(repo, from_ref(iteration), &mut summary).await {
            Ok(()) if summary.rejected > 0 => {
                report(&format!("{} of its spans are refused", summary.rejected), "they are left out");
            }
            Ok(()) => {}
            Err(CollectorError::Rejected(why)) => report(&why, "it is left out"),
            Err(CollectorError::Unavailable(why)) => {
                if !was_away {
                    report(&why, "it is tried again when the next one ends");
                }
                return true;
            }
        }
        pending.pop_front();
    }
    false
}

/// The last iteration of each run: its number, and that of the wait it led to; an iteration that led to none sorts
/// last.
type LastIterations = BTreeMap<(String, String), (u32, u32)>;

fn iteration_key(iteration: &IterationView) -> (u32, u32) {
    (iteration.iter, iteration.wait.unwrap_or(u32::MAX))
}

fn run_key(status: &StatusView, run: &RunView) -> (String, String) {
    (status.repo.id.clone(), run.summary.id.clone())
}

fn last_iterations(all: &[StatusView]) -> LastIterations {
    let runs = all.iter().filter_map(|status| Some((status, status.run.as_ref()?)));
    runs.map(|(status, run)| (run_key(status, run), run.recent.iter().map(iteration_key).max().unwrap_or_default()))
        .collect()
}

/// Returns the iterations ended since then, oldest first per run; reads all if more have ended than the status
/// includes.
async fn iterations_ended_since(
    feed: &EventFeed<AllRepositories>,
    all: &[StatusView],
    before: &LastIterations,
) -> Result<PendingIterations, Failure> {
    let mut pending = VecDeque::new();
    for status in all {
        let Some(run) = &status.run else { continue };
        let last = before.get(&run_key(status, run)).copied().unwrap_or_default();
        let is_new = |iteration: &IterationView| iteration_key(iteration) > last;
        let mut ended = run.recent.clone();
        if let Some(connection) = feed.connection()
            && !ended.is_empty()
            && ended.iter().all(is_new)
        {
            ended = list_iterations(connection.client(), run).await?;
        }
        ended.retain(is_new);
        ended.sort_by_key(iteration_key);
        pending.extend(ended.into_iter().map(|iteration| (status.repo.clone(), iteration)));
    }
    Ok(pending)
}

/// Why a collector did not accept a request.
#[derive(Debug)]
enum CollectorError {
    /// It may accept it later.
    Unavailable(String),
    /// It never will.
    Rejected(String),
}

/// Destination of traces.
#[derive(Debug, Clone)]
struct OtlpCollector {
    agent: ureq::Agent,
    traces: String,
    headers: Vec<(String, String)>,
}

impl OtlpCollector {
    /// Parses a URL; traces have a path of their own below it.
    fn from_url(url: &str) -> Result<Self, Failure> {
        let plain =
            "a collector on this machine takes traces without encryption, and passes them on: http://127.0.0.1:4318";
        let Some(rest) = url.strip_prefix("http://").filter(|rest| !rest.is_empty()) else {
            return Err(Failure::usage(format!("`{url}` does not begin with http://")).hint(plain));
        };
        if rest.split('/').next().is_some_and(|host| host.contains('@')) {
            return Err(Failure::usage("an address with a login in it is shown by others")
                .hint(format!("put what the collector wants into {HEADERS_VARIABLE}, as Authorization=Basic%20…")));
        }
        let has_path = rest.trim_end_matches('/').contains('/');
        let traces = if has_path { url.to_owned() } else { format!("{}/v1/traces", url.trim_end_matches('/')) };
        let config = ureq::Agent::config_builder().timeout_global(Some(SEND_TIMEOUT)).http_status_as_error(false);
        let headers = parse_headers(&env::var(HEADERS_VARIABLE).unwrap_or_default())?;
        Ok(Self { agent: config.proxy(None).build().into(), traces, headers })
    }

    /// Sends iterations in batches, and adds up what was accepted.
    async fn send_iterations(
        &self,
        repo: &RepoView,
        iterations: &[IterationView],
        summary: &mut OtlpSummary,
    ) -> Result<(), CollectorError> {
        for some in iterations.chunks(BATCH_SIZE) {
            let request = build_request(repo, some);
            let spans = request.resource_spans.iter().flat_map(|of| &of.scope_spans).map(|of| of.spans.len());
            summary.spans += spans.sum::<usize>();
            summary.iterations += some.len();
            // On a thread, which is not waited for at Ctrl-C.
            let (collector, (result_sender, result_receiver)) = (self.clone(), oneshot::channel());
            thread::spawn(move || result_sender.send(collector.post(&request)));
            summary.rejected +=
                result_receiver.await.map_err(|error| CollectorError::Unavailable(error.to_string()))??;
        }
        Ok(())
    }

    /// Sends one request; returns the number of rejected spans.
    fn post(&self, request: &ExportTraceServiceRequest) -> Result<u64, CollectorError> {
        let mut post = self.agent.post(&self.traces).header("Content-Type", "application/x-protobuf");
        for (name, value) in &self.headers {
            post = post.header(name, value);
        }
        let mut response =
            post.send(request.encode_to_vec()).map_err(|error| CollectorError::Unavailable(error.to_string()))?;
        let status = response.status();
        let body = response.body_mut().with_config().limit(RESPONSE_LIMIT).read_to_vec();
        if !status.is_success() {
            let text = body.unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let why = format!("it answered {status} {}", text.lines().next().unwrap_or_default()).trim_end().to_owned();
            return Err(if RETRY_STATUS_CODES.contains(&status.as_u16()) {
                CollectorError::Unavailable(why)
            } else {
                CollectorError::Rejected(why)
            });
        }
        let body = body.map_err(|error| CollectorError::Unavailable(error.to_string()))?;
        let decoded = ExportTraceServiceResponse::decode(body.as_slice());
        let response = decoded.map_err(|error| CollectorError::Rejected(error.to_string()))?;
        Ok(response.partial_success.map_or(0, |part| u64::try_from(part.rejected_spans).unwrap_or(0)))
    }

    fn to_failure(&self, why: CollectorError) -> Failure {
        let (CollectorError::Unavailable(why) | CollectorError::Rejected(why)) = why;
        let message = format!("{} takes no traces", sanitize(&self.traces));
        Failure::new(ExitStatus::Error, "collector", message)
            .caused_by(why)
            .hint("start the collector, and see that it takes OTLP over HTTP (port 4318), not gRPC (4317)")
    }
}

/// Parses `name=value,…`, with percent-encoded values as in a `baggage` header.
fn parse_headers(text: &str) -> Result<Vec<(String, String)>, Failure> {
    // The invalid part is not repeated: it may be a secret.
    let malformed = || {
        Failure::usage(format!(
            "{HEADERS_VARIABLE} is not of the form NAME=VALUE,NAME=VALUE with percent-encoded values"
        ))
        .hint("write it as Authorization=Basic%20…")
    };
    let mut headers = Vec::new();
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(malformed)?;
        let value = percent_decode_str(value.trim()).decode_utf8().map_err(|_| malformed())?.into_owned();
        let is_valid = HeaderName::try_from(name.trim()).is_ok() && HeaderValue::try_from(value.as_str()).is_ok();
        headers.push(if is_valid { (name.trim().to_owned(), value) } else { return Err(malformed()) });
    }
    Ok(headers)
}

fn render(summary: &OtlpSummary) -> String {
    let OtlpSummary { to, iterations, spans, rejected } = summary;
    let count = if *iterations == 1 { "1 iteration".to_owned() } else { format!("{iterations} iterations") };
    let spans = if *spans == 1 { "1 span".to_owned() } else { format!("{spans} spans") };
    let lost = match rejected {
        0 => String::new(),
        1 => "not taken by the collector: 1 span\n".to_owned(),
        more => format!("not taken by the collector: {more} spans\n"),
    };
    format!("{count}, {spans}, sent to {}\n{lost}", sanitize(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_have_a_path_of_their_own_below_an_address_that_has_none() {
        let path = |url| OtlpCollector::from_url(url).map(|collector| collector.traces).ok();
        assert_eq!(path("http://127.0.0.1:4318/").as_deref(), Some("http://127.0.0.1:4318/v1/traces"));
        assert_eq!(path("http://c:4318/in/v1/traces").as_deref(), Some("http://c:4318/in/v1/traces"));
        assert_eq!(["https://c", "c:4318", "http://", "http://me:secret@c:4318"].map(path), [const { None }; 4]);
    }

    #[test]
    fn headers_are_read_as_opentelemetry_writes_them() {
        let read = |text| parse_headers(text).ok();
        assert_eq!(
            read("api-key=a%20b, x = y ,"),
            Some(vec![("api-key".into(), "a b".into()), ("x".into(), "y".into())])
        );
        assert_eq!(read(""), Some(Vec::new()));
        assert_eq!(["nonsense", "a b=c", "=c", "a=%0a", "a=%ff"].map(read), [const { None }; 5]);
    }
}
