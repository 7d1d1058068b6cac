//! Slow tests: the largest outputs and plans, and many repositories. In the nextest profile `faults`.

mod many;

use protocol::tree::{Node, TaskTree};

use crate::broken::{BROKEN, assert_breaks};
use crate::play::{ExpectedRow, LEAVE, RunPlay, leaf, sample};

#[test]
fn agent_that_prints_a_gigabyte_is_captured_within_its_cap() {
    let play =
        RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1").executor("output_limit_bytes = 65536"));
    let print = "echo first\nhead -c 1073741824 /dev/zero | tr '\\0' x\necho\necho last\n";
    play.script().step(1, &format!("{print}answer done 'Printed.'"));
    let seen = play.run_first(4);
    seen.assert_row(&ExpectedRow { verdict: "Accepted", status: "done", guard: "pass", attempts: "0/3" });
    let log = play.record(1, "executor.log");
    assert!(log.starts_with("first\n") && log.ends_with("last\n"), "first and last part are kept");
    assert!(log.len() < 2 * 65536, "{} bytes", log.len());
    assert!(seen.meta.captured_bytes <= 65536, "{} bytes", seen.meta.captured_bytes);
    let total = seen.meta.captured_bytes + seen.meta.dropped_bytes;
    assert_eq!(total, 1_073_741_824 + "first\n\nlast\n".len() as u64);
}

#[test]
fn tree_of_20_000_nodes_is_legal_and_one_more_is_not() {
    // The sample has six.
    let more = |count: usize| {
        move |tree: &mut TaskTree| {
            tree.root
                .children
                .extend((0..count).map(|at| Node { acceptance: Vec::new(), ..leaf(&format!("n{at}"), 9) }));
        }
    };
    let mut tree = sample();
    more(20_000 - 6)(&mut tree);
    let play = RunPlay::with_tree(&tree, |config| config.top("max_iterations = 1"));
    play.script().step(1, "answer retry 'Planned wide.'");
    play.run_first(4).assert_row(&ExpectedRow { verdict: "Retry", ..BROKEN });
    assert_eq!(play.repo.tree("HEAD").root.children.len(), 20_000 - 3);
    let play = RunPlay::new();
    play.script_tree_change(more(20_000 - 5));
    assert_breaks(&play, &format!("{LEAVE}answer retry 'Planned wide.'"), "more than 20000 tasks");
}
