//! What a session did, step by step, parsed from stored output. For display only: no decision depends on it.

use protocol::event::Activity;
use protocol::reply::ActivityStep;
use runner_config::ExecutorKind;
use runner_core::feedback::clip_output;
use runner_core::text::fence::clean;

use super::backends;

/// Size limit in bytes of a step of an agent's work.
const MAX_STEP: usize = 4 * 1024;

/// Returns a step in a form for people: safe for a terminal, and truncated.
pub fn bound_step(step: &Activity) -> Activity {
    Activity { what: step.what, text: clip_output(&clean(&step.text), MAX_STEP) }
}

/// Returns the steps in complete lines of output; `offset` is the position of the output in its file.
pub fn parse_steps(kind: ExecutorKind, output: &[u8], offset: u64) -> Vec<ActivityStep> {
    let Some(mut reader) = backends::backend_for(kind).replay_reader() else { return Vec::new() };
    let mut steps = Vec::new();
    let mut at = offset;
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        if let Some(step) = reader.read_line(line.strip_suffix(b"\n").unwrap_or(line)) {
            steps.push(ActivityStep { offset: at, activity: bound_step(&step) });
        }
        at += line.len() as u64;
    }
    steps
}

#[cfg(test)]
mod tests {
    use protocol::event::ActivityKind;

    use super::*;

    #[test]
    fn a_step_is_told_with_the_place_of_its_line() {
        let output = concat!(
            r#"{"type":"thread.started","thread_id":"t"}"#,
            "\nnoise\n",
            r#"{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"a\u001b[31mred"}}"#,
            "\n"
        );
        let steps = parse_steps(ExecutorKind::Codex, output.as_bytes(), 100);
        let [step] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!(step.offset, 100 + output.find(r#"{"type":"item"#).unwrap() as u64);
        assert_eq!((step.activity.what, step.activity.text.as_str()), (ActivityKind::Message, "ared"));
    }

    #[test]
    fn output_of_any_other_program_has_no_steps() {
        assert!(parse_steps(ExecutorKind::Command, b"{}\n", 0).is_empty());
    }
}
