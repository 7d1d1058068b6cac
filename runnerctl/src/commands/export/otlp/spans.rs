//! Converts an iteration to a trace: one span for the iteration, and one for each of its phases. Pure.
//!
//! Ids are derived from the contents, so that an iteration that is sent twice is the same trace.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span, Status, span::SpanKind, status::StatusCode,
};
use protocol::meta::PhaseTime;
use protocol::state::UsageTotal;
use protocol::view::{IterationView, RepoView};
use protocol::words::{PhaseName, VerdictName};
use sha2::{Digest as _, Sha256};

/// Builds the request for iterations of a repository; those still running are omitted.
pub(super) fn build_request(repo: &RepoView, iterations: &[IterationView]) -> ExportTraceServiceRequest {
    let spans = iterations.iter().flat_map(|iteration| iteration_spans(repo, iteration)).collect();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let scope = InstrumentationScope { name: "runnerctl".into(), version: version.clone(), ..Default::default() };
    let resource_attributes = vec![
        text_attribute("service.name", "runnerd"),
        text_attribute("service.version", &version),
        text_attribute("runner.repository", &repo.path.to_string()),
    ];
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes: resource_attributes, ..Default::default() }),
            scope_spans: vec![ScopeSpans { scope: Some(scope), spans, ..Default::default() }],
            ..Default::default()
        }],
    }
}

/// Returns the spans of an iteration, its own first.
fn iteration_spans(repo: &RepoView, iteration: &IterationView) -> Vec<Span> {
    let Some(ended_at) = iteration.ended_at else { return Vec::new() };
    let end = u64::try_from(ended_at.as_nanosecond()).unwrap_or(0);
    let start = end.saturating_sub(to_nanoseconds(iteration.duration_ms.unwrap_or(0)));
    let identity = format!("{}\0{}\0{}\0{:?}", repo.id, iteration.run, iteration.iter, iteration.wait);
    let trace_id = truncated_digest(&identity, 16);
    let root_span = Span {
        trace_id: trace_id.clone(),
        span_id: truncated_digest(&identity, 8),
        name: "iteration".into(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: start,
        end_time_unix_nano: end,
        attributes: iteration_attributes(iteration),
        status: Some(span_status(iteration.verdict)),
        ..Default::default()
    };
    let mut begin = start;
    let phases = iteration.phases.iter().zip(0_usize..).map(|(PhaseTime { phase, duration_ms }, at)| {
        let from = begin;
        let to = begin.saturating_add(to_nanoseconds(*duration_ms)).min(end);
        begin = to;
        Span {
            trace_id: trace_id.clone(),
            span_id: truncated_digest(&format!("{identity}\0{at}"), 8),
            parent_span_id: root_span.span_id.clone(),
            kind: SpanKind::Internal.into(),
            name: phase.as_str().into(),
            start_time_unix_nano: from,
            end_time_unix_nano: to,
            attributes: if *phase == PhaseName::Work { session_attributes(iteration) } else { Vec::new() },
            ..Default::default()
        }
    });
    let phases: Vec<Span> = phases.collect();
    [vec![root_span], phases].concat()
}

fn iteration_attributes(iteration: &IterationView) -> Vec<KeyValue> {
    let mut all = vec![
        text_attribute("runner.run", &iteration.run),
        int_attribute("runner.iteration", iteration.iter.into()),
        text_attribute("runner.node", &iteration.node),
        text_attribute("runner.verdict", iteration.verdict.as_str()),
        text_attribute("runner.status", iteration.status.as_str()),
        text_attribute("runner.guard", &iteration.guard.to_string()),
    ];
    all.extend(iteration.wait.map(|wait| int_attribute("runner.wait", wait.into())));
    all.extend(iteration.title.as_deref().map(|title| text_attribute("runner.node.title", title)));
    all.extend(iteration.commit.as_deref().map(|commit| text_attribute("vcs.ref.head.revision", commit)));
    let cost = iteration.usage.as_ref().and_then(|usage| usage.cost_micro_usd);
    all.extend(cost.map(|cost| int_attribute("runner.cost_micro_usd", cost)));
    all
}

/// Returns the session's attributes, with OpenTelemetry's names for generative models.
fn session_attributes(iteration: &IterationView) -> Vec<KeyValue> {
    let mut all = vec![text_attribute("gen_ai.operation.name", "invoke_agent")];
    all.extend(iteration.agent.as_deref().map(|agent| text_attribute("gen_ai.agent.name", agent)));
    let Some(UsageTotal { input_tokens, cached_tokens, output_tokens, .. }) = &iteration.usage else { return all };
    // In OpenTelemetry, input includes tokens read from the cache.
    let input = input_tokens.map(|input| input.saturating_add(cached_tokens.unwrap_or(0)));
    for (name, tokens) in [
        ("gen_ai.usage.input_tokens", &input),
        ("gen_ai.usage.cache_read.input_tokens", cached_tokens),
        ("gen_ai.usage.output_tokens", output_tokens),
    ] {
        // Unknown is not 0.
        all.extend(tokens.map(|tokens| int_attribute(name, tokens)));
    }
    all
}

fn span_status(verdict: VerdictName) -> Status {
    let code = match verdict {
        VerdictName::Accepted => StatusCode::Ok,
        VerdictName::RedGuard
        | VerdictName::Rejected
        | VerdictName::Broken
        | VerdictName::Fault
        | VerdictName::Timeout
        | VerdictName::Misconfigured => StatusCode::Error,
        VerdictName::Pending
        | VerdictName::Retry
        | VerdictName::Narrowed
        | VerdictName::Decomposed
        | VerdictName::Unavailable
        | VerdictName::Interrupted => StatusCode::Unset,
    };
    let message = if code == StatusCode::Error { verdict.label().to_owned() } else { String::new() };
    Status { message, code: code.into() }
}

fn text_attribute(key: &str, value: &str) -> KeyValue {
    new_attribute(key, Value::StringValue(value.to_owned()))
}

fn int_attribute(key: &str, value: u64) -> KeyValue {
    new_attribute(key, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn new_attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..Default::default() }
}

fn to_nanoseconds(milliseconds: u64) -> u64 {
    u64::try_from(Duration::from_millis(milliseconds).as_nanos()).unwrap_or(u64::MAX)
}

fn truncated_digest(text: &str, bytes: usize) -> Vec<u8> {
    Sha256::digest(text)[..bytes].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::samples;

    fn spans() -> Vec<Span> {
        let repo = samples::repo();
        let run = samples::run();
        let phases = [(PhaseName::Brief, 1_000), (PhaseName::Work, 40_000), (PhaseName::Guard, 30_000)];
        let phases = phases.map(|(phase, duration_ms)| PhaseTime { phase, duration_ms }).to_vec();
        let usage = UsageTotal { input_tokens: Some(5), cached_tokens: Some(7), ..UsageTotal::default() };
        let one = run.recent[0].clone();
        let one = IterationView { duration_ms: Some(61_000), phases, usage: Some(usage), ..one };
        let unended = IterationView { ended_at: None, ..one.clone() };
        let request = build_request(&repo, &[one, unended]);
        request.resource_spans[0].scope_spans[0].spans.clone()
    }

    fn attribute_value(span: &Span, key: &str) -> Option<Value> {
        span.attributes.iter().find(|attribute| attribute.key == key)?.value.clone()?.value
    }

    #[test]
    fn an_iteration_is_a_trace_of_its_phases_one_after_the_other() {
        let spans = spans();
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["iteration", "brief", "work", "guard"]);
        let whole = &spans[0];
        assert_eq!(whole.end_time_unix_nano - whole.start_time_unix_nano, 61_000_000_000);
        let mut begin = whole.start_time_unix_nano;
        for phase in &spans[1..] {
            assert_eq!((&phase.trace_id, &phase.parent_span_id), (&whole.trace_id, &whole.span_id));
            assert_eq!(phase.start_time_unix_nano, begin);
            begin = phase.end_time_unix_nano;
        }
        // A phase that lasts longer than the whole, by another clock, is cut at the end.
        assert_eq!(begin, whole.end_time_unix_nano);
        let mut ids: Vec<_> = spans.iter().map(|span| span.span_id.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert!(ids.len() == spans.len() && ids.iter().all(|id| id.len() == 8) && whole.trace_id.len() == 16);
    }

    #[test]
    fn it_is_the_same_trace_each_time_and_what_is_not_known_is_not_told() {
        assert_eq!(spans(), spans());
        let work = &spans()[2];
        assert_eq!(attribute_value(work, "gen_ai.usage.input_tokens"), Some(Value::IntValue(12)));
        assert_eq!(attribute_value(work, "gen_ai.usage.output_tokens"), None);
        assert_eq!(attribute_value(&spans()[0], "runner.cost_micro_usd"), None);
    }
}
