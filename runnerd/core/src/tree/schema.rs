//! The JSON Schemas of the data contracts, generated from the Rust types.
//!
//! The compiled validators refuse remote references: `jsonschema` is built without a resolver.

use std::sync::OnceLock;

use jsonschema::Validator;
use protocol::answer::{AgentAnswer, ReviewAnswer};
use protocol::error::ErrorData;
use protocol::event::Event;
use protocol::meta::IterationMeta;
use protocol::state::{Feedback, RunState};
use protocol::test_record::TestRecord;
use protocol::tree::TaskTree;
use protocol::{delivery, landing, reply, request, view};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::Value;

use crate::text::json;

/// Returns the schema of `T` in draft 2020-12.
pub fn schema_for<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
}

/// Returns the schema of the task tree as `init` writes it.
pub fn tree_schema_text() -> String {
    json::to_canonical_json(&schema_for::<TaskTree>())
}

/// Returns the schema of an agent's answer as `init` writes it.
pub fn answer_schema_text() -> String {
    json::to_canonical_json(&schema_for::<AgentAnswer>())
}

/// Returns every schema with its file name in `schemas/`.
pub fn schema_files() -> Vec<(&'static str, String)> {
    vec![
        ("tree.v1.schema.json", tree_schema_text()),
        ("agent-output.v1.schema.json", answer_schema_text()),
        ("review-output.v1.schema.json", json::to_canonical_json(&schema_for::<ReviewAnswer>())),
        ("run-state.v1.schema.json", json::to_canonical_json(&schema_for::<RunState>())),
        ("feedback.v1.schema.json", json::to_canonical_json(&schema_for::<Feedback>())),
        ("tests.v1.schema.json", json::to_canonical_json(&schema_for::<TestRecord>())),
        ("iteration-meta.v1.schema.json", json::to_canonical_json(&schema_for::<IterationMeta>())),
        ("event.v1.schema.json", json::to_canonical_json(&schema_for::<Event>())),
        ("rpc.v1.schema.json", json::to_canonical_json(&rpc_schema())),
    ]
}

/// Returns the definitions of everything on the control socket: parameters, replies, views, errors.
fn rpc_schema() -> Schema {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    define_parameters(&mut generator);
    define_replies(&mut generator);
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "RPC",
        "description": "Parameters, replies, views and errors of the control socket, one definition each.",
        "$defs": generator.take_definitions(true),
    })
}

/// Defines the named types and everything they refer to.
macro_rules! define_types {
    ($generator:expr; $($name:ty),+ $(,)?) => {
        $($generator.subschema_for::<$name>();)+
    };
}

fn define_parameters(generator: &mut SchemaGenerator) {
    define_types!(generator;
        request::Handshake, request::AtPath, request::AtSettings, request::AgentParams, request::AtRun, request::InitParams, request::StartParams,
        request::StepParams, request::PauseParams, request::ResumeParams, request::LogFilter, request::ConfigKey,
        request::AtIteration, request::LogParams, request::ActivityParams, request::Subscription, request::NoteParams, request::RemoveParams, protocol::review::ApproveParams, protocol::review::RejectParams,
        request::AcceptParams, request::ConfigSetParams, request::ConfigTextParams, request::ConfigEditParams, request::ExportParams, request::ForkParams, request::GcParams,
        request::ValidateParams, request::VerifyParams, request::VouchParams, request::SigningKeyParams, request::RerunParams, protocol::verify::TipsParams,
        protocol::bisect::PointsParams, protocol::bisect::TryParams,
        request::QuestionsParams, request::AnswerParams, request::RetryParams, request::AddParams, request::EditParams,
        landing::LandParams, landing::CandidatesParams, landing::ResolveParams, landing::LandedParams, delivery::DescribeParams, delivery::FeedbackParams,
    );
}

fn define_replies(generator: &mut SchemaGenerator) {
    define_types!(generator;
        reply::InitReply, reply::StartReply, reply::StepReply, reply::ControlReply, reply::TreeReply, reply::VouchReply, reply::SigningKeyReply,
        reply::ChangeReply, reply::ReviewReply, protocol::review::PendingReview, view::QuestionView, protocol::hook::HookEvent,
        reply::ValidateReply, reply::ConfigReply, reply::ConfigSetReply, reply::ConfigTextReply, reply::ConfigEditReply, reply::ConfigShowReply, reply::ConfigPathReply, reply::ExportReply, reply::GcReply, reply::ActivityReply, reply::MemoryReply, protocol::explain::ExplainReply, protocol::doctor::RepositoryFacts, protocol::doctor::AgentFacts, protocol::verify::AuditReport, protocol::verify::RerunReport, protocol::bisect::PointsReply, protocol::bisect::TryReply, reply::IterationReply, view::DaemonView, view::RepoView,
        view::RunSummary, view::StatusView, view::SelectView, view::IterationView, view::TextView, Event, ErrorData,
        view::DiskView, protocol::branch::BranchView, landing::LandReply, landing::LandedReport, delivery::DescribeReply, delivery::FeedbackReply,
    );
}

/// Returns the compiled schema of the task tree.
pub fn tree_validator() -> &'static Validator {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| compile_schema(&schema_for::<TaskTree>()))
}

fn compile_schema(schema: &Schema) -> Validator {
    let value = serde_json::to_value(schema).unwrap_or(Value::Null);
    jsonschema::validator_for(&value).expect("BUG: a generated schema does not compile")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_remote_reference_is_not_fetched() {
        let schema = serde_json::json!({"$ref": "http://127.0.0.1:9/schema.json"});
        assert!(jsonschema::validator_for(&schema).is_err());
    }
}
