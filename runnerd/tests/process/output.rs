//! Output and input of programs: complete if it fits, bounded otherwise, and never waited for.

use std::fs;

use runner_process::{OutputFollower, OutputStream, ProgramEnd, run_program};
use tokio_util::sync::CancellationToken;

use crate::kit::{RunningProgram, TestFolder, launcher, run_to_end};

#[tokio::test]
async fn prompt_is_read_from_standard_input_to_its_end() {
    let bench = TestFolder::new();
    let mut spec = bench.sh("cat");
    spec.stdin = b"first\nlast".to_vec();
    assert_eq!(run_to_end(spec).await.end, ProgramEnd::Exited(0));
    assert_eq!(bench.log(), "first\nlast");
}

#[tokio::test]
async fn program_without_a_prompt_finds_the_end_at_once_and_no_terminal() {
    let bench = TestFolder::new();
    let report = run_to_end(bench.sh("cat; test ! -t 0 && ! (: </dev/tty) 2>/dev/null")).await;
    assert_eq!(report.end, ProgramEnd::Exited(0));
}

#[tokio::test]
async fn prompt_that_nobody_reads_holds_nothing_up() {
    let bench = TestFolder::new();
    let mut spec = bench.sh("exit 5");
    spec.stdin = vec![b'x'; 1 << 20];
    assert_eq!(run_to_end(spec).await.end, ProgramEnd::Exited(5));
}

#[tokio::test]
async fn prompt_that_is_read_late_is_complete() {
    let bench = TestFolder::new();
    let mut spec = bench.patient("reads-late");
    spec.stdin = vec![b'x'; 1 << 20];
    let mut running = RunningProgram::start(spec);
    running.lines.processes(1).await;
    running.stop.cancel();
    assert_eq!(running.report().await.end, ProgramEnd::Stopped);
    assert!(bench.log().ends_with("READ 1048576\n"), "{}", bench.log());
}

#[tokio::test]
async fn silent_holder_of_the_pipe_is_not_waited_for() {
    let bench = TestFolder::new();
    let report = run_to_end(bench.agent("holds-pipe")).await;
    assert_eq!((report.end, report.survivors), (ProgramEnd::Exited(0), 1));
}

#[tokio::test]
async fn chatty_holder_of_the_pipe_is_not_waited_for_until_it_is_silent() {
    let bench = TestFolder::new();
    let report = run_to_end(bench.agent("chatters")).await;
    assert_eq!((report.end, report.survivors), (ProgramEnd::Exited(0), 1));
}

#[tokio::test]
async fn last_line_of_a_late_writer_is_kept() {
    let bench = TestFolder::new();
    assert_eq!(run_to_end(bench.agent("writes-late")).await.end, ProgramEnd::Exited(0));
    assert!(bench.log().ends_with("LAST LINE\n"), "{}", bench.log());
}

#[tokio::test]
async fn both_streams_are_kept_in_their_order() {
    let bench = TestFolder::new();
    run_to_end(bench.agent("interleaves 20000")).await;
    let expected: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    assert_eq!(bench.log().lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn bytes_are_kept_as_they_came() {
    let bench = TestFolder::new();
    run_to_end(bench.sh(r"printf 'a\000b\377\303'")).await;
    assert_eq!(fs::read(bench.path("log")).unwrap(), b"a\0b\xff\xc3");
}

#[tokio::test]
async fn flood_on_standard_output_is_counted_and_takes_no_memory() {
    assert_flood_is_bounded("floods 1024 1").await;
}

#[tokio::test]
async fn flood_on_standard_error_is_counted_and_takes_no_memory() {
    assert_flood_is_bounded("floods 1024 2").await;
}

/// A line of 1 GiB without an end, and a last line.
async fn assert_flood_is_bounded(call: &str) {
    let bench = TestFolder::new();
    let before = peak_kib();
    let report = run_to_end(bench.agent(call)).await;
    let total = (1 << 30) + "\nLAST LINE\n".len() as u64;
    assert_eq!(report.end, ProgramEnd::Exited(0));
    assert_eq!((report.captured_bytes, report.dropped_bytes), (1 << 20, total - (1 << 20)));
    let log = bench.log();
    assert!(log.starts_with("xxx") && log.ends_with("x\nLAST LINE\n"));
    assert!(log.contains(&format!("x\n[… {} bytes omitted …]\nx", report.dropped_bytes)));
    assert!(peak_kib() - before < 32 << 10, "{} KiB before, {} KiB after", before, peak_kib());
}

/// The peak resident size of this process so far.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Collects the output of each stream.
#[derive(Default)]
struct CollectedOutput {
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl OutputFollower for CollectedOutput {
    fn on_output(&mut self, stream: OutputStream, bytes: &[u8]) {
        match stream {
            OutputStream::Output => self.output.extend_from_slice(bytes),
            OutputStream::Error => self.errors.extend_from_slice(bytes),
        }
    }

    fn has_answered(&mut self) -> bool {
        false
    }
}

#[tokio::test]
async fn streams_that_are_kept_apart_are_heard_to_the_last_byte_and_are_both_in_the_log() {
    let bench = TestFolder::new();
    let mut sink = CollectedOutput::default();
    let mut spec = bench.sh("for i in $(seq 1000); do echo out $i; echo err $i >&2; done; printf last; exit 4");
    spec.separates_output = true;
    spec.follower = Some(Box::new(&mut sink));
    let report = run_program(&launcher(), spec, &CancellationToken::new()).await.unwrap();
    let lines = |word: &str| (1..=1000).map(|at| format!("{word} {at}")).collect::<Vec<_>>().join("\n") + "\n";
    assert_eq!(report.end, ProgramEnd::Exited(4));
    assert_eq!(String::from_utf8(sink.output).unwrap(), lines("out") + "last");
    assert_eq!(String::from_utf8(sink.errors).unwrap(), lines("err"));
    assert_eq!(bench.log().len(), lines("out").len() + lines("err").len() + "last".len());
}
