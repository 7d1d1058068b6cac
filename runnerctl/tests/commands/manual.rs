//! The manual pages, as they are written to a folder.

use std::fs;
use std::process::Command;

use runner_testkit::Home;

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

/// Where there is no groff, there is nobody to complain.
#[test]
fn groff_finds_no_fault_in_a_page() {
    let home = Home::new();
    let folder = home.path().join("man1");
    home.ctl(&["man", &folder.display().to_string()]).exits(0);
    for page in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("a page").path()) {
        let Ok(output) = Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z"]).arg(&page).output() else {
            return;
        };
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && words.is_empty(), "{}: {words}", page.display());
    }
}
