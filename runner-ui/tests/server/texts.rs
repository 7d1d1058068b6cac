//! Texts of records: the original bytes, in ranges, and while they grow.

use crate::kit::{RUN, UiProcess, UiStage};

fn text_path(name: &str) -> String {
    format!("/api/iterations/{RUN}/1/{name}")
}

#[test]
fn a_log_is_its_bytes_and_nothing_a_browser_interprets() {
    let stage = UiStage::with_played_run();
    let log = stage.ui().get(&text_path("executor.log"));
    assert_eq!(log.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(log.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(log.text(), stage.repo.read_record(1, "executor.log"));
    assert!(log.text().contains("says \u{1b}[31mred"));
    for (name, part) in [
        ("prompt", "Goal of a"),
        ("guard.log", "all tests pass"),
        ("diff", "+x"),
        ("output", "It is done."),
        ("events", "\"at\""),
    ] {
        assert!(stage.ui().get(&text_path(name)).text().contains(part), "{name}");
    }
}

#[test]
fn a_range_of_a_log_is_answered_as_the_rules_of_http_say() {
    let stage = UiStage::with_played_run();
    let whole = stage.ui().get(&text_path("prompt"));
    let size = whole.body.len();
    let of = |range: &str| stage.ui().ask("GET", &text_path("prompt"), &[("Range", range)]);
    let part = of("bytes=3-12");
    assert_eq!((part.status, &part.body[..]), (206, &whole.body[3..13]));
    assert_eq!(part.header("content-range"), Some(format!("bytes 3-12/{size}").as_str()));
    let end = of("bytes=-7");
    assert_eq!((end.status, &end.body[..]), (206, &whole.body[size - 7..]));
    let beyond = of(&format!("bytes={size}-"));
    assert_eq!((beyond.status, beyond.code().as_str()), (416, "range_not_satisfiable"));
    assert_eq!(beyond.header("content-range"), Some(format!("bytes */{size}").as_str()));
    assert_eq!((of("bytes=5-2").status, of("lines=1-2").status, of("bytes=0-1,4-5").status), (200, 200, 200));
}

#[test]
fn a_head_tells_the_size_and_a_tag_spares_the_text() {
    let stage = UiStage::with_played_run();
    let whole = stage.ui().get(&text_path("prompt"));
    let head = stage.ui().ask("HEAD", &text_path("prompt"), &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(whole.body.len().to_string().as_str()));
    let tag = whole.header("etag").expect("a tag");
    let again = stage.ui().ask("GET", &text_path("prompt"), &[("If-None-Match", tag)]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    let of_another = stage.ui().ask("GET", &text_path("prompt"), &[("Range", "bytes=0-1"), ("If-Range", "\"other\"")]);
    assert_eq!((of_another.status, of_another.body.len()), (200, whole.body.len()));
}

#[test]
fn a_log_of_many_pieces_comes_whole() {
    let mut stage = UiStage::new();
    let script = stage.repo.script();
    script.always(
        "i=0; while [ $i -lt 40000 ]; do echo \"line $i of a long log\"; i=$((i+1)); done; answer done 'Done.'",
    );
    script.guard_always("exit 0");
    stage.home.run(&stage.repo, &["--id", RUN]).exits(0);
    stage.ui = Some(UiProcess::start(&stage.home, &[]));
    let log = stage.ui().get(&text_path("executor.log"));
    assert!(log.body.len() > 3 * 256 * 1024);
    assert_eq!(log.text(), stage.repo.read_record(1, "executor.log"));
    let middle = stage.ui().ask("GET", &text_path("executor.log"), &[("Range", "bytes=262140-786500")]);
    assert_eq!(middle.body[..], log.body[262_140..=786_500]);
}

#[test]
fn a_log_that_grows_is_followed_from_where_it_ended() {
    let mut stage = UiStage::new();
    let first = stage.repo.script().gate("first");
    let second = stage.repo.script().gate("second");
    stage.repo.script().always("echo one; gate first; echo two; gate second; answer done 'Done.'");
    stage.repo.script().guard_always("exit 0");
    stage.home.ctl_in(&stage.repo, &["start", "--yes", "--id", RUN]).exits(0);
    first.wait_reached();
    stage.ui = Some(UiProcess::start(&stage.home, &[]));
    let mut events = stage.ui().events("?output=1", None);
    let mut seen = stage.ui().get(&text_path("executor.log"));
    while !seen.text().contains("one") {
        events.next_named("output");
        seen = stage.ui().get(&text_path("executor.log"));
    }
    assert_eq!((seen.header("x-runner-complete"), seen.header("etag")), (Some("false"), None));
    let from = format!("bytes={}-", seen.body.len());
    let rest = || stage.ui().ask("GET", &text_path("executor.log"), &[("Range", &from)]);
    assert_eq!(rest().status, 416);
    first.open();
    second.wait_reached();
    while !events.next_named("output").data.contains("two") {}
    assert_eq!((rest().status, rest().text()), (206, "two\n".to_owned()));
    second.open();
    events.next_named("iteration_added");
    assert_eq!(rest().header("x-runner-complete"), Some("true"));
}
