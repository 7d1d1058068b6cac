//! Arbitrary output of programs. Rows 36 to 41 and 44.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use protocol::meta::IterationMeta;
use runner_testkit::invariants::{list_verdicts, print_figure};
use runner_testkit::{Home, ProgramOutput, Repo};

use crate::checks::assert_survived;

/// Sequences that a terminal obeys: a title, a cleared screen, C1 and DEL, reversed text, an overwritten line.
const ATTACK: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{7f}\u{202e}gnp\r\u{8}\u{0}";

/// A run of one iteration.
struct SingleRun {
    home: Home,
    repo: Repo,
}

impl SingleRun {
    fn new(step: &str) -> Self {
        let home = Home::new();
        let repo = home.scripted_repo("one");
        repo.script().step(1, &format!("echo mine > mine.txt\n{step}\nanswer done 'It is done.'"));
        Self { home, repo }
    }

    fn run(&self) -> ProgramOutput {
        self.home.run(&self.repo, &["-m", "Do it", "--id", "once"])
    }

    fn record(&self, file: &str) -> Vec<u8> {
        fs::read(self.repo.path().join(".runner/iterations/once/0001").join(file)).expect("the record is there")
    }

    fn meta(&self) -> IterationMeta {
        serde_json::from_slice(&self.record("meta.json")).expect("the record has its facts")
    }

    /// Asserts that the log has the beginning and the end of the output, and a correct count.
    #[track_caller]
    fn assert_bounded(&self, printed: u64) {
        let log = self.record("executor.log");
        let meta = self.meta();
        assert_eq!(meta.captured_bytes + meta.dropped_bytes, printed);
        assert_eq!(meta.captured_bytes, 1 << 20);
        assert!(log.len() < (1 << 20) + 100, "the log has {} bytes", log.len());
        let count = format!("\n[… {} bytes omitted …]\n", meta.dropped_bytes);
        assert!(log.windows(count.len()).any(|window| window == count.as_bytes()), "no line counts what is missing");
        assert!(log.ends_with(b"LAST\n"), "the end is missing");
    }

    #[track_caller]
    fn assert_done(&self) {
        assert_eq!(list_verdicts(&self.repo), ["Accepted"]);
        assert_survived(&self.home, &self.repo, &["mine\n"]);
    }
}

/// Peak of a process's resident memory in KiB, without its program, which is large in test builds.
fn peak_kib(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let kib = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells it");
        line.trim().trim_end_matches(" kB").parse().expect("it is a number")
    };
    let peak = kib("VmHWM:");
    let program = kib("RssFile:");
    print_figure(&format!("peak {peak} KiB, of which the program has {program} KiB"));
    peak - program
}

/// A flood of 64 MiB and five bytes, of lines or of one line.
const FLOOD: u64 = (64 << 20) + 5;

/// Runs a session that prints a flood, which must not fill disk or memory.
fn assert_withstands(flood: &str) {
    let once = SingleRun::new(flood);
    let daemon = once.home.daemon();
    once.run().exits(0);
    once.assert_bounded(FLOOD);
    let peak = peak_kib(daemon.pid());
    assert!(peak < 50 * 1024, "the daemon had {peak} KiB");
    once.assert_done();
}

#[test]
fn row_36_flood_is_kept_to_its_beginning_and_its_end() {
    assert_withstands("yes | head -c 67108864; echo LAST");
}

#[test]
fn row_37_flood_on_both_streams_is_one_log() {
    assert_withstands("yes | head -c 33554432; yes | head -c 33554432 >&2; echo LAST >&2");
}

#[test]
fn row_38_endless_line_grows_nothing() {
    assert_withstands("head -c 67108864 /dev/zero | tr '\\0' x; echo LAST");
}

#[test]
fn row_39_bytes_that_are_no_text_are_kept_and_shown_as_text() {
    let once = SingleRun::new("printf 'a\\000b\\377\\376 cut: \\303'");
    let _daemon = once.home.daemon();
    once.run().exits(0);
    assert_eq!(once.record("executor.log"), b"a\0b\xff\xfe cut: \xc3");
    let shown = once.home.ctl_in(&once.repo, &["log", "1", "--agent"]);
    assert!(shown.exits(0).stdout.starts_with('a'), "{:?}", shown.stdout);
    assert_harmless(&shown);
    once.assert_done();
}

#[test]
fn row_40_both_streams_are_in_the_order_in_which_they_were_written() {
    let once = SingleRun::new("i=0; while [ $i -lt 2000 ]; do echo $i; echo $((i + 1)) >&2; i=$((i + 2)); done");
    let _daemon = once.home.daemon();
    once.run().exits(0);
    let log = String::from_utf8(once.record("executor.log")).expect("it is text");
    let numbers: Vec<usize> = log.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(numbers, (0..2000).collect::<Vec<_>>());
    once.assert_done();
}

/// Asserts that the output contains no terminal sequences except the colours that the client sets.
#[track_caller]
fn assert_harmless(output: &ProgramOutput) {
    for text in [&output.stdout, &output.stderr] {
        let mut rest = text.as_str();
        while let Some(at) = rest.find(|c: char| c.is_control() && !matches!(c, '\n' | '\t') || c == '\u{202e}') {
            let colour = rest[at..].strip_prefix("\u{1b}[").and_then(|after| after.split_once('m'));
            let is_colour = colour.is_some_and(|(codes, _)| codes.chars().all(|c| c.is_ascii_digit() || c == ';'));
            assert!(is_colour, "a terminal obeys {:?}", &rest[at..rest.len().min(at + 40)]);
            rest = colour.expect("it is a colour").1;
        }
    }
}

#[test]
fn row_41_nothing_that_an_agent_writes_anywhere_is_obeyed_by_a_terminal() {
    let once = SingleRun::new("");
    let json = serde_json::to_string(ATTACK).expect("a string");
    let text = json.trim_matches('"');
    let repo = &once.repo;
    let script = once.repo.script();
    script.file("attack", ATTACK).file(
        "answer.json",
        &format!(
            r#"{{"status":"decomposed","summary":"sum {text}","children":[{{"title":"T {text}","goal":"G {text}","acceptance":["A {text}"]}}]}}"#
        ),
    );
    let plant = "cat \"$kit/files/attack\"; name=$(printf 'f\\033]0;owned\\007\\177\\302\\233\\r')\n\
        echo mine > mine.txt; echo x > \"$name\"; echo x > \".env.$name\"; echo x > \".runner/state/$name\"\n\
        cat \"$kit/files/attack\" >> .runner/state/questions.md; git branch \"$(printf 'b\\302\\233')\"\n";
    script.step(1, &format!("{plant}cp \"$kit/files/answer.json\" \"$RUNNER_OUTPUT\""));
    script.always(&format!("{plant}cat \"$kit/files/attack\" > \"$RUNNER_OUTPUT\"; exit 3"));
    let _daemon = once.home.daemon();
    let started = once.run();
    assert_harmless(started.exits(9));
    let commands: [&[&str]; 11] = [
        &["status"],
        &["tree"],
        &["select"],
        &["validate"],
        &["repos"],
        &["log"],
        &["log", "1"],
        &["log", "1", "--agent"],
        &["log", "1", "--diff"],
        &["log", "1", "--output"],
        &["log", "2", "--prompt"],
    ];
    for command in commands {
        for options in [&["--color", "always"][..], &["--json"]] {
            let output = once.home.ctl_in(repo, &[options, command].concat());
            assert_ne!(output.stdout, "", "{command:?} shows nothing: {}", output.stderr);
            assert_harmless(&output);
        }
    }
    let shown = once.home.ctl_in(repo, &["tree", "--json"]).json().to_string();
    assert!(shown.contains("G "), "the tree has what was planted: {shown}");
    assert_harmless(&once.home.ctl_in(repo, &["--color", "always", "start", "--id", ATTACK.trim_end_matches('\0')]));
    assert_survived(&once.home, repo, &["mine\n"]);
}

#[test]
fn row_41_configuration_of_a_clone_is_shown_and_not_obeyed() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let json = serde_json::to_string(ATTACK.trim_end_matches('\0')).expect("a string");
    let clone = home.path().join("repos/clone");
    let config = repo.config().text();
    let argument = format!("\"guard-one\", {}]", json.replace('\u{7f}', "\\u007f"));
    let config = config.replace("\"guard-one\"]", &argument);
    repo.write(".runner/state/config.toml", &config);
    repo.commit("Configure it otherwise");
    repo.git(&["clone", "-q", ".", &clone.display().to_string()]);
    let _daemon = home.daemon();
    let path = clone.display().to_string();
    let refused = home.ctl(&["--color", "always", "start", "-m", "Do it", &path]);
    assert!(refused.exits(6).stderr.contains("owned"), "it is not shown: {}", refused.stderr);
    assert_harmless(&refused);
    assert_harmless(&home.ctl(&["--json", "start", "-m", "Do it", &path]));
}

/// Subscribes to everything, including output, and never reads an event.
fn deaf_subscriber(home: &Home) -> UnixStream {
    let mut stream = UnixStream::connect(home.socket()).expect("the daemon listens");
    let upgrade = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).expect("the daemon reads");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("the daemon answers");
        head.push(byte[0]);
    }
    let params = r#"{"path":null,"since":null,"output":true}"#;
    let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":[{params}]}}"#);
    let length = u8::try_from(call.len()).expect("the call is short");
    // A text frame with a mask of zeros; from 126 bytes on, the length takes two more bytes.
    let frame = [&[0x81, 0x80 | 0x7e, 0, length, 0, 0, 0, 0][..], call.as_bytes()].concat();
    stream.write_all(&frame).expect("the daemon reads");
    let mut reply = [0; 4096];
    let read = stream.read(&mut reply).expect("the daemon answers");
    let reply = String::from_utf8_lossy(&reply[..read]);
    assert!(reply.contains(r#""result":"#), "{reply}");
    stream
}

#[test]
fn row_44_client_that_stops_reading_holds_nothing_up_and_costs_no_memory() {
    let once = SingleRun::new("head -c 67108864 /dev/zero; echo LAST");
    let daemon = once.home.daemon();
    let _deaf: Vec<UnixStream> = (0..2).map(|_| deaf_subscriber(&once.home)).collect();
    once.run().exits(0);
    once.assert_bounded(FLOOD);
    let peak = peak_kib(daemon.pid());
    assert!(peak < 50 * 1024, "the daemon had {peak} KiB");
    once.home.ctl_in(&once.repo, &["status"]).exits(0);
    once.assert_done();
}

/// Slow tests: a gigabyte of output, and whether the daemon responds meanwhile.
mod slow {
    use std::time::{Duration, Instant};

    use runner_testkit::invariants::print_figure;

    use super::{SingleRun, peak_kib};

    /// Size of a flood of 1 GiB in bytes, including its last line.
    const GIBIBYTE: u64 = (1 << 30) + 5;

    fn median(mut times: Vec<Duration>) -> Duration {
        times.sort_unstable();
        times[times.len() / 2]
    }

    #[test]
    fn row_36_gibibyte_leaves_the_daemon_small_and_answering() {
        let once = SingleRun::new("gate flood; yes | head -c 1073741824; echo LAST");
        let gate = once.repo.script().gate("flood");
        let daemon = once.home.daemon();
        once.home.ctl_in(&once.repo, &["start", "--yes", "-m", "Do it", "--id", "once"]).exits(0);
        gate.wait_reached();
        let client = once.home.client();
        let ask = || {
            let asked_at = Instant::now();
            client.status(once.repo.path());
            asked_at.elapsed()
        };
        let idle = median((0..50).map(|_| ask()).collect());
        gate.open();
        let mut busy = Vec::new();
        while client.run(once.repo.path()).summary.state == protocol::words::RunStatus::Running {
            busy.push(ask());
        }
        let count = busy.len();
        let busy = median(busy);
        print_figure(&format!("status: idle {idle:?}, in the flood {busy:?} ({count} asked)"));
        assert!(busy < Duration::from_millis(50).max(20 * idle), "{busy:?} against {idle:?}");
        assert!(peak_kib(daemon.pid()) < 50 * 1024);
        once.assert_bounded(GIBIBYTE);
        once.assert_done();
    }
}
