//! Branches of builds before: what was proven then is proven now.
//!
//! A demo; a run with a fault, a note, an added node and a person's reviews; a fork of that. They lie in `old/` as git bundles.

use runner_testkit::Home;

use crate::place::Place;

#[test]
fn a_branch_that_a_build_before_has_made_is_proven_without_a_finding() {
    let home = Home::new();
    let _daemon = home.daemon();
    let bundles = [("demo", 8), ("reviewed", 7), ("forked", 4)];
    for (name, iterations) in bundles {
        let place = Place::folder(&home, name.as_bytes());
        let bundle = format!("{}/tests/repositories/old/{name}.bundle", env!("CARGO_MANIFEST_DIR"));
        place.git(&["clone", "-q", "--mirror", &bundle, "clone.git"]);
        let report = place.at("clone.git").ctl(&["verify", "--json"]).exits(0).json();
        assert_eq!(report["findings"], serde_json::json!([]), "{name}");
        assert_eq!(report["counts"]["iterations"], iterations, "{name}");
    }
}
