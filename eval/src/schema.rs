//! The JSON Schemas of case files, results and answers, generated from the types.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::case::CaseFile;
use crate::commands::{CleanReply, ListReply, RunReply};
use crate::error::EvalError;
use crate::import::ImportReply;
use crate::prompts::PromptGrid;
use crate::report::Report;
use crate::report::compare::Comparison;
use crate::results::{ChecksFile, ResultMeta, StartedFile, write_durably};

/// Returns every schema with its file name in `schemas/`.
fn list_schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("eval-case.v1.schema.json", generate_schema::<CaseFile>()),
        ("eval-cases.v1.schema.json", generate_schema::<ListReply>()),
        ("eval-checks.v1.schema.json", generate_schema::<ChecksFile>()),
        ("eval-cleaned.v1.schema.json", generate_schema::<CleanReply>()),
        ("eval-comparison.v1.schema.json", generate_schema::<Comparison>()),
        ("eval-imported.v1.schema.json", generate_schema::<ImportReply>()),
        ("eval-meta.v1.schema.json", generate_schema::<ResultMeta>()),
        ("eval-prompts.v1.schema.json", generate_schema::<PromptGrid>()),
        ("eval-report.v1.schema.json", generate_schema::<Report>()),
        ("eval-runs.v1.schema.json", generate_schema::<RunReply>()),
        ("eval-started.v1.schema.json", generate_schema::<StartedFile>()),
    ]
}

fn generate_schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
}

fn schema_text(schema: &Schema) -> String {
    serde_json::to_string_pretty(schema).expect("BUG: a schema is plain data") + "\n"
}

/// Writes the schemas into a folder.
pub(crate) fn write_schemas(folder: &Path) -> Result<(), EvalError> {
    list_schemas()
        .iter()
        .try_for_each(|(name, schema)| write_durably(&folder.join(name), schema_text(schema).as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_that_are_checked_in_are_current() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas");
        for (name, schema) in list_schemas() {
            let found = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(found == schema_text(&schema), "{name} is stale: scripts/generate.sh");
        }
    }
}
