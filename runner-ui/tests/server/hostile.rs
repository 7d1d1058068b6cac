//! Paths that no page requests: they must never cause a server error, or return a byte from outside a record.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::kit::{HttpReply, RUN, UiStage};

const SECRET: &str = "nobody may read this";

/// Puts a secret next to the repository and a link to it into the record.
fn with_secret(stage: &UiStage) -> String {
    let secret = stage.home.path().join("secret.txt");
    fs::write(&secret, SECRET).expect("a secret");
    let record = stage.repo.path().join(format!(".runner/iterations/{RUN}/0001"));
    for name in ["guard.log", "diff.patch"] {
        fs::remove_file(record.join(name)).expect("it is there");
        symlink(&secret, record.join(name)).expect("a link");
    }
    secret.display().to_string()
}

/// Returns a path in several spellings.
fn spellings(path: &str) -> Vec<String> {
    let encoded = path.replace('/', "%2f").replace('.', "%2e");
    let twice = encoded.replace('%', "%25");
    vec![
        path.to_owned(),
        encoded,
        twice,
        path.replace('/', "%5c"),
        path.replace('/', "/./"),
        format!("/{path}"),
        format!("{path}%00"),
    ]
}

#[track_caller]
fn assert_tells_nothing(reply: &HttpReply, path: &str) {
    assert!((400..500).contains(&reply.status) || is_page(reply), "{path}: {reply:?}");
    assert!(!reply.text().contains(SECRET) && !reply.text().contains("root:x:"), "{path}: {reply:?}");
}

fn is_page(reply: &HttpReply) -> bool {
    reply.status == 200 && reply.text().starts_with("<!doctype html>")
}

#[test]
fn no_spelling_of_a_path_leads_out_of_a_record() {
    let stage = UiStage::with_played_run();
    let secret = with_secret(&stage);
    let up = "../../../../../../../../../..";
    let targets =
        [format!("{up}{secret}"), secret, format!("{up}/etc/passwd"), "/etc/passwd".into(), ".git/config".into()];
    for target in targets.iter().flat_map(|target| spellings(target)) {
        let paths = [
            format!("/{target}"),
            format!("/assets/{target}"),
            format!("/r/../{target}"),
            format!("/api/{target}"),
            format!("/api/repos/{target}"),
            format!("/api/repos/{target}/tree"),
            format!("/api/iterations/{target}"),
            format!("/api/iterations/{target}/1/guard.log"),
            format!("/api/iterations/{RUN}/{target}"),
            format!("/api/iterations/{RUN}/{target}/guard.log"),
            format!("/api/iterations/{RUN}/1/{target}"),
            format!("/api/baseline.log?run={target}"),
            format!("/api/iterations/{RUN}/1/../../../{target}"),
        ];
        for path in paths {
            assert_tells_nothing(&stage.ui().get(&path), &path);
        }
    }
}

#[test]
fn a_link_in_a_record_is_not_followed() {
    let stage = UiStage::with_played_run();
    with_secret(&stage);
    for name in ["guard.log", "diff"] {
        let reply = stage.ui().get(&format!("/api/iterations/{RUN}/1/{name}"));
        assert_ne!(reply.status, 200, "{name}");
        assert!(!reply.text().contains(SECRET), "{reply:?}");
    }
}

#[test]
fn whatever_is_asked_for_is_answered_and_nothing_breaks() {
    let stage = UiStage::with_played_run();
    let part = prop_oneof![
        Just("api".to_owned()),
        Just("repos".to_owned()),
        Just("iterations".to_owned()),
        Just(RUN.to_owned()),
        Just("1".to_owned()),
        Just("tree".to_owned()),
        Just("guard.log".to_owned()),
        Just("..".to_owned()),
        Just(String::new()),
        Just("%2e%2e".to_owned()),
        Just("%ff".to_owned()),
        Just("events%20".to_owned()),
        "[ -~&&[^ #?/]]{0,20}",
        "(%[0-9a-f]{2}){0,8}",
        "[0-9]{1,30}",
    ];
    let query = prop_oneof![Just(String::new()), "\\?(run|from|repo)=[ -~&&[^ #]]{0,30}"];
    let path = (proptest::collection::vec(part, 0..8), query)
        .prop_map(|(parts, query)| format!("/{}{query}", parts.join("/")));
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let reply = runner.run(&path, |path| {
        let reply = stage.ui().get(&path);
        prop_assert!((200..500).contains(&reply.status), "{}: {:?}", path, reply);
        prop_assert!(reply.header("content-security-policy").is_some() || reply.status == 400, "{}: {:?}", path, reply);
        Ok(())
    });
    reply.expect("every path is answered");
    assert_eq!(stage.ui().get("/api/tree").status, 200);
}
