//! The knowledge of the demo's agent: the parts of its goal, and the files each session writes.
//!
//! Data only; `agent` decides which session is due. The files are in `demo/`.

use protocol::tree::ChildSpec;

/// A file by its path in the work tree.
pub(super) type ScriptFile = (&'static str, &'static str);

/// The goal of the run.
pub(super) const GOAL: &str = include_str!("../../../demo/GOAL.md");

/// The repository before the first session.
pub(super) const SCRATCH: &[ScriptFile] = &[
    ("README.md", include_str!("../../../demo/scratch/README.md")),
    ("justfile", include_str!("../../../demo/scratch/justfile")),
    ("ci.sh", include_str!("../../../demo/scratch/ci.sh")),
    ("bin/roman", include_str!("../../../demo/scratch/bin/roman")),
    ("tests/run.sh", include_str!("../../../demo/scratch/tests/run.sh")),
];

/// Converts numbers to numerals.
pub(super) const ENCODE: &[ScriptFile] = &[
    ("lib/encode.sh", include_str!("../../../demo/sessions/encode/encode.sh")),
    ("tests/encode_test.sh", include_str!("../../../demo/sessions/encode/encode_test.sh")),
];

/// Converts numerals to numbers, but takes `IV` for 6.
pub(super) const DECODE_WRONG: &[ScriptFile] = &[
    ("lib/decode.sh", include_str!("../../../demo/sessions/decode-wrong/decode.sh")),
    ("tests/decode_test.sh", include_str!("../../../demo/sessions/decode-wrong/decode_test.sh")),
];

/// Converts numerals to numbers.
pub(super) const DECODE: &[ScriptFile] = &[("lib/decode.sh", include_str!("../../../demo/sessions/decode/decode.sh"))];

/// A command that knows one direction.
pub(super) const COMMAND_HALF: &[ScriptFile] =
    &[("bin/roman", include_str!("../../../demo/sessions/command-half/roman"))];

/// A command that knows both directions.
pub(super) const COMMAND: &[ScriptFile] = &[
    ("bin/roman", include_str!("../../../demo/sessions/command/roman")),
    ("tests/command_test.sh", include_str!("../../../demo/sessions/command/command_test.sh")),
];

/// A command that refuses anything that is neither number nor numeral.
pub(super) const REFUSE: &[ScriptFile] = &[
    ("bin/roman", include_str!("../../../demo/sessions/refuse/roman")),
    ("tests/refuse_test.sh", include_str!("../../../demo/sessions/refuse/refuse_test.sh")),
];

/// A part of the goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DemoTask {
    Encode,
    Decode,
    Command,
    BothWays,
    Refuse,
}

impl DemoTask {
    /// The parts that the goal is split into.
    pub(super) const OF_GOAL: [Self; 3] = [Self::Encode, Self::Decode, Self::Command];
    /// The parts of the command, which is too much for one session.
    pub(super) const OF_COMMAND: [Self; 2] = [Self::BothWays, Self::Refuse];

    /// Finds the part with this title.
    pub(super) fn from_title(title: &str) -> Option<Self> {
        [Self::OF_GOAL.as_slice(), &Self::OF_COMMAND].concat().into_iter().find(|part| part.description().0 == title)
    }

    /// Returns the part as a child for the runner to insert.
    pub(super) fn to_child_spec(self) -> ChildSpec {
        let (title, goal, acceptance) = self.description();
        ChildSpec { title: title.into(), goal: goal.into(), acceptance: vec![acceptance.into()] }
    }

    /// Returns title, goal and acceptance criteria.
    fn description(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Encode => {
                ("Numbers to numerals", "`encode NUMBER` prints a Roman numeral.", "encode 1994 prints MCMXCIV")
            }
            Self::Decode => ("Numerals to numbers", "`decode NUMERAL` prints a number.", "decode MCMXCIV prints 1994"),
            Self::Command => {
                ("The command", "`bin/roman` converts either way and refuses the rest.", "checks cover each case")
            }
            Self::BothWays => {
                ("Either way in one command", "`bin/roman` tells number and numeral apart.", "roman MMXXVI prints 2026")
            }
            Self::Refuse => {
                ("Refuse what is neither", "Anything else is refused with exit code 2.", "roman IIII is refused")
            }
        }
    }
}
