//! Compares checked-in files with the code: the schema of this server's own replies, and the embedded page.

use std::fs;
use std::path::{Path, PathBuf};

use runner_ui::wire::{ErrorReply, ExportedFile, Health, Notice, RunFile, Session, Started, Steer, Steered};
use schemars::generate::SchemaSettings;
use schemars::json_schema;

fn path_in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the definitions of all types that only the page receives.
fn read_schema() -> String {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<Session>();
    generator.subschema_for::<Health>();
    generator.subschema_for::<Steer>();
    generator.subschema_for::<Steered>();
    generator.subschema_for::<ErrorReply>();
    generator.subschema_for::<Notice>();
    generator.subschema_for::<Started>();
    generator.subschema_for::<RunFile>();
    generator.subschema_for::<ExportedFile>();
    let schema = json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Web",
        "description": "What the server of the web view says besides the types of rpc.v1.schema.json.",
        "$defs": generator.take_definitions(true),
    });
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}

#[test]
fn the_schema_that_is_checked_in_is_the_generated_one() {
    let file = path_in_crate("../schemas/web.v1.schema.json");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(file, read_schema()).expect("the schema can be written");
    } else {
        let found = fs::read_to_string(file).unwrap_or_default();
        assert!(found == read_schema(), "schemas/web.v1.schema.json is stale: scripts/generate.sh rewrites it");
    }
}

#[test]
fn what_is_embedded_is_what_the_build_of_the_page_has_left() {
    let mut files = Vec::new();
    collect(&path_in_crate("web/dist"), &mut files);
    let mut embedded: Vec<String> = runner_ui::embedded_files().map(|(name, _)| name).collect();
    embedded.sort();
    files.sort();
    assert_eq!(embedded, files, "another set of files is embedded");
    for (name, bytes) in runner_ui::embedded_files() {
        assert!(
            fs::read(path_in_crate("web/dist").join(&name)).expect("it is there") == bytes,
            "{name} is embedded as it was"
        );
    }
}

fn collect(folder: &Path, into: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("build.rs sees to it that there is a page") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, into);
        } else {
            into.push(path.strip_prefix(path_in_crate("web/dist")).expect("it is below").display().to_string());
        }
    }
}
