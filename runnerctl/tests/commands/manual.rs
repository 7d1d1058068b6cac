//! The manual pages as written to a folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use runner_testkit::{Home, binary};

/// The other programs, whose pages are written by hand.
const OTHERS: [(&str, &str); 2] = [
    ("runnerd", concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/man/runnerd.1")),
    ("runner-ui", concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/man/runner-ui.1")),
];

#[test]
fn a_folder_gets_a_page_for_every_command() {
    let home = Home::new();
    let folder = home.path().join("share/man1");
    let reply = home.ctl(&["man", &folder.display().to_string(), "--json"]).exits(0).json();
    let pages = reply["pages"].as_array().expect("pages");
    assert_eq!(pages.len(), fs::read_dir(&folder).expect("a folder").count());
    for page in ["runnerctl.1", "runnerctl-start.1", "runnerctl-config-set.1"] {
        assert!(folder.join(page).is_file(), "{page}");
    }
    let first = fs::read_to_string(folder.join("runnerctl.1")).expect("a page");
    assert_eq!(home.ctl(&["man"]).exits(0).stdout, first);
}

/// Without groff, the pages are not checked.
#[test]
fn groff_finds_no_fault_in_a_page() {
    let home = Home::new();
    let folder = home.path().join("man1");
    home.ctl(&["man", &folder.display().to_string()]).exits(0);
    let written = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("a page").path());
    for page in written.chain(OTHERS.map(|(_, page)| PathBuf::from(page))) {
        let Ok(output) = Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z"]).arg(&page).output() else {
            return;
        };
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && words.is_empty(), "{}: {words}", page.display());
    }
}

#[test]
fn a_page_that_is_written_by_hand_has_the_options_of_its_program_and_no_others() {
    let help = |program: &str, args: &[&str]| {
        let output = Command::new(binary(program)).args(args).output().expect("the program runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let options = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned).collect()
    };
    for (program, page) in OTHERS {
        let page = fs::read_to_string(page).expect("a page").replace('\\', "");
        let mut known = options(&help(program, &["--help"]));
        if program == "runnerd" {
            known.append(&mut options(&help(program, &["drive", "--help"])));
        }
        assert_eq!(options(&page), known, "{program}");
    }
}
