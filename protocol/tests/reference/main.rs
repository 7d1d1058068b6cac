//! `docs/protocol.md` and `docs/json.md`, generated from the traits of the methods, an example of each, the kinds of
//! errors, the exit codes and the schemas. `UPDATE_GENERATED=1` rewrites the pages; without it they are compared.

mod examples;
mod json;
mod page;
mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::source::Method;

fn on_disk(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page)
}

#[test]
fn the_pages_are_the_generated_ones() {
    for (name, page) in [("protocol.md", page::text()), ("json.md", json::text())] {
        if std::env::var_os("UPDATE_GENERATED").is_some() {
            std::fs::write(on_disk(name), page).unwrap_or_else(|error| panic!("docs/{name}: {error}"));
        } else {
            let found = std::fs::read_to_string(on_disk(name)).unwrap_or_default();
            assert!(found == page, "docs/{name} is stale: UPDATE_GENERATED=1 rewrites it");
        }
    }
}

#[test]
fn every_method_has_one_example_of_its_types() {
    let examples = examples::all();
    let names: BTreeSet<&str> = examples.iter().map(|example| example.method).collect();
    assert_eq!(names.len(), examples.len(), "a method has two examples");
    let methods: Vec<Method> = source::sections().into_iter().flat_map(|section| section.methods).collect();
    assert_eq!(names, methods.iter().map(|method| method.name.as_str()).collect());
    for method in methods {
        let example = examples.iter().find(|example| example.method == method.name).expect("was just compared");
        assert_eq!(example.params_type, method.params, "{}", method.name);
        assert_eq!(example.reply_type, method.reply, "{}", method.name);
    }
}

#[test]
fn methods_that_read_are_methods() {
    let methods: BTreeSet<String> =
        source::sections().into_iter().flat_map(|section| section.methods).map(|method| method.name).collect();
    let reading: Vec<&str> = source::reading().into_iter().filter(|name| *name != "events.unsubscribe").collect();
    assert!(reading.len() > 10, "{reading:?}");
    assert!(reading.iter().all(|name| methods.contains(*name)), "{reading:?}");
}
