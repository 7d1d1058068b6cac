//! The JSON Schemas of the data contracts, generated from the Rust types (SPEC 3).
//!
//! The compiled validators refuse remote references: `jsonschema` is built without a resolver.

use std::sync::OnceLock;

use jsonschema::Validator;
use protocol::answer::AgentAnswer;
use protocol::tree::TaskTree;
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde_json::Value;

use crate::json;

/// Returns the schema of `T` in draft 2020-12.
pub fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
}

/// Returns the schema of the task tree as `init` writes it.
pub fn tree_text() -> String {
    json::canonical(&of::<TaskTree>())
}

/// Returns the schema of an agent's answer as `init` writes it.
pub fn answer_text() -> String {
    json::canonical(&of::<AgentAnswer>())
}

/// Returns the compiled schema of the task tree.
pub fn tree_validator() -> &'static Validator {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| compile(&of::<TaskTree>()))
}

fn compile(schema: &Schema) -> Validator {
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
